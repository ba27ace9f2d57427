"""n-grams of words: of texts, as rows of hashes; of evaluation examples; and the n-grams that both share."""

import string
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from c4pipe.io.rows import ranges
from c4pipe.text.character_sets import PUNCTUATION_AND_SYMBOLS, characters
from c4pipe.text.hashes import U64
from c4pipe.text.scripts.words import letter_words

Key = TypeVar("Key")
I64 = npt.NDArray[np.int64]

BATCH_BYTES = 1 << 16
"""Bytes of text that are hashed together; a larger text is hashed alone. NumPy takes some 25 bytes for each."""

_ASCII_LOWER = bytes(
    ord(" ") if chr(code).isspace() else code + 32 if chr(code) in string.ascii_uppercase else code
    for code in range(256)
)
# Odd numbers without a pattern in their bits: SplitMix64 (Steele et al. 2014) and 64 bits of the golden ratio.
_BASE, _MIX = 0xBF58476D1CE4E5B9, np.uint64(0x9E3779B97F4A7C15)
_INVERSE = pow(_BASE, -1, 1 << 64)


def ngram_words(text: str) -> bytes:
    """Returns the words of a text, of which n-grams are made: UTF-8, with one space between two words."""
    if text.isascii():
        return b" ".join(text.encode().translate(_ASCII_LOWER, _ascii_ignored()).split())
    lower = unicodedata.normalize("NFC", text).lower()
    codes = np.frombuffer(lower.encode("utf-32-le", "replace"), np.uint32)  # half of a surrogate pair becomes a ?
    kept = codes[_in_words().take(codes)].tobytes().decode("utf-32-le")
    return " ".join(kept.split()).encode()


def split_words(words: bytes, scripts: tuple[str, ...], size: int) -> bytes:
    """Returns words of `ngram_words`, told apart in scripts without blanks, for n-grams of `size` words."""
    return letter_words(words.decode(), scripts, size).encode() if scripts else words


def batch_texts(texts: Iterable[tuple[Key, bytes]]) -> Iterator[list[tuple[Key, bytes]]]:
    """Yields texts, each with a key, in lists of about BATCH_BYTES of text."""
    batch: list[tuple[Key, bytes]] = []
    waiting = 0
    for key, text in texts:
        if batch and waiting + len(text) >= BATCH_BYTES:
            yield batch
            batch, waiting = [], 0
        batch.append((key, text))
        waiting += len(text) + 1
    if batch:
        yield batch


@cache
def _ascii_ignored() -> bytes:
    return "".join(filter(str.isascii, characters(PUNCTUATION_AND_SYMBOLS))).encode()


@cache
def _in_words() -> npt.NDArray[np.bool_]:
    """Returns a mask of the characters that stay: ten times as fast as a regular expression."""
    stays = np.ones(sys.maxunicode + 1, bool)
    stays[list(map(ord, characters(PUNCTUATION_AND_SYMBOLS)))] = False
    return stays


class WordRows:
    """The words of several texts of `ngram_words` as rows of numbers. An n-gram is in one text.

    Attributes:
        starts: the first byte of each word in the joined texts.
        ends: the byte after each word.
        texts: the number of the text of each word, from 0.
    """

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._data = b"\n".join(texts)
        self._bytes = np.frombuffer(self._data, np.uint8)
        breaks = np.flatnonzero(self._bytes <= ord(" "))  # nothing smaller is in a word
        starts, ends = np.r_[0, breaks + 1], np.r_[breaks, len(self._data)]
        texts_before = np.r_[0, np.cumsum(self._bytes[breaks] == ord("\n"))]
        filled = starts < ends
        self.starts, self.ends, self.texts = starts[filled], ends[filled], texts_before[filled]

    @cached_property
    def _sums(self) -> U64:
        """For each place, the sum of all bytes before it, each times a power of the base, modulo 2^64."""
        sums = np.zeros(len(self._bytes) + 1, np.uint64)
        np.cumsum(self._bytes * _powers(_BASE, len(self._bytes)), out=sums[1:])
        return sums

    def ngrams(self, size: int) -> tuple[I64, U64]:
        """Returns the first word of each n-gram, and a hash of its bytes alone.

        The hash is a polynomial modulo 2^64, so someone can make up two texts with the same hash: compare bytes, too.
        """
        count = max(0, len(self.starts) - size + 1)
        first = np.flatnonzero(self.texts[:count] == self.texts[size - 1 :])
        starts = self.starts[first]
        sums = self._sums[self.ends[first + (size - 1)]] - self._sums[starts]
        hashes = sums * _powers(_INVERSE, len(self._bytes))[starts] * _MIX
        return first, hashes ^ (hashes >> np.uint64(32))

    def release(self) -> None:
        """Frees the memory of `ngrams`: eight bytes for each byte of text."""
        self.__dict__.pop("_sums", None)

    def text(self, first: int, size: int) -> bytes:
        """Returns `size` words, from word `first` on."""
        return self._data[self.starts[first] : self.ends[first + size - 1]]


def _powers(base: int, count: int) -> U64:
    """Returns the first powers of a number, from 0 on, modulo 2^64."""
    return _first_powers(base)[:count] if count <= BATCH_BYTES else _make_powers(base, count)


@cache
def _first_powers(base: int) -> U64:
    return _make_powers(base, BATCH_BYTES)


def _make_powers(base: int, count: int) -> U64:
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    return np.cumprod(factors, dtype=np.uint64)


_MARKS_FOR_EACH = 16  # entries of the first table for each n-gram: the table lets 1 in 16 of all other n-grams pass
_MOST_MARK_BITS = 26  # 64 MB


class SharedNgrams(NamedTuple):
    """The first n-gram of an example that a page has, how many n-grams of the example it has, and of how many."""

    text: str
    shared: int
    total: int


class ExampleNgrams:
    """All n-grams of some examples, numbered by their hashes. An n-gram of several examples has several places.

    To make them takes about 100 bytes of memory for each word of the examples.

    Attributes:
        size: the words of an n-gram.
        totals: int64, the number of n-grams of each example, repetitions counted.
    """

    def __init__(self, examples: Sequence[Sequence[bytes]], size: int) -> None:
        """Takes the fields of each example, as `ngram_words`. No n-gram is in two fields."""
        self.size = size
        chunks = list(batch_texts((number, field) for number, fields in enumerate(examples) for field in fields))
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
        """Sorts places by hash, and numbers the n-grams: neighbours with the same text have the same number."""
        order = np.argsort(hashes, kind="stable")
        hashes, self._places, self._owners = hashes[order], places[order], owners[order]
        is_new = np.ones(len(hashes), bool)
        for at in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():
            is_new[at + 1] = self._text_at(at) != self._text_at(at + 1)
        self._first = np.r_[np.flatnonzero(is_new), len(hashes)]
        self._hashes = hashes[is_new]

    @cached_property
    def _marks(self) -> tuple[np.uint64, npt.NDArray[np.bool_]]:
        """How many bits to shift a hash to get its first bits, and a table in which the first bits are marked."""
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
        """Returns the numbers of the texts and of the n-grams that they share with examples: sorted pairs, each once.

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
        words = first[maybe]
        columns = (each.tolist() for each in (rows.texts[words], words, low, high))
        found = {
            (text, ngram)
            for text, word, begin, end in zip(*columns, strict=True)
            for ngram in range(begin, end)
            if self.text(ngram) == rows.text(word, self.size)
        }
        pairs = np.array(sorted(found), np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def places(self, ngrams: I64) -> tuple[I64, I64]:
        """Returns the places of n-grams, sorted, and before them the example of each place.

        Consecutive n-grams of a field have consecutive places.
        """
        counts = self._first[ngrams + 1] - self._first[ngrams]
        at = ranges(self._first[ngrams], counts)
        order = np.argsort(self._places[at], kind="stable")
        return self._owners[at][order], self._places[at][order]

    def coverage(self, found: npt.NDArray[np.bool_]) -> I64:
        """Returns how many n-grams of each example were found, given whether each n-gram was found."""
        counts = np.diff(self._first)
        return np.bincount(self._owners[np.repeat(found, counts)], minlength=len(self.totals))

    def words_at(self, place: int, ngrams: int) -> bytes:
        """Returns the words of consecutive n-grams, the first at a place."""
        chunk, first = divmod(place, 1 << 32)
        return self._rows[chunk].text(first, self.size + ngrams - 1)

    def most_shared(self, page: bytes, min_ngrams: int, min_share: float) -> SharedNgrams | None:
        """Returns what a page (its words) shares with the example of which it has the largest share.

        None if it has fewer n-grams than `min_ngrams`, or a smaller share than `min_share`, of every example.
        """
        _, ngrams = self.find(WordRows([page]))
        owners, places = self.places(ngrams)
        examples, first, shared = np.unique(owners, return_index=True, return_counts=True)
        shares = shared / self.totals[examples]
        enough = np.flatnonzero((shared >= min_ngrams) & (shares >= min_share))
        if not len(enough):
            return None
        best = min(enough.tolist(), key=lambda each: (-shares[each], -shared[each], examples[each]))
        text = self.words_at(int(places[first[best]]), 1).decode()
        return SharedNgrams(text, int(shared[best]), int(self.totals[examples[best]]))
