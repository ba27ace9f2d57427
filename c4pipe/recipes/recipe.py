"""Recipes: which rules, with which parameters, in which order."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import BEFORE_LINE_RULES, ByLanguage, PageSettings
from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.column_rules import LabelNotWanted
from c4pipe.filters.corpus_rules import NormalisedUrl, RepeatedSpan, Validation
from c4pipe.filters.fineweb_2 import LanguageLimits
from c4pipe.filters.language import Language
from c4pipe.filters.lines import NoTerminalPunctuation
from c4pipe.filters.page_size import Empty, FewSentences, FewSentencesLeft, Incomplete
from c4pipe.filters.rule import AnyRule, Rule, of_language, sentence_of
from c4pipe.filters.rules import RULES
from c4pipe.io.words import CONTROL, format_languages, short_repr, suggestion
from c4pipe.recipes.own_rules import check_place, is_own, load_rule, origin_of
from c4pipe.text.languages import UNKNOWN, two_letter_code
from c4pipe.text.scripts.facts import scripts_of
from c4pipe.wet.columns import RESERVED, parse_columns
from c4pipe.wet.extraction import is_text_layout

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

_MIN_SCRIPT_SHARE = 0.1
"""On 869 real pages of 12 languages, pages of the guessed language have at least 0.29, others 0.00."""

_LAST_IN_STAGE = (RepeatedSpan, Validation, LabelNotWanted)  # other rules of their stage come before them


@dataclass(frozen=True)
class Recipe:
    """The rules of a corpus, by stage (STAGES). Two recipes with the same fingerprint make the same corpus.

    Attributes:
        name: its name.
        description: one line about it.
        read, readable, crawled, lines, cleaned, corpus, final: the rules of each stage, in their order.
        extraction: how the text of pages is made from HTML (see `wet.find_extraction`), or where documents lie in text
            files (`wet.TextLayout.extraction`); "" for the text of WET files.
        columns: the columns that pages carry besides text, address and time, such as `score:float` (`wet.columns`).
        by_language: parameters of page rules for pages of some language, and word tokenizers (`filters.rule`). If any
            language has parameters, all others get FineWeb-2's.

    Raises UsageError if a name or description is no line of text, a stage has anything but rules, the rules
    contradict each other, or a rule stands twice in a stage.
    """

    name: str
    description: str
    read: tuple[Rule, ...] = ()
    readable: tuple[Rule, ...] = ()
    crawled: tuple[Rule, ...] = ()
    lines: tuple[Rule, ...] = ()
    cleaned: tuple[Rule, ...] = ()
    corpus: tuple[Rule, ...] = ()
    final: tuple[Rule, ...] = ()
    extraction: str = ""
    columns: tuple[str, ...] = ()
    by_language: ByLanguage = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for each in ("name", "description"):
            value = getattr(self, each)
            if not isinstance(value, str) or CONTROL.search(value) or not value.strip():
                raise UsageError(f"{each} = {value!r}: give a text of one line, without control characters")
        for stage in STAGES:
            given = getattr(self, stage)
            if not isinstance(given, (list, tuple)) or not all(isinstance(each, Rule) for each in given):
                raise UsageError(f"recipe {self.name}: {stage} = {given!r}: give rules, such as (c4pipe.Language(),)")
            object.__setattr__(self, stage, tuple(given))
        first: dict[str, Rule] = {}
        places: set[tuple[str, str]] = set()
        for stage, rule in self.rules():
            same = first.setdefault(rule.name, rule)
            named = RULES.get(rule.name, type(rule)) if rule.names_itself else type(rule)
            if not type(same) is type(rule) is named or (rule.names_itself and same != rule):
                raise UsageError(f"recipe {self.name}: two rules have the name {rule.name}: rename one of them")
            if (stage, rule.name) in places:  # counts and parameters could not tell the two rules apart
                where = f"stands twice in the stage {stage}"
                raise UsageError(f"recipe {self.name}: the rule {rule.name} {where}: name it once")
            places.add((stage, rule.name))
            if why := check_place(rule, stage) or rule.contradiction(self, stage):
                raise UsageError(f"recipe {self.name}: {why}")

        made = self._made_columns
        if taken := [each.name for each in parse_columns(made) if each.name in RESERVED]:
            raise UsageError(
                f"recipe {self.name}: the rule {taken[0]} makes a column, and {taken[0]} is the name of a "
                "column of c4pipe: rename the rule"
            )
        object.__setattr__(self, "columns", (*(each for each in self.columns if each not in made), *made))
        parse_columns(self.columns)
        if self.by_language and self.by_language.keys() != set(self.languages):
            object.__setattr__(self, "by_language", LanguageLimits(self.languages, self.by_language))

    @property
    def _made_columns(self) -> tuple[str, ...]:
        return tuple(column for rule in self._by_name.values() for column in rule.made_columns)

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The columns that pages bring from the input: no rule makes them."""
        return tuple(each for each in self.columns if each not in self._made_columns)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns of labels that rules make."""
        rules = [each for each in self._by_name.values() if isinstance(each, ClassifierScore)]
        return tuple(each.name for each in rules if each.keep == "label")

    def __repr__(self) -> str:
        return short_repr(self, self.name, f"{len(list(self.rules()))} rules", format_languages(self.languages))

    def rules(self) -> Iterator[tuple[str, Rule]]:
        """Yields (stage, rule) in the order of evaluation."""
        for stage in STAGES:
            for each in getattr(self, stage):
                yield stage, each

    @property
    def page_settings(self) -> PageSettings:
        """The settings of pages that the rules need."""
        return page_settings(list(self.rules()), self.by_language)

    def sentence(self, rule: Rule) -> str:
        """Returns a sentence about a rule of the recipe, with the values of its parameters for all kept languages."""
        return sentence_of([of_language(rule, self.by_language, each) for each in self.by_language] or [rule])

    def applied_rules(self) -> Iterator[tuple[str, Rule]]:
        """Yields the items of `rules`, and the rule `empty` even if the recipe does not list it.

        A page without a line is dropped before the rules of the stages `cleaned` and `final`, by `few_sentences` or
        `few_sentences_left` if the recipe has them, else by `empty`.
        """
        for stage in STAGES:
            if stage == "cleaned" and not self.find(Empty):
                yield stage, Empty()
            for each in getattr(self, stage):
                yield stage, each

    def find(self, rule: type[AnyRule]) -> AnyRule | None:
        """Returns the first rule of a class; None without such a rule."""
        found = self._by_name.get(rule.name)
        return found if isinstance(found, rule) else None

    def need(self, rule: type[AnyRule]) -> AnyRule:
        """Returns the first rule of a class in the recipe; without one, a rule of the class with default parameters."""
        return self.find(rule) or rule()

    @cached_property
    def _by_name(self) -> Mapping[str, Rule]:
        """The first rule of each name."""
        first: dict[str, Rule] = {}
        for _, each in self.rules():
            first.setdefault(each.name, each)
        return first

    def has(self, name: str) -> bool:
        """Tells whether the recipe has a rule of this name."""
        return name in self._by_name

    def rule(self, name: str) -> Rule:
        """Returns the first rule of a name. Raises UsageError, with the nearest name, without such a rule."""
        if not isinstance(name, str) or name not in self._by_name:
            known = list(self._by_name)
            raise UsageError(
                f"recipe {self.name} has no rule {name!r}; it has {', '.join(known)}" + suggestion(str(name), known)
            )
        return self._by_name[name]

    @property
    def page_keys(self) -> tuple[str, bool]:
        """How a page's key is computed: how its URL is normalised, and whether the key is an MD5.

        See `text.hashes.page_key`.
        """
        repeated = self.find(RepeatedSpan)
        return self.need(NormalisedUrl).form, repeated is not None and repeated.keep_smallest == "url md5"

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that the recipe keeps, in their order; `und` if no rule looks at the language."""
        language = self.find(Language)
        return language.languages if language else (UNKNOWN,)

    @property
    def input_format(self) -> str:
        """The format of the input files, for people: `WET`, `WARC` or `text`."""
        if is_text_layout(self.extraction):
            return "text"
        return "WARC" if self.extraction else "WET"

    def with_languages(self, languages: Sequence[str]) -> "Recipe":
        """Returns the recipe with other languages to keep, and its rules for their scripts (`in_scripts_of`).

        Raises UsageError for a language that its detector does not know, for a repeated one, and for an empty list.
        """
        if not self.find(Language):
            raise UsageError(f"recipe {self.name} has no rule language, so it can't select languages: leave them out")
        if isinstance(languages, (list, tuple)) and "" in languages:
            raise UsageError("no language is named: give one or more codes, such as en,de")
        made = self.change(Language.name, languages=languages).in_scripts_of(languages)
        list(made.by_language.values())  # or a language without limits would be an error later
        return made

    def in_scripts_of(self, languages: Sequence[str]) -> "Recipe":
        """Returns the recipe with its rules set for the scripts of some languages (`text.scripts.facts`).

        Only recipes with line ends of other languages than English change: c4 and its variants. Recipes that follow a
        program decision for decision have ASCII marks alone, and stay as they are.
        """
        line_ends = self.find(NoTerminalPunctuation)
        if line_ends is None or "".join(line_ends.endings).isascii():
            return self
        least = 0.0 if {*map(two_letter_code, languages)} == {"en"} else _MIN_SCRIPT_SHARE
        values = {"scripts": scripts_of(languages), "min_script_share": least}
        return self._map(
            lambda each: each.with_parameters({name: values[name] for name in values.keys() & each.parameters.keys()})
        )

    def with_extraction(self, extraction: str) -> "Recipe":
        """Returns the recipe for another extraction: text from HTML, text files, or the text of WET files ("")."""
        return replace(self, extraction=extraction)

    def with_columns(self, columns: Sequence[str]) -> "Recipe":
        """Returns the recipe for pages that carry other columns, such as `score:float`. Raises UsageError if a rule
        makes a column of this name.
        """
        rules = self._by_name.values()
        made = {each.name: rule.name for rule in rules for each in parse_columns(rule.made_columns)}
        if taken := [each.name for each in parse_columns(columns) if each.name in made]:
            raise UsageError(f"the rule {made[taken[0]]} makes the column {taken[0]}: rename one of the two")
        return replace(self, columns=tuple(columns))

    def change(self, rule: str, **parameters: Any) -> "Recipe":
        """Returns the recipe with other parameters of one of its rules, wherever the rule stands.

        Raises UsageError, with the nearest name, for an unknown rule or parameter, and for a wrong value.
        """
        self.rule(rule)
        self.check_change(rule, parameters)
        return self._map(lambda each: each.with_parameters(parameters) if each.name == rule else each)

    def check_change(self, rule: str, parameters: Iterable[str]) -> None:
        """Raises UsageError if a parameter of a rule has a value for each language."""
        if taken := [each for each in parameters if self.is_by_language(rule, each)]:
            raise UsageError(
                f"recipe {self.name} has {taken[0]} of {rule} for each language: "
                "leave it out, or change by_language of the recipe in Python"
            )

    def is_by_language(self, rule: str, parameter: str) -> bool:
        """Tells whether a parameter of a rule has a value for each language."""
        return any(parameter in each.get(rule, ()) for each in self.by_language.values())

    def with_rule(
        self, rule: Rule, *, before: str | None = None, after: str | None = None, stage: str | None = None
    ) -> "Recipe":
        """Returns the recipe with one more rule, such as a rule of the user's own.

        Args:
            rule: the rule.
            before: the name of a rule of the recipe: the new rule stands directly before its first occurrence.
            after: the name of a rule of the recipe: the new rule stands directly after its first occurrence.
            stage: the stage at whose end the new rule stands. If all three are None, it is the stage of its class.

        Raises UsageError for a rule or stage that does not exist, and for a place that the rule can't have.
        """
        if not isinstance(rule, Rule):
            raise UsageError(f"{rule!r} is no rule: give an object of a rule's class, such as MyRule()")
        beside = before or after
        if beside is None:
            stage = stage or rule.stage or "cleaned"
            if stage not in STAGES:
                raise UsageError(
                    f"unknown stage {stage!r}: give one of {', '.join(STAGES)}" + suggestion(stage, STAGES)
                )
            return self.adding(stage, rule)
        named = self.rule(beside)
        where = next(each for each in STAGES if named in getattr(self, each))
        rules = getattr(self, where)
        place = rules.index(named) + (before is None)
        more: Any = {where: (*rules[:place], rule, *rules[place:])}
        return replace(self, **more)

    def adding(self, stage: str, *new: Rule) -> "Recipe":
        """Returns the recipe with more rules in a stage: after the others, but before repeated spans and the split."""
        rules = getattr(self, stage)
        place = next((at for at, each in enumerate(rules) if isinstance(each, _LAST_IN_STAGE)), len(rules))
        more: Any = {stage: (*rules[:place], *new, *rules[place:])}
        return replace(self, **more)

    def without(self, *rules: str) -> "Recipe":
        """Returns the recipe without some rules. `empty` replaces `few_sentences` and `few_sentences_left`.

        Raises UsageError, with the nearest name, for an unknown rule.
        """
        for name in rules:
            self.rule(name)

        def remaining(each: Rule) -> Rule | None:
            if each.name not in rules:
                return each
            return Empty() if isinstance(each, (FewSentences, FewSentencesLeft)) else None

        return self._map(remaining)

    def _map(self, function: Callable[[Rule], Rule | None]) -> "Recipe":
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
            **self._input_values,
            **{stage: [*map(dict, rules)] for stage, rules in self._rule_values.items()},
        }

    @property
    def _input_values(self) -> dict[str, Any]:
        """The origin and columns of pages and the parameters of languages, as plain JSON values; empty values are left
        out.
        """
        by_language = {language: dict(parameters) for language, parameters in self.by_language.items()}
        values = {"extraction": self.extraction, "columns": list(self.columns), "by_language": by_language}
        return {name: value for name, value in values.items() if value}

    @cached_property
    def _rule_values(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The rules of each stage as plain JSON values: each work file has them."""
        return {stage: [_rule_to_json(each) for each in getattr(self, stage)] for stage in STAGES}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Recipe":
        """Returns the recipe of the values of `to_json`."""
        return cls(
            values["name"],
            values["description"],
            extraction=values.get("extraction", ""),
            columns=tuple(values.get("columns", ())),
            by_language=values.get("by_language", {}),
            **{stage: tuple(map(_rule_from_json, values[stage])) for stage in STAGES},
        )

    def fingerprint(self, lists: Mapping[str, str]) -> str:
        """Returns a short hash of the rules, their parameters and order, and the digests of their lists.

        It also covers the extraction, for text from HTML or text files, the columns that pages carry, the parameters of
        languages, and the source of the user's own rules.
        """
        digests = tuple(lists.items())
        if digests not in self._fingerprints:
            self._fingerprints[digests] = self._fingerprint(lists)
        return self._fingerprints[digests]

    @cached_property
    def _fingerprints(self) -> dict[tuple[tuple[str, str], ...], str]:
        """The computed fingerprints by lists: each work file needs one."""
        return {}

    def _fingerprint(self, lists: Mapping[str, str]) -> str:
        rules = self._input_values
        for stage in STAGES:  # the digests identify the files: their paths do not count
            each = [(_rule_to_json(rule), rule.file_parameters) for rule in getattr(self, stage)]
            rules[stage] = [{name: value for name, value in of.items() if name not in files} for of, files in each]
        text = json.dumps([rules, dict(lists)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _rule_to_json(rule: Rule) -> dict[str, Any]:
    origin = {"from": origin_of(type(rule))} if is_own(type(rule)) else {}
    return {"rule": type(rule).name, **origin, **rule.stored_parameters}


def _rule_from_json(values: Mapping[str, Any]) -> Rule:
    parameters = {name: value for name, value in values.items() if name not in ("rule", "from")}
    rule: Any = load_rule(values["from"]) if "from" in values else RULES[values["rule"]]
    made: Rule = rule(**parameters)
    return made


def page_settings(rules: Sequence[tuple[str, Rule]], by_language: ByLanguage = MappingProxyType({})) -> PageSettings:
    """Returns the settings of pages that rules need, given with their stages."""
    stages = {stage for stage, rule in rules if isinstance(rule, Language)}
    incomplete = next((each for _, each in rules if isinstance(each, Incomplete)), None)
    values: dict[str, Any] = {
        "any_timestamp": incomplete is not None and incomplete.timestamps == "any text",
        "language_as_crawled": bool(stages) and stages <= {*BEFORE_LINE_RULES},
    }
    for kind, settings in _SETTINGS.items():
        rule = next((each for _, each in rules if isinstance(each, kind)), None)
        if rule:
            values |= {name: getattr(rule, parameter) for name, parameter in settings.items()}
    return PageSettings(by_language=by_language, **values)


_SETTINGS: Mapping[type[Rule], Mapping[str, str]] = {
    NormalisedUrl: {"scheme": "form"},
    FewSentences: {"sentence_model": "model", "scripts": "scripts"},
    RepeatedSpan: {"unit": "unit"},
    Language: {name: name for name in ("detector", "min_probability", "min_script_share")},
}
"""The settings of pages that follow from a rule: its parameters and properties."""
