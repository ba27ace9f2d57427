"""The repetition rules of Gopher and FineWeb: how much of a page repeats, compared with a limit.

Sources: Gopher (Rae et al. 2021), A.1.1 and table A1, and FineWeb (Penedo et al. 2024), 3.6, both as datatrove 0.10.1
counts (`gopher_repetition_filter.py`, `fineweb_quality_filter.py`). The rules stand in datatrove's order.
"""

from typing import ClassVar

from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import Number, PageRule, Share
from c4pipe.filters.word_rules import FINEWEB, AtMost, share
from c4pipe.text.page_text import PageText, count_repeats

_SOURCE = "Gopher (Rae et al. 2021), table A1; counted as in datatrove 0.10.1, gopher_repetition_filter.py"


class RepeatedParagraphs(AtMost):
    """Drops pages of repeated paragraphs. Blank lines separate paragraphs."""

    name = "repeated_paragraphs"
    does = "drops a page of which more than {at_most} of the paragraphs repeat an earlier one"
    source = _SOURCE
    figure = "{} of the paragraphs are repeats"
    at_most: Share = 0.3

    def count(self, words: PageText) -> float:
        return count_repeats(words.paragraphs)[0] / len(words.paragraphs)


class RepeatedParagraphText(AtMost):
    """Drops pages with much text in repeated paragraphs."""

    name = "repeated_paragraph_text"
    does = "drops a page of which more than {at_most} of the characters are in paragraphs that repeat an earlier one"
    source = _SOURCE
    figure = "{} of the characters are in repeated paragraphs"
    at_most: Share = 0.2

    def count(self, words: PageText) -> float:
        return share(count_repeats(words.paragraphs)[1], len(words.text))


class RepeatedLines(AtMost):
    """Drops pages of repeated lines. Blank lines do not count, except at the ends."""

    name = "repeated_lines"
    does = "drops a page of which more than {at_most} of the lines repeat an earlier one"
    source = _SOURCE
    figure = "{} of the lines are repeats"
    at_most: Number = 0.3

    def count(self, words: PageText) -> float:
        return words.lines.repeats / words.lines.lines


class RepeatedLineText(AtMost):
    """Drops pages with much text in repeated lines."""

    name = "repeated_line_text"
    does = "drops a page of which more than {at_most} of the characters are in lines that repeat an earlier one"
    source = _SOURCE
    figure = "{} of the characters are in repeated lines"
    at_most: Share = 0.2

    def count(self, words: PageText) -> float:
        return share(words.lines.repeated_characters, len(words.text))


class _NGramText(AtMost):
    """Drops a page if n-grams of words take a large share of the text: the most frequent one, or repeated ones.

    Of equally frequent n-grams the first counts, with its spaces. Each overlapping occurrence counts, so the share can
    be above 1. Repeated n-grams are compared without spaces; those that occurred before do not overlap.
    """

    source = _SOURCE
    size: ClassVar[int]
    top: ClassVar[bool]

    def __init_subclass__(cls, size: int, top: bool = False) -> None:
        what = f"the most frequent {size} words in a row" if top else f"repeats of {size} words in a row"
        cls.size, cls.top, cls.name = size, top, f"top_{size}_gram" if top else f"repeated_{size}_grams"
        cls.does = f"drops a page of which {what} are more than {{at_most}} of the characters"
        cls.figure = f"{{}} of the characters are {f'the top {size}-gram' if top else f'in repeated {size}-grams'}"

    def may_drop(self, page: CheckedPage) -> bool:
        return not self.top or self.drops(share(page.words.top_bound(self.size), len(page.text)))

    def count(self, words: PageText) -> float:
        """Returns the share of the characters in such n-grams."""
        characters = words.top_ngrams[self.size - 2] if self.top else words.repeated_ngrams[self.size - 5]
        return share(characters, len(words.text))


class Top2Gram(_NGramText, size=2, top=True):
    """The most frequent 2 words in a row."""

    at_most: Number = 0.2


class Top3Gram(_NGramText, size=3, top=True):
    """The most frequent 3 words in a row."""

    at_most: Number = 0.18


class Top4Gram(_NGramText, size=4, top=True):
    """The most frequent 4 words in a row."""

    at_most: Number = 0.16


class Repeated5Grams(_NGramText, size=5):
    """Repeats of 5 words in a row."""

    at_most: Number = 0.15


class Repeated6Grams(_NGramText, size=6):
    """Repeats of 6 words in a row."""

    at_most: Number = 0.14


class Repeated7Grams(_NGramText, size=7):
    """Repeats of 7 words in a row."""

    at_most: Number = 0.13


class Repeated8Grams(_NGramText, size=8):
    """Repeats of 8 words in a row."""

    at_most: Number = 0.12


class Repeated9Grams(_NGramText, size=9):
    """Repeats of 9 words in a row."""

    at_most: Number = 0.11


class Repeated10Grams(_NGramText, size=10):
    """Repeats of 10 words in a row."""

    at_most: Number = 0.1


class RepeatedCharacters(AtMost):
    """Drops pages with much text in repeated lines, as FineWeb counts."""

    name = "repeated_characters"
    does = "drops a page of which more than {at_most} of the characters without line ends are in repeated lines"
    source = FINEWEB
    figure = "{} of the characters are in repeated lines"
    at_most: Share = 0.01

    def count(self, words: PageText) -> float:
        """Returns the share of characters in repeated lines, of the characters without line ends."""
        characters = len(words.text) - words.marks.newlines
        return share(words.filled_lines().repeated_characters, characters)


NGRAM_RULES: tuple[type[PageRule], ...] = (
    *(Top2Gram, Top3Gram, Top4Gram),
    *(Repeated5Grams, Repeated6Grams, Repeated7Grams, Repeated8Grams, Repeated9Grams, Repeated10Grams),
)
REPETITION_RULES: tuple[type[PageRule], ...] = (
    *(RepeatedParagraphs, RepeatedParagraphText, RepeatedLines, RepeatedLineText),
    *NGRAM_RULES,
)
"""Gopher's repetition rules, in datatrove's order."""
