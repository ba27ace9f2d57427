"""Verdicts: the decisions of a recipe about a page, with each rule and each line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from c4pipe.filters.language import Guess
from c4pipe.wet.page import Page

DROPPED_LANGUAGE = "language.dropped."
"""The prefix of counters of the pages that the rule `language` drops, by the guessed language; for `report.json`."""


@dataclass  # not frozen: that would take four times as long
class Verdict:
    """The decision of job 1 about a page.

    Attributes:
        reason: the rule that drops the page, or None for a page that goes on to job 2.
        stage: the stage of the rule that drops the page (`recipe.STAGES`); None for a kept page. It may be `final`.
        lines_read: the number of lines that came to the line rules; None where the page was dropped before.
        lines: the number of lines that each line rule dropped or changed, by rule.
        final: the rule of the stage `final` that drops the page, unless job 2 removes some of its text.
    """

    reason: str | None
    stage: str | None = None
    lines_read: int | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    final: str | None = None

    @property
    def readable(self) -> bool:
        """Whether the page counts as a capture of its URL: no rule of the stage `readable` drops it."""
        return self.stage != "readable"


@dataclass  # not frozen: that would take four times as long
class LineVerdict:
    """The decision of the line rules about a line.

    Attributes:
        line: the line as cut from the page, trimmed.
        left: the line as the rules leave it; None where one dropped it.
        rule: the line rule that dropped it, or None.
        edits: the line rules that changed it, in their order.
        asked: False if the pipeline had dropped the page before the last of these rules, or if the page is too long for
            the other line rules.
    """

    line: str
    left: str | None
    rule: str | None = None
    edits: tuple[str, ...] = ()
    asked: bool = True


@dataclass(frozen=True)
class RuleVerdict:
    """The decision of a page rule or a corpus rule about a page.

    Attributes:
        stage: the stage of the recipe (`recipe.STAGES`).
        rule: its name.
        dropped: whether it drops the page; None if the decision needs other pages, or if the rule was not applied.
        fact: the value that decides, in a few words.
        asked: False where the pipeline had dropped the page before, so that it never asks this rule.
    """

    stage: str
    rule: str
    dropped: bool | None
    fact: str
    asked: bool = True


class FinalVerdict(NamedTuple):
    """What the stage `final` decides about a page that job 2 removed text from.

    Attributes:
        reason: the rule that drops the page, or None.
        guess: the guessed language, if the stage has the rule `language` and no other rule drops the page; otherwise
            None.
        rules: what each rule of the stage decides, in the order of evaluation; empty without a trace.
    """

    reason: str | None
    guess: Guess | None
    rules: tuple[RuleVerdict, ...] = ()


@dataclass(frozen=True)
class PageVerdict:
    """What each rule of a recipe decides about a page by itself.

    Attributes:
        page: the page as crawled.
        recipe: the recipe's name.
        verdict: the verdict, equal to the verdict without a trace.
        lines: the page's lines, in their order.
        rules: the page rules and corpus rules, in the order of evaluation.
        text: the lines that were kept up to the rule that drops the page, or up to the end.
    """

    page: Page
    recipe: str
    verdict: Verdict
    lines: tuple[LineVerdict, ...]
    rules: tuple[RuleVerdict, ...]
    text: str

    @property
    def reason(self) -> str | None:
        """The rule that drops the page if none of its text repeats in other pages; or None."""
        return self.verdict.reason or self.verdict.final
