"""The quality rules of Gopher and FineWeb: each counts words or lines of a page, and compares the number with a limit.

Sources: Gopher (Rae et al. 2021), A.1.1, and FineWeb (Penedo et al. 2024), 3.6, both as datatrove 0.10.1 counts
(`gopher_quality_filter.py`, `fineweb_quality_filter.py`). A text without words or lines has the number 0; datatrove
never applies the rule to it, or divides by zero. The rules stand in datatrove's order.
"""

from functools import cache
from itertools import islice
from typing import ClassVar

from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import Number, PageRule, Share, Texts, Whole
from c4pipe.text.page_text import MarkCounts, PageText, joined_words

GOPHER = "Gopher (Rae et al. 2021), A.1.1; counted as in datatrove 0.10.1, gopher_quality_filter.py"
FINEWEB = "FineWeb (Penedo et al. 2024), 3.6; counted as in datatrove 0.10.1, fineweb_quality_filter.py"


class CountRule(PageRule):
    """A page rule that counts something in the text of the page, and compares the number with a limit.

    Attributes:
        figure: the number in words, with `{}` in its place.
    """

    stage = "cleaned"
    counts = "float"
    figure: ClassVar[str]

    def count(self, words: PageText) -> float:
        """Returns the number, given the text with its words."""
        raise NotImplementedError

    def value(self, page: CheckedPage) -> float:
        """Returns the number."""
        return self.count(page.words)

    def _in_words(self, value: float, limit: str) -> str:
        return f"{self.figure.format(f'{value:,}' if isinstance(value, int) else f'{value:,.6g}')}; {limit}"


class AtLeast(CountRule):
    """Drops a page whose number is too small."""

    drops_if = ("< at_least",)
    at_least: Number

    def drops(self, value: float) -> bool:
        return value < self.at_least

    def says(self, value: float, dropped: bool, page: CheckedPage) -> str:
        return self._in_words(value, f"at least {self.at_least:,}")


class AtMost(CountRule):
    """Drops a page whose number is too large."""

    drops_if = ("> at_most",)
    at_most: Number

    def drops(self, value: float) -> bool:
        return value > self.at_most

    def says(self, value: float, dropped: bool, page: CheckedPage) -> str:
        return self._in_words(value, f"at most {self.at_most:,}")


class FewPageWords(AtLeast):
    """Drops pages of few words."""

    name = "few_page_words"
    does = "drops a page of fewer than {at_least} words"
    source = GOPHER
    figure = "{} words with more than punctuation"
    at_least: Whole = 50

    def count(self, words: PageText) -> int:
        return words.word_counts.with_more


class ManyPageWords(AtMost):
    """Drops pages of very many words."""

    name = "many_page_words"
    does = "drops a page of more than {at_most} words"
    source = GOPHER
    figure = "{} words with more than punctuation"
    at_most: Whole = 100_000

    def count(self, words: PageText) -> int:
        return words.word_counts.with_more


class ShortMeanWord(AtLeast):
    """Drops pages of short words."""

    name = "short_mean_word"
    does = "drops a page with words of fewer than {at_least} characters on average"
    source = GOPHER
    figure = "words of {} characters on average"
    at_least: Number = 3.0

    def count(self, words: PageText) -> float:
        return share(words.word_counts.characters, words.word_counts.with_more)


class LongMeanWord(AtMost):
    """Drops pages of long words."""

    name = "long_mean_word"
    does = "drops a page with words of more than {at_most} characters on average"
    source = GOPHER
    figure = "words of {} characters on average"
    at_most: Number = 10.0

    def count(self, words: PageText) -> float:
        return share(words.word_counts.characters, words.word_counts.with_more)


class ManyHashes(AtMost):
    """Drops pages with many hash signs."""

    name = "many_hashes"
    does = "drops a page with more than {at_most} hash signs for each word"
    source = GOPHER
    figure = "{} hash signs for each word"
    at_most: Share = 0.1

    def count(self, words: PageText) -> float:
        return share(words.marks.hashes, words.word_number)


class ManyEllipses(AtMost):
    """Drops pages with many ellipses."""

    name = "many_ellipses"
    does = "drops a page with more than {at_most} ellipses for each word"
    source = GOPHER
    figure = "{} ellipses for each word"
    at_most: Share = 0.1

    def count(self, words: PageText) -> float:
        return share(words.marks.ellipses, words.word_number)


class ManyBulletLines(AtMost):
    """Drops pages of lists."""

    name = "many_bullet_lines"
    does = "drops a page of which more than {at_most} of the lines begin with a bullet or hyphen"
    source = GOPHER
    figure = "{} of the lines begin with a bullet or hyphen"
    at_most: Share = 0.9

    def may_drop(self, page: CheckedPage) -> bool:
        marks = page.words.marks  # no marked line is without a mark
        return self.drops((marks.hyphens + marks.bullets) / _lines_at_least(marks))

    def count(self, words: PageText) -> float:
        lines = words.split_lines
        marked = [line for line in lines if "-" in line or "•" in line]  # few lines
        return share([line.lstrip().startswith(("-", "•")) for line in marked].count(True), len(lines))


class ManyEllipsisLines(AtMost):
    """Drops pages of cut lines."""

    name = "many_ellipsis_lines"
    does = "drops a page of which more than {at_most} of the lines end in an ellipsis"
    source = GOPHER
    figure = "{} of the lines end in an ellipsis"
    at_most: Share = 0.3

    def may_drop(self, page: CheckedPage) -> bool:
        marks = page.words.marks  # no cut line is without an ellipsis, and most pages have none
        return bool(marks.ellipses) and self.drops(marks.ellipses / _lines_at_least(marks))

    def count(self, words: PageText) -> float:
        lines = words.split_lines
        cut = [line for line in lines if "..." in line or "…" in line]  # few lines
        return share(sum(line.rstrip().endswith(("...", "…")) for line in cut), len(lines))


class FewAlphabeticWords(AtLeast):
    """Drops pages of numbers and signs."""

    name = "few_alphabetic_words"
    does = "drops a page of which fewer than {at_least} of the words have a letter"
    source = GOPHER
    figure = "{} of the words have a letter"
    at_least: Share = 0.8

    def count(self, words: PageText) -> float:
        return share(words.word_counts.with_letter, words.word_number)


class FewStopWords(AtLeast):
    """Drops pages with few stop words."""

    name = "few_stop_words"
    does = "drops a page with fewer than {at_least} of the stop words {stop_words}"
    source = GOPHER
    figure = "{} of the stop words"
    at_least: Whole = 2
    stop_words: Texts = ("the", "be", "to", "of", "and", "that", "have", "with")

    def may_drop(self, page: CheckedPage) -> bool:
        found = (
            each for each in _find_uncut_words(self.stop_words) if each in page.text
        )  # most pages soon have enough
        return bool(page.tokenizer) or self.drops(len(list(islice(found, self.at_least))))

    def count(self, words: PageText) -> int:
        return len(set(self.stop_words).intersection(words.joined_words.words()))


class FewPunctuatedLines(AtLeast):
    """Drops pages of lines without an end."""

    name = "few_punctuated_lines"
    does = "drops a page of which fewer than {at_least} of the lines end in terminal punctuation"
    source = FINEWEB
    figure = "{} of the lines end in terminal punctuation"
    at_least: Share = 0.12

    def count(self, words: PageText) -> float:
        lines = words.filled_lines()
        return share(lines.marked, lines.lines)


class ManyShortLines(AtMost):
    """Drops pages of short lines."""

    name = "many_short_lines"
    does = "drops a page of which more than {at_most} of the lines have at most {max_characters} characters"
    source = FINEWEB
    figure = "{} of the lines are short"
    at_most: Share = 0.67
    max_characters: Whole = 30

    def count(self, words: PageText) -> float:
        lines = words.filled_lines(self.max_characters)
        return share(lines.short, lines.lines)


class ManyNewlines(AtMost):
    """Drops pages with many line ends."""

    name = "many_newlines"
    does = "drops a page with more than {at_most} line ends for each word"
    source = FINEWEB
    figure = "{} line ends for each word"
    at_most: Number = 0.3

    def may_drop(self, page: CheckedPage) -> bool:
        newlines, text = page.words.marks.newlines, page.text
        enough = int(min(len(text), newlines / max(self.at_most, 0.001)))  # words for so many line ends
        words = text.split(None, enough)  # between white space there is at least an English word
        return bool(page.tokenizer) or self.drops(newlines / max(1, len(words)))

    def count(self, words: PageText) -> float:
        return share(words.marks.newlines, words.word_number)


GOPHER_RULES: tuple[type[PageRule], ...] = (
    *(FewPageWords, ManyPageWords, ShortMeanWord, LongMeanWord, ManyHashes, ManyEllipses),
    *(ManyBulletLines, ManyEllipsisLines, FewAlphabeticWords, FewStopWords),
)
"""Gopher's quality rules, in datatrove's order."""


@cache
def _find_uncut_words(words: tuple[str, ...]) -> list[str]:
    """Returns the words that the English tokenizer does not cut, each once, with blanks around it."""
    return [f" {each} " for each in dict.fromkeys(words) if joined_words(each).words() == [each]]


def _lines_at_least(marks: MarkCounts) -> int:
    """Returns a lower bound of the lines of `splitlines`; 1 for an empty text."""
    return max(1, marks.newlines)


def share(part: int, whole: int) -> float:
    """Returns the share of a part; 0 if the whole is 0."""
    return part / whole if whole else 0.0
