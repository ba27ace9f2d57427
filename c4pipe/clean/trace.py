"""A trace of the evaluation of one page: what each operation decides about the page and does to its lines.

It observes the operations that job 1 applies. It also asks for the rules after the drop; their verdicts are marked as
not asked by the pipeline.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from c4pipe.clean.evaluate import (
    FinalVerdict,
    LineChanges,
    Operation,
    RecipeEvaluator,
    RuleVerdict,
    Verdict,
    evaluate,
    own_rule_failed,
)
from c4pipe.errors import C4pipeError
from c4pipe.filters import body_lines
from c4pipe.filters.body_lines import BodyLines
from c4pipe.filters.checked_page import BEFORE_LINE_RULES, CheckedPage
from c4pipe.filters.page_size import Empty, FewSentences
from c4pipe.filters.rule import CorpusRule, LineRule, PageRule, of_language
from c4pipe.io.words import format_count, short_repr
from c4pipe.recipes.own_rules import is_own
from c4pipe.wet.page import Page

MOST_CHARACTERS = 1_000_000
"""On a longer page, evaluation ends at the drop: for 16 MB some rules take minutes."""

TOO_LONG = "not applied: the page is too long"


@dataclass  # not frozen: that would take four times as long
class LineVerdict:
    """The decision of the line rules about a line.

    Attributes:
        line: the line as cut from the page, trimmed.
        left: the line as the rules leave it; None if one dropped it.
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

    @property
    def lost_lines(self) -> str:
        """Which line rule dropped most lines, if the page was dropped for want of sentences or text; else ""."""
        if self.verdict.reason not in (FewSentences.name, Empty.name):
            return ""
        return _describe_most_lines(_count_dropped(self.lines), self.verdict.lines_read)

    def __repr__(self) -> str:
        left = sum(line.left is not None for line in self.lines)
        decision = f"dropped by {self.reason}" if self.reason else "kept"
        return short_repr(self, f"recipe {self.recipe}", decision, f"{left:,} of {len(self.lines):,} lines left")


def explain_page(evaluator: RecipeEvaluator, page: Page, to_the_end: bool = True) -> PageVerdict:
    """Returns what each rule of a recipe decides about a page as crawled.

    Args:
        evaluator: the evaluator of the recipe.
        page: the page.
        to_the_end: whether the rules after the drop are applied, too. That takes as long as for a kept page. Pages of
            more than MOST_CHARACTERS are not evaluated further. Without it, a page rule that drops nothing has no fact.
    """
    checked = evaluator.page(page)
    separators = evaluator.recipe.need(BodyLines).line_separators
    trace = PageTrace(checked, to_the_end, separators)
    verdict = evaluate(evaluator.operations, checked, trace)
    trace.finish(evaluator.operations)
    recipe = evaluator.recipe.name
    return PageVerdict(page, recipe, verdict, tuple(trace.lines), tuple(trace.rules), trace.text)


def explain_final(
    evaluator: RecipeEvaluator, url: str, text: str, units_left: int, to_the_end: bool = True
) -> FinalVerdict:
    """Returns `RecipeEvaluator.finish` with the decisions of rules, with `to_the_end` also after the drop."""
    page = evaluator.page_left(url, text, units_left)
    operations = [each for each in evaluator.operations if each.stage == "final"]
    trace = PageTrace(page, to_the_end)
    verdict = evaluate(operations, page, trace)
    trace.finish(operations)
    return evaluator.final_verdict(verdict, page)._replace(rules=tuple(trace.rules))


def explain_drop(evaluator: RecipeEvaluator, verdict: Verdict, page: CheckedPage) -> tuple[str, str]:
    """Returns the value for which `evaluator.clean` dropped a page, in words, and the text that the rule looked at."""
    recipe = evaluator.recipe
    if verdict.lines_read is not None and not page.line_count:
        edits = {rule.name for rule in recipe.lines if isinstance(rule, LineRule) and rule.edits}
        dropped = {name: number for name, number in verdict.lines.items() if name not in edits}
        return _nothing_left(dropped, verdict.lines_read), page.body
    rule = next(each for each in getattr(recipe, str(verdict.stage)) if each.name == verdict.reason)
    page.as_crawled = verdict.stage in BEFORE_LINE_RULES
    said = _describe_value(rule, rule.value(page), True, page)
    return said, page.body if page.as_crawled and rule.searches else page.text


def _nothing_left(dropped: Mapping[str, int], read: int | None) -> str:
    """Returns why a page has no line left, by the lines that each line rule dropped, and all that came to them."""
    cause = _describe_most_lines(dropped, read)
    return f"no text is left: {cause}" if cause else "no text is left"


def _describe_most_lines(dropped: Mapping[str, int], read: int | None) -> str:
    """Returns the line rule that dropped most lines of a page, in words; "" if no rule dropped a line."""
    name, number = max(dropped.items(), key=lambda each: (each[1], each[0]), default=("", 0))
    return f"{name} dropped {number:,} of {format_count(read or number, 'line')}" if number else ""


def _describe_value(rule: PageRule, value: Any, dropped: bool, page: CheckedPage) -> str:
    """Returns the value by which a page rule decides, in words."""
    if page.tools.settings.by_language:
        rule = of_language(rule, page.tools.settings.by_language, page.language)
    try:
        return str(rule.says(value, dropped, page))
    except C4pipeError:
        raise
    except Exception as error:
        if is_own(type(rule)):  # whatever the user's code raises
            raise own_rule_failed(rule.name, page.page.url, error) from error
        raise


class PageTrace:
    """Records what operations do to one page (an `Observer`): `lines` and `rules` of a `PageVerdict`."""

    def __init__(self, page: CheckedPage, to_the_end: bool, separators: str = "") -> None:
        """Starts from a page as cut into lines. With `to_the_end`, the rules after the drop are applied, too."""
        self._before = page.lines
        self.lines = [LineVerdict(line, line) for line in self._before]
        self.rules: list[RuleVerdict] = []
        self._page = page
        self._to_the_end = to_the_end
        self._separators = separators
        self._seen = 0
        self._text: str | None = None  # as soon as a rule drops the page
        self._empty_by: tuple[str, str] | None = None  # stage and rule that dropped the page for having no lines

    @property
    def text(self) -> str:
        """The lines that are left when a rule drops the page, or at the end."""
        return self._page.text if self._text is None else self._text

    @property
    def _asked(self) -> bool:
        return self._text is None

    def saw(self, operation: Operation, value: Any, dropped: bool, counts: LineChanges) -> bool:
        """Records what an operation did. Returns whether to apply operations after the drop."""
        self._seen += 1
        self._record_lines(operation, self._before, self._page.lines)
        self._before = self._page.lines
        self._record_rule(operation, value, dropped, counts.read)
        if dropped and self._asked:
            self._text = self._page.text
        return self._to_the_end and self._page.length <= MOST_CHARACTERS

    def finish(self, operations: Sequence[Operation]) -> None:
        """Records the operations that were not applied because the page is too long."""
        if not self._to_the_end:
            return
        for operation in operations[self._seen :]:
            if isinstance(operation.rule, (PageRule, CorpusRule)) and operation.kind != "no lines":
                self.rules.append(RuleVerdict(operation.stage, operation.name, None, TOO_LONG, asked=False))
            self.lines = [each if each.left is None else replace(each, asked=False) for each in self.lines]

    def _record_rule(self, operation: Operation, value: Any, dropped: bool, read: int | None) -> None:
        stage, rule, name = operation.stage, operation.rule, operation.name
        if operation.kind == "no lines":
            if dropped and self._asked:
                self._empty_by = (stage, name)
                self.rules.append(RuleVerdict(stage, name, True, _nothing_left(_count_dropped(self.lines), read)))
        elif isinstance(rule, CorpusRule):
            said = rule.says(self._page.normalised_url)
            self.rules.append(RuleVerdict(stage, name, None, said, self._asked))
        elif isinstance(rule, PageRule) and self._empty_by != (stage, name):
            said = _describe_value(rule, value, dropped, self._page) if dropped or self._to_the_end else ""
            self.rules.append(RuleVerdict(stage, name, dropped, said, self._asked))

    def _record_lines(self, operation: Operation, before: Sequence[str], after: Sequence[str]) -> None:
        """Records what an operation did to lines. A rule judges each line by itself, and equal lines alike."""
        if before is after or before == after:
            return
        if operation.kind == "second cut":
            self.lines = [piece for each in self.lines for piece in _cut_again(each, self._separators)]
            return
        if operation.kind == "trim":
            after = _restore_blank_ends(before, after)
        edits = operation.kind == "trim" or (isinstance(operation.rule, LineRule) and operation.rule.edits)
        record = self._record_edit if edits else self._record_drop
        remaining = list(reversed(after))
        self.lines = [each if each.left is None else record(operation, each, remaining) for each in self.lines]

    def _record_edit(self, operation: Operation, line: LineVerdict, remaining: list[str]) -> LineVerdict:
        left = remaining.pop()
        if left == line.left:
            return line
        if operation.kind == "trim":
            return replace(line, left=left)
        return replace(line, left=left, edits=(*line.edits, operation.name), asked=self._asked)

    def _record_drop(self, operation: Operation, line: LineVerdict, remaining: list[str]) -> LineVerdict:
        if remaining and remaining[-1] == line.left:
            remaining.pop()
            return line
        return LineVerdict(line.line, None, operation.name, line.edits, self._asked)


def _count_dropped(lines: Sequence[LineVerdict]) -> Counter[str]:
    """Returns how many lines each line rule dropped before the page was dropped."""
    return Counter(each.rule for each in lines if each.rule and each.asked)


def _cut_again(line: LineVerdict, separators: str) -> list[LineVerdict]:
    """Returns the lines into which the second cut divides a line."""
    if line.left is None:
        return [line]
    return [LineVerdict(each, each) for each in body_lines.resplit([line.left], separators)]


def _restore_blank_ends(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Returns the lines of a trimmed text with the blank lines that stood at its ends, as empty lines."""
    first = next((place for place, line in enumerate(before) if line.strip()), len(before))
    ends = len(before) - first - len(after)
    return [*([""] * first), *after, *([""] * ends)]
