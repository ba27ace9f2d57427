"""The orders that decide which row of several stays: occurrences of a span, captures of a URL. One name for each.

The order does not depend on the order of the rows, the runner or the split into files.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.io.rows import Indices, Mask, Rows, is_new

Columns = Sequence[npt.NDArray[Any]]


def precedence(rows: Rows, prefix: str = "") -> Columns:
    """Returns the columns by which the first of several occurrences of a span is chosen; the first column decides."""
    return rows[f"{prefix}page"], rows[f"{prefix}unit"]


def is_after_other(rows: Rows) -> Mask:
    """Returns the mask of the rows whose occurrence comes after that of `other_page` and `other_unit`."""
    mask = np.zeros(len(rows), np.bool_)
    for own, other in reversed([*zip(precedence(rows), precedence(rows, "other_"), strict=True)]):
        mask = (other < own) | ((other == own) & mask)
    return mask


def sort_by(*columns: npt.NDArray[Any]) -> Indices:
    """Returns the indices that sort rows by columns; the first column decides first."""
    return np.lexsort(columns[::-1])


def order_of_occurrences(rows: Rows, before: Columns = ()) -> Indices:
    """Returns the indices that sort rows by the columns `before`, then page key, then unit."""
    return sort_by(*before, rows["page"], rows["unit"])


def occurrence_numbers(rows: Rows) -> Indices:
    """Returns a number for each row: equal occurrences have equal numbers, in the order of the occurrences."""
    order = order_of_occurrences(rows)
    numbers = np.empty(len(rows), np.intp)
    numbers[order] = np.cumsum(is_new(rows["page"][order], rows["unit"][order])) - 1
    return numbers


def find_repeats(rows: Rows) -> tuple[Rows, Rows]:
    """Returns (the first occurrence of each span, all others), both sorted by hash, given SPAN_ROW rows."""
    return _split_by_hash(rows, lambda same: sort_by(same["hash"], *precedence(same), same["file"]))


def find_stale_captures(rows: Rows) -> tuple[Rows, Rows]:
    """Returns (the newest capture of each URL, all others), both sorted by hash, given URL_ROW rows.

    Of captures of the same moment, the one with the smallest `tie` counts as the newest (rule `stale_capture`).
    Captures with equal `tie` give the same page; then the newest is the first by file number and row.
    """
    return _split_by_hash(
        rows, lambda same: sort_by(same["hash"], -same["captured"], same["tie"], same["file"], same["row"])
    )


def _split_by_hash(rows: Rows, order: Callable[[Rows], Indices]) -> tuple[Rows, Rows]:
    """Returns (the first row of each hash, all others). `order` sorts rows by hash, then by preference."""
    # A bucket is large: no array is held longer than it is needed.
    by_hash = np.argsort(np.ascontiguousarray(rows["hash"]))  # rows of one hash come in any order here
    rows = np.take(rows, by_hash)  # five times as fast as rows[by_hash]
    del by_hash
    first = is_new(np.ascontiguousarray(rows["hash"]))
    shared = ~(first & np.r_[first[1:], True][: len(first)])
    if shared.any():  # only the few rows whose hash occurs twice need the full order
        same = rows[shared]
        rows[shared] = same[order(same)]
    return rows[first], rows[~first]
