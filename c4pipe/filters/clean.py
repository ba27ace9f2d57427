"""Applies a recipe to one page: the verdict, its reason, and what is left of the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import ne
from typing import Any

from c4pipe.filters.bad_words import BadWords
from c4pipe.filters.language import Guess, LanguageDetector
from c4pipe.filters.sentences import SentenceCutter
from c4pipe.page import Page
from c4pipe.recipes import Recipe, Step


class Tools:
    """What the rules need beside the page: the detector, a sentence cutter and bad words for each language."""

    def __init__(self, bad_words: Mapping[str, tuple[str, ...]]) -> None:
        """Loads them.

        Args:
            bad_words: the listed words of each language that is kept (empty where a language has no list).
        """
        self.detector = LanguageDetector()
        self.cutters = {language: SentenceCutter(language) for language in bad_words}
        self.bad_words = {language: BadWords(words, language) for language, words in bad_words.items()}


class Draft:
    """A page while it is cleaned: the facts that page rules look at, each found when it is first asked for."""

    def __init__(self, page: Page, tools: Tools) -> None:
        self.page = page
        self.lines: list[str] = page.lines
        self._tools = tools

    @property
    def body(self) -> str:
        """The text as crawled."""
        return self.page.body

    @property
    def lower(self) -> str:
        """The text as crawled, in lower case."""
        return self.page.lower

    @property
    def length(self) -> int:
        """Characters of the page's text, before the line rules."""
        return self.page.length

    @cached_property
    def text(self) -> str:
        """What the line rules left."""
        return "\n".join(self.lines)

    @cached_property
    def guess(self) -> Guess | None:
        """The language of what the line rules left."""
        return self._tools.detector.guess(self.text)

    @property
    def language(self) -> str:
        """The code of the guessed language; only asked for where the language rule let the page pass."""
        assert self.guess is not None
        return self.guess.language

    @cached_property
    def sentence_starts(self) -> list[int]:
        """Where the sentences of what the line rules left start, in characters."""
        return self._tools.cutters[self.language].starts(self.lines)

    @property
    def sentence_count(self) -> int:
        """How many sentences the line rules left."""
        return len(self.sentence_starts) if self.lines else 0

    @property
    def bad_word(self) -> str | None:
        """A listed word of the page's language in the page as crawled, or None."""
        return self._tools.bad_words[self.language].find(self.lower)


@dataclass(frozen=True)
class Verdict:
    """What became of a page.

    Attributes:
        reason: the rule that dropped the page, or None for a page that is kept.
        readable: whether the page counts as a capture of its URL (it passed the `readable` stage).
        lines: how many lines each line rule took, by rule; `citation` counts the lines it changed.
    """

    reason: str | None
    readable: bool = True
    lines: Mapping[str, int] = field(default_factory=dict)


class Cleaner:
    """Applies the stages of a recipe that need only the page itself."""

    def __init__(self, recipe: Recipe, tools: Tools) -> None:
        self._tools = tools
        self._readable = [_page_check(step) for step in recipe.readable]
        self._crawled = [_page_check(step) for step in recipe.crawled]
        self._lines = [
            (each.rule, each.definition.edits, partial(each.definition.function, **each.parameters))
            for each in recipe.lines
        ]
        self._cleaned = [_page_check(step) for step in recipe.cleaned]
        # Nothing can be said of the language of no text: such a page has too few sentences.
        self._empty_reason = "few_sentences" if recipe.find("few_sentences") else None

    def clean(self, page: Page) -> tuple[Verdict, Draft]:
        """Returns the verdict on a page, and the page as the line rules left it."""
        draft = Draft(page, self._tools)
        reason = _first(self._readable, draft)
        if reason:
            return Verdict(reason, readable=False), draft
        reason = _first(self._crawled, draft)
        if reason:
            return Verdict(reason), draft
        taken: dict[str, int] = {}
        for rule, edits, apply in self._lines:
            left = apply(draft.lines)
            taken[rule] = _changes(draft.lines, left) if edits else len(draft.lines) - len(left)
            draft.lines = left
        if not draft.lines and self._empty_reason:
            return Verdict(self._empty_reason, lines=taken), draft
        return Verdict(_first(self._cleaned, draft), lines=taken), draft


def _changes(before: Sequence[str], after: Sequence[str]) -> int:
    return sum(map(ne, before, after))


def _page_check(step: Step) -> tuple[str, str, Callable[[Any], bool]]:
    rule = step.definition
    return rule.name, rule.looks_at, partial(rule.function, **step.parameters)


def _first(checks: list[tuple[str, str, Callable[[Any], bool]]], draft: Draft) -> str | None:
    """Returns the name of the first rule that drops the page."""
    for name, fact, drops in checks:
        if drops(getattr(draft, fact)):
            return name
    return None
