"""Recipes: which rules, with which parameters, in which order."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.language import UNKNOWN, known_languages, knows_language
from c4pipe.io.words import suggestion
from c4pipe.recipes.rule import Rule
from c4pipe.recipes.rules import RULES
from c4pipe.wet.text_layout import is_text

STAGES = {
    "read": "the record's body",
    "readable": "the page as crawled; a page that is dropped here does not count as a capture of its URL",
    "crawled": "the page as crawled",
    "lines": "each line by itself, in this order; a page rule sees the lines that are kept so far",
    "cleaned": "the kept lines of the page",
    "corpus": "all pages together",
    "final": "the page without its repeated spans",
}
"""The stages of a recipe, in their order. A dropped page or line counts for the first rule that drops it."""


MOST_MINIMA = 1024
"""Bands times rows of the rule `near_duplicate`: each page's signature has as many numbers."""

_BEHIND_OTHERS = ("repeated_span", "validation")  # other rules of their stage come before them


@dataclass(frozen=True)
class Step:
    """A rule of the table with the parameters that a recipe gives it."""

    rule: str
    parameters: Mapping[str, Any]

    @property
    def definition(self) -> Rule:
        """The rule in the rule table."""
        return RULES[self.rule]

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters that the rule's function takes."""
        return {name: value for name, value in self.parameters.items() if name not in self.definition.elsewhere}

    def measured(self, fact: Any) -> Any:
        """Returns the number that the rule compares with its limit, from its fact; the fact where it has no measure."""
        measure = self.definition.measure
        if measure is None:
            return fact
        given = {name: self.parameters[name] for name in measure.parameters}
        return measure.function(fact, **measure.constants, **given)


def step(rule: str, **parameters: Any) -> Step:
    """Returns a step of `rule`; other parameters have the table's values. Raises KeyError for an unknown parameter."""
    known = RULES[rule].parameters
    for name in parameters:
        if name not in known:
            raise KeyError(f"rule {rule} has no parameter {name}; it has {', '.join(known) or 'none'}")
    return Step(rule, MappingProxyType({**known, **parameters}))


@dataclass(frozen=True)
class Recipe:
    """The rules of a corpus, by stage (STAGES). Two recipes with the same fingerprint make the same corpus.

    Attributes:
        name: its name.
        description: one line about it.
        read, readable, crawled, lines, cleaned, corpus, final: the rules of each stage, in their order.
        extraction: how the text of pages is made from HTML (see `wet.find_extraction`), or where documents lie in text
            files (`wet.TextLayout.extraction`); "" for the text of WET files.

    Raises UsageError where its rules contradict each other, or a rule stands twice in a stage.
    """

    name: str
    description: str
    read: tuple[Step, ...]
    readable: tuple[Step, ...]
    crawled: tuple[Step, ...]
    lines: tuple[Step, ...]
    cleaned: tuple[Step, ...]
    corpus: tuple[Step, ...]
    final: tuple[Step, ...]
    extraction: str = ""

    def __post_init__(self) -> None:
        for stage in STAGES:
            rules = [each.rule for each in getattr(self, stage)]
            twice = next((each for each in rules if rules.count(each) > 1), None)
            if twice:  # the second one could not be told from the first, neither in the counts nor by its parameters
                where = f"stands twice in the stage {stage}"
                raise UsageError(f"recipe {self.name}: the rule {twice} {where}: name it once")
        bad_words = self.find("bad_words")
        if bad_words and not self.find("language"):
            raise UsageError(
                f"recipe {self.name}: bad_words needs the page's language: keep the rule language, or switch off both"
            )
        if bad_words and bad_words in self.final and bad_words.parameters["searched_text"] == "crawled":
            raise UsageError(
                f"recipe {self.name}: bad_words runs after dedup, where only the cleaned text is known: "
                "it needs searched_text = 'cleaned'"
            )
        by_spans = self.parameters("few_sentences_left").get("count") == "remaining sentences"
        if by_spans and self.parameters("repeated_span").get("unit", "sentence") != "sentence":
            raise UsageError(
                f"recipe {self.name}: repeated_span removes lines, so few_sentences_left needs "
                "count = 'punkt on the whole text'"
            )

        near = self.parameters("near_duplicate")
        if near and not near["bands"] * near["rows"] <= MOST_MINIMA:
            raise UsageError(
                f"recipe {self.name}: near_duplicate has {near['bands']:,} bands of {near['rows']:,} rows: "
                f"give at most {MOST_MINIMA:,} together (bands times rows)"
            )

    def steps(self) -> Iterator[tuple[str, Step]]:
        """Yields (stage, step) in the order of evaluation."""
        for stage in STAGES:
            for each in getattr(self, stage):
                yield stage, each

    def applied_steps(self) -> Iterator[tuple[str, Step]]:
        """Yields what `steps` does, and `empty` also where the recipe does not list it.

        A page without a line is dropped before the rules of the stages `cleaned` and `final`, by `few_sentences` or
        `few_sentences_left` where the recipe has them, else by `empty`.
        """
        for stage in STAGES:
            if stage == "cleaned" and not self.find("empty"):
                yield stage, step("empty")
            for each in getattr(self, stage):
                yield stage, each

    def find(self, rule: str) -> Step | None:
        """Returns the step of `rule`, or None where the recipe has none."""
        return self._by_rule.get(rule)

    @cached_property
    def _by_rule(self) -> Mapping[str, Step]:
        """The first step of each rule; used several times for each page."""
        return {each.rule: each for _, each in reversed(list(self.steps()))}

    def parameters(self, rule: str) -> Mapping[str, Any]:
        """Returns the parameters of `rule`; empty where the recipe has none."""
        first = self._by_rule.get(rule)
        return first.parameters if first else {}

    @property
    def page_keys(self) -> tuple[str, bool]:
        """How a page's key is computed: the parameter `scheme` of `normalised_url`, and whether the key is an MD5.

        See `filters.urls.page_key`.
        """
        by_md5 = self.parameters("repeated_span").get("keep_smallest") == "url md5"
        return self.parameters("normalised_url")["scheme"], by_md5

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that the recipe keeps, in their order; `und` where it has no rule `language`."""
        return tuple(self.parameters("language").get("languages", (UNKNOWN,)))

    @property
    def input_format(self) -> str:
        """The format of the files that the pages come from, as it is shown: `WET`, `WARC` or `text`."""
        if is_text(self.extraction):
            return "text"
        return "WARC" if self.extraction else "WET"

    def with_languages(self, languages: Sequence[str]) -> "Recipe":
        """Returns the recipe with other languages to keep.

        Raises UsageError for a language that its detector does not know, for a repeated one, and for an empty list.
        """
        detector = self.parameters("language").get("detector")
        if not detector:
            raise UsageError(f"recipe {self.name} has no rule language, so it can't select languages: leave them out")
        if not languages or "" in languages:
            raise UsageError("no language is named: give one or more codes, such as en,de")
        known = known_languages(detector)
        for language in languages:
            if not knows_language(detector, language):
                expected = ", ".join(known) or "labels of its model, such as en or eng_Latn"
                raise UsageError(
                    f"unknown language {language!r}: {detector} knows {expected}" + suggestion(language, known)
                )
        if len(set(languages)) < len(languages):
            raise UsageError(f"a language is named twice: {','.join(languages)}; name each once")
        return self.change("language", languages=tuple(languages))

    def with_extraction(self, extraction: str) -> "Recipe":
        """Returns the recipe for text that is made from HTML or read in this way, or for that of WET files ("")."""
        return replace(self, extraction=extraction)

    def change(self, rule: str, **parameters: Any) -> "Recipe":
        """Returns the recipe with other parameters of one of its rules. Raises KeyError for an unknown parameter."""
        return self._map(lambda each: step(rule, **{**each.parameters, **parameters}) if each.rule == rule else each)

    def adding(self, stage: str, *new: Step) -> "Recipe":
        """Returns the recipe with more rules in a stage: behind the others, but before repeated spans and the split."""
        steps = getattr(self, stage)
        place = next((at for at, each in enumerate(steps) if each.rule in _BEHIND_OTHERS), len(steps))
        more: Any = {stage: (*steps[:place], *new, *steps[place:])}
        return replace(self, **more)

    def without(self, *rules: str) -> "Recipe":
        """Returns the recipe without some rules. `empty` replaces `few_sentences` and `few_sentences_left`."""

        def remaining(each: Step) -> Step | None:
            if each.rule not in rules:
                return each
            return step("empty") if each.rule in ("few_sentences", "few_sentences_left") else None

        return self._map(remaining)

    def _map(self, function: Callable[[Step], Step | None]) -> "Recipe":
        stages: dict[str, Any] = {
            stage: tuple(new for each in getattr(self, stage) if (new := function(each)) is not None)
            for stage in STAGES
        }
        return replace(self, **stages)

    def to_json(self) -> dict[str, Any]:
        """Returns the recipe as plain JSON values, for `from_json`."""
        return {
            "name": self.name,
            "description": self.description,
            **({"extraction": self.extraction} if self.extraction else {}),
            **{stage: [{"rule": each.rule, **each.parameters} for each in getattr(self, stage)] for stage in STAGES},
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Recipe":
        """Returns the recipe of which `to_json` returned these values."""
        return cls(
            values["name"],
            values["description"],
            extraction=values.get("extraction", ""),
            **{stage: tuple(step(**_frozen(each)) for each in values[stage]) for stage in STAGES},
        )

    def fingerprint(self, lists: Mapping[str, str]) -> str:
        """Returns a short hash of the rules, their parameters and order, and the digests of the lists they use.

        For text from HTML or text files, of the extraction, too.
        """
        rules = {stage: self.to_json()[stage] for stage in STAGES}
        if self.extraction:
            rules["extraction"] = self.extraction
        text = json.dumps([rules, dict(lists)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _frozen(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
