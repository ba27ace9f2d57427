"""Writes the shards of a corpus: Parquet, TFRecord and JSON Lines, the same rows in each.

A shard's bytes depend on its rows and their order (and on the versions of pyarrow and zlib), not on the time
and not on how the rows were divided among the calls of write().
"""

import contextlib
import gzip
import hashlib
import json
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from c4pipe.errors import UsageError
from c4pipe.io.atomic import AtomicFile
from c4pipe.io.paths import StoragePath

STRINGS = ("url", "text", "timestamp", "language")
PROBABILITY = "language_probability"
_FIELDS: "list[pa.Field[Any]]" = [pa.field(name, pa.string(), nullable=False) for name in STRINGS]
SCHEMA = pa.schema([*_FIELDS, pa.field(PROBABILITY, pa.float64(), nullable=False)])
ROW_GROUP_BYTES = 16_000_000  # of rows; what is held back for a group is what a writer adds to memory
_ROWS_AT_ONCE = 512  # rows turned into Python objects at a time, about 1 MB of text


class TableWriter(ABC):
    """Writes one file of one format; rows wait in memory until they fill a group."""

    # A group's end depends on the rows alone. So the cuts between calls of write() reach neither Parquet's
    # row groups nor zlib, which doesn't promise the same output for the same input cut otherwise.

    def __init__(self, path: Path) -> None:
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._resources = contextlib.ExitStack()  # what close() closes, last opened first

    @abstractmethod
    def _write_group(self, group: pa.Table) -> None:
        """Writes rows to the file; the columns have one chunk each."""

    def write(self, table: pa.Table) -> None:
        """Appends rows; raises ValueError unless names, order and types are SCHEMA's and nothing is null."""
        if table.schema.types != SCHEMA.types:
            raise ValueError(f"A shard's columns are\n{SCHEMA}\nand not\n{table.schema}")
        table = table.cast(SCHEMA)  # copies nothing; ValueError for other names and for nulls
        lengths = [pc.binary_length(table[name]).to_numpy() for name in STRINGS]
        # in plain encoding a string takes 4 bytes more than its UTF-8, the float 8
        ends = np.cumsum(np.sum(lengths, axis=0, dtype=np.int64) + (4 * len(STRINGS) + 8))
        while table.num_rows:
            fit = int(np.searchsorted(ends, ROW_GROUP_BYTES - self._waiting_bytes, side="right"))
            if fit == 0:
                self._flush()
                fit = 1  # the first of a group fits always: a larger row gets a group of its own
            self._waiting.append(table.slice(0, fit))
            self._waiting_bytes += int(ends[fit - 1])
            table, ends = table.slice(fit), ends[fit:] - ends[fit - 1]

    def _flush(self) -> None:
        if self._waiting:
            group = pa.concat_tables(self._waiting).combine_chunks()
            self._waiting, self._waiting_bytes = [], 0
            self._write_group(group)

    def close(self) -> None:
        """Writes the last group and finishes the file; a second call does nothing."""
        with self._resources:
            self._flush()

    def abandon(self) -> None:
        """Closes a file about to be removed; raises nothing, for another error has doomed the file."""
        with contextlib.suppress(Exception):
            self._resources.close()


class ParquetFileWriter(TableWriter):
    """Parquet with zstd, a row group for each group; without dictionaries, as texts and URLs don't repeat."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        writer = pq.ParquetWriter(path, SCHEMA, compression="zstd", compression_level=3, use_dictionary=False)
        self._writer = self._resources.enter_context(writer)

    def _write_group(self, group: pa.Table) -> None:
        self._writer.write_table(group, row_group_size=group.num_rows)


class _GzipFileWriter(TableWriter):
    """A gzip file of one record for each row; its header holds neither a time nor a name."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        file = self._resources.enter_context(path.open("wb"))
        stream = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
        self._gzip = self._resources.enter_context(stream)

    @abstractmethod
    def _records(self, rows: pa.Table) -> Iterator[bytes]:
        """The rows' records, as they stand in the uncompressed file."""

    def _write_group(self, group: pa.Table) -> None:
        for start in range(0, group.num_rows, _ROWS_AT_ONCE):
            self._gzip.write(b"".join(self._records(group.slice(start, _ROWS_AT_ONCE))))


class TFRecordFileWriter(_GzipFileWriter):
    """Gzipped TFRecord of tf.train.Example: strings as bytes features, the probability as a 32-bit float."""

    def _records(self, rows: pa.Table) -> Iterator[bytes]:
        # Arrow's strings are UTF-8 already; seen as binary they need not be decoded and encoded again.
        strings = [rows[name].cast(pa.binary()).to_pylist() for name in STRINGS]
        for *values, probability in zip(*strings, rows[PROBABILITY].to_pylist(), strict=True):
            data = _example(dict(zip(STRINGS, values, strict=True)), probability)
            length = struct.pack("<Q", len(data))
            yield b"".join((length, _masked_crc(length), data, _masked_crc(data)))


class JSONFileWriter(_GzipFileWriter):
    """Gzipped JSON Lines, keys as in the published C4, then the language's. NaN raises ValueError."""

    def _records(self, rows: pa.Table) -> Iterator[bytes]:
        encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
        for row in rows.select(["text", "timestamp", "url", "language", PROBABILITY]).to_pylist():
            yield encode(row).encode() + b"\n"


def _masked_crc(data: bytes) -> bytes:
    """TFRecord's checksum: CRC-32C rotated right by 15 bits, plus a constant; 4 bytes, little-endian."""
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _delimited(number: int, payload: bytes) -> bytes:
    """A protobuf field of wire type 2: tag (for numbers below 16), length as a varint, payload."""
    head, length = bytearray((number << 3 | 2,)), len(payload)
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + payload


def _example(strings: dict[str, bytes], probability: float) -> bytes:
    """A tf.train.Example with its map sorted by key (protobuf itself promises no order)."""
    # field numbers: features 1, feature 1 (map: key 1, value 2), bytes_list 1, float_list 2, value 1 (packed)
    features = {name: _delimited(1, _delimited(1, value)) for name, value in strings.items()}
    features[PROBABILITY] = _delimited(2, _delimited(1, struct.pack("<f", probability)))
    pairs = (_delimited(1, name.encode()) + _delimited(2, features[name]) for name in sorted(features))
    return _delimited(1, b"".join(_delimited(1, pair) for pair in pairs))


@dataclass(frozen=True)
class ShardFormat:
    """A file format: the name users give, the extension without a first dot, what opens a file to write."""

    name: str
    extension: str
    writer: Callable[[Path], TableWriter]


FORMATS: dict[str, ShardFormat] = {
    "parquet": ShardFormat("parquet", "parquet", ParquetFileWriter),
    "tfrecord": ShardFormat("tfrecord", "tfrecord.gz", TFRecordFileWriter),
    "json": ShardFormat("json", "json.gz", JSONFileWriter),
}


def parse_formats(text: str) -> tuple[str, ...]:
    """The formats of a comma-separated list, each once, in FORMATS' order; UsageError for other names."""
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in FORMATS]:
        raise UsageError(f"Unknown shard format {unknown[0]!r} in {text!r}; known: {', '.join(FORMATS)}.")
    return tuple(name for name in FORMATS if name in names)


def shard_name(language: str, split: str, index: int, count: int, extension: str) -> str:
    """A shard's path in the corpus, as en/c4-train-00000-of-00016.parquet; the index counts from 0."""
    return f"{language}/c4-{split}-{index:05d}-of-{count:05d}.{extension}"


@dataclass(frozen=True)
class ShardFile:
    """A finished file: path in the corpus, number of rows, size in bytes, SHA-256 of the bytes in hex."""

    path: str
    rows: int
    bytes: int
    sha256: str

    def to_json(self) -> dict[str, str | int]:
        """The fields by name, ready for json.dumps."""
        return asdict(self)


class ShardWriter:
    """Writes one shard in every format asked for; a context manager, used once.

    Once all files are complete and on the disk they get their final names and `files` lists them, in the
    order of `formats` (keys of FORMATS, else KeyError). If the body or the writing raises, nothing is left.
    """

    def __init__(
        self, folder: StoragePath, language: str, split: str, index: int, count: int, formats: Sequence[str]
    ) -> None:
        self.files: list[ShardFile] = []
        self._folder = folder
        chosen = [FORMATS[name] for name in formats]
        self._formats = {shard_name(language, split, index, count, f.extension): f for f in chosen}
        self._open: list[tuple[str, AtomicFile, TableWriter]] = []  # name in the corpus
        self._rows = 0

    def __enter__(self) -> "ShardWriter":
        with contextlib.ExitStack() as undo:
            for name, shard_format in self._formats.items():
                final = self._folder / name
                if isinstance(final, Path):
                    final.parent.mkdir(parents=True, exist_ok=True)
                whole = AtomicFile(final)
                undo.callback(whole.discard)
                writer = shard_format.writer(whole.path)
                undo.callback(writer.abandon)
                self._open.append((name, whole, writer))
            self._undo = undo.pop_all()
        return self

    def write(self, table: pa.Table) -> None:
        """Appends rows to every file; ValueError as in TableWriter.write."""
        for _, _, writer in self._open:
            writer.write(table)
        self._rows += table.num_rows

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        with self._undo as undo:
            if kind is None:
                for _, _, writer in self._open:
                    writer.close()
                self.files = [self._seal(name, whole.path) for name, whole, _ in self._open]
                for name, whole, _ in self._open:
                    whole.publish()
                    undo.callback((self._folder / name).unlink)
                undo.pop_all()

    def _seal(self, name: str, path: Path) -> ShardFile:
        """Describes a closed file and forces it onto the disk."""
        digest = hashlib.sha256()
        with path.open("rb+") as file:  # writable: Windows' fsync wants it
            while block := file.read(1 << 20):
                digest.update(block)
            os.fsync(file.fileno())
            return ShardFile(name, self._rows, file.tell(), digest.hexdigest())
