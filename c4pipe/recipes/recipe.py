"""Recipes: which rules, with which parameters, in which order."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.language import UNKNOWN, known_languages
from c4pipe.recipes.rules import RULES, Rule

STAGES = {
    "read": "the record's body",
    "readable": "the page as crawled; a page that falls here does not count as a capture of its URL",
    "crawled": "the page as crawled",
    "lines": "each line by itself, in this order; a page rule sees the lines that came so far",
    "cleaned": "what the lines left of the page",
    "corpus": "all pages together",
    "final": "what the corpus left of the page",
}
"""The stages of a recipe, in their order. A dropped page or line counts for the first rule that drops it."""


@dataclass(frozen=True)
class Step:
    """A rule of the table with the parameters that a recipe gives it."""

    rule: str
    parameters: Mapping[str, Any]

    @property
    def definition(self) -> Rule:
        """The rule's row of the table."""
        return RULES[self.rule]

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters that are the function's."""
        return {name: value for name, value in self.parameters.items() if name not in self.definition.elsewhere}


def step(rule: str, **parameters: Any) -> Step:
    """Makes a step of `rule`; parameters not given are the table's. Raises KeyError for an unknown one."""
    known = RULES[rule].parameters
    for name in parameters:
        if name not in known:
            raise KeyError(f"rule {rule} has no parameter {name}; it has {', '.join(known) or 'none'}")
    return Step(rule, MappingProxyType({**known, **parameters}))


@dataclass(frozen=True)
class Recipe:
    """The rules of a corpus, by stage (STAGES). Two recipes with one fingerprint make the same corpus.

    Raises UsageError where its rules don't go together.
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

    def __post_init__(self) -> None:
        bad_words = self.find("bad_words")
        if bad_words and not self.find("language"):
            raise UsageError(f"recipe {self.name}: bad_words needs a page's language: keep rule language, or drop both")
        if bad_words and bad_words in self.final and bad_words.parameters["searched_text"] == "crawled":
            raise UsageError(f"recipe {self.name}: bad_words comes after dedup, where pages are no more 'crawled'")
        by_spans = self.parameters("few_sentences_left").get("count") == "remaining sentences"
        if by_spans and self.parameters("repeated_span").get("unit", "sentence") != "sentence":
            raise UsageError(
                f"recipe {self.name}: repeated_span takes lines, so few_sentences_left needs "
                "count = 'punkt on the whole text'"
            )

    def steps(self) -> Iterator[tuple[str, Step]]:
        """Yields (stage, step) in the order of evaluation."""
        for stage in STAGES:
            for each in getattr(self, stage):
                yield stage, each

    def find(self, rule: str) -> Step | None:
        """Returns the step of `rule`, or None where the recipe has none."""
        return self._by_rule.get(rule)

    @cached_property
    def _by_rule(self) -> Mapping[str, Step]:
        """The first step of each rule: asked for a few times for every page."""
        return {each.rule: each for _, each in reversed(list(self.steps()))}

    def parameters(self, rule: str) -> Mapping[str, Any]:
        """Returns the parameters of `rule`; empty where the recipe has none."""
        found = self.find(rule)
        return found.parameters if found else {}

    @property
    def page_keys(self) -> tuple[str, bool]:
        """How a page's key is made: where its URL loses the scheme, and whether it is an MD5 (see `page.page_key`)."""
        by_md5 = self.parameters("repeated_span").get("keep_smallest") == "url md5"
        return self.parameters("normalised_url")["scheme"], by_md5

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that the recipe keeps, in the order given; `und` where it does not ask."""
        return tuple(self.parameters("language").get("languages", (UNKNOWN,)))

    def with_languages(self, languages: Sequence[str]) -> "Recipe":
        """Returns the recipe with other languages to keep.

        Raises UsageError for a language that its detector does not know, one named twice, or none at all.
        """
        asked = self.parameters("language")
        if not asked:
            raise UsageError(f"recipe {self.name} does not tell languages apart")
        if not languages or "" in languages:
            raise UsageError("no language is named: give one or more codes, such as en,de")
        known = known_languages(asked["detector"])
        for language in languages:
            if language not in known:
                raise UsageError(f"unknown language {language!r}: {asked['detector']} knows {', '.join(known)}")
        if len(set(languages)) < len(languages):
            raise UsageError(f"a language is named twice: {','.join(languages)}")
        return self.change("language", languages=tuple(languages))

    def change(self, rule: str, **parameters: Any) -> "Recipe":
        """Returns the recipe with other parameters of a rule that it has. Raises KeyError for unknown ones."""
        return self._map(lambda each: step(rule, **{**each.parameters, **parameters}) if each.rule == rule else each)

    def without(self, *rules: str) -> "Recipe":
        """Returns the recipe without some rules. An empty page is never kept: `empty` stands in where it has to."""
        stands_in = {"few_sentences": "cleaned", "few_sentences_left": "final"}

        def left(each: Step) -> Step | None:
            if each.rule not in rules:
                return each
            return step("empty") if each.rule in stands_in else None

        return self._map(left)

    def _map(self, function: Callable[[Step], Step | None]) -> "Recipe":
        stages: dict[str, Any] = {
            stage: tuple(new for each in getattr(self, stage) if (new := function(each)) is not None)
            for stage in STAGES
        }
        return replace(self, **stages)

    def to_json(self) -> dict[str, Any]:
        """Returns the recipe as plain JSON values; `from_json` takes them back."""
        return {
            "name": self.name,
            "description": self.description,
            **{stage: [{"rule": each.rule, **each.parameters} for each in getattr(self, stage)] for stage in STAGES},
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Recipe":
        """Returns the recipe that `to_json` gave."""
        return cls(
            values["name"],
            values["description"],
            **{stage: tuple(step(**_frozen(each)) for each in values[stage]) for stage in STAGES},
        )

    def fingerprint(self, lists: Mapping[str, str]) -> str:
        """Returns a short hash of the rules, their parameters and order, and the digests of the lists they use."""
        rules = {stage: self.to_json()[stage] for stage in STAGES}
        text = json.dumps([rules, dict(lists)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _frozen(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
