"""Blocks of a shuffle: rows or pages of one bundle for one bucket, packed as bytes. The first byte tells what it holds.

One shuffle carries both, so that a step can go through the rows first and then through the pages, a block at a time:
`CoGroupByKey` would hold all of them in memory.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from c4pipe.errors import UsageError

Block = tuple[int, bytes]
"""A bucket, and a block for it."""

ROWS, PAGES, MARKED, CHANGES = b"r", b"p", b"m", b"c"
"""The first byte of a block of rows, of pages, of marks, and of changes to marks."""

HELD_BYTES = 32 * 1024 * 1024
"""Text, in characters, that a worker holds before it sends blocks."""

_MOST_BITS = 16


def bucket_bits(buckets: int) -> int:
    """Returns the number of hash bits of a number of buckets. Raises UsageError unless it is a power of two."""
    bits = buckets.bit_length() - 1
    if buckets < 2 or buckets != 1 << bits or bits > _MOST_BITS:
        raise UsageError(f"buckets={buckets}: give a power of two from 2 to {1 << _MOST_BITS:,}")
    return bits


def blocks_of(blocks: Iterable[bytes], tag: bytes) -> Iterator[Any]:
    """Yields the content of the blocks that hold what a tag says."""
    return (memoryview(block)[1:] for block in blocks if block[:1] == tag)


def buckets_of(table: pa.Table, hashes: Any, bits: int) -> Iterator[tuple[int, pa.Table]]:
    """Yields (bucket, its rows) for each bucket that has rows, given the hash of each row."""
    buckets = hashes >> np.uint64(64 - bits)
    order = np.argsort(buckets, kind="stable")
    ordered = buckets[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else ()
    for start, end in pairwise([*starts, len(ordered)]):
        yield int(ordered[start]), table.take(pa.array(order[start:end]))
