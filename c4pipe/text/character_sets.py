"""The kinds of characters of datatrove's filters and spaCy's English tokenizer, as tables of code points.

Sources: spaCy 3.8 (MIT), `lang/char_classes.py` and `pipeline/sentencizer.pyx`; datatrove 0.10.1 (Apache-2.0),
`utils/text.py`. They are fixed lists, not properties of Unicode, so `character_sets.tsv` has them. If both packages are
installed, the tests compare each table with theirs.
"""

from collections.abc import Iterator
from pathlib import Path

_TABLES = dict(line.split("\t") for line in Path(__file__).with_suffix(".tsv").read_text("ascii").splitlines())


def code_ranges(table: str) -> Iterator[range]:
    """Yields the code points of a table: hexadecimal numbers, ranges `a-b`, and each second one of `a-b/2`."""
    for each in table.split():
        ends, _, step = each.partition("/")
        first, _, last = ends.partition("-")
        yield range(int(first, 16), int(last or first, 16) + 1, int(step or 1))


def characters(table: str) -> str:
    """Returns the characters of a table, as `code_ranges` reads it."""
    return "".join(chr(code) for codes in code_ranges(table) for code in codes)


def character_class(table: str) -> str:
    """Returns the ranges of a table as the inside of a regular expression's `[...]`."""
    pieces = []
    for codes in code_ranges(table):
        if codes.step > 1 or len(codes) == 1:
            pieces += [f"\\U{code:08x}" for code in codes]
        else:
            pieces.append(f"\\U{codes[0]:08x}-\\U{codes[-1]:08x}")
    return "".join(pieces)


UNCASED = _TABLES["UNCASED"]
"""Letters of scripts without case, with their marks and punctuation, as spaCy has them."""

SMALL = _TABLES["SMALL"]
"""Small letters."""

CAPITAL = _TABLES["CAPITAL"]
"""Capital letters."""

TITLE = _TABLES["TITLE"]
"""Letters that are neither small nor capital."""

SYMBOLS = _TABLES["SYMBOLS"]
"""Pictures and other symbols."""

SENTENCE_ENDS = _TABLES["SENTENCE_ENDS"]
"""Characters that end a sentence for spaCy's sentencizer."""

TERMINAL_PUNCTUATION = _TABLES["TERMINAL_PUNCTUATION"]
"""Terminal punctuation of all scripts, as datatrove has it."""

OTHER_PUNCTUATION = _TABLES["OTHER_PUNCTUATION"]
"""Further characters that datatrove takes for punctuation, such as control characters."""


PUNCTUATION_AND_SYMBOLS = _TABLES["PUNCTUATION_AND_SYMBOLS"]
"""Punctuation (categories P*), symbols (S*), format characters (Cf) and control characters (Cc) but white space, as
Unicode 14.0 has them.
"""
