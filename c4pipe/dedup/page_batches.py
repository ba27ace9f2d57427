"""Finished pages, packed for the shuffle to their shard. No Beam."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from c4pipe.corpus import Layout, shard_writer

_BATCH_SCHEMA = shard_writer.SCHEMA.insert(0, pa.field("page_key", pa.uint64(), nullable=False))
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_CHUNK_ROWS = 2048  # rows that are written at once: only these are Python strings at a time


def encode(pages: pa.Table) -> bytes:
    """Returns pages as a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _BATCH_SCHEMA, options=_COMPRESSED) as stream:
        stream.write_table(pages.select(_BATCH_SCHEMA.names).cast(_BATCH_SCHEMA))
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def decode(batches: Iterable[bytes]) -> pa.Table:
    """Returns the pages of batches as one table."""
    tables = [pa.ipc.open_stream(batch).read_all() for batch in batches]
    return pa.concat_tables(tables).combine_chunks() if tables else _BATCH_SCHEMA.empty_table()


def folders_of(pages: pa.Table, layout: Layout) -> Any:
    """Returns the number of each page's folder (language and split) as a NumPy array."""
    number = {(each, split): layout.folder(each, split) for each in layout.languages for split in (False, True)}
    folders = zip(pages["language"].to_pylist(), pages["validation"].to_pylist(), strict=True)
    return np.array([number[pair] for pair in folders], dtype=np.uint32)


def by_shard(pages: pa.Table, numbers: Any) -> Iterator[tuple[int, pa.Table]]:
    """Yields (shard number, its pages), given the shard of each page."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else ()
    for start, end in pairwise([*starts, len(ordered)]):
        yield int(ordered[start]), pages.take(pa.array(order[start:end]))


def in_order(pages: pa.Table) -> Iterator[pa.Table]:
    """Yields the rows of a shard, in page-key order, a few thousand at a time."""
    order = np.argsort(pages["page_key"].to_numpy(), kind="stable")
    for first in range(0, len(order), _CHUNK_ROWS):
        yield pages.take(pa.array(order[first : first + _CHUNK_ROWS])).select(shard_writer.SCHEMA.names)
