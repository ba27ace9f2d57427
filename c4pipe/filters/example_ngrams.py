"""The n-grams of evaluation examples, sorted by their hashes, and which of them texts share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from c4pipe.filters.spans import U64
from c4pipe.filters.word_ngrams import BATCH_BYTES, I64, WordRows

_MARKS_FOR_EACH = 16  # entries of the first table for each n-gram: one in 16 of all other n-grams passes it
_MOST_MARK_BITS = 26  # 64 MB


@dataclass(frozen=True)
class SharedNgrams:
    """What a page and an example have in common.

    Attributes:
        text: the first n-gram of the example that the page has, in the form of `ngram_words`.
        shared: how many n-grams of the example the page has.
        total: how many n-grams the example has.
    """

    text: str
    shared: int
    total: int


class ExampleNgrams:
    """All n-grams of some examples. It takes about 100 bytes of memory for each word of the examples while it is made.

    An n-gram that several examples have is one n-gram with several places. n-grams are numbered by their hashes.

    Attributes:
        size: the words of an n-gram.
        totals: the number of n-grams of each example, repetitions counted.
    """

    def __init__(self, examples: Sequence[Sequence[bytes]], size: int) -> None:
        """Takes the fields of each example, each as `ngram_words` returns it. No n-gram is in two fields."""
        self.size = size
        chunks = list(_chunks(examples))
        hashes = [np.empty(0, np.uint64)]
        self._rows = [WordRows([field for _, field in chunk]) for chunk in chunks]
        places, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for number, (chunk, rows) in enumerate(zip(chunks, self._rows, strict=True)):
            first, some = rows.ngrams(size)
            rows.release()
            hashes.append(some)
            places.append(first + (number << 32))
            owners.append(np.array([example for example, _ in chunk], np.int64)[rows.texts[first]])
        self._sort(np.concatenate(hashes), np.concatenate(places), np.concatenate(owners))
        self.totals: I64 = np.bincount(self._owners, minlength=len(examples))

    def _sort(self, hashes: U64, places: I64, owners: I64) -> None:
        """Sorts places by hash, and numbers the n-grams: places that follow each other with the same text have one."""
        order = np.argsort(hashes, kind="stable")
        hashes, self._places, self._owners = hashes[order], places[order], owners[order]
        is_new = np.ones(len(hashes), bool)
        for at in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():
            is_new[at + 1] = self._text_at(at) != self._text_at(at + 1)
        self._first = np.r_[np.flatnonzero(is_new), len(hashes)]
        self._hashes = hashes[is_new]

    @cached_property
    def _marks(self) -> tuple[np.uint64, npt.NDArray[np.bool_]]:
        """A table in which the first bits of each hash are marked, and by how much to shift a hash to get them."""
        bits = min(_MOST_MARK_BITS, (_MARKS_FOR_EACH * len(self._hashes)).bit_length())
        marks, shift = np.zeros(1 << bits, bool), np.uint64(64 - bits)
        marks[(self._hashes >> shift).astype(np.int64)] = True
        return shift, marks

    def __len__(self) -> int:
        return len(self._hashes)

    def text(self, ngram: int) -> bytes:
        """Returns the words of an n-gram."""
        return self._text_at(int(self._first[ngram]))

    def _text_at(self, at: int) -> bytes:
        chunk, first = divmod(int(self._places[at]), 1 << 32)
        return self._rows[chunk].text(first, self.size)

    def find(self, rows: WordRows) -> tuple[I64, I64]:
        """Returns the n-grams that texts share with examples: the first word of each place, and the n-gram's number.

        Equal hashes are not enough: the words are compared.
        """
        first, hashes = rows.ngrams(self.size)
        shift, marks = self._marks
        maybe = np.flatnonzero(marks[(hashes >> shift).astype(np.int64)])
        low = np.searchsorted(self._hashes, hashes[maybe])
        equal = np.flatnonzero(low < len(self))
        equal = equal[self._hashes[low[equal]] == hashes[maybe[equal]]]
        low, maybe = low[equal], maybe[equal]
        high = np.searchsorted(self._hashes, hashes[maybe], side="right")
        found = [
            (word, ngram)
            for word, begin, end in zip(first[maybe].tolist(), low.tolist(), high.tolist(), strict=True)
            for ngram in range(begin, end)
            if self.text(ngram) == rows.text(word, self.size)
        ]
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def places(self, ngrams: I64) -> tuple[I64, I64]:
        """Returns where in the examples some n-grams are: the example of each place, and its number among all places.

        Numbers of places follow the order of the words: consecutive n-grams of a field have consecutive numbers. Both
        are sorted by the place.
        """
        counts = self._first[ngrams + 1] - self._first[ngrams]
        before = np.cumsum(counts) - counts
        at = np.repeat(self._first[ngrams] - before, counts) + np.arange(int(counts.sum()))
        order = np.argsort(self._places[at], kind="stable")
        return self._owners[at][order], self._places[at][order]

    def coverage(self, found: npt.NDArray[np.bool_]) -> I64:
        """Returns how many n-grams of each example were found, given whether each n-gram was."""
        counts = np.diff(self._first)
        return np.bincount(self._owners[np.repeat(found, counts)], minlength=len(self.totals))

    def words_at(self, place: int, ngrams: int) -> bytes:
        """Returns the words of consecutive n-grams, the first of them at a place."""
        chunk, first = divmod(place, 1 << 32)
        return self._rows[chunk].text(first, self.size + ngrams - 1)

    def most_shared(self, page: bytes, min_ngrams: int, min_share: float) -> SharedNgrams | None:
        """Returns what a page shares with the example of which it has the largest share.

        Args:
            page: the page's text, as `ngram_words` returns it.
            min_ngrams: how many n-grams of one example the page must have.
            min_share: which share of that example's n-grams they must be.

        Returns None where the page shares less with each example.
        """
        _, ngrams = self.find(WordRows([page]))
        owners, places = self.places(np.unique(ngrams))
        examples, first, shared = np.unique(owners, return_index=True, return_counts=True)
        shares = shared / self.totals[examples]
        enough = np.flatnonzero((shared >= min_ngrams) & (shares >= min_share))
        if not len(enough):
            return None
        best = min(enough.tolist(), key=lambda each: (-shares[each], -shared[each], examples[each]))
        text = self.words_at(int(places[first[best]]), 1).decode()
        return SharedNgrams(text, int(shared[best]), int(self.totals[examples[best]]))


def _chunks(examples: Sequence[Sequence[bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Yields the fields of all examples, each with the number of its example, in lists of about BATCH_BYTES."""
    chunk: list[tuple[int, bytes]] = []
    waiting = 0
    for number, fields in enumerate(examples):
        for field in fields:
            if chunk and waiting + len(field) >= BATCH_BYTES:
                yield chunk
                chunk, waiting = [], 0
            chunk.append((number, field))
            waiting += len(field) + 1
    if chunk:
        yield chunk
