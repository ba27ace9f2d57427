"""Recipes: which rules, with which parameters, in which order."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.language import LANGUAGES
from c4pipe.rules import RULES, Rule

STAGES = {
    "readable": "the page as crawled; a page that falls here does not count as a capture of its URL",
    "crawled": "the page as crawled",
    "lines": "each line by itself, in this order",
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


def step(rule: str, **parameters: Any) -> Step:
    """Makes a step of `rule`; parameters not given are the table's. Raises KeyError for an unknown one."""
    known = RULES[rule].parameters
    for name in parameters:
        if name not in known:
            raise KeyError(f"rule {rule} has no parameter {name}; it has {', '.join(known) or 'none'}")
    return Step(rule, MappingProxyType({**known, **parameters}))


@dataclass(frozen=True)
class Recipe:
    """The rules of a corpus, by stage (STAGES). Two recipes with one fingerprint make the same corpus."""

    name: str
    description: str
    readable: tuple[Step, ...]
    crawled: tuple[Step, ...]
    lines: tuple[Step, ...]
    cleaned: tuple[Step, ...]
    corpus: tuple[Step, ...]
    final: tuple[Step, ...]

    def steps(self) -> Iterator[tuple[str, Step]]:
        """Yields (stage, step) in the order of evaluation."""
        for stage in STAGES:
            for each in getattr(self, stage):
                yield stage, each

    def find(self, rule: str) -> Step | None:
        """Returns the step of `rule`, or None where the recipe has none."""
        return next((each for _, each in self.steps() if each.rule == rule), None)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that the recipe keeps, in the order given."""
        language = self.find("language")
        return tuple(language.parameters["languages"]) if language else ()

    def with_languages(self, languages: Sequence[str]) -> "Recipe":
        """Returns the recipe with other languages to keep.

        Raises UsageError for a language that langdetect does not know, one named twice, or none at all.
        """
        if not languages or "" in languages:
            raise UsageError("--languages names no language: give one or more codes, such as en,de")
        for language in languages:
            if language not in LANGUAGES:
                raise UsageError(f"unknown language {language!r}: langdetect knows {', '.join(LANGUAGES)}")
        if len(set(languages)) < len(languages):
            raise UsageError(f"--languages {','.join(languages)} names a language twice")
        cleaned = tuple(
            replace(each, parameters=MappingProxyType({**each.parameters, "languages": tuple(languages)}))
            if each.rule == "language"
            else each
            for each in self.cleaned
        )
        return replace(self, cleaned=cleaned)

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


C4 = Recipe(
    name="c4",
    description="C4 as the T5 paper describes it, read literally and made safe where the paper is silent",
    readable=(step("incomplete"), step("too_long")),
    crawled=(step("lorem_ipsum"), step("curly_bracket")),
    lines=(
        step("long_word"),
        step("citation"),
        step("no_end_mark"),
        step("few_words"),
        step("javascript"),
        step("policy"),
    ),
    cleaned=(step("language"), step("few_sentences"), step("bad_words")),
    corpus=(step("normalised_url"), step("older_copy"), step("repeated_span")),
    final=(step("few_sentences_left"), step("validation")),
)

RECIPES: Mapping[str, Recipe] = {"c4": C4}
"""The recipes that come with c4pipe, by name."""


def find_recipe(name: str) -> Recipe:
    """Returns the recipe of that name. Raises UsageError, with the known names, where there is none."""
    if name not in RECIPES:
        raise UsageError(f"unknown recipe {name!r}: c4pipe knows {', '.join(RECIPES)}")
    return RECIPES[name]
