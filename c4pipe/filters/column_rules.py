"""The rules on a column of the pages, such as the score or the label of a classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import Others, PageRule, Texts, parameter_text
from c4pipe.io.words import short, suggestion
from c4pipe.lists.lists import ListFolder
from c4pipe.lists.robots import expand_agents
from c4pipe.wet.usage import AIPREF, LATEST, Draft, find_refusals, unknown_usage


class ColumnRule(PageRule):
    """A rule that drops a page by the value of a further column.

    Attributes:
        column: the name of the column.
        types: the types that the column can have.
        made: what its values are, and what makes them, for an error.
    """

    column: str
    types: ClassVar[tuple[str, ...]]
    made: ClassVar[tuple[str, str]]

    def value(self, page: CheckedPage) -> Any:
        """Returns the value of the page; None for no value."""
        try:
            return page.page.extra[self.column]
        except KeyError:
            raise UsageError(self.missing("the pages")) from None

    def contradiction(self, others: Others, stage: str) -> str | None:
        """Job 2 does not give the columns to rules."""
        return (
            f"{self.name} can't stand in the stage {stage}: put it into crawled or cleaned"
            if stage == "final"
            else None
        )

    def missing(self, what: str) -> str:
        """Returns the error for pages or files without the column of the rule."""
        values, origin = self.made
        return (
            f"{self.name} needs {values} in the column {self.column}, and {what} have none: read them with "
            f"c4pipe import --columns {self.column}, {origin}, or leave the rule out"
        )


class ColumnBelow(ColumnRule):
    """Drops a page whose number in a column of `import --columns` is too small."""

    name = "column_below"
    does = "drops a page whose number in the column {column} is below {minimum}; a page without a value stays"
    source = "as FineWeb-Edu (Penedo et al. 2024) keeps pages by the score of a classifier"
    stage = "crawled"
    counts = "float"
    drops_if = ("< minimum",)
    types = ("int", "float")
    made = "numbers", "make them before it with --score"
    column: str = "score"
    minimum: float = 0.0

    def drops(self, value: float | None) -> bool:
        return value is not None and value < self.minimum

    def says(self, value: float | None, dropped: bool, page: CheckedPage) -> str:
        said = f"{self.column} has no value" if value is None else f"{self.column} {value:,}"
        return f"{said}; at least {self.minimum:,}"


class LabelNotWanted(ColumnRule):
    """Drops a page by its label in a column. A recipe can have several.

    A label is wanted if it is none of `not_wanted`, and one of `wanted`, unless `wanted` is empty. No label is none of
    `wanted`.
    """

    name: str = "label_not_wanted"  # type: ignore[misc] # a class variable of other rules
    does = "drops a page whose label in the column {column} is not wanted"
    source = "as WebOrganizer (Wettig et al. 2025) chooses pages by topic and format"
    stage = "cleaned"
    names_itself = True
    types = ("string",)
    made = "labels", "make them before it with --label"
    column: str = "topic"
    wanted: Texts = ()
    not_wanted: Texts = ()

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        """Raises UsageError if the rule names no label, and so would drop no page."""
        if not (self.wanted or self.not_wanted):
            raise UsageError(f"{self.name} names no label: give wanted or not_wanted, or leave the rule out")
        return super().load_lists(lists)

    def drops(self, value: str | None) -> bool:
        return value in self.not_wanted or (bool(self.wanted) and value not in self.wanted)

    def says(self, value: str | None, dropped: bool, page: CheckedPage) -> str:
        return f"the label {value}" if value else "no label"

    def check_labels(self, recipe: str, known: Sequence[str]) -> None:
        """Raises UsageError, with the nearest label, if the rule names a label that a model lacks."""
        if unknown := sorted({*self.wanted, *self.not_wanted}.difference(known)):
            raise UsageError(
                f"recipe {recipe} has the rule {self.name}, and the model of {self.column} has no label "
                f"{unknown[0]!r}; it has {short(', '.join(known), 200)}" + suggestion(unknown[0], known)
            )


class UsageRefused(ColumnRule):
    """Drops a page whose server refuses one of some usages in the headers of the response, or in the page itself."""

    name = "usage_refused"
    does = "drops a page whose server, or the page itself, refuses the usage {usages}, by the column {column}"
    source = f"{AIPREF}; TDM Reservation Protocol (W3C Community Group 2024); noai (DeviantArt 2022)"
    stage = "crawled"
    types = ("string",)
    made = "statements", "read WARC files with --usage"
    column: str = "usage"
    usages: Texts = ("train-ai",)
    draft: Draft = LATEST
    agents: Texts = ("CCBot",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "agents", expand_agents(self.agents))

    def contradiction(self, others: Others, stage: str) -> str | None:
        """A usage needs a name of the draft."""
        return super().contradiction(others, stage) or unknown_usage(self.usages or ("",), self.draft)

    def value(self, page: CheckedPage) -> str | None:
        """Returns what refuses one of the usages, or None."""
        stated = (super().value(page) or "").split(", ")
        return next(find_refusals(stated, self.usages, self.draft, self.agents), None)

    def drops(self, value: str | None) -> bool:
        return value is not None

    def says(self, value: str | None, dropped: bool, page: CheckedPage) -> str:
        return f"its server or the page itself states {value or 'nothing that refuses ' + parameter_text(self.usages)}"
