"""Word n-grams of texts: the words of a text in one form, and the hashes of all n-grams in NumPy rows.

GPT-3 (Brown et al. 2020, appendix C) compares n-grams of "lowercase, whitespace delimited words with no punctuation".
Here a word is what white space delimits, in lower case and in the Unicode form NFC, without punctuation, symbols,
format characters and control characters: `It's` is `its`, `well-known` is `wellknown`, and a dash is no word.
"""

import string
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from c4pipe.filters.character_sets import characters
from c4pipe.filters.ignored_characters import PUNCTUATION_AND_SYMBOLS
from c4pipe.filters.spans import U64

I64 = npt.NDArray[np.int64]

BATCH_BYTES = 1 << 16
"""Bytes of text that are hashed together; larger texts are hashed alone. NumPy takes some 25 bytes for each."""

_IGNORED = characters(PUNCTUATION_AND_SYMBOLS)
_ASCII_IGNORED = "".join(filter(str.isascii, _IGNORED)).encode()
_ASCII_LOWER = bytes(
    ord(" ") if chr(code).isspace() else code + 32 if chr(code) in string.ascii_uppercase else code
    for code in range(256)
)
# Odd numbers without a pattern in their bits: SplitMix64 (Steele et al. 2014) and 64 bits of the golden ratio.
_BASE, _MIX = 0xBF58476D1CE4E5B9, np.uint64(0x9E3779B97F4A7C15)
_INVERSE = pow(_BASE, -1, 1 << 64)


def ngram_words(text: str) -> bytes:
    """Returns the words of a text as its n-grams are made of them: UTF-8, with one space between two words."""
    if text.isascii():
        return b" ".join(text.encode().translate(_ASCII_LOWER, _ASCII_IGNORED).split())
    lower = unicodedata.normalize("NFC", text).lower()
    codes = np.frombuffer(lower.encode("utf-32-le", "replace"), np.uint32)  # half of a surrogate pair becomes a ?
    kept = codes[_in_words().take(codes)].tobytes().decode("utf-32-le")
    return " ".join(kept.split()).encode()


@cache
def _in_words() -> npt.NDArray[np.bool_]:
    """Returns for each character whether it stays: ten times as fast as a regular expression."""
    stays = np.ones(sys.maxunicode + 1, bool)
    stays[list(map(ord, _IGNORED))] = False
    return stays


class WordRows:
    """The words of several texts as rows of numbers. An n-gram is in one text.

    Attributes:
        data: the texts, each as `ngram_words` returns it, with a line feed between two.
        starts: the first byte of each word in `data`.
        ends: the byte after each word.
        texts: the number of the text of each word, from 0.
    """

    def __init__(self, texts: Sequence[bytes]) -> None:
        """Takes texts, each as `ngram_words` returns it; one can be empty."""
        self.data = b"\n".join(texts)
        self._bytes = np.frombuffer(self.data, np.uint8)
        breaks = np.flatnonzero(self._bytes <= ord(" "))  # nothing smaller is in a word
        starts, ends = np.r_[0, breaks + 1], np.r_[breaks, len(self.data)]
        texts_before = np.r_[0, np.cumsum(self._bytes[breaks] == ord("\n"))]
        filled = starts < ends
        self.starts, self.ends, self.texts = starts[filled], ends[filled], texts_before[filled]

    @cached_property
    def _sums(self) -> U64:
        """The sums of all bytes before each place, each byte times a power of the base, modulo 2^64."""
        sums = np.zeros(len(self._bytes) + 1, np.uint64)
        np.cumsum(self._bytes * _powers(_BASE, len(self._bytes)), out=sums[1:])
        return sums

    def ngrams(self, size: int) -> tuple[I64, U64]:
        """Returns all n-grams: the number of the first word of each, and a hash of its bytes.

        The hash depends on the bytes of the n-gram alone. It is a polynomial modulo 2^64, for which texts of the same
        hash can be made up: those who search must compare the bytes, too.
        """
        count = max(0, len(self.starts) - size + 1)
        first = np.flatnonzero(self.texts[:count] == self.texts[size - 1 :])
        starts = self.starts[first]
        sums = self._sums[self.ends[first + (size - 1)]] - self._sums[starts]
        hashes = sums * _powers(_INVERSE, len(self._bytes))[starts] * _MIX
        return first, hashes ^ (hashes >> np.uint64(32))

    def release(self) -> None:
        """Frees the memory that only `ngrams` needs: eight bytes for each byte of text."""
        self.__dict__.pop("_sums", None)

    def text(self, first: int, size: int) -> bytes:
        """Returns the words from `first` on, `size` of them, with one space between two."""
        return self.data[self.starts[first] : self.ends[first + size - 1]]


def _powers(base: int, count: int) -> U64:
    """Returns the powers of a number modulo 2^64: at least BATCH_BYTES, and at least `count`."""
    if count <= BATCH_BYTES:
        return _first_powers(base)[:count]
    return _make_powers(base, count)


@cache
def _first_powers(base: int) -> U64:
    return _make_powers(base, BATCH_BYTES)


def _make_powers(base: int, count: int) -> U64:
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    return np.cumprod(factors, dtype=np.uint64)
