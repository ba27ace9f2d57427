"""Documents of a shard in each format that `shards` writes, and of plain text.

All give the same documents, but that TFRecord has its probabilities in 32 bits.
"""

import contextlib
import hashlib
import io
import json
import struct
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, cast

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq
from isal import igzip, isal_zlib

from c4pipe.corpus.shard_writer import SCHEMA
from c4pipe.errors import C4pipeError
from c4pipe.io.paths import StoragePath
from c4pipe.io.web_path import WebPath

TEXT = "text"
"""The format of a file with a document a line."""


_BLOCK = 1 << 23  # bytes of a request, where a file is not of this machine


@dataclass(frozen=True)
class Shard:
    """A file of documents.

    Attributes:
        file: where it is.
        format: a key of `shards.FORMATS`, or TEXT.
        rows, bytes, sha256: what it has, by the manifest.
    """

    file: StoragePath | WebPath
    format: str
    rows: int
    bytes: int
    sha256: str


def check_size(shard: Shard, size: int | None) -> None:
    """Raises C4pipeError where a shard's file has another size than the manifest says; None is for no file at all."""
    if size != shard.bytes:
        has = "is not there" if size is None else f"has {size:,} bytes"
        raise C4pipeError(f"{shard.file} {has}, and by the manifest {shard.bytes:,} bytes: copy the corpus again")


def opened(file: StoragePath | WebPath) -> BinaryIO:
    """Opens a file to be read from its beginning. Raises OSError."""
    return file.open("rb") if isinstance(file, Path) else io.BufferedReader(file.open(), _BLOCK)


_ROWS_AT_ONCE = 512  # rows turned into Python objects at a time, about 1 MB of text
_DAMAGED: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # a class, not an instance as its stub has it

UNREADABLE = (pa.ArrowInvalid, OSError, EOFError, ValueError, LookupError, TypeError, struct.error, _DAMAGED)
"""What reading raises where a file is missing or damaged."""


class Document(TypedDict):
    """A row of a corpus; docs/formats.md has the columns. A line of text has its text alone, the rest is empty."""

    url: str
    text: str
    timestamp: str
    language: str
    language_probability: float


Documents = Generator[Document, None, None]
"""They hold a file open until they are closed."""


def read(shard: Shard, first: int, end: int, verify: bool = False) -> Documents:
    """Yields the documents of a shard from row `first` on, before row `end`.

    Raises C4pipeError for a file that is missing, damaged or not as the manifest has it.
    """
    try:
        check(shard, verify)
        with contextlib.closing(_ROWS[shard.format](shard.file, first)) as rows:
            given = yield from _counted(islice(rows, end - first))
            more = end == shard.rows and next(rows, None) is not None  # and so that a checksum at the end is met
    except UNREADABLE as error:
        raise C4pipeError(f"{shard.file} can't be read: {error}") from error
    if given < end - first or more:
        has = f"more than {shard.rows:,}" if more else f"{first + given:,}"
        raise C4pipeError(f"{shard.file} has {has} documents, and by the manifest {shard.rows:,}: copy it again")


def _counted(documents: Iterable[Document]) -> Generator[Document, None, int]:
    given = 0
    for given, document in enumerate(documents, 1):  # noqa: B007
        yield document
    return given


def check(shard: Shard, verify: bool) -> None:
    """Raises C4pipeError where a file of a web server has another size, or, if asked for, any file another SHA-256."""
    if isinstance(shard.file, WebPath):
        check_size(shard, shard.file.open().size)
    if verify:
        digest = hashlib.sha256()
        with opened(shard.file) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        if digest.hexdigest() != shard.sha256:
            raise C4pipeError(f"{shard.file} has not the SHA-256 that the manifest has for it: copy it again")


def parquet_file(file: StoragePath | WebPath, **options: Any) -> pq.ParquetFile:
    """Opens a file of Parquet: reads its footer, unless that is given as `metadata`. Raises OSError, ArrowInvalid."""
    here = isinstance(file, Path)
    return pq.ParquetFile(str(file) if isinstance(file, Path) else file.open(), pre_buffer=not here, **options)


def _of_parquet(file: StoragePath | WebPath, first: int) -> Documents:
    with parquet_file(file) as shard:
        for number in range(shard.num_row_groups):
            rows = shard.metadata.row_group(number).num_rows
            if first < rows:
                group = shard.read_row_group(number, SCHEMA.names, use_threads=False)
                for start in range(first, rows, _ROWS_AT_ONCE):
                    yield from group.slice(start, _ROWS_AT_ONCE).to_pylist()
            first = max(0, first - rows)


def _of_tfrecord(file: StoragePath | WebPath, first: int) -> Documents:
    with opened(file) as raw, igzip.IGzipFile(fileobj=raw) as data:
        for record in islice(_records(data), first, None):
            yield _document(record)


def _records(data: BinaryIO) -> Iterator[bytes]:
    """Yields the records of TFRecord, whose lengths and bytes have a checksum each."""
    while head := data.read(12):
        length, checksum = struct.unpack("<QI", head)
        _check_crc(head[:8], checksum)
        record = data.read(length + 4)
        _check_crc(record[:length], *struct.unpack_from("<I", record, length))
        yield record[:length]


def _check_crc(data: bytes, checksum: int) -> None:
    crc = google_crc32c.value(data)
    if ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF != checksum:
        raise ValueError("a record is damaged: its CRC-32C is another one")


def _document(record: bytes) -> Document:
    """Returns the document of a tf.train.Example as `shards` writes it: each field of it has wire type 2."""
    values: dict[str, Any] = {}
    ((_, features),) = _fields(record)
    for _, pair in _fields(features):
        (_, name), (_, feature) = _fields(pair)
        ((kind, in_list),) = _fields(feature)
        ((_, value),) = _fields(in_list)
        values[name.decode()] = value.decode() if kind == 1 else struct.unpack("<f", value)[0]
    return _in_order(values)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields number and payload of a message's fields."""
    at = 0
    while at < len(message):
        number = message[at] >> 3
        at, shift, length = at + 1, 0, 0
        while message[at] > 0x7F:
            length |= (message[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
        length |= message[at] << shift
        yield number, message[at + 1 : at + 1 + length]
        at += 1 + length


def _of_json(file: StoragePath | WebPath, first: int) -> Documents:
    with opened(file) as raw, igzip.IGzipFile(fileobj=raw) as data:
        for line in islice(data, first, None):
            yield _in_order(json.loads(line.decode()))


def _in_order(values: dict[str, Any]) -> Document:
    return cast(Document, {name: values[name] for name in SCHEMA.names})


def _of_text(file: StoragePath | WebPath, first: int) -> Documents:
    with opened(file) as stream:
        for line in islice(filter(None, map(bytes.strip, stream)), first, None):
            yield Document(url="", text=line.decode(), timestamp="", language="", language_probability=0.0)


_ROWS: dict[str, Callable[[StoragePath | WebPath, int], Documents]] = {
    "parquet": _of_parquet,
    "tfrecord": _of_tfrecord,
    "json": _of_json,
    TEXT: _of_text,
}
