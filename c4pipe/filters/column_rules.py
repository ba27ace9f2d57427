"""The rule on a column of the input, such as the score of a classifier."""

from __future__ import annotations

from dataclasses import dataclass

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import Others, PageRule


@dataclass(frozen=True)
class ColumnBelow(PageRule):
    """Drops a page whose number in a column of `import --columns` is too small."""

    name = "column_below"
    does = "drops a page whose number in the column {column} is below {minimum}; a page without a value stays"
    source = "as FineWeb-Edu (Penedo et al. 2024) keeps pages by the score of a classifier"
    stage = "crawled"
    counts = "float"
    drops_if = ("< minimum",)
    column: str = "score"
    minimum: float = 0.0

    def value(self, page: CheckedPage) -> float | None:
        """Returns the number of the page; None for no value."""
        try:
            number: float | None = page.page.extra[self.column]
        except KeyError:
            raise UsageError(missing(self, "the pages")) from None
        return number

    def drops(self, value: float | None) -> bool:
        return value is not None and value < self.minimum

    def says(self, value: float | None, dropped: bool, page: CheckedPage) -> str:
        said = f"{self.column} has no value" if value is None else f"{self.column} {value:,}"
        return f"{said}; at least {self.minimum:,}"

    def contradiction(self, others: Others, stage: str) -> str | None:
        """Job 2 does not give the columns to rules."""
        return (
            f"{self.name} can't stand in the stage {stage}: put it into crawled or cleaned"
            if stage == "final"
            else None
        )


def missing(rule: ColumnBelow, what: str) -> str:
    """Returns the error for pages or files without the column of the rule as numbers."""
    return (
        f"{rule.name} needs numbers in the column {rule.column}, and {what} have none: "
        f"read them with c4pipe import --columns {rule.column}, or leave the rule out"
    )
