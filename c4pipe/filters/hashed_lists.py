"""Long lists of texts as sorted 64-bit hashes: 20 million URLs take 160 MB."""

import gzip
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]

_LINE_CAP = 1 << 20  # characters of a line: no page's URL is as long, as headers are smaller


def no_keys() -> U64:
    """Returns the hashes of an empty list."""
    return np.empty(0, dtype=np.uint64)


def has_key(keys: U64, key: int) -> bool:
    """Tells whether a hash is among sorted ones."""
    return find_key(keys, key) is not None


def find_key(keys: U64, key: int) -> int | None:
    """Returns the place of a hash among sorted ones, or None."""
    place = int(np.searchsorted(keys, np.uint64(key)))
    return place if place < len(keys) and int(keys[place]) == key else None


def first_listed(keys: U64, wanted: Sequence[int]) -> int | None:
    """Returns the place, among some hashes, of the first one that is among sorted ones; None where none is."""
    if not len(keys) or not wanted:
        return None
    values = np.array(wanted, dtype=np.uint64)  # searched together: 16 take little longer than one
    places = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    listed = np.flatnonzero(keys[places] == values)
    return int(listed[0]) if len(listed) else None


def sorted_keys(keys: Iterable[int]) -> U64:
    """Returns hashes sorted, each once."""
    collected = array("Q", keys)
    if not collected:
        return no_keys()
    values = np.frombuffer(collected, dtype=np.uint64)  # sorted in place: np.unique takes several times the memory
    values.sort()
    return values[np.r_[True, values[1:] != values[:-1]]]


def lines_of(path: Path) -> Iterator[str]:
    """Yields the lines of a text file that are not blank, stripped, without a byte-order mark; `.gz` is unpacked.

    Raises OSError, EOFError or zlib.error for a file that can't be read.
    """
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig", errors="replace") as file:
        for line in _short_lines(file):
            if stripped := line.strip():
                yield stripped


def _short_lines(file: TextIO) -> Iterator[str]:
    """Yields the lines of a file, without those that are longer than any URL of a page: these are never in memory."""
    at_start = True  # of a line
    while line := file.readline(_LINE_CAP):
        if at_start and (line.endswith("\n") or len(line) < _LINE_CAP):
            yield line
        at_start = line.endswith("\n")
