"""The description of a format of shards: columns, how a file is written and read, and how the Hub loads it."""

import contextlib
import gzip
import io
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypedDict, cast

import pyarrow as pa
from isal import igzip

from c4pipe.io.paths import open_file
from c4pipe.io.streams import InputPath
from c4pipe.wet.columns import extra_fields

STRINGS = ("url", "text", "timestamp", "language")
PROBABILITY = "language_probability"
_FIELDS: "list[pa.Field[Any]]" = [pa.field(name, pa.string(), nullable=False) for name in STRINGS]
CORPUS_SCHEMA = pa.schema([*_FIELDS, pa.field(PROBABILITY, pa.float64(), nullable=False)])
"""The columns of each corpus."""

ROWS_AT_ONCE = 512
"""Rows that are Python objects at a time: about 1 MB of text."""

_REQUEST_BYTES = 1 << 23  # of a request for a part of a remote file


class Document(TypedDict):
    """A row of a corpus, with its further columns, if any (docs/formats.md). A line of plain text has only `text`."""

    url: str
    text: str
    timestamp: str
    language: str
    language_probability: float


DocumentGenerator = Generator[Document, None, None]
"""A generator of documents; it holds a file open until it is closed."""

WriteRows = Callable[[pa.Table], None]
"""Writes rows to an open file. Each column has one chunk."""


class ShardFormat(NamedTuple):
    """A format of shards.

    Attributes:
        name: its name for users.
        write: opens a file for writing, given its schema, as a context manager. Its bytes depend only on the groups of
            rows, not on the time.
        read: yields the documents of a file from a row on, given the further columns of the corpus. Raises
            `reader.SHARD_ERRORS`.
        read_tables: yields some columns of a file as tables; None if tables are made of documents.
        count_rows: returns the number of rows of a file without reading them; None if the format does not know it.
        is_exact: whether numbers are read as they were written.
        hub_timestamp: the type that Hugging Face's `datasets` gives to timestamps; empty if it can't load the format.
    """

    name: str
    write: Callable[[Path, pa.Schema], AbstractContextManager[WriteRows]]
    read: Callable[[InputPath, int, Sequence[str]], DocumentGenerator]
    read_tables: Callable[[InputPath, Sequence[str]], Iterator[pa.Table]] | None = None
    count_rows: Callable[[InputPath], int] | None = None
    is_exact: bool = True
    hub_timestamp: str = ""


def shard_schema(columns: Sequence[str]) -> pa.Schema:
    """Returns the columns of a corpus whose pages carry further columns, as `Recipe.columns` names them."""
    return pa.schema([*CORPUS_SCHEMA, *extra_fields(columns)]) if columns else CORPUS_SCHEMA


def document(values: dict[str, Any], names: Sequence[str]) -> Document:
    """Returns a document with its columns in the order of `names`. Raises LookupError if one is missing."""
    return cast(Document, {name: values[name] for name in names})


def gzip_member(file: BinaryIO) -> AbstractContextManager[BinaryIO]:
    """Compresses what is written to a file, as one gzip member whose header has neither a time nor a name."""
    member = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
    return cast(AbstractContextManager[BinaryIO], member)


@contextlib.contextmanager
def write_records(
    path: Path,
    _: pa.Schema,
    encode: Callable[[pa.Table], Iterator[bytes]],
    compress: Callable[[BinaryIO], AbstractContextManager[BinaryIO]] = gzip_member,
) -> Iterator[WriteRows]:
    """Works as `ShardFormat.write` for a compressed file of records; `encode` makes records of rows."""
    with path.open("wb") as file, compress(file) as stream:

        def write(rows: pa.Table) -> None:
            for start in range(0, rows.num_rows, ROWS_AT_ONCE):
                stream.write(b"".join(encode(rows.slice(start, ROWS_AT_ONCE))))

        yield write


def open_binary(file: InputPath) -> BinaryIO:
    """Opens a file to be read from its beginning. Raises OSError if that fails."""
    return open_file(file) if isinstance(file, Path) else io.BufferedReader(file.open(), _REQUEST_BYTES)


@contextlib.contextmanager
def open_gzip(file: InputPath) -> Iterator[BinaryIO]:
    """Opens a gzip file, and yields its content as a stream. Raises OSError if that fails."""
    with open_binary(file) as raw, igzip.IGzipFile(fileobj=raw) as content:
        yield cast(BinaryIO, content)
