"""Duplicates in arrays of rows of fixed width, in NumPy: repeated spans, stale captures. No Python object per row."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]


SPAN_ROW = np.dtype([("hash", "<u8"), ("page", "<u8"), ("file", "<u4"), ("unit", "<u4")])
"""A span: its hash, its page's key and file, and the index of its first unit."""


URL_ROW = np.dtype([("hash", "<u8"), ("captured", "<i8"), ("file", "<u4"), ("row", "<u4")])
"""A capture of a URL: its key, its time in microseconds, and where it is."""


def find_repeats(rows: Rows) -> tuple[Rows, Rows]:
    """Returns (the first span of each hash, all others), both sorted by hash.

    The first is the smallest (page key, unit): whatever the order, the engine or the split into files.
    """
    return _first_of_each(rows, lambda same: np.lexsort((same["file"], same["unit"], same["page"], same["hash"])))


def find_stale_captures(rows: Rows) -> tuple[Rows, Rows]:
    """Returns (the newest capture of each URL, all others), both sorted by hash.

    Ties are broken by file, then by row: the first stays (rule 4).
    """
    return _first_of_each(rows, lambda same: np.lexsort((same["row"], same["file"], -same["captured"], same["hash"])))


def _first_of_each(rows: Rows, order: Callable[[Rows], npt.NDArray[np.intp]]) -> tuple[Rows, Rows]:
    """Splits rows into the first of each hash and the others. `order` sorts rows by hash, then by preference."""
    hashes = np.ascontiguousarray(rows["hash"])
    by_hash = np.argsort(hashes)  # rows of one hash come in any order here
    rows, hashes = np.take(rows, by_hash), hashes[by_hash]  # five times as fast as rows[by_hash]
    if not len(rows):
        return rows, rows
    first = np.r_[True, hashes[1:] != hashes[:-1]]
    shared = ~(first & np.r_[first[1:], True])
    if shared.any():  # only the few rows whose hash occurs twice need the full order
        same = rows[shared]
        rows[shared] = same[order(same)]
    return rows[first], rows[~first]
