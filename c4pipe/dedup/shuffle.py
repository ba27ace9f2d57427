"""The exchange: finds duplicates from rows of fixed width, in NumPy. No Beam, no Python object per row.

A row says where a hash stands. Rows travel by bucket, the first bits of their hash; in a bucket all rows of a
hash are together, one of them is the first, and the others are what has to go.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.filters.duplicates import SPAN_ROW, Rows
from c4pipe.runners.control_totals import Totals

DROP = np.dtype([("hash", "<u8"), ("page", "<u8"), ("unit", "<u4")])
"""A span that its page, in a known file, has to lose: its hash, its page's key, the index of its first unit."""


STALE_ROW = np.dtype([("file", "<u4"), ("row", "<u4")])
"""A capture that is not the newest of its URL: its file, and its row there."""

BUCKET_BYTES = 64 * 1024 * 1024
"""Rows of a bucket, in bytes, that the number of buckets is chosen for."""

FEWEST_BITS = 3  # eight buckets even for a small crawl, so that all workers have some


TASKS = 4096
"""Groups of files that a job has at most: with each file for itself, a crawl would shuffle half a billion pieces."""


def group_size(files: int, rows: int) -> int:
    """Returns how many files make a group: many where there are many, but of no more rows than a bucket has."""
    return max(1, min(-(-files // TASKS), BUCKET_BYTES * files // max(1, rows * SPAN_ROW.itemsize)))


def bucket_bits(rows: int, row_bytes: int) -> int:
    """Returns the number of hash bits that make buckets of at most BUCKET_BYTES, on average, of so many rows."""
    buckets = -(-rows * row_bytes // BUCKET_BYTES)
    return max(FEWEST_BITS, (buckets - 1).bit_length() if buckets > 1 else 0)


def bucketed(rows: Rows, bits: int) -> Iterator[tuple[int, bytes]]:
    """Yields (bucket, packed rows) of rows that are sorted by hash, for each bucket that has any."""
    if not len(rows):
        return
    buckets = rows["hash"] >> np.uint64(64 - bits)
    starts = np.flatnonzero(np.r_[True, buckets[1:] != buckets[:-1]])
    ends = np.r_[starts[1:], len(rows)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(buckets[start]), rows[start:end].tobytes()


def unpack(pieces: Iterable[bytes], dtype: np.dtype[Any]) -> Rows:
    """Returns the rows of packed pieces as one array."""
    return np.frombuffer(b"".join(pieces), dtype=dtype)


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


def by_group(rows: Rows, size: int, dtype: np.dtype[Any]) -> Iterator[tuple[int, Rows]]:
    """Yields (group, its rows with the fields of `dtype` alone) of rows that have a file; `size` files are a group."""
    groups = rows["file"] // size
    order = np.argsort(groups, kind="stable")
    ordered, groups = np.take(rows, order), groups[order]
    for group in np.unique(groups).tolist():
        start, end = np.searchsorted(groups, [group, group + 1])
        part = np.empty(end - start, dtype=dtype)
        for name in dtype.names or ():
            part[name] = ordered[name][start:end]
        yield group, part


def spans_to_remove(drops: Rows) -> dict[int, list[int]]:
    """Returns, by page key, the index of the first unit of each span to remove, in ascending order."""
    drops = drops[np.lexsort((drops["unit"], drops["page"]))]
    removals: dict[int, list[int]] = {}
    for page, unit in zip(drops["page"].tolist(), drops["unit"].tolist(), strict=True):
        removals.setdefault(page, []).append(unit)
    return removals


SHUFFLES = {
    "urls": "captures of URLs on their way to their bucket",
    "older": "captures that are not the newest, on their way back to their file",
    "spans": "spans on their way to their bucket",
    "drops": "repeated spans on their way to their page's file",
    "lost": "spans that pages lost, on their way to be counted",
    "pages": "pages on their way to their shard",
}
"""The shuffles of job 2."""
