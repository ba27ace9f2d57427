"""The rules on a page as a whole: what it must have, how long it may be, how many long lines it needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.native_lines import NativeStep, native_step
from c4pipe.filters.rule import MC4, TFDS, PageRule, Whole, number_of


@dataclass(frozen=True)
class Incomplete(PageRule):
    """Drops pages that lack their URL, their text, or a timestamp that can be read."""

    name = "incomplete"
    does = "drops a page without URL, text or timestamp (what counts as a timestamp: {timestamps})"
    source = TFDS + "; dates: WARC 1.1 (ISO 28500)"
    timestamps: Literal["WARC dates", "any text"] = "WARC dates"

    def value(self, page: CheckedPage) -> list[str]:
        """Returns which of URL, text and timestamp the page lacks."""
        return page.missing_fields

    def drops(self, value: list[str]) -> bool:
        """Tells whether one is missing."""
        return bool(value)

    def says(self, value: list[str], dropped: bool, page: CheckedPage) -> str:
        """Returns what is missing."""
        return f"it has no {' and no '.join(value)}" if dropped else "it has a URL, text and a timestamp"


@dataclass(frozen=True)
class TooLong(PageRule):
    """Drops very long pages: TensorFlow Datasets can't process them."""

    name = "too_long"
    does = "drops a page of more than {max_characters} characters"
    source = TFDS
    counts = "int"
    max_characters: Whole = 190_000

    def value(self, page: CheckedPage) -> int:
        """Returns the number of characters."""
        return page.length

    def drops(self, value: int) -> bool:
        """Tells whether there are too many."""
        return value > self.max_characters

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        """Returns the number of characters and the limit."""
        return f"{number_of(value, 'character')}; at most {self.max_characters:,}"

    def native(self, as_crawled: bool) -> NativeStep | None:
        """Returns the step in C."""
        return native_step("exceeds", self.max_characters)


@dataclass(frozen=True)
class Empty(PageRule):
    """Drops pages of which no line is left."""

    name = "empty"
    does = "drops a page that has no line left"
    source = TFDS

    def value(self, page: CheckedPage) -> Sequence[str]:
        """Returns the lines."""
        return page.lines

    def drops(self, value: Sequence[str]) -> bool:
        """Tells whether there is none."""
        return not value

    def says(self, value: Sequence[str], dropped: bool, page: CheckedPage) -> str:
        """Returns the number of lines."""
        return number_of(len(value), "line")


@dataclass(frozen=True)
class FewLongLines(PageRule):
    """Drops pages with few long lines (mT5 paper, 3.1)."""

    name = "few_long_lines"
    does = "keeps a page of at least {min_lines} lines of {min_characters} characters"
    source = MC4
    counts = "int"
    min_lines: Whole = 3
    min_characters: Whole = 200

    def value(self, page: CheckedPage) -> int:
        """Returns the number of long lines."""
        least = self.min_characters
        return sum(len(line) >= least for line in page.lines)

    def drops(self, value: int) -> bool:
        """Tells whether there are too few."""
        return value < self.min_lines

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        """Returns the number of long lines and the limit."""
        return f"{number_of(value, 'line')} of {self.min_characters} characters; at least {self.min_lines}"
