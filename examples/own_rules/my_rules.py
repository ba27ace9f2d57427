"""Rules of our own for a recipe: docs/own_rules.md explains them."""

from dataclasses import dataclass
from typing import Annotated

from c4pipe import Between, CheckedPage, LineRule, PageRule


@dataclass(frozen=True)
class ShortTitle(PageRule):
    """Drops a page whose first line has few words."""

    name = "short_title"
    does = "drops a page whose first line has fewer than {min_words} words"
    source = "our own crawl of 2030"
    counts = "int"

    min_words: Annotated[int, Between(1, 100)] = 3

    def value(self, page: CheckedPage) -> int:
        """Returns the number of words in the first line."""
        return len(page.lines[0].split()) if page.lines else 0

    def drops(self, value: int) -> bool:
        """Tells whether there are too few."""
        return value < self.min_words

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        """Returns the number in words, for `c4pipe explain` and the report."""
        return f"{value} words in the first line; at least {self.min_words}"


@dataclass(frozen=True)
class QuestionLine(LineRule):
    """Drops lines that are questions."""

    name = "question_line"
    does = "drops a line that ends in a question mark"
    source = "our own crawl of 2030"
    stage = "lines"

    def edit(self, lines: list[str]) -> list[str]:
        """Returns the lines that stay."""
        return [line for line in lines if not line.endswith("?")]
