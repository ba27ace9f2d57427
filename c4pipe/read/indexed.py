"""Documents by index: what Grain calls a random access data source, and PyTorch a map-style dataset."""

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from c4pipe.corpus.formats.parquet import parquet_file
from c4pipe.corpus.formats.shard_format import Document, shard_schema
from c4pipe.corpus.reader import SHARD_ERRORS, check_current, check_shard, other_rows, shard_errors
from c4pipe.errors import UsageError
from c4pipe.io.arguments import checks_arguments
from c4pipe.read.source import Source, find

_MOST_GROUPS = 8  # row groups in memory, of 16 MB each


class RandomAccess:
    """A sequence of the documents of a source, in the order of the corpus. `read.random_access` returns one.

    To return a document, its row group (16 MB) is read, unless it was used recently. So neighbouring documents that are
    requested soon after each other are fast: shuffle in windows.
    """

    def __init__(self, source: Source) -> None:
        """Takes a source. Raises UsageError if it has no Parquet."""
        if other := [shard for shard in source.shards if shard.format != "parquet"]:
            raise UsageError(
                f"{other[0].file}: random access needs shards of Parquet; build the corpus with --format parquet"
            )
        self._source = source
        self._ends = list(accumulate(source.rows))
        self._footers: dict[int, tuple[Any, list[int]]] = {}  # by shard: its footer, and the ends of its row groups
        self._groups: OrderedDict[tuple[int, int], pa.Table] = OrderedDict()  # the last used comes last
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """The number of documents."""
        return self._ends[-1] if self._ends else 0

    def __repr__(self) -> str:  # Grain compares it with the text in a checkpoint
        return f"RandomAccess({self._source.identity})"

    def __reduce__(self) -> tuple[Any, ...]:
        return RandomAccess, (self._source,)

    def __getitem__(self, index: int) -> Document:
        """Returns a document by its index from 0. Raises IndexError, or C4pipeError if the shard can't be read."""
        if not 0 <= index < len(self):
            raise IndexError(f"document {index}: there are {len(self):,}")
        shard = bisect_right(self._ends, index)
        row = index - (self._ends[shard - 1] if shard else 0)
        try:
            with self._lock:  # otherwise several threads would read the same row group
                group, row = self._group(shard, self._source.place(shard, row))
        except SHARD_ERRORS:
            with shard_errors(self._source.shards[shard]):  # only now: its sentence takes time for each document
                raise
        documents: list[Document] = group.slice(row, 1).to_pylist()
        return documents[0]

    def _group(self, shard: int, row: int) -> tuple[pa.Table, int]:
        """Returns the row group with a row of a shard, and the row's index in it."""
        footer, ends = self._footers.get(shard) or self._footer(shard)
        number = bisect_right(ends, row)
        key = shard, number
        if key not in self._groups:
            with parquet_file(self._source.shards[shard].file, footer) as file:
                names = shard_schema(self._source.shards[shard].columns).names
                group = file.read_row_group(number, names, use_threads=False)
            check_current(self._source.shards[shard])
            self._groups[key] = group
            if len(self._groups) > _MOST_GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(key)
        return self._groups[key], row - (ends[number - 1] if number else 0)

    def _footer(self, number: int) -> tuple[Any, list[int]]:
        """Returns the checked footer of a shard, and the ends of its row groups."""
        shard = self._source.shards[number]
        check_shard(shard, self._source.verify)
        with parquet_file(shard.file) as file:
            footer = file.metadata
        check_current(shard)
        ends = list(accumulate(footer.row_group(group).num_rows for group in range(footer.num_row_groups)))
        if footer.num_rows != shard.rows:
            raise other_rows(shard, f"{footer.num_rows:,}")
        self._footers[number] = footer, ends
        return footer, ends


@checks_arguments
def random_access(
    path: str | Path, split: str = "train", languages: Sequence[str] | None = None, *, verify: bool = False
) -> RandomAccess:
    """Returns the documents of a corpus as a sequence, for Grain and other samplers that choose documents by index.

    Args:
        path: a corpus or a subset as for `documents`, with shards of Parquet.
        split: as for `documents`.
        languages: as for `documents`.
        verify: as for `documents`.

    Returns:
        a `RandomAccess`: a sequence of documents in the order of the corpus.

    Raises the errors of `documents`, and UsageError if the corpus has no Parquet.
    """
    return RandomAccess(find(path, split, languages, verify))
