"""The one reader of shards: the documents of a file in each format of `formats/`, and of plain text.

`read_shard` yields documents one by one, from any row on. `read_tables` yields columns, many rows at a time. All
formats give the same documents, except that TFRecord has its probabilities in 32 bits.
"""

import contextlib
import re
import struct
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from isal import isal_zlib

from c4pipe.corpus.formats.parquet import TABLE_ROWS
from c4pipe.corpus.formats.shard_format import Document, DocumentGenerator, open_binary, shard_schema
from c4pipe.corpus.formats.table import find_format
from c4pipe.corpus.layout import ShardId
from c4pipe.corpus.manifest import MANIFEST
from c4pipe.errors import C4pipeError
from c4pipe.io.paths import file_size, once_a_file, read_file, sha256_of
from c4pipe.io.streams import InputPath, WebPath
from c4pipe.io.text import lines_in, open_content
from c4pipe.io.words import explain_errors

TEXT_FORMAT = "text"
"""The format of a file of plain text, in which each line is a document."""

_DAMAGED: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # a class, not an instance as its stub has it

SHARD_ERRORS = (pa.ArrowException, OSError, EOFError, ValueError, LookupError, TypeError, struct.error, _DAMAGED)
"""The exceptions that reading raises if a file is missing or damaged."""


@dataclass(frozen=True)
class Shard:
    """A file of documents.

    Attributes:
        file: its path.
        format: one of FORMAT_NAMES, or TEXT_FORMAT.
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
    """Raises C4pipeError if the size of a shard's file differs from the manifest; None: the file does not exist."""
    if size != shard.bytes:
        actual = "does not exist" if size is None else f"has {size:,} bytes"
        raise C4pipeError(f"{shard.file} {actual}, and by the manifest {shard.bytes:,} bytes: copy the corpus again")


def read_shard(shard: Shard, first: int, end: int, verify: bool = False) -> DocumentGenerator:
    """Yields the documents of a shard, from row `first` up to row `end`, which is not yielded.

    Args:
        shard: the file.
        first: the first row, from 0.
        end: the row after the last.
        verify: whether the file's SHA-256 is checked first.

    Raises C4pipeError if the file is missing or damaged, or differs from the manifest.
    """
    count, more = 0, False
    with shard_errors(shard):
        check_shard(shard, verify)
        with contextlib.closing(_read_documents(shard.file, shard.format, first, shard.columns)) as rows:
            count = yield from _count_documents(shard, rows, end - first)
            more = end == shard.rows and next(rows, None) is not None  # this also reaches a checksum at the end
    if count < end - first or more:
        raise other_rows(shard, f"more than {shard.rows:,}" if more else f"{first + count:,}")


def _count_documents(shard: Shard, rows: Iterator[Document], most: int) -> Generator[Document, None, int]:
    """Yields the first rows, at most `most`. Looks at the manifest when the file is open, and at the end."""
    count = 0
    for count, document in enumerate(islice(rows, min(1, most)), 1):  # noqa: B007
        check_current(shard)
        yield document
    for count, document in enumerate(islice(rows, max(0, most - 1)), 2):  # noqa: B007
        yield document
    check_current(shard)
    return count


def read_tables(shard: Shard, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yields all rows of a shard in order, as tables of at most TABLE_ROWS rows.

    Args:
        shard: a file of a corpus, in any of its formats.
        columns: the columns to read, some of CORPUS_SCHEMA or of the further columns of the corpus.

    Raises C4pipeError if the file is missing or damaged, or differs from the manifest.
    """
    rows = 0
    with shard_errors(shard):
        check_shard(shard, verify=False)
        for table in tables_of(shard.file, shard.format, columns, shard.columns):
            if not rows:
                check_current(shard)
            rows += len(table)
            yield table
        check_current(shard)
    if rows != shard.rows:
        raise other_rows(shard, f"{rows:,}")


def tables_of(
    file: InputPath, file_format: str, columns: Sequence[str], further: Sequence[str] = ()
) -> Iterator[pa.Table]:
    """Works as `read_tables`, without a manifest, given the further columns (`Recipe.columns`). Raises SHARD_ERRORS."""
    if read_tables := find_format(file_format).read_tables:
        yield from read_tables(file, columns)
        return
    schema = shard_schema(further)
    with contextlib.closing(_read_documents(file, file_format, 0, further)) as documents:
        while rows := [cast(dict[str, Any], document) for document in islice(documents, TABLE_ROWS)]:
            arrays = [pa.array([row[name] for row in rows], schema.field(name).type) for name in columns]
            yield pa.table(arrays, names=list(columns))


def _read_documents(file: InputPath, file_format: str, first: int, further: Sequence[str]) -> DocumentGenerator:
    return (
        _read_text(file, first) if file_format == TEXT_FORMAT else find_format(file_format).read(file, first, further)
    )


def shard_errors(shard: Shard) -> contextlib.AbstractContextManager[None]:
    """Turns errors of reading a shard into the error for a user."""
    return explain_errors(f"{shard.file} can't be read", "", C4pipeError, SHARD_ERRORS, of=shard.file)


def other_rows(shard: Shard, count: str) -> C4pipeError:
    """Returns the error for a user, given the number of a shard's documents."""
    return C4pipeError(f"{shard.file} has {count} documents, and by the manifest {shard.rows:,}: copy it again")


def check_shard(shard: Shard, verify: bool) -> None:
    """Compares a file with the manifest: the size if it is at https://, and the SHA-256 if `verify` is true.

    Raises C4pipeError if they differ.
    """
    if isinstance(shard.file, WebPath):
        check_size(shard, shard.file.open().size)
    if verify:
        with open_binary(shard.file) as stream:
            digest = sha256_of(stream)
        if digest != shard.sha256:
            raise C4pipeError(f"{shard.file} has another SHA-256 than the manifest says: copy it again")


def check_current(shard: Shard) -> None:
    """Raises C4pipeError if a file of this machine was replaced since it was found, such as by a takedown in place.

    A takedown deletes the manifest before it moves shards: a shard that is listed when it is open is the right one.
    """
    if not isinstance(shard.file, Path):
        return
    try:
        if shard.format == TEXT_FORMAT:
            is_current = file_size(shard.file) == shard.bytes
        else:
            is_current = shard.sha256.encode() in _listed_digests(shard.file.parent.parent / MANIFEST)
    except OSError:
        is_current = False
    if not is_current:
        raise C4pipeError(f"{shard.file} was changed while it was read, such as by a takedown: start again")


@once_a_file
def _listed_digests(manifest: Path) -> frozenset[bytes]:
    """Returns the digests of the shards in a manifest."""
    return frozenset(re.findall(rb'"sha256":\s*"([0-9a-f]{64})"', read_file(manifest)))


def check_rows(shard: Shard) -> None:
    """Compares the rows of a shard with the manifest, if its format knows them without reading all of them.

    Raises C4pipeError if they differ, or if the file is damaged.
    """
    count_rows = find_format(shard.format).count_rows
    if count_rows is None:
        return
    with shard_errors(shard):
        rows = count_rows(shard.file)
    if rows != shard.rows:
        raise other_rows(shard, f"{rows:,}")


def _read_text(file: InputPath, first: int) -> DocumentGenerator:
    with open_content(open_binary(file), file.name) as stream:
        for line in islice(filter(None, map(bytes.strip, lines_in(stream))), first, None):
            yield Document(url="", text=line.decode(), timestamp="", language="", language_probability=0.0)
