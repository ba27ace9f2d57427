"""Annotates pages: applies all rules of a recipe to each page, also after a rule drops it, and records each decision.

It observes the operations of the one evaluator, so each page is evaluated once, and the verdict is the same.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from c4pipe.clean.annotated_folder import (
    Annotate,
    AnnotatedHeader,
    annotated_schema,
    fired_column,
    lines_column,
    number_column,
)
from c4pipe.clean.evaluate import LineChanges, Operation, RecipeEvaluator, Verdict, evaluate
from c4pipe.clean.side_files import CleanedFile, PageRows
from c4pipe.clean.trace import MOST_CHARACTERS
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.language import Language
from c4pipe.filters.rule import PageRule
from c4pipe.wet.columns import EXTRA
from c4pipe.wet.page import Page

AnnotatedRow = dict[str, Any]
"""The values of a page, by column of `annotated_schema`. A column whose value is null is left out."""


class Annotator:
    """Records what the operations of a recipe decide about pages (an `Observer`), one page after the other."""

    def __init__(self, evaluator: RecipeEvaluator, labels: int = 0) -> None:
        """Takes the evaluator of the recipe, and how many languages `language_labels` has."""
        self.recipe = evaluator.recipe
        self._evaluator = evaluator
        self._labels = labels
        self._page: CheckedPage
        self._remaining: Iterator[Operation] = iter(())
        self._row: AnnotatedRow = {}
        self._counts = LineChanges()

    def clean(self, page: Page) -> tuple[Verdict, CheckedPage]:
        """Evaluates the next page up to the rule that drops it; returns what `RecipeEvaluator.clean` returns."""
        self._page = self._evaluator.page(page)
        self._row, self._counts = {}, LineChanges()
        self._remaining = iter(self._evaluator.observed)
        return evaluate(self._remaining, self._page, self), self._page

    def end(self, verdict: Verdict) -> AnnotatedRow:
        """Applies the operations after the drop, too, and returns the values of the page's columns.

        The page that `clean` returned gets its final lines. Above `trace.MOST_CHARACTERS`, rules after the drop have no
        values.
        """
        checked, counts = self._page, LineChanges()  # a copy: the verdict's counts end at the drop
        counts.read, counts.changed = self._counts.read, self._counts.changed.copy()
        for operation in self._remaining:
            if checked.length > MOST_CHARACTERS:
                break
            value, dropped = operation.judge(checked, counts)
            self.saw(operation, value, dropped, counts)
        else:
            self._row["lines_left"] = checked.line_count
        page = checked.page
        return {
            "url": page.url,
            "timestamp": page.timestamp,
            "text": page.body,
            "bytes": page.size,
            "reason": verdict.reason or verdict.final,
            "lines_read": counts.read,
            **{lines_column(rule): changed for rule, changed in counts.changed.items()},
            **self._row,
            **({EXTRA: page.extra} if page.extra else {}),
        }

    def saw(self, operation: Operation, value: Any, dropped: bool, counts: LineChanges) -> bool:
        """Records a decision. A rule that a recipe has twice drops the page if one of the two does."""
        self._counts = counts
        rule = operation.rule
        if operation.kind in ("page rule", "no lines"):
            column = fired_column(operation.name)
            self._row[column] = dropped or self._row.get(column, False)
        if operation.kind == "page rule" and isinstance(rule, PageRule):
            if rule.counts:
                self._row.setdefault(number_column(rule.name), rule.number(value, self._page))
            if isinstance(rule, Language) and "language" not in self._row:
                self._record_language()
        return False

    def _record_language(self) -> None:
        self._row["language"], self._row["language_probability"] = self._page.guess or (None, None)
        if self._labels:
            labels = self._page.language_labels(self._labels)
            self._row["language_labels"] = [each._asdict() for each in labels]


class AnnotatedFile(PageRows):
    """The annotated file of one WET file: all of its pages, with the decisions of all rules."""

    def __init__(self, annotate: Annotate, source: str, annotator: Annotator, lists: Mapping[str, str]) -> None:
        """Takes the folder, the WET file's name, the annotator, and the digests of the recipe's lists."""
        self._annotator, self._lists, self._labels = annotator, lists, annotate.labels
        schema = annotated_schema(annotator.recipe, annotate.labels)
        super().__init__(annotate.path(source), schema, ["reason", "language"])
        self._source, self._names = source, [name for name in schema.names if name != "text"]

    def add(self, verdict: Verdict, page: CheckedPage) -> None:
        """Adds the page that the annotator has cleaned last."""
        row = self._annotator.end(verdict)
        text = row["text"].encode()
        self.add_row(tuple(map(row.get, self._names)), text)

    def finish(self, file: CleanedFile) -> None:
        """Writes the header, and gives the file its name."""
        recipe, lists = self._annotator.recipe, dict(self._lists)
        fingerprint = recipe.fingerprint(lists)
        header = AnnotatedHeader(self._source, file.ends_sha256, recipe, fingerprint, lists, self._labels, self.rows)
        self.publish(header.encode())
