"""A page's text with its words, and the numbers that rules count in it."""

import re
import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from c4pipe.native import text_kernel
from c4pipe.text.character_sets import OTHER_PUNCTUATION, TERMINAL_PUNCTUATION, characters

_PARAGRAPHS = re.compile(r"\n{2,}")

SENTENCE_MARKS = characters(TERMINAL_PUNCTUATION)
"""The ends of sentences in datatrove."""

PUNCTUATION = SENTENCE_MARKS + characters(OTHER_PUNCTUATION)
"""The punctuation of datatrove."""


class WordCounts(NamedTuple):
    """Counts about the words of a text.

    Attributes:
        with_letter: the number of words with a letter.
        with_more: the number of words with more than punctuation.
        characters: the number of characters of the words with more than punctuation.
    """

    with_letter: int
    with_more: int
    characters: int


class LineStatistics(NamedTuple):
    """Counts about the lines of a text.

    Attributes:
        lines: the number of lines.
        repeats: the number of lines that are equal to an earlier line.
        repeated_characters: the characters of these lines.
        marked: the number of lines that end in a mark.
        short: the number of short lines.
    """

    lines: int
    repeats: int
    repeated_characters: int
    marked: int
    short: int


class MarkCounts(NamedTuple):
    """How often a text has some marks. An ellipsis is a character or three full stops."""

    newlines: int
    hyphens: int
    bullets: int
    hashes: int
    ellipses: int


class JoinedWords(NamedTuple):
    """The words of a text.

    Attributes:
        text: the words with nothing between them.
        ends: the offsets between the words: 0, and the end of each word, in characters.
    """

    text: str
    ends: memoryview

    def words(self) -> list[str]:
        """Returns the words."""
        return [self.text[start:end] for start, end in pairwise(self.ends)]


def joined_words(text: str, tokenizer: str = "") -> JoinedWords:
    """Returns the words of a text by a tokenizer of `word_tokenizers`; "" is spaCy's English one."""
    if not tokenizer:
        from c4pipe.text.english_words import english_words  # large patterns, which few recipes need

        return JoinedWords(*english_words().joined_words(text))
    from c4pipe.text.word_tokenizers import word_tokenizer

    words = word_tokenizer(tokenizer)(text)
    return JoinedWords("".join(words), memoryview(array("q", accumulate(map(len, words), initial=0))))


def count_words(joined: str, ends: memoryview, punctuation: str) -> tuple[int, int, int]:
    """Returns the `WordCounts` of `JoinedWords`, as plain tuples; `punctuation` is a text of all its characters."""
    words = JoinedWords(joined, ends).words()
    with_letter = sum(word.isalpha() or any(map(str.isalpha, word)) for word in words)
    lengths = [len(word) for word in words if word.isalnum() or word.strip(punctuation)]
    return with_letter, len(lengths), sum(lengths)


def count_top_ngram(joined: str, ends: memoryview, size: int) -> int:
    """Returns the characters that the most frequent n-gram takes with its spaces.

    Args:
        joined: the words with nothing between them.
        ends: the offsets between the words, as in `JoinedWords`.
        size: the number of words in an n-gram.
    """
    words = JoinedWords(joined, ends).words()
    ngrams = Counter(zip(*(words[start:] for start in range(size)), strict=False))
    if not ngrams:
        return 0
    top = max(ngrams, key=ngrams.__getitem__)
    return (sum(map(len, top)) + size - 1) * ngrams[top]


def count_repeated_ngrams(joined: str, ends: memoryview, size: int) -> int:
    """Returns the characters of n-grams that occurred before; the arguments are those of `count_top_ngram`."""
    seen: set[str] = set()
    repeated = place = 0
    while place + size < len(ends):
        ngram = joined[ends[place] : ends[place + size]]
        if ngram in seen:
            repeated += len(ngram)
            place += size
        else:
            seen.add(ngram)
            place += 1
    return repeated


def count_ngrams(joined: str, ends: memoryview, first: int, tops: int, last: int) -> tuple[int, ...]:
    """Returns a number for each size, 2 or more: `count_top_ngram` up to `tops`, then `count_repeated_ngrams`."""
    sizes = range(max(first, 2), last + 1)
    return tuple((count_top_ngram if size <= tops else count_repeated_ngrams)(joined, ends, size) for size in sizes)


def count_lines(text: str, with_blank: bool, marks: str, most: int) -> tuple[int, int, int, int, int]:
    r"""Returns the `LineStatistics` of the lines between `\n` that are not empty, as a plain tuple.

    Args:
        text: the text.
        with_blank: whether lines of white space count.
        marks: a text of all marks.
        most: the characters of a short line.
    """
    lines = [line for line in text.split("\n") if (line if with_blank else line.strip())]
    marked = [line[-1] in marks for line in lines].count(True)
    return len(lines), *count_repeats(lines), marked, sum(map(most.__ge__, map(len, lines)))


def count_marks(text: str) -> tuple[int, int, int, int, int]:
    """Returns the `MarkCounts` of a text, as a plain tuple."""
    newlines, hyphens, bullets, hashes = map(text.count, "\n-•#")
    return newlines, hyphens, bullets, hashes, text.count("...") + text.count("…")


def count_repeats(texts: Sequence[str]) -> tuple[int, int]:
    """Returns how many texts are equal to an earlier one, and their characters."""
    if len(texts) == 1:  # most pages are one paragraph, which may be long
        return 0, 0
    different = set(texts)
    repeats = len(texts) - len(different)
    return repeats, sum(map(len, texts)) - sum(map(len, different)) if repeats else 0


# In C where it was compiled: the same numbers.
_count_words = text_kernel.count_words if text_kernel else count_words
_count_marks = text_kernel.count_marks if text_kernel else count_marks
_count_lines = text_kernel.count_lines if text_kernel else count_lines
_count_ngrams = text_kernel.count_ngrams if text_kernel else count_ngrams


class PageText:
    """A text and the counts that several rules use, each made when it is first needed."""

    def __init__(self, text: str, tokenizer: str = "") -> None:
        """Takes the text, and the name of its word tokenizer."""
        self.text = text
        self._tokenizer = tokenizer
        self._filled_lines: dict[int, LineStatistics] = {}  # by the characters of a short line

    @cached_property
    def joined_words(self) -> JoinedWords:
        """The words; punctuation marks are words, too."""
        return joined_words(self.text, self._tokenizer)

    @property
    def word_number(self) -> int:
        """The number of words."""
        return len(self.joined_words.ends) - 1

    @cached_property
    def word_counts(self) -> WordCounts:
        """Counts about the words."""
        return WordCounts(*_count_words(*self.joined_words, PUNCTUATION))

    @cached_property
    def top_ngrams(self) -> Sequence[int]:
        """The characters that the most frequent n-gram of 2, 3 and 4 words takes (Gopher, table A1)."""
        return _count_ngrams(*self.joined_words, 2, 4, 4)

    @cached_property
    def repeated_ngrams(self) -> Sequence[int]:
        """The characters of repeated n-grams of 5 to 10 words (Gopher, table A1)."""
        return _count_ngrams(*self.joined_words, 5, 4, 10)

    def top_bound(self, size: int) -> int:
        """Returns at least the characters that the most frequent n-gram takes: a quick look at pairs of words."""
        characters, number = self._pairs
        return (size + 1) // 2 * characters + (size - 1) * number

    @cached_property
    def _pairs(self) -> tuple[int, int]:
        return text_kernel.bound_pairs(*self.joined_words) if text_kernel else (sys.maxsize, 0)

    @cached_property
    def marks(self) -> MarkCounts:
        """How often the text has some marks."""
        return MarkCounts(*_count_marks(self.text))

    @cached_property
    def split_lines(self) -> list[str]:
        """The lines, with any line end of Unicode."""
        return self.text.splitlines()

    @cached_property
    def lines(self) -> LineStatistics:
        r"""Counts about the lines between runs of `\n`. An empty line stands at an end of the text that is `\n`."""
        counts, text = LineStatistics(*_count_lines(self.text, True, "", 0)), self.text
        empty = text.startswith("\n") + text.endswith("\n") if text else 1
        return counts._replace(lines=counts.lines + empty, repeats=counts.repeats + empty // 2)

    def filled_lines(self, most: int = 30) -> LineStatistics:
        r"""Returns counts about the lines between `\n` that are not blank; terminal punctuation marks them.

        A short line has `most` characters or fewer.
        """
        if most not in self._filled_lines:
            self._filled_lines[most] = LineStatistics(*_count_lines(self.text, False, SENTENCE_MARKS, most))
        return self._filled_lines[most]

    @cached_property
    def paragraphs(self) -> list[str]:
        r"""What is between two or more `\n`, without white space at the ends; the whole text if it has no two."""
        # With an empty line in it, the text has more line ends than lines.
        return _PARAGRAPHS.split(self.text.strip()) if self.marks.newlines >= self.lines.lines else [self.text]
