"""The English tokenizer's tables in the form that the C extension reads (`cut_words` in `native/text/english.c`).

`english_words` and `english_patterns` are the reference: C cuts a chunk by what its characters are, and leaves to
Python each chunk in which it may meet a special case, a unit behind a number, a run of tokens or a URL.
"""

import sys
from collections.abc import Iterable

import numpy as np

from c4pipe.filters import english_patterns as patterns
from c4pipe.filters.character_sets import CAPITAL, SMALL, SYMBOLS, TITLE, UNCASED, code_ranges

_LOWER, _UPPER, _TITLE, _SYMBOL, _MARK, _PREFIX, _QUOTE, _BEFORE_DOT = (1 << bit for bit in range(8))
_TABLES = ((_LOWER, f"{SMALL} {UNCASED}"), (_UPPER, f"{CAPITAL} {UNCASED}"), (_TITLE, TITLE), (_SYMBOL, SYMBOLS))
_CHARACTERS = (
    (_MARK, [*patterns.PUNCTUATION, *patterns.QUOTES]),
    (_PREFIX, ["§", "%", "=", "—", "–", *patterns.CURRENCY]),
    (_QUOTE, patterns.QUOTES),
    (_BEFORE_DOT, list(patterns.BEFORE_DOT)),
)
"""Of these texts only those of one character count here."""

_KNOWN_BITS = 17
_LONGEST_KNOWN = 12  # characters of a text that C looks up
_LONGEST_UNIT = 5
_PRIME, _MIX, _WORD = 0x100000001B3, 0x9E3779B97F4A7C15, (1 << 64) - 1


def character_kinds() -> bytes:
    """Returns what each character is to the tokenizer, one byte of bits for each code point."""
    kinds = np.zeros(sys.maxunicode + 1, np.uint8)
    for bit, table in _TABLES:
        for codes in code_ranges(table):
            kinds[codes.start : codes.stop : codes.step] |= bit
    for bit, texts in _CHARACTERS:
        kinds[[ord(each) for each in texts if len(each) == 1]] |= bit
    return kinds.tobytes()


def known_texts(special: Iterable[str], runs: Iterable[tuple[str, ...]]) -> bytes:
    """Returns a Bloom filter (two bits of _KNOWN_BITS for each text) of what Python has to cut.

    Args:
        special: the chunks that are cut in a fixed way.
        runs: the runs of tokens that are cut in another way. A chunk goes to Python where the first two are.

    Raises ValueError where C would not look up a text or a unit, because it is longer than any today.
    """
    texts = [*special, *("".join(tokens[:2]) for tokens in runs), *patterns.UNITS]
    if max(map(len, texts)) > _LONGEST_KNOWN or max(map(len, patterns.UNITS)) > _LONGEST_UNIT:
        raise ValueError("a text is too long for LONGEST_KNOWN or LONGEST_UNIT in native/text/english.c")
    table = np.zeros(1 << _KNOWN_BITS, np.bool_)
    table[[place for text in texts for place in _places(text)]] = True
    return np.packbits(table, bitorder="little").tobytes()


def _places(text: str) -> tuple[int, int]:
    """Returns the places of a text's two bits, from the FNV-1a hash of its code points."""
    number = 0
    for character in text:
        number = (number ^ ord(character)) * _PRIME & _WORD
    number = number * _MIX & _WORD
    return number >> (64 - _KNOWN_BITS), number >> (64 - 2 * _KNOWN_BITS) & ((1 << _KNOWN_BITS) - 1)
