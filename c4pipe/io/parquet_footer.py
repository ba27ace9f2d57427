"""Parquet files in which every change is noticed. Parquet has checksums for its pages, but not for the footer.

So c4pipe puts a digest of the footer between the last page and the footer, where readers of Parquet do not look.

Arrow takes a path such as `run-10:00/en` for a URI. So only this module opens Parquet files, and Arrow gets open files.
"""

import contextlib
import hashlib
import io
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.io.file_kinds import START, describe_start, other_kind
from c4pipe.io.paths import StoragePath, open_file
from c4pipe.io.streams import WebPath
from c4pipe.io.words import error_reason

UNREADABLE = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError, MemoryError)
"""What Arrow raises for a file that is missing or damaged."""

_LETTERS = b"PAR1"  # at the start and the end of each file
_MARK = b"SHA-256 of the footer:"
_SIGN_BYTES = len(_MARK) + 32
_TAIL_BYTES = 64 * 1024  # bytes that one request reads; most footers are smaller
_BUFFER_BYTES = 256 * 1024  # of each column of a file: whole columns would take other memory each time
_END_BYTES = 8  # after the footer: its length and the letters PAR1


def parquet_writer(path: Path | pa.NativeFile, schema: pa.Schema, **options: Any) -> pq.ParquetWriter:
    """Begins a Parquet file with checksums of pages. Raises OSError.

    Args:
        path: a file of this machine, which is replaced if it exists, or an open file of Arrow.
        schema: its columns.
        options: other options of Arrow's writer; the default compression is `zstd`.
    """
    file = pa.OSFile(os.fsencode(path), "wb") if isinstance(path, Path) else path
    writer = pq.ParquetWriter(file, schema, **{"compression": "zstd", "write_page_checksum": True, **options})
    writer.file_handle = file  # which the writer closes
    return writer


def sign_footer(path: Path) -> None:
    """Puts the digest of its footer into a finished Parquet file. Raises OSError."""
    with path.open("r+b") as file:
        file.seek(-_END_BYTES, io.SEEK_END)
        first = file.seek(-_END_BYTES - int.from_bytes(file.read(4), "little"), io.SEEK_END)
        footer = file.read()
        file.seek(first)
        file.write(_MARK + hashlib.sha256(footer).digest() + footer)


def read_footer(file: Any) -> tuple[pq.FileMetaData, bool]:
    """Returns the footer of an open Parquet file, and whether it has a digest, which is compared.

    Raises ValueError if the digest differs or the file is no Parquet; OSError or ArrowException if it can't be read.
    """
    tail, _, is_signed = _read_tail(file)
    return pq.read_metadata(pa.BufferReader(tail)), is_signed


def _read_tail(file: Any) -> tuple[bytes, bool, bool]:
    """Returns the end of a file with its footer, and whether this is the whole file and the footer has a digest."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read()
    if tail[-4:] == b"PARE":
        raise ValueError("it is encrypted")
    if tail[-4:] != _LETTERS:
        file.seek(0)
        start = file.read(START)
        is_cut = start.startswith(_LETTERS)
        raise ValueError(
            "it is cut off, or other bytes follow" if is_cut else f"it is no Parquet file, but {describe_start(start)}"
        )
    footer_bytes = int.from_bytes(tail[-_END_BYTES:-4], "little") + _END_BYTES
    if len(tail) < footer_bytes + _SIGN_BYTES <= size:
        file.seek(size - footer_bytes - _SIGN_BYTES)
        tail = file.read()
    sign, footer = tail[: -min(footer_bytes, len(tail))][-_SIGN_BYTES:], tail[-footer_bytes:]
    is_signed = sign.startswith(_MARK)
    if is_signed and sign != _MARK + hashlib.sha256(footer).digest():
        raise ValueError("its footer is damaged")
    return tail, len(tail) == size, is_signed


def open_parquet(path: StoragePath | WebPath, footer: pq.FileMetaData | None = None) -> tuple[pq.ParquetFile, bool]:
    """Opens a Parquet file, and compares its checksums: of the footer at once, of each page when it is read.

    Small files are read whole. Returns the file, and whether its footer has a digest (or was given). Raises as
    `read_footer`.
    """
    source: Any = open_file(path)
    is_signed, options = True, dict[str, Any](page_checksum_verification=True)
    with contextlib.ExitStack() as undo:
        undo.enter_context(source)
        if not footer:
            tail, is_whole, is_signed = _read_tail(source)
            if is_whole:
                return pq.ParquetFile(pa.BufferReader(tail), **options), is_signed
            footer = pq.read_metadata(pa.BufferReader(tail))
        options["metadata"] = footer
        if isinstance(path, Path):
            native = pa.OSFile(os.fsencode(path))
            return pq.ParquetFile(native, pre_buffer=False, buffer_size=_BUFFER_BYTES, **options), is_signed
        undo.pop_all()
        # a buffer before all pages makes fewer requests
        return pq.ParquetFile(source, pre_buffer=True, **options), is_signed


def check_columns(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Raises LookupError, with the name, for a column that a file lacks, or has more than once."""
    for name in columns:
        number = schema.names.count(name)
        if number != 1:
            others = ", ".join(schema.names) or "none"
            raise LookupError(
                f"it has {number} columns named {name}: rename one"
                if number
                else f"it has no column {name}, but {others}"
            )


def is_text_type(kind: pa.DataType) -> bool:
    """Tells whether a type of Arrow is text: strings of any kind, or a dictionary of strings."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def texts_of(column: pa.Array) -> list[bytes | None]:
    """Returns the texts of a column of text or bytes, which may be no valid UTF-8; None for a null, and for bytes that
    are no text but a file of another kind.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    texts = cast(list[bytes | None], column.cast(pa.large_binary()).to_pylist())
    if is_binary_type(column.type):
        return [None if text is not None and other_kind(text[:START], 16) else text for text in texts]
    return texts


def is_binary_type(kind: pa.DataType) -> bool:
    """Tells whether a type of Arrow is bytes of any kind, or a dictionary of bytes: they may be text in UTF-8."""
    return re.match("(dictionary<values=)?(large_|fixed_size_)?binary", str(kind)) is not None


def values_of(column: pa.Array) -> list[Any]:
    """Returns the values of a column as Python objects.

    A value that Python does not have, such as a date after the year 9999, is bytes, which show it. So are binary values
    that are not UTF-8; others are strings. The time zone of dates is UTC if its name is unknown.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        column = _in_known_zone(column)
    with contextlib.suppress(*UNREADABLE):
        if not is_binary_type(column.type):
            return cast(list[Any], column.to_pylist())
    return list(map(_value_of, column))


def rows_in_batch(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Returns the rows of a batch. A value that Python does not have is bytes, as in `values_of`.

    Raises UnicodeDecodeError for text that is not UTF-8.
    """
    try:
        return cast(list[dict[str, Any]], batch.to_pylist())
    except UnicodeDecodeError:
        raise
    except UNREADABLE:
        rows = zip(*map(values_of, batch.columns), strict=True)
        return [dict(zip(batch.schema.names, row, strict=True)) for row in rows]


def _in_known_zone(column: pa.Array) -> pa.Array:
    """Returns dates without nanoseconds, which Python does not have, and in UTC if their time zone is unknown."""
    unit = "us" if column.type.unit == "ns" else column.type.unit
    kind = pa.timestamp(unit, column.type.tz)
    try:
        pa.array([0], pa.int64()).cast(kind).to_pylist()
    except UNREADABLE:
        kind = pa.timestamp(unit, "+00:00")
    return column.cast(kind, safe=False)


def _value_of(scalar: Any) -> Any:
    try:
        value = scalar.as_py()
        return value.decode() if isinstance(value, bytes) else value
    except UNREADABLE as error:
        if isinstance(scalar, pa.ListScalar):
            return list(map(_value_of, scalar.values))
        if isinstance(scalar, pa.StructScalar):
            return {name: _value_of(each) for name, each in scalar.items()}
        if isinstance(error, UnicodeDecodeError) and not pa.types.is_nested(scalar.type):
            return error.object if is_binary_type(scalar.type) else error.object.decode("utf-8", "replace")
        return str(scalar.cast(pa.string()) if pa.types.is_temporal(scalar.type) else scalar.type).encode()


@contextlib.contextmanager
def reading(path: StoragePath, what: str, advice: str) -> Iterator[None]:
    """Turns errors of Arrow into DamagedFileError, and errors of the system or a store into UsageError.

    Args:
        path: the file that is read.
        what: the words after the path in the message, such as `is damaged`.
        advice: the end of the message of DamagedFileError: how the user gets a whole file.
    """
    try:
        yield
    except UsageError:
        raise
    except UNREADABLE as error:
        message = f"{path} {what}: {error_reason(error)}"
        if isinstance(error, OSError) and (error.errno is not None or not isinstance(path, Path)):
            raise UsageError(message) from error
        raise DamagedFileError(f"{message}; {advice}") from error
