"""The facts about a page that the rules decide by. Each is computed when it is first needed."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from c4pipe.clean.cached_fact import cached_fact
from c4pipe.clean.resources import RuleResources
from c4pipe.clean.url_lists import UrlLists
from c4pipe.filters.example_ngrams import SharedNgrams
from c4pipe.filters.language import UNKNOWN, Guess, two_letter_code
from c4pipe.filters.page_text import PageText
from c4pipe.filters.sentences import SentenceSplitter
from c4pipe.filters.urls import normalise_url, url_key, url_md5
from c4pipe.filters.word_ngrams import ngram_words
from c4pipe.native import lower
from c4pipe.wet.page import Page, text_order

if TYPE_CHECKING:
    from c4pipe.native import _text

_FIELDS = ("url", "text", "timestamp")
_FACTS_OF_LINES = ("text", "encoded", "text_lower", "sentence_starts", "unit_starts", "page_text")
"""The facts that are forgotten when the lines change."""


class PageFacts:
    """A page, the lines of it that are kept so far, and the facts about both.

    Attributes:
        page: the page as crawled; in job 2 only its URL is known.
        packed: the kept lines inside the C extension; None as soon as they are a list.
    """

    def __init__(
        self,
        page: Page,
        resources: RuleResources,
        lines: "list[str] | _text.Lines",
        units_left: int | None = None,
        without_bad_word: str | None = None,
    ) -> None:
        """Takes the page, the resources of its recipe and its lines.

        In job 2 `units_left` is the number of sentences or lines after the removal of repeated spans, and
        `without_bad_word` a language for which the text is known to have no listed word.
        """
        self.page = page
        self.packed = None if isinstance(lines, list) else lines
        self._resources = resources
        self._lines = lines if isinstance(lines, list) else []
        self._units_left = units_left
        self._without_bad_word = without_bad_word

    @property
    def lines(self) -> list[str]:
        """The kept lines. Setting them forgets the facts of the old ones."""
        if self.packed is not None:
            self._lines, self.packed = self.packed.unpacked(), None
        return self._lines

    @lines.setter
    def lines(self, lines: list[str]) -> None:
        self._lines, self.packed = lines, None
        self.forget()

    def forget(self) -> None:
        """Forgets the facts of lines that have changed since."""
        known = self.__dict__
        for fact in _FACTS_OF_LINES:
            if fact in known:
                del known[fact]
        if "guess" in known and not self._resources.language_as_crawled:
            del known["guess"]

    @property
    def line_count(self) -> int:
        """The number of kept lines."""
        return len(self._lines if self.packed is None else self.packed)

    @property
    def line_separators(self) -> str:
        """How the recipe cuts the body into lines."""
        separators: str = self._parameters("body_lines")["line_separators"]
        return separators

    @property
    def missing_fields(self) -> list[str]:
        """Which of URL, text and timestamp the page lacks."""
        if self.page.url and self.captured is not None and self.line_count:  # as most pages: four times as fast
            return []
        fields = self.page.url, self.line_count, self.captured is not None
        return [name for name, value in zip(_FIELDS, fields, strict=True) if not value]

    @cached_fact
    def captured(self) -> int | None:
        """The timestamp in microseconds since 1970 (UTC), or None where the recipe takes it for none.

        Where the recipe takes any text, a number by which pages sort as their timestamps do as texts.
        """
        return text_order(self.page.timestamp) if self._resources.any_timestamp else self.page.captured

    @property
    def length(self) -> int:
        """Characters of the kept lines joined by newlines."""
        if self.packed is not None:
            return self.packed.length()
        return sum(map(len, self.lines)) + max(0, len(self.lines) - 1)

    @property
    def body(self) -> str:
        """The text as crawled."""
        return self.page.body

    @cached_fact
    def body_lower(self) -> str:
        """The text as crawled, in lower case."""
        return lower(self.page.body)

    @cached_fact
    def text(self) -> str:
        """The kept lines joined by newlines."""
        return "\n".join(self.lines) if self.packed is None else self.encoded.decode()

    @cached_fact
    def encoded(self) -> bytes:
        """The kept lines joined by newlines, in UTF-8."""
        return self.text.encode() if self.packed is None else self.packed.encoded()

    @cached_fact
    def text_lower(self) -> str:
        """The kept lines in lower case."""
        return lower(self.text)

    @cached_fact
    def page_text(self) -> PageText:
        """The kept lines joined by newlines, with their words."""
        return PageText(self.text)

    @cached_fact
    def normalised_url(self) -> str:
        """The URL as the recipe's rule `normalised_url` gives it."""
        return normalise_url(self.page.url, self._resources.scheme)

    @cached_fact
    def url_key(self) -> int:
        """The key of the normalised URL, which captures of one URL share."""
        return url_key(self.normalised_url)

    @cached_fact
    def guess(self) -> Guess | None:
        """The most probable language of the text; `und` where the recipe has no rule `language`.

        Where the recipe has that rule only before the line rules, it is the language of the page as crawled.
        """
        detector = self._resources.detector
        return detector.guess(self.text) if detector else Guess(UNKNOWN, 0.0)

    def language_labels(self, most: int) -> list[Guess]:
        """Returns the most probable languages of the text, `most` at most; none without the rule `language`."""
        detector = self._resources.detector
        return detector.labels(self.text, most) if detector else []

    @property
    def language(self) -> str:
        """The code of the guessed language; `und` where there is no guess."""
        return self.guess.language if self.guess else UNKNOWN

    @cached_fact
    def sentence_starts(self) -> list[int]:
        """The starts of the sentences, in characters of the text; each line is split by itself."""
        return self._splitter(self._parameters("few_sentences").get("model", "")).starts(self.lines)

    @property
    def sentence_count(self) -> int:
        """The number of sentences, each line split by itself.

        A line has at least one sentence: where there are enough lines for `few_sentences`, their number is returned.
        """
        enough: int = self._parameters("few_sentences").get("min_sentences", 0)
        return self.line_count if self.line_count >= enough else self.all_sentences

    @property
    def all_sentences(self) -> int:
        """The number of sentences, each line split by itself, as the rule `few_sentences` counts them."""
        if self._parameters("few_sentences").get("model") == "spacy english":
            from c4pipe.filters.english_words import english_words  # large patterns, which few recipes need

            return sum(map(english_words().sentence_count, self.lines))
        return len(self.sentence_starts)

    @property
    def sentences_left(self) -> int:
        """The number of sentences for `few_sentences_left`; counted up to its minimum where Punkt counts them."""
        parameters = self._parameters("few_sentences_left")
        if parameters["count"] == "punkt on the whole text":
            return self._splitter(parameters["model"]).count(self.text, parameters["min_sentences"])
        return len(self.sentence_starts) if self._units_left is None else self._units_left

    @property
    def all_sentences_left(self) -> int:
        """The number of sentences for `few_sentences_left`, counted to the end."""
        parameters = self._parameters("few_sentences_left")
        if parameters["count"] == "punkt on the whole text":
            return self._splitter(parameters["model"]).count(self.text, sys.maxsize)
        return self.sentences_left

    @cached_fact
    def unit_starts(self) -> Sequence[int]:
        """The starts of the units of `repeated_span`, in characters of the text; empty without that rule."""
        unit = self._parameters("repeated_span").get("unit")
        if unit == "line":
            return self.packed.starts() if self.packed else _line_starts(self.text)
        return self.sentence_starts if unit else ()

    @property
    def bad_word(self) -> str | None:
        """A listed word of the page's language for which the page is dropped, or None.

        Where the recipe drops only a fraction of such pages, the MD5 of the normalised URL decides which: the same
        pages in each run.
        """
        list_language = _list_language(self.language)
        if self._without_bad_word is not None and _list_language(self._without_bad_word) == list_language:
            return None
        parameters = self._parameters("bad_words")
        searched = self.body_lower if parameters["searched_text"] == "crawled" else self.text_lower
        word = self._resources.bad_words(list_language).find(searched)
        if word is not None and parameters["drop_fraction"] < 1:
            numerator, denominator = float(parameters["drop_fraction"]).as_integer_ratio()
            return None if url_md5(self.normalised_url) % denominator >= numerator else word
        return word

    def bad_token(self, lower: str) -> str | None:
        """A listed word between white space, or a listed phrase, of a lower-case text of the page, or None."""
        return self._resources.bad_tokens.find(lower)

    @property
    def shared_ngrams(self) -> SharedNgrams | None:
        """What the kept lines share with an evaluation example, if it is enough for `evaluation_overlap`."""
        parameters = self._parameters("evaluation_overlap")
        if not parameters:
            return None
        known = self._resources.evaluation_ngrams
        return known.most_shared(ngram_words(self.text), parameters["min_ngrams"], parameters["min_share"])

    @property
    def domain_listed(self) -> bool:
        """Whether the URL's domain is in the recipe's list of domains."""
        any_case: bool = self._parameters("domain_not_listed").get("any_case", True)
        return self._resources.lists.has_domain(self.normalised_url, any_case)

    @property
    def url_listed(self) -> bool:
        """Whether the URL is in the recipe's list of links."""
        return self._resources.lists.has_link(self.url_key)

    @property
    def url_lists(self) -> UrlLists:
        """The lists of the URL rules."""
        return self._resources.url_lists

    def _parameters(self, rule: str) -> Mapping[str, Any]:
        return self._resources.recipe.parameters(rule)

    def _splitter(self, model: str) -> SentenceSplitter:
        """Returns the sentence splitter that the parameter `model` of a rule names."""
        if model == "nltk english":
            return self._resources.sentence_splitter("en", as_nltk=True)
        return self._resources.sentence_splitter(self.language)


def _line_starts(text: str) -> list[int]:
    """Returns the start of each line of a text, in characters; twice as fast as to split it."""
    starts, find = [0], text.find
    while start := find("\n", starts[-1]) + 1:
        starts.append(start)
    return starts


def _list_language(language: str) -> str:
    """Returns the language whose list of bad words pages of a language are searched for."""
    return two_letter_code(language).partition("-")[0]
