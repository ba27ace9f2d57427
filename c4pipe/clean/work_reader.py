"""Reads work files: all bytes are compared with checksums, those of the pages when they are read."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.clean.header_schema import checked_recipe
from c4pipe.clean.work_file import HEADER_KEY, SCHEMA, VERSION, WorkHeader
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.filters.duplicates import URL_ROW, Rows
from c4pipe.io import schema
from c4pipe.io.parquet_footer import open_parquet, read_footer
from c4pipe.io.paths import StoragePath
from c4pipe.io.words import error_reason

_UNREADABLE = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError, MemoryError)
"""What Arrow raises for a file that is missing or damaged."""

_GROUP_ROWS = 64 * 1024  # the most that a row group has


@contextlib.contextmanager
def _reading(path: StoragePath, what: str) -> Iterator[None]:
    """Turns what Arrow raises into DamagedFileError; UsageError where the system or a store does not let us read."""
    try:
        yield
    except UsageError:
        raise
    except _UNREADABLE as error:
        message = f"{path} {what}: {error_reason(error)}"
        refused = isinstance(error, OSError) and (error.errno is not None or not isinstance(path, Path))
        raise UsageError(message) if refused else _damaged(path, message) from error


def _damaged(path: StoragePath, message: str) -> DamagedFileError:
    clean = "run clean again" if isinstance(path, Path) else "delete it, and run clean again"
    return DamagedFileError(f"{message}; {clean} with this work folder, to make the file anew")


def read_header(path: StoragePath) -> WorkHeader:
    """Returns the metadata of a work file.

    Raises UsageError where the file can't be read or is of another version, DamagedFileError where it is no work file,
    or was changed since it was written.
    """
    with (
        _reading(path, "can't be read as a work file"),
        path.open("rb") if isinstance(path, Path) else path.open() as file,
    ):
        return _header(path, *read_footer(file))


def _header(path: StoragePath, footer: pq.FileMetaData, is_signed: bool) -> WorkHeader:
    metadata = footer.metadata or {}
    if HEADER_KEY not in metadata:
        raise _damaged(path, f"{path} is no work file: c4pipe clean did not write it")
    values = schema.parse_json(metadata[HEADER_KEY], schema.record({"version": schema.anything}))
    if values["version"] != VERSION:
        raise UsageError(
            f"{path} has work file version {schema.shown(values['version'])}, and this c4pipe reads version {VERSION}: "
            "another release of c4pipe wrote it; clean its input file again, with a new --work folder"
        )
    if not is_signed:
        raise _damaged(path, f"{path} can't be read as a work file: its footer has no digest")
    # `footer.schema` and the footer would refer to each other: 33 KB for each file, until cycles are searched
    recipe = checked_recipe(values, footer.num_rows, pq.ParquetSchema(footer).to_arrow_schema())
    return WorkHeader(**{each.name: values[each.name] for each in fields(WorkHeader)} | {"recipe": recipe})


def row_groups(
    path: StoragePath, columns: Sequence[str] = tuple(SCHEMA.names), most_rows: int = _GROUP_ROWS
) -> Iterator[pa.Table]:
    """Yields the rows of a work file, in order: each row group, in tables of at most `most_rows`.

    Raises as `read_header`, DamagedFileError also where a page is damaged.
    """
    with _reading(path, "can't be read as a work file"):
        file, is_signed = open_parquet(path)
        _header(path, file.metadata, is_signed)
    rows = 0
    for group in range(file.num_row_groups):
        # one thread: a job has a process for each core already
        batches = file.iter_batches(most_rows, [group], list(columns), use_threads=False)
        while True:
            with _reading(path, "is damaged"):
                batch = next(batches, None)
            if batch is None:
                break
            rows += len(batch)
            yield pa.Table.from_batches([batch])
    if rows != file.metadata.num_rows:
        raise _damaged(path, f"{path} is damaged: it has {rows:,} rows instead of {file.metadata.num_rows:,}")


def check_pages(path: StoragePath) -> None:
    """Reads a whole work file to compare it with its checksums. Raises as `row_groups`."""
    for _ in row_groups(path):
        pass


def url_rows(path: StoragePath, file: int) -> Rows:
    """Returns a URL_ROW for every readable page of a work file, in order, given the number of the file."""
    tables = list(row_groups(path, ["url_key", "captured", "tie"]))
    rows = np.empty(sum(map(len, tables)), dtype=URL_ROW)
    for name, column in (("hash", "url_key"), ("captured", "captured"), ("tie", "tie")):
        rows[name] = np.concatenate([np.empty(0, URL_ROW[name]), *(table[column].to_numpy() for table in tables)])
    rows["file"] = file
    rows["row"] = np.arange(len(rows))
    return rows


def read_kept(
    path: StoragePath, columns: Sequence[str], stale: Any, most_rows: int = _GROUP_ROWS
) -> Iterator[tuple[pa.Table, int]]:
    """Yields the kept pages of a work file without stale captures, in order.

    Args:
        path: the work file.
        columns: the columns to read; `page_key` must be one of them.
        stale: the numbers of the rows that are stale captures, an array of integers: their URL has a newer capture.
        most_rows: of the file that are read at once. Few rows take memory that is in use already; a whole row group of
            texts takes other memory each time, and that costs more time than to read them.

    Yields:
        (a table, the number of kept pages that were left out because they are stale).
    """
    for table, kept, newest in _captures(path, columns, stale, most_rows):
        yield table.filter(pa.array(newest)).combine_chunks(), int(kept.sum() - newest.sum())


def read_stale(path: StoragePath, columns: Sequence[str], stale: Any) -> Iterator[pa.Table]:
    """Yields the stale captures that `read_kept` leaves out. Its arguments are the same."""
    for table, kept, newest in _captures(path, columns, stale, _GROUP_ROWS):
        yield table.filter(pa.array(kept & ~newest))


def _captures(
    path: StoragePath, columns: Sequence[str], stale: Any, most_rows: int
) -> Iterator[tuple[pa.Table, Any, Any]]:
    """Yields rows, a mask of its kept pages, and a mask of those that are not stale."""
    first = 0
    for table in row_groups(path, columns, most_rows):
        kept = table["page_key"].is_valid().to_numpy()
        newest = kept.copy()
        newest[stale[(stale >= first) & (stale < first + len(table))] - first] = False
        first += len(table)
        yield table, kept, newest
