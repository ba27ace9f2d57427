"""JSON Lines: the keys of the published C4, the language's keys, then further columns. NaN raises ValueError.

They are compressed as one gzip member, or as one frame of Zstandard with a checksum.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa

from c4pipe.corpus.formats.shard_format import (
    CORPUS_SCHEMA,
    PROBABILITY,
    DocumentGenerator,
    ShardFormat,
    document,
    open_binary,
    open_gzip,
    shard_schema,
    write_records,
)
from c4pipe.io.streams import InputPath
from c4pipe.io.text import lines_in, open_content, parse_row

_C4_KEYS = ("text", "timestamp", "url", "language", PROBABILITY)


def _encode_rows(rows: pa.Table) -> Iterator[bytes]:
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    for row in rows.select([*_C4_KEYS, *rows.schema.names[len(CORPUS_SCHEMA) :]]).to_pylist():
        yield encode(row).encode() + b"\n"


def _zstandard_frame(file: BinaryIO) -> Any:
    import zstandard  # takes a while, and few corpora have this format

    return zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(file, closefd=False)


def _open_zstandard(file: InputPath) -> BinaryIO:
    return open_content(open_binary(file), file.name)


def _read_lines(
    opened: Callable[[InputPath], AbstractContextManager[BinaryIO]], file: InputPath, first: int, columns: Sequence[str]
) -> DocumentGenerator:
    names = shard_schema(columns).names
    with opened(file) as content:
        for line in islice(lines_in(content), first, None):
            if (row := parse_row(line)) is None:
                raise ValueError("it has a line that is no JSON object")
            yield document(row, names)


JSON = ShardFormat(
    name="json",
    write=partial(write_records, encode=_encode_rows),
    read=partial(_read_lines, open_gzip),
    hub_timestamp="timestamp[s]",
)
ZSTANDARD_JSON = ShardFormat(
    name="json.zst",
    write=partial(write_records, encode=_encode_rows, compress=_zstandard_frame),
    read=partial(_read_lines, _open_zstandard),
    hub_timestamp=JSON.hub_timestamp,
)
