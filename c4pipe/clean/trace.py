"""A trace of the evaluation of one page: what each operation decides about the page and does to its lines.

The evaluator runs the same operations with and without a trace. With a trace it also applies the rules behind the one
that drops the page; their verdicts are marked as not asked by the pipeline.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from c4pipe.clean.fact_wording import NOTHING_LEFT, TOO_LONG, corpus_fact_in_words, fact_in_words
from c4pipe.clean.operations import LineCounts, Operation, verdict_of
from c4pipe.clean.page_facts import PageFacts
from c4pipe.clean.verdicts import LineVerdict, RuleVerdict, Verdict
from c4pipe.filters import body_lines

MOST_CHARACTERS = 1_000_000
"""A longer page is not evaluated behind the rule that drops it: for 16 MB some rules take minutes."""


class PageTrace:
    """Records what operations do to one page.

    Attributes:
        lines: the lines of the page, in their order.
        rules: the verdicts of its page rules and corpus rules, in the order of evaluation.
    """

    def __init__(self, facts: PageFacts, to_the_end: bool) -> None:
        """Begins with a page as it is cut into lines.

        With `to_the_end`, the rules behind the one that drops the page are applied, too.
        """
        self.lines = [LineVerdict(line, line) for line in facts.lines]
        self.rules: list[RuleVerdict] = []
        self._facts = facts
        self._to_the_end = to_the_end
        self._verdict: Verdict | None = None  # as soon as a rule drops the page
        self._text = ""
        self._empty_by: tuple[str, str] | None = None  # stage and rule that dropped the page for having no lines

    def watch(self, operations: Iterable[Operation]) -> list[Operation]:
        """Returns the operations, each of which is recorded here when it is applied to the page."""
        return [each._replace(apply=partial(self._apply, each)) for each in operations]

    def verdict(self, evaluated: Verdict) -> Verdict:
        """Returns the verdict at the first rule that dropped the page, or else the one of the whole evaluation."""
        return self._verdict or evaluated

    @property
    def text(self) -> str:
        """The lines that were kept up to the rule that drops the page, or up to the end."""
        return self._text if self._verdict else self._facts.text

    def _apply(self, operation: Operation, facts: PageFacts, counts: LineCounts) -> bool:
        if self._verdict and facts.length > MOST_CHARACTERS:
            self._record_too_long(operation)
            return False
        before = facts.lines
        dropped = operation.apply(facts, counts)
        self._record_lines(operation, before, facts.lines)
        self._record_rule(operation, dropped)
        if not dropped or self._verdict:
            return False
        verdict = verdict_of(operation.rule, operation.stage, counts)
        self._verdict, self._text = replace(verdict, lines=dict(verdict.lines)), facts.text
        return not self._to_the_end

    def _record_too_long(self, operation: Operation) -> None:
        if operation.kind in ("page rule", "corpus rule"):
            self.rules.append(RuleVerdict(operation.stage, operation.rule, None, TOO_LONG, asked=False))
        self.lines = [each if each.left is None else replace(each, asked=False) for each in self.lines]

    def _record_rule(self, operation: Operation, dropped: bool) -> None:
        stage, rule, asked = operation.stage, operation.rule, self._verdict is None
        if operation.kind == "no lines" and dropped and asked:
            self._empty_by = (stage, rule)
            self.rules.append(RuleVerdict(stage, rule, True, NOTHING_LEFT))
        elif operation.step and operation.kind == "corpus rule":
            fact = corpus_fact_in_words(operation.step, self._facts.normalised_url)
            self.rules.append(RuleVerdict(stage, rule, None, fact, asked))
        elif operation.step and operation.kind == "page rule" and self._empty_by != (stage, rule):
            fact = fact_in_words(self._facts, operation.step, stage, dropped)
            self.rules.append(RuleVerdict(stage, rule, dropped, fact, asked))

    def _record_lines(self, operation: Operation, before: Sequence[str], after: Sequence[str]) -> None:
        """Records what an operation did to lines. A rule judges each line by itself: equal lines have one fate."""
        if before is after or before == after:
            return
        if operation.kind == "second cut":
            separators = self._facts.line_separators
            self.lines = [piece for each in self.lines for piece in _pieces(each, separators)]
            return
        if operation.kind == "trim":
            after = _with_blank_ends(before, after)
        edits = operation.kind == "trim" or (operation.step and operation.step.definition.edits)
        record = self._edited if edits else self._kept_or_dropped
        remaining = list(reversed(after))
        self.lines = [each if each.left is None else record(operation, each, remaining) for each in self.lines]

    def _edited(self, operation: Operation, line: LineVerdict, remaining: list[str]) -> LineVerdict:
        left = remaining.pop()
        if left == line.left:
            return line
        if operation.kind == "trim":
            return replace(line, left=left)
        return replace(line, left=left, edits=(*line.edits, operation.rule), asked=self._verdict is None)

    def _kept_or_dropped(self, operation: Operation, line: LineVerdict, remaining: list[str]) -> LineVerdict:
        if remaining and remaining[-1] == line.left:
            remaining.pop()
            return line
        return LineVerdict(line.line, None, operation.rule, line.edits, self._verdict is None)


def _pieces(line: LineVerdict, separators: str) -> list[LineVerdict]:
    """Returns the lines into which the second cut divides a line."""
    if line.left is None:
        return [line]
    return [LineVerdict(each, each) for each in body_lines.resplit([line.left], separators)]


def _with_blank_ends(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Returns the lines of a trimmed text with the blank lines that stood at its ends, as empty lines."""
    first = next((place for place, line in enumerate(before) if line.strip()), len(before))
    behind = len(before) - first - len(after)
    return [*([""] * first), *after, *([""] * behind)]
