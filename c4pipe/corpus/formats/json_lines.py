"""JSON Lines: the keys of the published C4, those of the language, then further columns. NaN raises ValueError.

They are compressed as one gzip member, or as one frame of Zstandard with a checksum.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from c4pipe.corpus.formats.shard_format import (
    CORPUS_SCHEMA,
    PROBABILITY,
    Documents,
    ShardFormat,
    WriteRows,
    document,
    open_binary,
    open_gzip,
    shard_schema,
    write_records,
)
from c4pipe.io.streams import InputPath
from c4pipe.io.text import lines_in, open_content, parse_row

_C4_KEYS = ("text", "timestamp", "url", "language", PROBABILITY)


def _make_lines(rows: pa.Table) -> Iterator[bytes]:
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    for row in rows.select([*_C4_KEYS, *rows.schema.names[len(CORPUS_SCHEMA) :]]).to_pylist():
        yield encode(row).encode() + b"\n"


def _write_gzip(path: Path, _: pa.Schema) -> AbstractContextManager[WriteRows]:
    return write_records(path, _make_lines)


def _write_zstandard(path: Path, _: pa.Schema) -> AbstractContextManager[WriteRows]:
    return write_records(path, _make_lines, _zstandard_frame)


def _zstandard_frame(file: BinaryIO) -> Any:
    import zstandard  # takes a while, and few corpora have this format

    return zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(file, closefd=False)


def _read_gzip(file: InputPath, first: int, columns: Sequence[str]) -> Documents:
    with open_gzip(file) as content:
        yield from _read_lines(content, first, columns)


def _read_zstandard(file: InputPath, first: int, columns: Sequence[str]) -> Documents:
    with open_content(open_binary(file), file.name) as content:
        yield from _read_lines(content, first, columns)


def _read_lines(content: BinaryIO, first: int, columns: Sequence[str]) -> Documents:
    names = shard_schema(columns).names
    for line in islice(lines_in(content), first, None):
        if (row := parse_row(line)) is None:
            raise ValueError("it has a line that is no JSON object")
        yield document(row, names)


_HUB_TIMESTAMP = "timestamp[s]"

JSON = ShardFormat(name="json", extension="json.gz", write=_write_gzip, read=_read_gzip, hub_timestamp=_HUB_TIMESTAMP)
ZSTANDARD_JSON = ShardFormat(
    name="json.zst", extension="json.zst", write=_write_zstandard, read=_read_zstandard, hub_timestamp=_HUB_TIMESTAMP
)
