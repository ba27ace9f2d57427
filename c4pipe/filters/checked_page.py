"""A page while the rules of a recipe check it: the lines that are kept so far, and the values that rules look at.

Each value is computed when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from c4pipe.filters.language import UNKNOWN, Guess
from c4pipe.filters.page_text import PageText
from c4pipe.filters.urls import normalise_url, url_key
from c4pipe.native import lower
from c4pipe.wet.page import Page, text_order

if TYPE_CHECKING:
    from c4pipe.filters.rule_tools import RuleTools
    from c4pipe.filters.sentences import SentenceSplitter
    from c4pipe.native import _text

Value = TypeVar("Value")

_FIELDS = ("url", "text", "timestamp")
_VALUES_OF_LINES = ("text", "encoded", "text_lower", "sentence_starts", "unit_starts", "words")
"""The values that are forgotten when the lines change."""


class cached(Generic[Value]):
    """As `functools.cached_property`, for objects that one thread uses.

    `cached_property` takes a lock before Python 3.12, which costs a third of a microsecond for each value of each page.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        """Takes the function that computes the value of an object."""
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        """Computes the value of an object and keeps it there."""
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


class CheckedPage:
    """A page and the lines of it that are kept so far.

    Attributes:
        page: the page as crawled; in job 2 only its URL is known.
        tools: what the rules of the recipe need beside the page.
        lines_in_c: the kept lines inside the C extension; None as soon as they are a list.
        as_crawled: whether the line rules are still to come: rules that search text look at the page as crawled.
        units_left: in job 2, the number of sentences or lines after the removal of repeated spans; else None.
        without_listed_word: in job 2, a language for which the text is known to have no listed word; else None.
    """

    def __init__(
        self,
        page: Page,
        tools: RuleTools,
        lines: list[str] | _text.Lines,
        units_left: int | None = None,
        without_listed_word: str | None = None,
    ) -> None:
        self.page = page
        self.tools = tools
        self.lines_in_c = None if isinstance(lines, list) else lines
        self.as_crawled = True
        self.units_left = units_left
        self.without_listed_word = without_listed_word
        self._lines = lines if isinstance(lines, list) else []

    @property
    def lines(self) -> list[str]:
        """The kept lines. Setting them forgets the values of the lines before."""
        if self.lines_in_c is not None:
            self._lines, self.lines_in_c = self.lines_in_c.unpacked(), None
        return self._lines

    @lines.setter
    def lines(self, lines: list[str]) -> None:
        self._lines, self.lines_in_c = lines, None
        self.forget()

    def forget(self) -> None:
        """Forgets the values that were computed from lines that have changed."""
        known = self.__dict__
        for name in _VALUES_OF_LINES:
            if name in known:
                del known[name]
        if "guess" in known and not self.tools.language_as_crawled:
            del known["guess"]

    @property
    def line_count(self) -> int:
        """The number of kept lines."""
        return len(self._lines if self.lines_in_c is None else self.lines_in_c)

    @property
    def missing_fields(self) -> list[str]:
        """The names of the missing parts: URL, text, timestamp."""
        if self.page.url and self.captured is not None and self.line_count:  # as most pages: four times as fast
            return []
        fields = self.page.url, self.line_count, self.captured is not None
        return [name for name, value in zip(_FIELDS, fields, strict=True) if not value]

    @cached
    def captured(self) -> int | None:
        """The timestamp in microseconds since 1970 (UTC), or None if the recipe does not accept it.

        If the recipe accepts any text, it is a number that sorts pages in the same order as the texts.
        """
        return text_order(self.page.timestamp) if self.tools.any_timestamp else self.page.captured

    @property
    def length(self) -> int:
        """Characters of the kept lines joined by newlines."""
        if self.lines_in_c is not None:
            return self.lines_in_c.length()
        return sum(map(len, self.lines)) + max(0, len(self.lines) - 1)

    @property
    def body(self) -> str:
        """The text as crawled."""
        return self.page.body

    @cached
    def body_lower(self) -> str:
        """The text as crawled, in lower case."""
        return lower(self.page.body)

    @cached
    def text(self) -> str:
        """The kept lines joined by newlines."""
        return "\n".join(self.lines) if self.lines_in_c is None else self.encoded.decode()

    @cached
    def encoded(self) -> bytes:
        """The kept lines joined by newlines, in UTF-8."""
        return self.text.encode() if self.lines_in_c is None else self.lines_in_c.encoded()

    @cached
    def text_lower(self) -> str:
        """The kept lines in lower case."""
        return lower(self.text)

    @property
    def searched(self) -> str:
        """The text that rules search: the page as crawled before the line rules, the kept lines from then on."""
        return self.page.body if self.as_crawled else self.text

    @property
    def searched_lower(self) -> str:
        """`searched` in lower case."""
        return self.body_lower if self.as_crawled else self.text_lower

    @cached
    def words(self) -> PageText:
        """The kept lines joined by newlines, with their words."""
        return PageText(self.text)

    @cached
    def normalised_url(self) -> str:
        """The URL as the recipe's rule `normalised_url` gives it."""
        return normalise_url(self.page.url, self.tools.scheme)

    @cached
    def url_key(self) -> int:
        """The key of the normalised URL, which captures of one URL share."""
        return url_key(self.normalised_url)

    @cached
    def guess(self) -> Guess | None:
        """The most probable language of the text; `und` where the recipe has no rule `language`.

        If that rule stands only before the line rules, it is the language of the page as crawled.
        """
        detector = self.tools.detector
        return detector.guess(self.text) if detector else Guess(UNKNOWN, 0.0)

    def language_labels(self, most: int) -> list[Guess]:
        """Returns the most probable languages of the text, `most` at most; none without the rule `language`."""
        detector = self.tools.detector
        return detector.labels(self.text, most) if detector else []

    @property
    def language(self) -> str:
        """The code of the guessed language; `und` where there is no guess."""
        return self.guess.language if self.guess else UNKNOWN

    @cached
    def sentence_starts(self) -> list[int]:
        """The starts of the sentences, in characters of the text; each line is split by itself."""
        return self.splitter(self.tools.sentence_model).starts(self.lines)

    @cached
    def unit_starts(self) -> Sequence[int]:
        """The starts of the units of repeated spans, in characters of the text; empty without such a rule."""
        unit = self.tools.unit
        if unit == "line":
            return self.lines_in_c.starts() if self.lines_in_c else _line_starts(self.text)
        return self.sentence_starts if unit else ()

    def splitter(self, model: str) -> SentenceSplitter:
        """Returns the sentence splitter for a model: the model of the page's language, or `nltk english`."""
        return (
            self.tools.splitter("en", as_nltk=True) if model == "nltk english" else self.tools.splitter(self.language)
        )


def _line_starts(text: str) -> list[int]:
    """Returns the start of each line of a text, in characters. This is twice as fast as splitting the text."""
    starts, find = [0], text.find
    while start := find("\n", starts[-1]) + 1:
        starts.append(start)
    return starts
