"""Parquet with zstd and one row group for each group. It has no dictionaries: texts and URLs do not repeat."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.corpus.formats.shard_format import (
    ROWS_AT_ONCE,
    DocumentGenerator,
    ShardFormat,
    WriteRows,
    open_binary,
    shard_schema,
)
from c4pipe.io.parquet_footer import check_columns, open_parquet, parquet_writer, read_footer, sign_footer
from c4pipe.io.streams import InputPath

TABLE_ROWS = 2048
"""The rows of a table, at most."""


@contextlib.contextmanager
def _write_parquet(path: Path, schema: pa.Schema) -> Iterator[WriteRows]:
    with parquet_writer(path, schema, compression_level=3, use_dictionary=False) as writer:
        yield lambda group: writer.write_table(group, row_group_size=group.num_rows)
    sign_footer(path)


def parquet_file(file: InputPath, footer: Any = None) -> pq.ParquetFile:
    """Opens a Parquet file and reads its footer, unless it is given. Raises SHARD_ERRORS.

    Checksums, which files of c4pipe have, are compared: of the footer at once, of pages when they are read.
    """
    return open_parquet(file, footer)[0]


def parquet_rows(
    file: pq.ParquetFile,
    first: int,
    columns: Sequence[str] | None = None,
    to_rows: Callable[[pa.RecordBatch], list[Any]] = pa.RecordBatch.to_pylist,
) -> Iterator[Any]:
    """Yields the rows of an open Parquet file as dicts, from row `first` on. Raises SHARD_ERRORS.

    A row group is decoded in parts, because a reader often needs some of its rows only.
    """
    for number in range(file.num_row_groups):
        rows = file.metadata.row_group(number).num_rows
        if first >= rows:
            first -= rows
            continue
        for batch in file.iter_batches(ROWS_AT_ONCE, [number], columns, use_threads=False):
            if first < len(batch):
                yield from to_rows(batch.slice(first))
            first = max(0, first - len(batch))


def parquet_tables(file: InputPath, columns: Sequence[str], rows: int = TABLE_ROWS) -> Iterator[pa.Table]:
    """Yields the rows of any Parquet file in order, as tables of at most `rows` rows.

    Raises LookupError, with the name, for a column that the file lacks or has twice; SHARD_ERRORS if it can't be read.
    """
    with parquet_file(file) as shard:
        check_columns(shard.schema_arrow, columns)
        left = shard.metadata.num_rows
        for batch in shard.iter_batches(rows, columns=list(columns)):
            left -= len(batch)
            yield pa.Table.from_batches([batch])
        if left:
            raise ValueError(f"{abs(left):,} rows too {'few' if left > 0 else 'many'}")


def _read_documents(file: InputPath, first: int, columns: Sequence[str]) -> DocumentGenerator:
    with parquet_file(file) as shard:
        yield from parquet_rows(shard, first, shard_schema(columns).names)


def _count_rows(file: InputPath) -> int:
    with open_binary(file) as stream:
        return int(read_footer(stream)[0].num_rows)


PARQUET = ShardFormat(
    name="parquet",
    write=_write_parquet,
    read=_read_documents,
    read_tables=parquet_tables,
    count_rows=_count_rows,
    hub_timestamp="string",
)
