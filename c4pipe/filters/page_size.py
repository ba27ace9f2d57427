"""The rules on how much a page must have: its parts, characters, long lines and sentences.

T5 paper, 2.2; mT5 paper, 3.1.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal

from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.rule import MC4_PAPER, PAPER, TFDS_CODE, NativeStep, Others, PageRule, Scripts, Whole, native_step
from c4pipe.io.words import format_count, short

SPACY = "spacy english"
NLTK = "nltk english"


class Incomplete(PageRule):
    """Drops pages that lack their URL, their text, or a timestamp that can be read."""

    name = "incomplete"
    does = "drops a page without URL, text or timestamp"
    source = TFDS_CODE + "; dates: WARC 1.1 (ISO 28500)"
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
        date = short(page.page.timestamp, 60) if "timestamp" in value else ""
        lacks = f"it has no {' and no '.join(value)}" + (f": {date} is no date" if date else "")
        return lacks if dropped else "it has a URL, text and a timestamp"


class TooLong(PageRule):
    """Drops very long pages: TensorFlow Datasets can't process them."""

    name = "too_long"
    does = "drops a page of more than {max_characters} characters"
    source = TFDS_CODE
    counts = "int"
    drops_if = ("> max_characters",)
    max_characters: Whole = 190_000

    def value(self, page: CheckedPage) -> int:
        """Returns the number of characters."""
        return page.length

    def drops(self, value: int) -> bool:
        return value > self.max_characters

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        return f"{format_count(value, 'character')}; at most {self.max_characters:,}"

    def native(self, as_crawled: bool) -> NativeStep | None:
        return native_step("exceeds", self.max_characters)


class Empty(PageRule):
    """Drops pages of which no line is left."""

    name = "empty"
    does = "drops a page that has no line left"
    source = TFDS_CODE

    def value(self, page: CheckedPage) -> Sequence[str]:
        """Returns the lines."""
        return page.lines

    def drops(self, value: Sequence[str]) -> bool:
        return not value

    def says(self, value: Sequence[str], dropped: bool, page: CheckedPage) -> str:
        return format_count(len(value), "line")


class FewLongLines(PageRule):
    """Drops pages with few long lines (mT5 paper, 3.1)."""

    name = "few_long_lines"
    does = "keeps a page of at least {min_lines} lines of {min_characters} characters"
    source = MC4_PAPER
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
        return f"{format_count(value, 'line')} of {self.min_characters} characters; at least {self.min_lines}"


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
        return f"{format_count(self._count(page), 'sentence')}; at least {self.min_sentences}"

    def number(self, value: int, page: CheckedPage) -> int:
        return self._count(page)

    def _count(self, page: CheckedPage) -> int:
        if self.model == SPACY:
            from c4pipe.text.english_words import english_words  # large patterns, which few recipes need

            return sum(map(english_words().sentence_count, page.lines))
        return len(page.sentence_starts)


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
        """Returns the number of sentences; Punkt counts up to the minimum only."""
        return self._count(page, self.min_sentences)

    def drops(self, value: int) -> bool:
        return value < self.min_sentences

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        if not dropped and self._by_punkt:  # counted no further
            return f"{format_count(self.min_sentences, 'sentence')} or more"
        return f"{format_count(value, 'sentence')}; at least {self.min_sentences}"

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
