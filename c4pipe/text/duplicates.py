"""Duplicates among rows of fixed width (NumPy arrays): repeated spans and stale captures. No Python object per row."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]


SPAN_ROW = np.dtype([("hash", "<u8"), ("page", "<u8"), ("file", "<u4"), ("unit", "<u4")])
"""A span: its hash, the key and the file number of its page, and the index of its first unit. 24 bytes."""


URL_ROW = np.dtype([("hash", "<u8"), ("captured", "<i8"), ("tie", "<u8"), ("file", "<u4"), ("row", "<u4")])
"""A capture of a URL: the URL's key, its time in microseconds since 1970, the hash that decides between captures of the
same time (`hashes.capture_hash`), its file number and its row. 32 bytes."""


def find_repeats(rows: Rows) -> tuple[Rows, Rows]:
    """Returns (the first span of each hash, all others), both sorted by hash.

    The first is the smallest (page key, unit). It does not depend on the order of the rows, the runner or the split
    into files.
    """
    rows, first = _sorted_by_hash(
        rows, lambda same: np.lexsort((same["file"], same["unit"], same["page"], same["hash"]))
    )
    return rows[first], rows[~first]


def find_stale_captures(rows: Rows) -> tuple[Rows, Rows]:
    """Returns (the newest capture of each URL, all others), both sorted by hash.

    Of captures of the same moment, the one with the smallest `tie` counts as the newest (rule `stale_capture`).
    Captures with equal `tie` give the same page; then the newest is the first by file number and row.
    """

    def order(same: Rows) -> npt.NDArray[np.intp]:
        return np.lexsort((same["row"], same["file"], same["tie"], -same["captured"], same["hash"]))

    rows, first = _sorted_by_hash(rows, order)
    return rows[first], rows[~first]


def _sorted_by_hash(rows: Rows, order: Callable[[Rows], npt.NDArray[np.intp]]) -> tuple[Rows, npt.NDArray[np.bool_]]:
    """Returns rows by hash, and which are the first of their hash. `order` sorts rows by hash, then by preference."""
    # A bucket is large: no array is held longer than it is needed, here and in the callers.
    by_hash = np.argsort(np.ascontiguousarray(rows["hash"]))  # rows of one hash come in any order here
    rows = np.take(rows, by_hash)  # five times as fast as rows[by_hash]
    del by_hash
    if not len(rows):
        return rows, np.empty(0, np.bool_)
    hashes = np.ascontiguousarray(rows["hash"])
    first = np.r_[True, hashes[1:] != hashes[:-1]]
    shared = ~(first & np.r_[first[1:], True])
    if shared.any():  # only the few rows whose hash occurs twice need the full order
        same = rows[shared]
        rows[shared] = same[order(same)]
    return rows, first
