"""Applies a recipe to one page: the verdict, its reason, and what is left of the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import ne
from typing import Any

from c4pipe.clean.page_facts import PageFacts
from c4pipe.clean.resources import RuleResources
from c4pipe.filters import body_lines
from c4pipe.filters.language import Guess
from c4pipe.filters.packed_lines import pack, packed_rule
from c4pipe.filters.pages import contains
from c4pipe.recipes.recipe import Recipe, Step
from c4pipe.wet.page import Page

_Check = tuple[str, str, Callable[[Any], bool]]

_FACTS = {"written": ("body", "text"), "lower": ("body_lower", "text_lower")}
"""What a rule looks at as the page was crawled, and after the line rules began."""


def fact_of(step: Step, with_lines: bool) -> str:
    """Returns the name of the Draft's fact that a page rule is given; `with_lines`: after the line rules began."""
    looks_at = step.definition.looks_at
    return _FACTS.get(looks_at, (looks_at, looks_at))[with_lines]


@dataclass(frozen=True)
class Verdict:
    """What became of a page.

    Attributes:
        reason: the rule that dropped the page, or None for a page that goes on to job 2.
        readable: whether the page counts as a capture of its URL (it passed the `readable` stage).
        lines_read: how many lines came to the line rules; None where the page fell before.
        lines: how many lines each line rule took, by rule; those that edit count the lines they changed.
        final: the rule of the `final` stage that will drop the page, unless job 2 takes some of its text.
    """

    reason: str | None
    readable: bool = True
    lines_read: int | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    final: str | None = None


class Cleaner:
    """Applies the stages of a recipe that need only the page itself."""

    def __init__(self, recipe: Recipe, tools: RuleResources) -> None:
        self._tools = tools
        self._line_separators: str = recipe.parameters("body_lines")["line_separators"]
        self._read = [_line_rule(step) for step in recipe.read if step.rule != "body_lines"]
        self._readable = _checks(recipe.readable, with_lines=False)
        self._crawled = _checks(recipe.crawled, with_lines=False)
        self._lines = [
            _checks([step], with_lines=True) if step.definition.scope == "page" else _line_rule(step)
            for step in recipe.lines
        ]
        self._cleaned = _checks(recipe.cleaned, with_lines=True)
        self._final = _checks(recipe.final, with_lines=True)
        # Nothing can be said of the language of no text: such a page has too few sentences.
        self._empty_reason = "few_sentences" if recipe.find("few_sentences") else "empty"

    def clean(self, page: Page) -> tuple[Verdict, PageFacts]:
        """Returns the verdict on a page as crawled, and the page as the line rules left it."""
        packed = pack(page, self._line_separators)
        draft = PageFacts(page, self._tools, body_lines.cut(page, self._line_separators) if packed is None else packed)
        taken: dict[str, int] = {}
        for rule in self._read:
            rule(draft, taken)
        reason = _first(self._readable, draft)
        if reason:
            return Verdict(reason, readable=False), draft
        self._resplit(draft)
        reason = _first(self._crawled, draft)
        if reason:
            return Verdict(reason), draft
        read = draft.line_count + sum(taken.values())
        for each in self._lines:
            reason = _first(each, draft) if isinstance(each, list) else each(draft, taken)
            if reason:
                return Verdict(reason, lines_read=read, lines=taken), draft
        self._trim_start(draft)
        reason = _first(self._cleaned, draft) if draft.line_count else self._empty_reason
        final = None if reason else _first(self._final, draft)
        return Verdict(reason, lines_read=read, lines=taken, final=final), draft

    def _resplit(self, draft: PageFacts) -> None:
        if draft.packed is None:
            draft.lines = body_lines.resplit(draft.lines, self._line_separators)
        elif self._line_separators == body_lines.TWICE and draft.packed.resplit():
            draft.forget()

    def _trim_start(self, draft: PageFacts) -> None:
        """Trims the text, whose lines need not be."""
        if not draft.line_count or not draft.text[:1].isspace():
            return
        if draft.packed is None:
            draft.lines = [draft.lines[0].lstrip(), *draft.lines[1:]]
        else:
            draft.packed.trim_start()
            draft.forget()

    def finish(self, url: str, text: str, units_left: int) -> tuple[str | None, Guess | None]:
        """Judges a page that job 2 took some text from, by the `final` stage.

        Args:
            url: as crawled.
            text: what is left.
            units_left: how many sentences or lines that is.

        Returns: (the rule that drops the page or None, the guessed language if the stage looks at it).
        """
        draft = PageFacts(Page(url, "", ""), self._tools, text.split("\n") if text else [], units_left)
        if not text:
            names = [name for name, _, _ in self._final]
            return next(name for name in names if name in ("few_sentences_left", "empty")), None
        reason = _first(self._final, draft)
        guesses = any(name == "language" for name, _, _ in self._final)
        return reason, draft.guess if guesses and not reason else None


def _checks(steps: Sequence[Step], with_lines: bool) -> list[_Check]:
    """Returns (rule, fact, function) of the page rules of a stage."""
    return [
        (step.rule, fact_of(step, with_lines), partial(step.definition.function, **step.arguments))
        for step in steps
        if step.definition.scope == "page"
    ]


def _first(checks: Sequence[_Check], draft: PageFacts) -> str | None:
    """Returns the name of the first rule that drops the page."""
    for name, fact, drops in checks:
        if drops(getattr(draft, fact)):
            return name
    return None


def _line_rule(step: Step) -> Callable[[PageFacts, dict[str, int]], None]:
    """Returns what applies a line rule to a draft and counts what it took."""
    name, edits = step.rule, step.definition.edits
    function = partial(step.definition.function, **step.arguments)
    phrases = step.arguments.get("phrases", ())
    in_bulk = packed_rule(name, step.arguments)

    def apply(draft: PageFacts, taken: dict[str, int]) -> None:
        if in_bulk and draft.packed is not None:
            taken[name] = in_bulk(draft.packed)
            if taken[name]:
                draft.forget()
            return
        before = draft.lines
        if phrases and not contains(draft.text_lower, phrases):  # what most pages lack need not be looked for by line
            taken[name] = 0
            return
        left = function(before)
        taken[name] = sum(map(ne, before, left)) if edits else len(before) - len(left)
        if taken[name]:
            draft.lines = left

    return apply
