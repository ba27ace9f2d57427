"""A page while it is cleaned: the facts that page rules look at, each found when it is first asked for."""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from c4pipe.clean.resources import RuleResources
from c4pipe.filters.language import UNKNOWN, Guess
from c4pipe.filters.urls import normalise_url, url_key
from c4pipe.native import lower
from c4pipe.wet.page import Page

if TYPE_CHECKING:
    from c4pipe.native._text import Lines

_OF_LINES = (
    "text",
    "text_lower",
    "guess",
    "sentence_starts",
    "unit_starts",
)  # facts that are gone when the lines change


class PageFacts:
    """A page and what is left of it.

    Attributes:
        page: the page as crawled (in job 2 its URL alone).
        packed: what is left of its lines, while nothing needs them as a list.
    """

    def __init__(
        self, page: Page, tools: RuleResources, lines: "list[str] | Lines", units_left: int | None = None
    ) -> None:
        """Begins with some lines; `units_left` is given in job 2."""
        self.page = page
        self.packed = None if isinstance(lines, list) else lines
        self._tools = tools
        self._lines = lines if isinstance(lines, list) else []
        self._units_left = units_left

    @property
    def lines(self) -> list[str]:
        """What is left of the page's lines. To set them anew forgets what was found in the old ones."""
        if self.packed is not None:
            self._lines, self.packed = self.packed.unpacked(), None
        return self._lines

    @lines.setter
    def lines(self, lines: list[str]) -> None:
        self._lines, self.packed = lines, None
        self.forget()

    def forget(self) -> None:
        """Forgets what was found in lines that have changed since."""
        for fact in _OF_LINES:
            self.__dict__.pop(fact, None)

    @property
    def line_count(self) -> int:
        """How many lines are left."""
        return len(self._lines if self.packed is None else self.packed)

    @property
    def missing(self) -> list[str]:
        """Which of URL, text and timestamp the page lacks."""
        found = {"url": self.page.url, "text": self.line_count, "timestamp": self.page.captured is not None}
        return [name for name, value in found.items() if not value]

    @property
    def length(self) -> int:
        """Characters of the lines joined by newlines."""
        if self.packed is not None:
            return self.packed.length()
        return sum(map(len, self.lines)) + max(0, len(self.lines) - 1)

    @property
    def body(self) -> str:
        """The text as crawled."""
        return self.page.body

    @cached_property
    def body_lower(self) -> str:
        """The text as crawled, in lower case."""
        return lower(self.page.body)

    @cached_property
    def text(self) -> str:
        """The lines joined by newlines."""
        return "\n".join(self.lines) if self.packed is None else self.packed.text()

    @cached_property
    def text_lower(self) -> str:
        """The text in lower case."""
        return lower(self.text)

    @cached_property
    def normalised_url(self) -> str:
        """The URL as rule 5 normalises it."""
        return normalise_url(self.page.url, self._tools.scheme)

    @cached_property
    def guess(self) -> Guess | None:
        """The language of the text; `und` where the recipe does not ask."""
        return self._tools.detector.guess(self.text) if self._tools.detector else Guess(UNKNOWN, 0.0)

    @property
    def language(self) -> str:
        """The code of the guessed language, or `und` where there is no guess."""
        return self.guess.language if self.guess else UNKNOWN

    @cached_property
    def sentence_starts(self) -> list[int]:
        """Where the sentences start, in characters of the text; Punkt takes each line by itself."""
        return self._tools.sentence_cutter(self).starts(self.lines)

    @property
    def sentence_count(self) -> int:
        """How many sentences the lines have, each by itself; where lines alone are enough for rule 14, these."""
        enough: int = self._tools.recipe.parameters("few_sentences").get("min_sentences", 0)
        return self.line_count if self.line_count >= enough else len(self.sentence_starts)

    @property
    def sentences_left(self) -> int:
        """How many sentences rule 16 finds, or as many as are enough for it."""
        rule = self._tools.recipe.parameters("few_sentences_left")
        if rule["count"] == "punkt on the whole text":
            return self._tools.final_cutter(self).count(self.text, rule["min_sentences"])
        return len(self.sentence_starts) if self._units_left is None else self._units_left

    @cached_property
    def unit_starts(self) -> Sequence[int]:
        """Where the units of rule 15 start, in characters of the text; empty without that rule."""
        unit = self._tools.recipe.parameters("repeated_span").get("unit")
        if unit == "line":
            lengths = [len(line) + 1 for line in self.text.split("\n")]
            return [0, *accumulate(lengths[:-1])]
        return self.sentence_starts if unit else ()

    @property
    def bad_word(self) -> str | None:
        """A listed word of the page's language that drops the page, or None."""
        return self._tools.find_bad_word(self)

    @property
    def domain_listed(self) -> bool:
        """Whether the page's domain is in the recipe's list."""
        return self._tools.lists.has_domain(self.normalised_url)

    @property
    def url_listed(self) -> bool:
        """Whether the page's URL is in the recipe's list of links."""
        return self._tools.lists.has_link(url_key(self.normalised_url))
