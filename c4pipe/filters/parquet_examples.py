"""The rows of a Parquet file of evaluation examples, from its columns that have texts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.errors import UsageError
from c4pipe.io.parquet_footer import UNREADABLE
from c4pipe.io.words import error_reason, short

_ROWS = 1024  # that are in memory at the same time


def parquet_rows(path: Path, fields: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields the rows of a Parquet file, as JSON has them.

    Args:
        path: the file.
        fields: the columns to take, in this order; () for all columns that have texts, also inside of lists and
            structs.

    Raises UsageError where the file can't be read, lacks a column, or has no text in its columns.
    """
    try:
        with pq.ParquetFile(path) as file:
            columns = _columns(path, file.schema_arrow, fields)
            for batch in file.iter_batches(_ROWS, columns=columns):
                yield from batch.select(columns).to_pylist()
    except UsageError:
        raise
    except UNREADABLE as error:
        raise UsageError(
            f"the examples {path} can't be read: {error_reason(error)}; give a Parquet file, or JSON Lines"
        ) from error


def _columns(path: Path, schema: pa.Schema, fields: Sequence[str]) -> list[str]:
    known = [field.name for field in schema if _has_text(field.type)]
    names = short(", ".join(known), 200) or "none"
    if missing := [name for name in fields if name not in known]:
        raise UsageError(
            f"{path} has no column of text {missing[0]!r}, but {names}: give others with --fields, or leave it out"
        )
    if not known:
        raise UsageError(f"{path} has no column of text: give a file that has the texts of examples")
    return list(fields or known)


def _has_text(kind: pa.DataType) -> bool:
    """Tells whether values of a type are texts, or have texts inside."""
    if pa.types.is_dictionary(kind):
        return _has_text(kind.value_type)
    if pa.types.is_nested(kind) and not pa.types.is_union(kind):
        return any(_has_text(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
