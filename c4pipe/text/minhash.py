"""MinHash: short signatures that find nearly equal texts.

A text is the set of its n-grams of words. The signature has, for each of some permutations of all hashes, the smallest
hash of the set: its *minima*. The share of equal minima of two texts estimates the Jaccard similarity of their sets.
Minima are cut into bands; texts with an equal band are compared.

Sources: Broder 1997; numbers, simplified text, hash (SHA-1, as for FineWeb) and permutations are from datatrove 0.10.1
(`minhash.py`, `utils/text.py`), so both have the same signatures.
"""

import hashlib
import re
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt

from c4pipe.io.rows import is_new
from c4pipe.native import lower, text_kernel
from c4pipe.text.character_sets import OTHER_PUNCTUATION, characters
from c4pipe.text.hashes import U64
from c4pipe.text.page_text import JoinedWords, joined_words
from c4pipe.text.scripts.words import letter_words

U16 = npt.NDArray[np.uint16]

_PRIME = np.uint64(2**61 - 1)
_SEED = 1
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, without a pattern in its bits
_DIGITS_TO_0 = bytes.maketrans(b"123456789", b"0" * 9)
_SEPARATORS = frozenset(".,\u060c\u066b\u2396\u2397\u2398")  # in numbers
_IN_NUMBERS = b"|".join(re.escape(each.encode()) for each in sorted(_SEPARATORS))
_NUMBER = re.compile(b"00*(?:(?:%b)00*)?" % _IN_NUMBERS)  # not 0+, at whose start `re` tries each byte
_PUNCTUATION = frozenset(characters(OTHER_PUNCTUATION) + ".?!．。？！")
_ASCII = bytes(range(128))
_TO_BLANKS = bytes(32 if chr(each) in _PUNCTUATION or chr(each).isspace() else each for each in _ASCII) + bytes(
    range(128, 256)
)
_MANY = 500  # characters: NumPy finds the different ones faster
_FEW = 20  # characters: more are replaced together
_AT_ONCE = 256  # n-grams: NumPy's arrays stay in the cache


def simplify(text: str, numbers: str = "zero") -> str:
    """Returns a text in lower case, with blanks for punctuation, and without accents; with `0` for numbers if they are
    not "kept".
    """
    text = lower(text)
    data = text.encode("utf-8", "surrogatepass")  # `bytes.translate` is much faster than that of texts
    others = _different(data.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
    blanks = [each for each in others if (each in _PUNCTUATION or each.isspace()) and not each.isdecimal()]
    if others:
        for each in blanks:  # `replace` is much faster for texts than for bytes
            text = text if each in _SEPARATORS else text.replace(each, " ")
        for each in others:
            text = text.replace(each, "0") if each.isdecimal() and numbers == "zero" else text
        data = text.encode("utf-8", "surrogatepass")
    if numbers == "zero":
        data = _NUMBER.sub(b"0", data.translate(_DIGITS_TO_0))
    for each in _SEPARATORS.intersection(blanks):
        data = data.replace(each.encode(), b" ")
    codes = np.frombuffer(data.translate(_TO_BLANKS), np.uint8)
    stays = codes != ord(" ")
    stays[1:] |= stays[:-1]  # the first of several blanks, too
    simple = codes[stays].tobytes().strip().decode("utf-8", "surrogatepass")
    return _without_accents(simple, others).strip() if others else simple


def _different(text: str) -> Sequence[str]:
    """Returns the different characters of a text."""
    if len(text) < _MANY:
        return list(set(text))
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.unique(codes).tobytes().decode("utf-32-le", "surrogatepass")


def _without_accents(text: str, others: Iterable[str]) -> str:
    """Returns a text in the form NFD without characters of the category Mn, given its characters beyond ASCII."""
    plain = {each: _plain(each) for each in others}
    changed = {each: made for each, made in plain.items() if made != each}
    if len(changed) <= _FEW and not any(map(unicodedata.combining, "".join(plain.values()))):  # nothing to reorder
        for each, made in changed.items():
            text = text.replace(each, made)
        return text
    text = unicodedata.normalize("NFD", text)
    for each in _different(text):
        if unicodedata.category(each) == "Mn":
            text = text.replace(each, "")
    return text


@lru_cache(10_000)
def _plain(character: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFD", character) if unicodedata.category(each) != "Mn")


def compared_words(
    text: str,
    ngram: int,
    tokenizer: str = "",
    scripts: tuple[str, ...] = (),
    numbers: str = "zero",
    short_pages: str = "stay",
) -> JoinedWords:
    """Returns the words of which the n-grams of a text are; arguments as in `minima`."""
    words = joined_words(letter_words(simplify(text, numbers), scripts, ngram), tokenizer)
    missing = ngram + 1 - len(words.ends)
    if short_pages == "stay" or missing <= 0 or not words.text:
        return words
    return words._replace(ends=memoryview(array("q", [*words.ends, *[words.ends[-1]] * missing])))  # empty words


def ngram_hashes(text: str, ngram: int, *more: Any) -> U64:
    """Returns the hash of each n-gram of the words of a text; arguments as in `compared_words`."""
    compared = compared_words(text, ngram, *more)
    words = [each.encode("utf-8", "surrogatepass") for each in compared.words()]
    joined = b" ".join(words)
    starts = [0, *accumulate(len(word) + 1 for word in words)]
    digests = (
        hashlib.sha1(joined[start : end - 1], usedforsecurity=False).digest()
        for start, end in zip(starts, starts[ngram:], strict=False)
    )
    return np.frombuffer(b"".join(each[:8] for each in digests), "<u8")


def ngram_set(words: JoinedWords, ngram: int) -> U64:
    """Returns a number for each different n-gram of words, in order: faster than SHA-1, and for no signature."""
    codes = np.frombuffer(words.text.encode("utf-32-le", "surrogatepass"), np.uint32)
    ends = np.frombuffer(words.ends, np.int64)
    lengths = np.diff(ends)
    count = max(0, len(lengths) - ngram + 1)
    sums = np.zeros(count, np.uint64)
    if count:
        powers = np.cumprod(np.full(int(lengths.max()), _FACTOR))
        terms = codes * powers[np.arange(len(codes)) - np.repeat(ends[:-1], lengths)]
        numbers = np.add.reduceat(np.append(terms, np.uint64(0)), ends[:-1])  # the last words can be empty
        numbers = (numbers ^ (numbers >> np.uint64(32))) * _FACTOR  # or the ends of words would not count
        for place in range(ngram):
            sums = (sums ^ (sums >> np.uint64(29))) * _FACTOR + numbers[place : place + count]
    sums.sort()
    return sums[is_new(sums)]


def jaccard(one: U64, other: U64) -> float:
    """Returns the similarity of two sets of n-grams: the share of common n-grams."""
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / max(1, len(one) + len(other) - common)


def minima(text: str, ngram: int, bands: int, rows: int, *more: Any) -> U64:
    """Returns the signature of a text.

    Args:
        text: the text.
        ngram: words in an n-gram.
        bands: number of bands.
        rows: minima in a band.
        more: the further arguments of `compared_words`.

    Returns:
        `bands` times `rows` minima, band by band; none for a text without n-grams.
    """
    factors, summands = _permutations(bands * rows)
    if text_kernel:
        joined, ends = compared_words(text, ngram, *more)
        return np.frombuffer(text_kernel.minima(joined, ends, ngram, factors, summands), np.uint64)
    hashes = np.unique(ngram_hashes(text, ngram, *more))
    if not len(hashes):
        return hashes
    least = np.full(bands * rows, _PRIME)
    for first in range(0, len(hashes), _AT_ONCE):
        values = hashes[first : first + _AT_ONCE, None] * factors  # modulo 2^64, as in datatrove
        values += summands
        high = values >> np.uint64(61)
        values &= _PRIME
        values += high  # modulo the prime, except for the values above it
        np.minimum(values, values - _PRIME, out=values)  # a smaller value wraps around to a huge one
        np.minimum(least, values.min(axis=0), out=least)
    return least


def band_hashes(signature: U64, bands: int) -> U64:
    """Returns a hash of each band of a signature, which depends on the band's number, too."""
    data, size = signature.tobytes(), signature.nbytes // bands
    halves = b"".join(mmh3.hash_bytes(data[band * size : (band + 1) * size], band) for band in range(bands))
    return np.frombuffer(halves if len(signature) else b"", "<u8")[::2].astype(np.uint64)


def short_minima(signature: U64) -> U16:
    """Returns the last 16 bits of each minimum: enough to compare signatures."""
    return signature.astype("<u2")


@cache
def _permutations(number: int) -> tuple[U64, U64]:
    """Returns factors and summands of random permutations, from a fixed seed."""
    generator = np.random.RandomState(_SEED)
    prime = int(_PRIME)
    return (
        generator.randint(1, prime, dtype=np.uint64, size=number),
        generator.randint(0, prime, dtype=np.uint64, size=number),
    )
