"""The rules on how much a page must have: its parts, characters, long lines and sentences; and what a sentence is.

Sentences are as Punkt splits them (Kiss and Strunk 2006), each line by itself. T5 paper, 2.2; mT5 paper, 3.1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.language import two_letter_code
from c4pipe.filters.rule import MC4, PAPER, TFDS, NativeStep, Others, PageRule, Scripts, Whole, native_step, number_of
from c4pipe.filters.scripts.facts import Script, script_of
from c4pipe.native import text_kernel

if TYPE_CHECKING:
    import punkt  # where it is used: who only reads a corpus does not need the package

if TYPE_CHECKING:
    from c4pipe.filters.checked_page import CheckedPage


@dataclass(frozen=True)
class Incomplete(PageRule):
    """Drops pages that lack their URL, their text, or a timestamp that can be read."""

    name = "incomplete"
    does = "drops a page without URL, text or timestamp"
    source = TFDS + "; dates: WARC 1.1 (ISO 28500)"
    timestamps: Literal["WARC dates", "any text"] = "WARC dates"

    def value(self, page: CheckedPage) -> list[str]:
        """Returns which of URL, text and timestamp the page lacks."""
        if page.page.url and page.captured is not None and page.line_count:  # as most pages: four times as fast
            return []
        parts = {"url": page.page.url, "text": page.line_count, "timestamp": page.captured is not None}
        return [name for name, part in parts.items() if not part]

    def drops(self, value: list[str]) -> bool:
        return bool(value)

    def says(self, value: list[str], dropped: bool, page: CheckedPage) -> str:
        return f"it has no {' and no '.join(value)}" if dropped else "it has a URL, text and a timestamp"


@dataclass(frozen=True)
class TooLong(PageRule):
    """Drops very long pages: TensorFlow Datasets can't process them."""

    name = "too_long"
    does = "drops a page of more than {max_characters} characters"
    source = TFDS
    counts = "int"
    drops_if = ("> max_characters",)
    max_characters: Whole = 190_000

    def value(self, page: CheckedPage) -> int:
        """Returns the number of characters."""
        return page.length

    def drops(self, value: int) -> bool:
        return value > self.max_characters

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        return f"{number_of(value, 'character')}; at most {self.max_characters:,}"

    def native(self, as_crawled: bool) -> NativeStep | None:
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
        return not value

    def says(self, value: Sequence[str], dropped: bool, page: CheckedPage) -> str:
        return number_of(len(value), "line")


@dataclass(frozen=True)
class FewLongLines(PageRule):
    """Drops pages with few long lines (mT5 paper, 3.1)."""

    name = "few_long_lines"
    does = "keeps a page of at least {min_lines} lines of {min_characters} characters"
    source = MC4
    counts = "int"
    drops_if = ("< min_lines",)
    min_lines: Whole = 3
    min_characters: Whole = 200

    def value(self, page: CheckedPage) -> int:
        """Returns the number of long lines."""
        least = self.min_characters
        return sum(len(line) >= least for line in page.lines)

    def drops(self, value: int) -> bool:
        return value < self.min_lines

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        return f"{number_of(value, 'line')} of {self.min_characters} characters; at least {self.min_lines}"


SPACY = "spacy english"


NLTK = "nltk english"


@dataclass(frozen=True)
class FewSentences(PageRule):
    """Drops pages of few sentences. Each line is split by itself."""

    name = "few_sentences"
    does = "drops a page of fewer than {min_sentences} sentences, counted line by line"
    source = PAPER
    counts = "int"
    drops_if = ("< min_sentences",)
    min_sentences: Whole = 3
    model: Literal["language", "nltk english", "spacy english"] = "language"
    scripts: Scripts = ()
    added = ("scripts",)
    scripts_do = "; with model language, sentences also end at the marks of the scripts {scripts}"

    def value(self, page: CheckedPage) -> int:
        """Returns the number of sentences. If the lines alone are enough, it is the number of lines: a line has a
        sentence.
        """
        lines = page.line_count
        return lines if lines >= self.min_sentences else self._count(page)

    def drops(self, value: int) -> bool:
        return value < self.min_sentences

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        return f"{number_of(self._count(page), 'sentence')}; at least {self.min_sentences}"

    def number(self, value: int, page: CheckedPage) -> int:
        return self._count(page)

    def _count(self, page: CheckedPage) -> int:
        if self.model == SPACY:
            from c4pipe.filters.english_words import english_words  # large patterns, which few recipes need

            return sum(map(english_words().sentence_count, page.lines))
        return len(page.sentence_starts)


@dataclass(frozen=True)
class FewSentencesLeft(PageRule):
    """Drops pages of which few sentences are left after the removal of repeated spans."""

    name = "few_sentences_left"
    does = "drops a page of fewer than {min_sentences} sentences after the removal of repeated spans"
    source = PAPER
    counts = "int"
    drops_if = ("< min_sentences",)
    min_sentences: Whole = 3
    count: Literal["remaining sentences", "punkt on the whole text"] = "remaining sentences"
    model: Literal["language", "nltk english"] = "language"

    def value(self, page: CheckedPage) -> int:
        """Returns the number of sentences; counted up to the minimum where Punkt counts them."""
        return self._count(page, self.min_sentences)

    def drops(self, value: int) -> bool:
        return value < self.min_sentences

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        if not dropped and self._by_punkt:  # counted no further
            return f"{number_of(self.min_sentences, 'sentence')} or more"
        return f"{number_of(value, 'sentence')}; at least {self.min_sentences}"

    def number(self, value: int, page: CheckedPage) -> int:
        return self._count(page, sys.maxsize)

    def contradiction(self, others: Others, stage: str) -> str | None:
        """Returns why sentences can't be counted beside the rule that removes lines."""
        repeated = others.find(RepeatedSpan)
        if repeated and repeated.unit != "sentence" and not self._by_punkt:
            return "repeated_span removes lines, so few_sentences_left needs count = 'punkt on the whole text'"
        return None

    @property
    def _by_punkt(self) -> bool:
        return self.count == "punkt on the whole text"

    def _count(self, page: CheckedPage, enough: int) -> int:
        if self._by_punkt:
            return page.splitter(self.model).count(page.text, enough)
        return len(page.sentence_starts) if page.units_left is None else page.units_left


_MODELS = {
    "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "et": "estonian", "fi": "finnish", "fr": "french", "it": "italian", "ml": "malayalam", "nl": "dutch",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ru": "russian", "sl": "slovene", "sv": "swedish",
    "tr": "turkish",
}  # fmt: skip


def punkt_model(language: str) -> str:
    """Returns the name of the language's Punkt model; `english` where a language has none."""
    return _MODELS.get(two_letter_code(language), "english")


class SentenceSplitter:
    """Splits the lines of pages of one language into sentences.

    The library decides by the words around a mark (`.`, `?`, `!`) whether a sentence ends there. If one blank and a
    word follow the mark (or its closing quotation marks and brackets), this class can decide about the mark by itself:
    after a word that is in no list of the model, the sentence always ends. Only lines with other marks go through the
    whole library. The sentences are the same as the library's (the tests compare them), many times faster. The C
    extension looks at the marks in the same way.
    """

    def __init__(self, language: str, as_nltk: bool = False, scripts: Sequence[str] = ()) -> None:
        """Loads the model of `language`; with `as_nltk` the splitter decides as NLTK 3.10 does.

        If the script of the language is among `scripts`, sentences also end at its marks.
        """
        script = script_of(language)
        self._script = script if script and script.code in scripts else None
        self._punkt = _punkt(punkt_model(language), as_nltk)
        self._ends: Callable[[str], bool] = self._punkt._context_has_sentbreak  # at the mark between two words
        self._marks = _marks(self._punkt.rules)
        self._unsure = _unsure_words(self._punkt.params)
        self._compiled = text_kernel if self._marks else None

    def starts(self, lines: Sequence[str]) -> list[int]:
        """Returns the start of each sentence, in characters of the lines joined by newlines.

        A sentence reaches up to the start of the next, so white space and newlines belong to the sentence before them.
        """
        starts = self._punkt_starts(lines)
        return _merge_starts(starts, lines, self._script) if self._script else starts

    def _punkt_starts(self, lines: Sequence[str]) -> list[int]:
        if self._compiled:
            found = self._compiled.sentence_starts(list(lines), self._unsure, self._ends, self._library)
            return cast(list[int], found)
        starts: list[int] = []
        line_start = 0
        for line in lines:
            starts += [line_start + start for start in self._starts(line)]
            line_start += len(line) + 1
        return starts

    def count(self, text: str, enough: int) -> int:
        """Returns the number of sentences of a text that is split as one line; at most `enough`."""
        sure = self._sure_ends(text, enough - 1)
        return enough if sure and sure + 1 >= enough else min(enough, len(self._library(text)))

    def _sure_ends(self, text: str, most: int) -> int:
        """Returns the number of sentences that surely end inside a text (see `_ends_surely`); at most `most`."""
        if self._compiled:
            return int(self._compiled.sure_sentences(text, self._unsure, most))
        marks = self._marks.finditer(text) if self._marks else ()
        sure = (match.start() for match in marks if self._ends_surely(text, match.start()))
        return sum(1 for _ in islice(sure, max(0, most)))

    def _starts(self, line: str) -> list[int]:
        if self._marks is None or not line or line.isspace():
            return self._library(line)
        starts = [0]
        # The end of the last sure sentence, the number of starts so far, whether a later mark needs the library.
        part, sure, by_library = 0, 1, False
        for match in self._marks.finditer(line):
            mark = match.start()
            start = _next_start(line, mark, " ")
            if start == len(line):  # no sentence is behind it
                continue
            if start is None:
                by_library = True
                continue
            word = _word_before(line, mark)
            if self._is_sure(line[mark], word):
                if by_library and word.isalnum():  # no other mark is directly before this one
                    starts[sure:] = self._inside(line, part, start - 1)
                    by_library = False
                starts.append(start)
                if not by_library:
                    part, sure = start, len(starts)
            elif _OTHER_SPACE.search(word):
                by_library = True
            elif self._ends(line[mark - len(word) : _end_of_context(line, mark, start)]):
                starts.append(start)
        if by_library:
            starts[sure:] = self._inside(line, part, len(line))
        return starts

    def _inside(self, line: str, start: int, end: int) -> list[int]:
        """Returns the starts of sentences inside a part of a line, which the library splits by itself."""
        return [start + each for each in self._library(line[start:end])[1:]]

    def _ends_surely(self, text: str, mark: int) -> bool:
        """Tells whether the sentence surely ends at a mark, independently of the model's lists of words."""
        is_inside = _next_start(text, mark, " \n") not in (None, len(text))
        return is_inside and self._is_sure(text[mark], _word_before(text, mark))

    def _is_sure(self, mark: str, word: str) -> bool:
        if mark != ".":
            return bool(word)
        return len(word) > 1 and word.isalnum() and not word.isdigit() and word.lower() not in self._unsure

    def _library(self, line: str) -> list[int]:
        return [start for start, _ in self._punkt.span_tokenize(line)]


_WORDS_BEFORE_BLANK = 4
"""The mean words of letters before a blank that ends a sentence in scripts without marks; behind it is one, and no
conjunction. Of the lengths that were tried on Thai-TUD, no other is better by more than 0.01 of F1."""

_CLOSING = "\"'”’»」』〉》】〕）)\\]"


def _merge_starts(starts: Sequence[int], lines: Sequence[str], script: Script) -> list[int]:
    """Returns the starts of the sentences of lines, in characters of the lines joined by newlines.

    Args:
        starts: the starts that a splitter found that does not know the marks of the script.
        lines: the lines.
        script: the script.
    """
    more, line_start, pattern = set(starts), 0, _script_ends(script)
    for line in lines:
        more.update(line_start + each.end() for each in pattern.finditer(line) if each.end() < len(line))
        line_start += len(line) + 1
    return sorted(more)


@cache
def _script_ends(script: Script) -> re.Pattern[str]:
    """Returns what finds the ends of sentences: marks with all that closes behind them, and white space."""
    if not script.ends:  # blanks stand between sentences, clauses and names, not between words
        joined = "".join(f"(?!{word})" for word in script.conjunctions)
        before = _WORDS_BEFORE_BLANK * script.word_length
        return re.compile(
            rf"(?<=[{script.letters}]{{{before:.0f}}}) +{joined}(?=[{script.letters}]{{{script.word_length:.0f}}})"
        )
    blank = r"(?=\s)" if ";" in script.ends else ""
    return re.compile(rf"[{script.ends}]+[{_CLOSING}]*{blank}\s*")


_OTHER_SPACE = re.compile(r"\s")


_BEHIND_MARK = re.compile(
    r"""
    ["')\]}’”«»]*(?:\Z|[ \n](?=  # what the library joins to the sentence before; the end, or white space and
    [^\W_]|["')\]}’”«»‘“][^\W_]  # a word, perhaps in quotation marks,
    |[^\s.?!"')\]}’”«»‘“]))       # or another character that is not joined to the sentence before
    """,
    re.VERBOSE,
)


def _next_start(text: str, mark: int, blanks: str) -> int | None:
    """Returns where the next sentence begins if one ends at a mark: behind closing characters and one of the blanks.

    Returns the length of the text if only closing characters follow the mark, and None if only the library can tell.
    """
    match = _BEHIND_MARK.match(text, mark + 1)
    if match is None or text[mark - 1 : mark].isspace():
        return None
    start = match.end()
    return start if start == len(text) or text[start - 1] in blanks else None


def _word_before(text: str, mark: int) -> str:
    return text[max(text.rfind(" ", 0, mark), text.rfind("\n", 0, mark)) + 1 : mark]


def _end_of_context(line: str, mark: int, start: int) -> int:
    """Returns the end of the text that decides about a mark: the next word, or else the next character."""
    space = _OTHER_SPACE.search(line, start)
    end_of_word = space.start() if space else len(line)
    return end_of_word if line[mark + 1] == " " else mark + 2


def _marks(rules: punkt.LanguageVars) -> re.Pattern[str] | None:
    """Returns the pattern of marks that may end a sentence; None for languages with rules of their own."""
    import punkt

    usual = replace(punkt.DEFAULT_LANGUAGE_VARS, boundary_realignment_pattern=rules.boundary_realignment_pattern)
    if rules != usual:
        return None
    return re.compile(rf"[.?!](?={rules.non_word_char_class}|\s+\S)")


def _unsure_words(model: punkt.PunktParameters) -> frozenset[str]:
    """Returns the words after which a full stop does not always end the sentence."""
    firsts = (first for first, _ in model.collocations)
    return frozenset(model.abbrev_types | model.numeric_abbrev_types).union(firsts)


def _punkt(model: str, as_nltk: bool) -> Any:
    """Returns the library's tokenizer with a model, and with a cache of its decisions about the words around a mark.

    With `as_nltk`, it decides as NLTK 3.10 where the library decides differently: NLTK can make two sentences of
    "Wow!!!" and five of ". . . . .", and it adds an opening quotation mark to the sentence before it. The sentences of
    the published C4 were counted this way: with the library's own decisions, 3 of 449 published pages would have fewer
    than three sentences.
    """
    import punkt

    plain = punkt.tokenizer_for(model)
    subclass: Any = type("Tokenizer", (punkt.PunktSentenceTokenizer,), {})  # its methods can be replaced
    tokenizer = subclass(plain.params, rules=plain.rules)
    if as_nltk:
        rules = replace(
            punkt.DEFAULT_LANGUAGE_VARS,
            boundary_realignment_pattern=r'["\')\]}‘’“”«»]+?(?:\s+|(?=--)|$)',
        )
        tokenizer = subclass(plain.params, rules=rules)
        # Each mark of a spaced ellipsis may end a sentence; words are still split with the library's pattern.
        tokenizer._boundaries = punkt.PunktBoundaryDetector(replace(rules, multi_char_punct_pattern=r"(?!)"))
        tokenizer._absorb_punctuation_only = lambda text, spans: spans
    tokenizer._context_has_sentbreak = lru_cache(_CACHED_DECISIONS)(tokenizer._context_has_sentbreak)
    return tokenizer


_CACHED_DECISIONS = 50_000  # about 10 MB
