"""Annotates pages: applies all rules of a recipe to a page, whatever the first ones decide, and records each decision.

It evaluates each page once, by the operations of the one evaluator. The verdict is the same as without annotation.
"""

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from c4pipe.clean.annotated_file import AnnotatedWriter
from c4pipe.clean.annotated_folder import Annotate
from c4pipe.clean.annotation_columns import fired_column, lines_column, number_column, number_of
from c4pipe.clean.evaluator import RecipeEvaluator
from c4pipe.clean.operations import Apply, LineCounts, Operation, page_rule
from c4pipe.clean.page_facts import PageFacts
from c4pipe.clean.trace import MOST_CHARACTERS
from c4pipe.clean.verdicts import Verdict
from c4pipe.recipes.recipe import Step
from c4pipe.recipes.rule import Fact
from c4pipe.wet.page import Page

Row = dict[str, Any]
"""The values of a page, by the names of `annotated_schema`; without those that are null."""


class Annotator:
    """Records what the operations of a recipe decide about pages, up to the rule that drops a page and behind it."""

    def __init__(self, evaluator: RecipeEvaluator, labels: int = 0) -> None:
        """Takes the evaluator of the recipe, and how many languages `language_labels` has."""
        self._labels = labels
        self._operations = tuple(each._replace(apply=self._recorded(each)) for each in evaluator.operations)
        self._remaining: Iterator[Operation] = iter(())
        self._row: Row = {}
        self._counts = LineCounts()

    def begin(self) -> Iterator[Operation]:
        """Returns the operations for the next page, for `RecipeEvaluator.clean`."""
        self._row, self._counts = {}, LineCounts()
        self._remaining = iter(self._operations)
        return self._remaining

    def end(self, page: Page, verdict: Verdict, facts: PageFacts) -> Row:
        """Applies the operations that are left to the page, and returns the values of its columns.

        Args:
            page: the page.
            verdict: what `RecipeEvaluator.clean` returned for it.
            facts: what it returned with that. Their lines are those at the end after this.

        Of a page of more than `trace.MOST_CHARACTERS`, rules behind the one that drops it have no values.
        """
        counts = LineCounts()  # a copy: the verdict has those up to the rule that drops the page
        counts.read, counts.changed = self._counts.read, dict(self._counts.changed)
        for operation in self._remaining:
            if facts.length > MOST_CHARACTERS:
                break
            operation.apply(facts, counts)
        else:
            self._row["lines_left"] = facts.line_count
        return {
            "url": page.url,
            "timestamp": page.timestamp,
            "text": page.body,
            "bytes": page.size,
            "reason": verdict.reason or verdict.final,
            "lines_read": counts.read,
            **{lines_column(rule): changed for rule, changed in counts.changed.items()},
            **self._row,
        }

    def _recorded(self, operation: Operation) -> Apply:
        """Returns how an operation is applied and its decision recorded."""
        if operation.step and operation.kind == "page rule":
            value, drops = page_rule(operation.step, operation.stage)
            return partial(self._apply_page_rule, operation.step, value, drops)
        return partial(self._apply, operation)

    def _apply(self, operation: Operation, facts: PageFacts, counts: LineCounts) -> bool:
        self._counts = counts
        dropped = operation.apply(facts, counts)
        if operation.kind == "no lines":
            self._record(operation.rule, dropped)
        return dropped

    def _apply_page_rule(self, step: Step, value: Any, drops: Any, facts: PageFacts, counts: LineCounts) -> bool:
        self._counts = counts
        given = value(facts)
        dropped: bool = drops(given)
        self._record(step.rule, dropped)
        number = number_of(step, given, facts)
        if number is not None:
            self._row.setdefault(number_column(step.rule), number)
        if step.definition.fact is Fact.LANGUAGE_GUESS and "language" not in self._row:
            self._record_language(facts)
        return dropped

    def _record(self, rule: str, dropped: bool) -> None:
        """Records whether a rule drops the page. A rule that a recipe has twice drops it where one of both does."""
        self._row[fired_column(rule)] = dropped or self._row.get(fired_column(rule), False)

    def _record_language(self, facts: PageFacts) -> None:
        guess = facts.guess
        self._row["language"], self._row["language_probability"] = guess or (None, None)
        if self._labels:
            labels = facts.language_labels(self._labels)
            self._row["language_labels"] = [each._asdict() for each in labels]


class AnnotationWriter:
    """Writes the annotated file of one WET file."""

    def __init__(self, annotate: Annotate, source: str, evaluator: RecipeEvaluator, lists: Mapping[str, str]) -> None:
        """Takes what is written where, the WET file's name, the evaluator, and the digests of the recipe's lists."""
        self._annotator = Annotator(evaluator, annotate.labels)
        self._writer = AnnotatedWriter(annotate.path(source), evaluator.recipe, lists, annotate.labels)
        self.begin = self._annotator.begin
        self.finish = self._writer.finish
        self.discard = self._writer.discard

    def add(self, page: Page, verdict: Verdict, facts: PageFacts) -> None:
        """Adds a page. The arguments are those of `Annotator.end`."""
        self._writer.add(self._annotator.end(page, verdict, facts))


@contextlib.contextmanager
def annotation_writer(
    annotate: Annotate | None, source: str, evaluator: RecipeEvaluator, lists: Mapping[str, str]
) -> Iterator[AnnotationWriter | None]:
    """Yields an AnnotationWriter, or None where nothing is annotated. An unfinished file is removed in the end."""
    if annotate is None:
        yield None
        return
    writer = AnnotationWriter(annotate, source, evaluator, lists)
    try:
        yield writer
    finally:
        writer.discard()
