"""The orders that decide which row of several stays: occurrences of a span, captures of a URL. One name for each.

The order does not depend on the order of the rows, the runner or the split into files.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from c4pipe.io.rows import Indices, Mask, Rows, is_new

Columns = Sequence[npt.NDArray[np.generic]]


def order_of_occurrences(rows: Rows, before: Columns = (), after: Columns = ()) -> Indices:
    """Returns the indices that sort rows by their occurrence: by page key, then unit.

    Args:
        rows: rows with `page` and `unit`.
        before: columns by which the rows are sorted first.
        after: columns that decide between rows of one occurrence.
    """
    return np.lexsort((*reversed(after), rows["unit"], rows["page"], *reversed(before)))


def is_after_other(rows: Rows) -> Mask:
    """Returns the mask of the rows whose occurrence comes after that of `other_page` and `other_unit`."""
    same_page = rows["other_page"] == rows["page"]
    mask: Mask = (rows["other_page"] < rows["page"]) | (same_page & (rows["other_unit"] < rows["unit"]))
    return mask


def occurrence_numbers(rows: Rows) -> Indices:
    """Returns a number for each row: equal occurrences have equal numbers, in the order of the occurrences."""
    order = order_of_occurrences(rows)
    numbers = np.empty(len(rows), np.intp)
    numbers[order] = np.cumsum(is_new(rows["page"][order], rows["unit"][order])) - 1
    return numbers


def find_repeats(rows: Rows) -> tuple[Rows, Rows]:
    """Returns (the first occurrence of each span, all others), both sorted by hash, given SPAN_ROW rows."""
    return _split_by_hash(rows, lambda same: order_of_occurrences(same, [same["hash"]], [same["file"]]))


def find_stale_captures(rows: Rows) -> tuple[Rows, Rows]:
    """Returns (the newest capture of each URL, all others), both sorted by hash, given URL_ROW rows.

    Of captures of the same moment, the one with the smallest `tie` counts as the newest (rule `stale_capture`).
    Captures with equal `tie` give the same page; then the newest is the first by file number and row.
    """
    return _split_by_hash(
        rows, lambda same: np.lexsort((same["row"], same["file"], same["tie"], -same["captured"], same["hash"]))
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
