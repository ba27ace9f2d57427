"""The one reader of shards: the documents of a file in each format that `writer` writes, and of plain text.

`read` yields documents one by one, from any row on. `read_tables` yields columns, many rows at a time. All formats give
the same documents, except that TFRecord has its probabilities in 32 bits.
"""

import contextlib
import hashlib
import io
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, cast

import pyarrow as pa
import pyarrow.parquet as pq
from isal import igzip, isal_zlib

from c4pipe.corpus import tfrecord
from c4pipe.corpus.layout import ShardId
from c4pipe.corpus.writer import FORMATS, shard_schema
from c4pipe.errors import C4pipeError
from c4pipe.io.parquet_footer import check_columns, open_parquet, read_footer
from c4pipe.io.paths import open_file
from c4pipe.io.streams import InputPath, WebPath
from c4pipe.io.text import lines_in, open_content, parse_row
from c4pipe.io.words import error_reason
from c4pipe.wet.columns import parse_columns

_REQUEST_BYTES = 1 << 23  # of a request for a part of a remote file


def open_binary(file: InputPath) -> BinaryIO:
    """Opens a file to be read from its beginning. Raises OSError where that fails."""
    return open_file(file) if isinstance(file, Path) else io.BufferedReader(file.open(), _REQUEST_BYTES)


TEXT_FORMAT = "text"
"""The format of a file of plain text, in which each line is a document."""

TABLE_ROWS = 2048
"""The rows of a table of `read_tables`, at most."""

_ROWS_AT_ONCE = 512  # rows turned into Python objects at a time, about 1 MB of text
_DAMAGED: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # a class, not an instance as its stub has it

UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError, LookupError, TypeError, struct.error, _DAMAGED)
"""The exceptions that reading raises where a file is missing or damaged."""


@dataclass(frozen=True)
class Shard:
    """A file of documents.

    Attributes:
        file: where it is.
        format: a key of `FORMATS`, or TEXT.
        id: its language, split, index and count. Plain text counts as a single train shard without a language.
        rows: the number of its documents, by the manifest.
        bytes: its size, by the manifest.
        sha256: the SHA-256 of its bytes in hex, by the manifest.
        columns: the further columns of its documents, as `Recipe.columns`.
    """

    file: InputPath
    format: str
    id: ShardId
    rows: int
    bytes: int
    sha256: str
    columns: tuple[str, ...] = ()

    @property
    def language(self) -> str:
        """The code of its language."""
        return self.id.language

    @property
    def path(self) -> str:
        """Its path in the corpus, such as `en/c4-train-00000-of-00016.parquet`."""
        return f"{self.language}/{self.file.name}"


def check_size(shard: Shard, size: int | None) -> None:
    """Raises C4pipeError where the size of a shard's file differs from the manifest; None: the file does not exist."""
    if size != shard.bytes:
        actual = "does not exist" if size is None else f"has {size:,} bytes"
        raise C4pipeError(f"{shard.file} {actual}, and by the manifest {shard.bytes:,} bytes: copy the corpus again")


class Document(TypedDict):
    """A row of a corpus; docs/formats.md describes the columns. For a line of plain text, all columns but `text` are
    empty. A document of a corpus with further columns has these, too.
    """

    url: str
    text: str
    timestamp: str
    language: str
    language_probability: float


Documents = Generator[Document, None, None]
"""A generator of documents; it holds a file open until it is closed."""


def read_shard(shard: Shard, first: int, end: int, verify: bool = False) -> Documents:
    """Yields the documents of a shard, from row `first` up to row `end`, which is not yielded.

    Args:
        shard: the file.
        first: the first row, from 0.
        end: the row after the last.
        verify: whether the file's SHA-256 is checked first.

    Raises C4pipeError where the file is missing or damaged, or differs from the manifest.
    """
    count, more = 0, False
    try:
        check_shard(shard, verify)
        with contextlib.closing(_ROWS[shard.format](shard.file, first, shard.columns)) as rows:
            count = yield from _counted(islice(rows, end - first))
            more = end == shard.rows and next(rows, None) is not None  # this also reaches a checksum at the end
    except UNREADABLE as error:
        raise unreadable(shard, error) from error
    if count < end - first or more:
        raise other_rows(shard, f"more than {shard.rows:,}" if more else f"{first + count:,}")


def _counted(documents: Iterable[Document]) -> Generator[Document, None, int]:
    count = 0
    for count, document in enumerate(documents, 1):  # noqa: B007
        yield document
    return count


def read_tables(shard: Shard, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yields all rows of a shard in order, as tables of at most TABLE_ROWS rows.

    Args:
        shard: a file of a corpus, in any of its formats.
        columns: the columns to read, some of `SCHEMA` or of the further columns of the corpus.

    Raises C4pipeError where the file is missing or damaged, or differs from the manifest.
    """
    rows = 0
    try:
        check_shard(shard, verify=False)
        for table in tables_of(shard.file, shard.format, columns, shard.columns):
            rows += len(table)
            yield table
    except UNREADABLE as error:
        raise unreadable(shard, error) from error
    if rows != shard.rows:
        raise other_rows(shard, f"{rows:,}")


def tables_of(
    file: InputPath, file_format: str, columns: Sequence[str], further: Sequence[str] = ()
) -> Iterator[pa.Table]:
    """Works as `read_tables`, for a file of a corpus without its manifest, given its further columns as
    `Recipe.columns`. Raises UNREADABLE.
    """
    if file_format == "parquet":
        yield from parquet_tables(file, columns)
        return
    schema = shard_schema(further)
    with contextlib.closing(_ROWS[file_format](file, 0, further)) as documents:
        while rows := [cast(dict[str, Any], document) for document in islice(documents, TABLE_ROWS)]:
            arrays = [pa.array([row[name] for row in rows], schema.field(name).type) for name in columns]
            yield pa.table(arrays, names=list(columns))


def parquet_tables(file: InputPath, columns: Sequence[str], rows: int = TABLE_ROWS) -> Iterator[pa.Table]:
    """Yields the rows of any Parquet file in order, as tables of at most `rows` rows.

    Raises LookupError, with the name, for a column that the file lacks or has twice; UNREADABLE where it can't be read.
    """
    with parquet_file(file) as shard:
        check_columns(shard.schema_arrow, columns)
        left = shard.metadata.num_rows
        for batch in shard.iter_batches(rows, columns=list(columns)):
            left -= len(batch)
            yield pa.Table.from_batches([batch])
        if left:
            raise ValueError(f"{abs(left):,} rows too {'few' if left > 0 else 'many'}")


def unreadable(shard: Shard, error: Exception) -> C4pipeError:
    """Returns the error for a user, given the error that the reading of a shard raised."""
    return C4pipeError(f"{shard.file} can't be read: {error_reason(error, of=shard.file)}")


def other_rows(shard: Shard, count: str) -> C4pipeError:
    """Returns the error for a user, given the number of documents that a shard has."""
    return C4pipeError(f"{shard.file} has {count} documents, and by the manifest {shard.rows:,}: copy it again")


def check_shard(shard: Shard, verify: bool) -> None:
    """Compares a file with the manifest: the size if it is behind https://, and the SHA-256 if `verify` is true.

    Raises C4pipeError where they differ.
    """
    if isinstance(shard.file, WebPath):
        check_size(shard, shard.file.open().size)
    if verify:
        digest = hashlib.sha256()
        with open_binary(shard.file) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        if digest.hexdigest() != shard.sha256:
            raise C4pipeError(f"{shard.file} has another SHA-256 than the manifest says: copy it again")


def check_rows(shard: Shard) -> None:
    """Compares the rows of a Parquet shard with the manifest, by its footer; other formats do not know their rows.

    Raises C4pipeError where they differ, or where the footer is damaged.
    """
    if shard.format != "parquet":
        return
    try:
        with open_binary(shard.file) as file:
            rows = read_footer(file)[0].num_rows
    except UNREADABLE as error:
        raise unreadable(shard, error) from error
    if rows != shard.rows:
        raise other_rows(shard, f"{rows:,}")


def format_of(name: str) -> str:
    """Returns the format of a file of a corpus, a key of `FORMATS`, by its name. Raises ValueError for another name."""
    for each in FORMATS.values():
        if name.endswith(f".{each.extension}"):
            return each.name
    raise ValueError(f"{name} ends in none of {', '.join(each.extension for each in FORMATS.values())}")


def parquet_file(file: InputPath, footer: Any = None) -> pq.ParquetFile:
    """Opens a Parquet file and reads its footer, unless that is given. Raises UNREADABLE.

    Checksums, which files of c4pipe have, are compared: of the footer at once, of pages when they are read.
    """
    return open_parquet(file, footer)[0]


def parquet_rows(file: pq.ParquetFile, first: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yields the rows of an open Parquet file as dicts, from row `first` on. Raises UNREADABLE.

    A row group is decoded in parts, because a reader often needs some of its rows only.
    """
    for number in range(file.num_row_groups):
        rows = file.metadata.row_group(number).num_rows
        if first >= rows:
            first -= rows
            continue
        for batch in file.iter_batches(_ROWS_AT_ONCE, [number], columns, use_threads=False):
            if first < len(batch):
                yield from batch.slice(first).to_pylist()
            first = max(0, first - len(batch))


def _of_parquet(file: InputPath, first: int, columns: Sequence[str]) -> Documents:
    with parquet_file(file) as shard:
        yield from parquet_rows(shard, first, shard_schema(columns).names)


def _of_tfrecord(file: InputPath, first: int, columns: Sequence[str]) -> Documents:
    further, names = parse_columns(columns), shard_schema(columns).names
    lists = {each.name for each in further if each.type == "strings"}
    nothing = dict.fromkeys((each.name for each in further), None)
    with open_binary(file) as raw, igzip.IGzipFile(fileobj=raw) as data:
        for record in islice(tfrecord.records(data), first, None):
            values = nothing | tfrecord.decode(record, lists)
            for each in further:
                if each.type == "bool" and values[each.name] is not None:
                    values[each.name] = bool(values[each.name])
            yield _in_order(values, names)


def _of_json(file: InputPath, first: int, columns: Sequence[str]) -> Documents:
    names = shard_schema(columns).names
    with open_binary(file) as raw, igzip.IGzipFile(fileobj=raw) as data:
        yield from _json_rows(data, first, names)


def _of_zstandard_json(file: InputPath, first: int, columns: Sequence[str]) -> Documents:
    names = shard_schema(columns).names
    with open_content(open_binary(file), file.name) as data:
        yield from _json_rows(data, first, names)


def _json_rows(data: BinaryIO, first: int, names: Sequence[str]) -> Documents:
    for line in islice(lines_in(data), first, None):
        if (row := parse_row(line)) is None:
            raise ValueError("it has a line that is no JSON object")
        yield _in_order(row, names)


def _in_order(values: dict[str, Any], names: Sequence[str]) -> Document:
    return cast(Document, {name: values[name] for name in names})


def _of_text(file: InputPath, first: int, columns: Sequence[str]) -> Documents:
    with open_content(open_binary(file), file.name) as stream:
        for line in islice(filter(None, map(bytes.strip, lines_in(stream))), first, None):
            yield Document(url="", text=line.decode(), timestamp="", language="", language_probability=0.0)


_ROWS: dict[str, Callable[[InputPath, int, Sequence[str]], Documents]] = {
    "parquet": _of_parquet,
    "tfrecord": _of_tfrecord,
    "json": _of_json,
    "json.zst": _of_zstandard_json,
    TEXT_FORMAT: _of_text,
}
