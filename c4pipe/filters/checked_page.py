"""A page while the rules of a recipe check it: the lines that are kept so far, in Python or in C, the values that rules
look at, and the tools of the recipe.

Each value is computed, and each tool loaded, when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from c4pipe.io.words import format_count, short_repr
from c4pipe.lists.lists import Lists
from c4pipe.native import lower, text_kernel
from c4pipe.text.hashes import normalise_url, url_key
from c4pipe.text.languages import UNKNOWN, Detector, Guess, make_detector
from c4pipe.text.page_text import PageText
from c4pipe.text.scripts.facts import script_share
from c4pipe.text.sentences import SentenceSplitter
from c4pipe.wet.page import Page, moment_of, text_order, warc_date

if TYPE_CHECKING:
    from c4pipe.native import _text

Value = TypeVar("Value")
_Made = TypeVar("_Made")

ByLanguage = Mapping[str, Mapping[str, Any]]
"""The parameters of rules for the pages of a language, by the language and the name of the rule; and WORDS."""

WORDS = "words"
"""The key in `ByLanguage` of the tokenizer that finds the words of a page (see `text.word_tokenizers`)."""


def tokenizer_of(by_language: ByLanguage, language: str) -> str:
    """Returns the name of the tokenizer for a language; "" for the English tokenizer of most recipes."""
    return str(by_language[language][WORDS]) if by_language and language in by_language else ""


_VALUES_OF_LINES = ("text", "encoded", "text_lower", "sentence_starts", "unit_starts", "words")
"""The values that depend on the lines."""


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


BEFORE_LINE_RULES = ("readable", "crawled")
"""The stages whose rules see the page as crawled."""

TWICE = "newlines, then unicode"
AS_CRAWLED = "as crawled"
CRAWLED_TWICE = "as crawled, then unicode"

_CUT_IN_C = ("unicode", "newlines", TWICE)  # line separators


def lines_in_c(body: str | bytes | bytearray, line_separators: str) -> _text.Lines | None:
    """Returns the lines of a text as `body_lines.cut_lines` cuts them; None if C can't hold them."""
    if text_kernel is None or line_separators not in _CUT_IN_C:
        return None
    try:
        lines: _text.Lines = text_kernel.Lines(body, line_separators == "unicode")
    except UnicodeEncodeError:  # half of a surrogate pair, which no decoded page has
        return None
    return lines


def cuts_in_c(line_separators: str, stage: str) -> bool:
    """Tells whether the C extension exists and can cut lines in this way, in a stage of the recipe."""
    is_cut = line_separators in _CUT_IN_C or (line_separators == CRAWLED_TWICE and stage not in BEFORE_LINE_RULES)
    return text_kernel is not None and is_cut


@dataclass(frozen=True)
class PageSettings:
    """The settings of a recipe for the values of its pages (`recipes.recipe.page_settings` makes them).

    Attributes:
        scheme: how URLs are normalised (see `text.hashes.normalise_url`).
        any_timestamp: whether any text counts as a timestamp, or only a WARC date.
        sentence_model: which model splits sentences; "" for the model of the page's language.
        scripts: the scripts at whose marks sentences end, too.
        unit: the unit of repeated spans, `sentence` or `line`; None without such a rule.
        detector: the language detector; "" if no rule asks for the language.
        min_probability: the least probability of a guess of CLD3.
        min_script_share: the least share of letters of the guessed language's script; else the language is `und`.
        language_as_crawled: whether the language is detected in the page as crawled, before the line rules.
        by_language: the parameters of rules by language, and the tokenizers.
    """

    scheme: str = "start"
    any_timestamp: bool = False
    sentence_model: str = ""
    scripts: tuple[str, ...] = ()
    unit: str | None = None
    detector: str = ""
    min_probability: float = 0.0
    min_script_share: float = 0.0
    language_as_crawled: bool = False
    by_language: ByLanguage = field(default_factory=dict)


class RuleTools:
    """The tools of the rules of one recipe: its settings, its lists, and prepared lists and models."""

    def __init__(self, settings: PageSettings, lists: Lists) -> None:
        """Takes the settings and the lists of a recipe. Loads nothing yet."""
        self.settings = settings
        self.lists = lists
        self._made: dict[Hashable, Any] = {}

    @cached_property
    def detector(self) -> Detector | None:
        """The language detector, or None if no rule asks for the language."""
        if self.lists.language_model:
            return self.lists.language_model.detector()
        name = self.settings.detector
        return make_detector(name, self.settings.min_probability) if name else None

    def once(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Returns the tool of a key, such as a prepared list or a model. `make` makes it at the first call."""
        if key not in self._made:
            self._made[key] = make()
        return cast(_Made, self._made[key])


class CheckedPage:
    """A page and the lines of it that are kept so far.

    Attributes:
        page: the page as crawled; in job 2 only its URL is known.
        tools: what the rules of the recipe need beside the page.
        lines_in_c: the kept lines inside the C extension; None as soon as they are a list.
        uncut: whether the text is the body of the page, which has not been cut into lines yet.
        as_crawled: whether the line rules are still to come: rules that search text look at the page as crawled.
        units_left: in job 2, the number of sentences or lines after the removal of repeated spans; else None.
        without_listed_word: in job 2, a language for which the text is known to have no listed word; else None.
    """

    def __init__(
        self,
        page: Page,
        tools: RuleTools,
        lines: list[str] | _text.Lines | None,
        units_left: int | None = None,
        without_listed_word: str | None = None,
    ) -> None:
        self.page = page
        self.tools = tools
        self.lines_in_c = None if isinstance(lines, list) else lines
        self.uncut = lines is None
        self.as_crawled = True
        self.units_left = units_left
        self.without_listed_word = without_listed_word
        self._lines = lines if isinstance(lines, list) else []

    def __repr__(self) -> str:
        return short_repr(self, self.page.url, format_count(len(self.lines), "line"))

    @property
    def lines(self) -> list[str]:
        """The kept lines. Setting them forgets the values of the lines before."""
        if self.lines_in_c is not None:
            self._lines, self.lines_in_c = self.lines_in_c.unpacked(), None
        elif self.uncut:
            self._lines, self.uncut = self.page.body.split("\n"), False
        return self._lines

    @lines.setter
    def lines(self, lines: list[str] | _text.Lines) -> None:
        if isinstance(lines, list):
            self._lines, self.lines_in_c = lines, None
        else:
            self._lines, self.lines_in_c = [], lines
        self.uncut = False
        self.forget()

    def forget(self) -> None:
        """Forgets the values that were computed from lines that have changed."""
        known = self.__dict__
        for name in _VALUES_OF_LINES:
            if name in known:
                del known[name]
        if "guess" in known and not self.tools.settings.language_as_crawled:
            del known["guess"]

    @property
    def line_count(self) -> int:
        """The number of kept lines."""
        if self.uncut:
            return self.page.body.count("\n") + 1
        return len(self._lines if self.lines_in_c is None else self.lines_in_c)

    @cached
    def captured(self) -> int | None:
        """The timestamp in microseconds since 1970 (UTC), or None if the recipe does not accept it.

        If the recipe accepts any text, it is a number that sorts pages in the same order as the texts.
        """
        order = text_order if self.tools.settings.any_timestamp else moment_of
        return order(self.page.timestamp)

    @property
    def timestamp(self) -> str:
        """The timestamp as a WARC date; as crawled if the recipe accepts any text."""
        crawled = self.page.timestamp
        return crawled if self.tools.settings.any_timestamp else warc_date(crawled) or crawled

    @property
    def length(self) -> int:
        """Characters of the kept lines joined by newlines."""
        if self.lines_in_c is not None:
            return self.lines_in_c.length()
        if self.uncut:
            return len(self.page.body)
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
        if self.uncut:
            return self.page.body
        return "\n".join(self.lines) if self.lines_in_c is None else self.encoded.decode()

    @cached
    def encoded(self) -> bytes:
        """The kept lines joined by newlines, in UTF-8."""
        if self.uncut and self.page.encoded is not None:
            return bytes(self.page.encoded)
        return self.text.encode() if self.lines_in_c is None else self.lines_in_c.encoded()

    @cached
    def text_lower(self) -> str:
        """The kept lines in lower case."""
        return lower(self.text)

    @property
    def searched(self) -> str:
        """The text that rules search: before the line rules the page as crawled, then the kept lines."""
        return self.page.body if self.as_crawled else self.text

    @property
    def searched_lower(self) -> str:
        """`searched` in lower case."""
        return self.body_lower if self.as_crawled else self.text_lower

    @cached
    def words(self) -> PageText:
        """The kept lines joined by newlines, with their words."""
        return PageText(self.text, self.tokenizer)

    @property
    def tokenizer(self) -> str:
        """The name of the tokenizer that finds the words of the page; "" for the English tokenizer of most recipes."""
        return tokenizer_of(self.tools.settings.by_language, self.language)

    @cached
    def normalised_url(self) -> str:
        """The URL as the recipe's rule `normalised_url` gives it."""
        return normalise_url(self.page.url, self.tools.settings.scheme)

    @cached
    def url_key(self) -> int:
        """The key of the normalised URL, which captures of one URL share."""
        return url_key(self.normalised_url)

    @cached
    def guess(self) -> Guess | None:
        """The most probable language of the text; `und` if the recipe has no rule `language`, or if the language has
        another script (`Language.min_script_share`).

        If that rule stands only before the line rules, it is the language of the page as crawled.
        """
        detector, least = self.tools.detector, self.tools.settings.min_script_share
        guess = detector.guess(self.text) if detector else Guess(UNKNOWN, 0.0)
        if least and guess and script_share(self.text, guess.language) < least:
            return Guess(UNKNOWN, guess.probability)
        return guess

    def language_labels(self, most: int) -> list[Guess]:
        """Returns the most probable languages of the text, `most` at most; none without the rule `language`."""
        detector = self.tools.detector
        return detector.labels(self.text, most) if detector else []

    @property
    def language(self) -> str:
        """The code of the guessed language; `und` without a guess."""
        return self.guess.language if self.guess else UNKNOWN

    @cached
    def sentence_starts(self) -> list[int]:
        """The starts of the sentences, in characters of the text; each line is split by itself."""
        return self.splitter(self.tools.settings.sentence_model).starts(self.lines)

    @cached
    def unit_starts(self) -> Sequence[int]:
        """The starts of the units of repeated spans, in characters of the text; empty without such a rule."""
        unit = self.tools.settings.unit
        if unit == "line":
            return self.lines_in_c.starts() if self.lines_in_c else _line_starts(self.text)
        return self.sentence_starts if unit else ()

    def splitter(self, model: str) -> SentenceSplitter:
        """Returns the sentence splitter for a model: the model of the page's language, or `nltk english`."""
        as_nltk = model == "nltk english"
        language = "en" if as_nltk else self.language
        scripts = () if as_nltk else self.tools.settings.scripts
        return self.tools.once(
            (SentenceSplitter, language, as_nltk), lambda: SentenceSplitter(language, as_nltk, scripts)
        )


def _line_starts(text: str) -> list[int]:
    """Returns the start of each line of a text, in characters. This is twice as fast as splitting the text."""
    starts, find = [0], text.find
    while start := find("\n", starts[-1]) + 1:
        starts.append(start)
    return starts
