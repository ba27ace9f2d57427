"""The shuffle: finds duplicates from rows of fixed width, in NumPy. No Beam, no Python object for a row.

A row says where a hash occurs. Rows are grouped by bucket: the first bits of their hash. So a bucket holds all rows of
a hash.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.filters.duplicates import SPAN_ROW, Rows
from c4pipe.runners.control_totals import Totals

STALE_ROW = np.dtype([("file", "<u4"), ("row", "<u4")])
"""A capture that is not the newest of its URL: the number of its work file, and its row there."""

BUCKET_BYTES = 64 * 1024 * 1024
"""Bytes of rows in a bucket, on average: the number of buckets follows from it."""

FEWEST_BITS = 3  # eight buckets even for a small crawl, so that all workers get some

TASKS = 4096
"""The most groups of files that a job has: one group a file would give a crawl half a billion blocks of rows."""


def group_size(files: int, rows: int) -> int:
    """Returns how many files make a group, for a number of files and their rows.

    A crawl of many files has large groups, but no group has more rows than a bucket.
    """
    return max(1, min(-(-files // TASKS), BUCKET_BYTES * files // max(1, rows * SPAN_ROW.itemsize)))


def bucket_bits(rows: int, row_bytes: int) -> int:
    """Returns the number of hash bits that divide a number of rows into buckets of at most BUCKET_BYTES on average."""
    buckets = -(-rows * row_bytes // BUCKET_BYTES)
    return max(FEWEST_BITS, (buckets - 1).bit_length() if buckets > 1 else 0)


def bucketed(rows: Rows, bits: int) -> Iterator[tuple[int, bytes]]:
    """Yields (bucket, packed rows) for each bucket that has rows. The rows must be sorted by hash."""
    if not len(rows):
        return
    buckets = rows["hash"] >> np.uint64(64 - bits)
    starts = np.flatnonzero(np.r_[True, buckets[1:] != buckets[:-1]])
    ends = np.r_[starts[1:], len(rows)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(buckets[start]), rows[start:end].tobytes()


def unpack(blocks: Iterable[bytes], dtype: np.dtype[Any]) -> Rows:
    """Returns the rows of packed blocks as one array."""
    return np.frombuffer(b"".join(blocks), dtype=dtype)


def totals(rows: Rows) -> Totals:
    """Returns the control totals of rows of any kind: a lost, repeated or altered row changes them."""
    return Totals(len(rows), int(np.ascontiguousarray(rows).view("<u4").sum(dtype=np.uint64)))


def span_rows(page_keys: npt.NDArray[np.uint64], file: int, spans: Any) -> Rows:
    """Returns the rows of the spans of a file's pages.

    Args:
        page_keys: the key of each page.
        file: the file's number.
        spans: pyarrow ListArray of the span hashes of each page.
    """
    lengths = np.diff(spans.offsets.to_numpy())
    rows = np.empty(int(lengths.sum()), dtype=SPAN_ROW)
    rows["hash"] = spans.flatten().to_numpy()
    rows["page"] = np.repeat(page_keys, lengths)
    rows["file"] = file
    rows["unit"] = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return rows


def with_fields(rows: Rows, dtype: np.dtype[Any]) -> Rows:
    """Returns rows with the fields of `dtype` alone: a new array, unless the rows have these."""
    if rows.dtype == dtype:
        return rows
    selected = np.empty(len(rows), dtype)
    for name in dtype.names or ():
        selected[name] = rows[name]
    return selected


def by_number(rows: Rows, groups: npt.NDArray[Any], dtype: np.dtype[Any]) -> Iterator[tuple[int, Rows]]:
    """Yields (group, its rows) for each group that has rows.

    Args:
        rows: the rows.
        groups: the group of each row.
        dtype: the fields that the yielded rows have.
    """
    if not len(rows):
        return
    # NumPy sorts numbers of 16 bits in one pass.
    order = np.argsort(groups.astype(np.uint16) if groups.max() <= np.iinfo(np.uint16).max else groups, kind="stable")
    ordered, groups = np.take(with_fields(rows, dtype), order), groups[order]
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    ends = np.r_[starts[1:], len(rows)]
    for group, start, end in zip(groups[starts].tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield group, ordered[start:end]


def spans_to_remove(places: Rows) -> dict[int, list[int]]:
    """Returns, by page key, the index of the first unit of each span to remove, in ascending order."""
    places = places[np.lexsort((places["unit"], places["page"]))]
    removals: dict[int, list[int]] = {}
    for page, unit in zip(places["page"].tolist(), places["unit"].tolist(), strict=True):
        removals.setdefault(page, []).append(unit)
    return removals


SHUFFLES = {
    "urls": "captures of URLs, to their bucket",
    "stale_captures": "captures that are not the newest, to their file",
    "spans": "spans, to their bucket",
    "repeated_spans": "repeated spans, to the group of their page",
    "marks": "repeated spans that stay or go, to the group of their page",
    "claims": "places that stay as a whole, to the page that keeps the span",
    "options": "places to which copies of spans could move, to the group of the page that keeps the span",
    "hosts": "pages to which copies of spans could move, to their group",
    "conflicts": "marks of pages on which copies of spans may come or go, to their group",
    "requests": "copies of spans that should move, to their new page",
    "leaving": "copies of spans that should move, to the group of their page",
    "changes": "copies of spans that come or go, to the group of their page",
    "removed_spans": "spans that were removed from pages, to be counted",
    "pages": "pages, to their shard",
}
"""The shuffles of job 2: by name, what each carries and where to."""
