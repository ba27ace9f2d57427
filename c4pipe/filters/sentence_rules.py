"""The rules that count sentences: before and after the removal of repeated spans (T5 paper, 2.2)."""

import sys
from dataclasses import dataclass
from typing import Literal

from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.rule import PAPER, Others, PageRule, Whole, number_of

SPACY = "spacy english"
NLTK = "nltk english"


@dataclass(frozen=True)
class FewSentences(PageRule):
    """Drops pages of few sentences. Each line is split by itself."""

    name = "few_sentences"
    does = "drops a page of fewer than {min_sentences} sentences, counted line by line (model: {model})"
    source = PAPER
    counts = "int"
    min_sentences: Whole = 3
    model: Literal["language", "nltk english", "spacy english"] = "language"

    def value(self, page: CheckedPage) -> int:
        """Returns the number of sentences. If the lines alone are enough, it is the number of lines: a line has a
        sentence.
        """
        lines = page.line_count
        return lines if lines >= self.min_sentences else self._count(page)

    def drops(self, value: int) -> bool:
        """Tells whether there are too few."""
        return value < self.min_sentences

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        """Returns the number of all sentences and the limit."""
        return f"{number_of(self._count(page), 'sentence')}; at least {self.min_sentences}"

    def number(self, value: int, page: CheckedPage) -> int:
        """Returns the number of all sentences."""
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
    does = (
        "drops a page of fewer than {min_sentences} sentences after the removal of repeated spans "
        "(counted: {count}; Punkt model: {model})"
    )
    source = PAPER
    counts = "int"
    min_sentences: Whole = 3
    count: Literal["remaining sentences", "punkt on the whole text"] = "remaining sentences"
    model: Literal["language", "nltk english"] = "language"

    def value(self, page: CheckedPage) -> int:
        """Returns the number of sentences; counted up to the minimum where Punkt counts them."""
        return self._count(page, self.min_sentences)

    def drops(self, value: int) -> bool:
        """Tells whether there are too few."""
        return value < self.min_sentences

    def says(self, value: int, dropped: bool, page: CheckedPage) -> str:
        """Returns the number of sentences and the limit."""
        if not dropped and self._by_punkt:  # counted no further
            return f"{number_of(self.min_sentences, 'sentence')} or more"
        return f"{number_of(value, 'sentence')}; at least {self.min_sentences}"

    def number(self, value: int, page: CheckedPage) -> int:
        """Returns the number of all sentences."""
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
