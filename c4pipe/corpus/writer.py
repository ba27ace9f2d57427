"""Writes the shards of a corpus, with the same rows in each format.

The bytes of a shard depend on its rows and their order, and on the versions of pyarrow, zlib and zstandard. They depend
neither on the time nor on how the rows are divided among the calls of `write`.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA, STRINGS, ShardFormat, shard_schema
from c4pipe.corpus.formats.table import EXTENSIONS, find_format
from c4pipe.corpus.layout import ShardId, shard_name
from c4pipe.io.atomic import AtomicFile, make_folder, name_os_errors
from c4pipe.io.paths import StoragePath, sha256_of

ROW_GROUP_BYTES = 16_000_000  # of rows that wait for a full group: a writer needs this memory


class TableWriter:
    """Writes one file of one format. Rows wait in memory until they fill a group."""

    # The end of a group depends only on the rows. So Parquet's row groups, and the pieces that zlib gets, do not
    # depend on the calls of write(): zlib does not promise the same output for the same input in other pieces.

    def __init__(self, shard_format: ShardFormat, path: Path, schema: pa.Schema = CORPUS_SCHEMA) -> None:
        """Takes the format, the path of the file, and its columns: a result of `shard_schema`."""
        self._schema = schema
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._file = contextlib.ExitStack()
        self._write_group = self._file.enter_context(shard_format.write(path, schema))

    def write(self, table: pa.Table) -> None:
        """Appends rows. Raises ValueError unless names, order and types are those of the schema, and no column of
        CORPUS_SCHEMA has nulls.
        """
        if table.schema.types != self._schema.types:
            raise ValueError(f"A shard's columns are\n{self._schema}\nand not\n{table.schema}")
        table = table.cast(self._schema)  # copies nothing; ValueError for other names and for nulls
        lengths = [pc.binary_length(table[name]).to_numpy() for name in STRINGS]
        lengths += [_value_bytes(table[name]) for name in self._schema.names[len(CORPUS_SCHEMA) :]]
        # in plain encoding a string takes 4 bytes more than its UTF-8, and the float takes 8
        ends = np.cumsum(np.sum(lengths, axis=0, dtype=np.int64) + (4 * len(STRINGS) + 8))
        while table.num_rows:
            fit = int(np.searchsorted(ends, ROW_GROUP_BYTES - self._waiting_bytes, side="right"))
            if fit == 0:
                self._flush()
                fit = 1  # the first row of a group always fits: a larger row gets a group of its own
            self._waiting.append(table.slice(0, fit))
            self._waiting_bytes += int(ends[fit - 1])
            table, ends = table.slice(fit), ends[fit:] - ends[fit - 1]

    def _flush(self) -> None:
        if self._waiting:
            group = pa.concat_tables(self._waiting).combine_chunks()
            self._waiting, self._waiting_bytes = [], 0
            self._write_group(group)

    def close(self) -> None:
        """Writes the last group and finishes the file. A second call does nothing."""
        with self._file:
            self._flush()

    def abandon(self) -> None:
        """Closes a file that will be removed. Raises nothing, because another error is being raised already."""
        with contextlib.suppress(Exception):
            self._file.close()


def _value_bytes(column: pa.ChunkedArray) -> Any:
    """Returns the bytes that each value of a further column takes in plain encoding, about."""
    values = column.combine_chunks()
    if pa.types.is_string(column.type):
        return 4 + pc.fill_null(pc.binary_length(values), 0).to_numpy()
    if not pa.types.is_list(column.type):
        return np.full(len(column), 8)
    texts = 4 + pc.binary_length(pc.list_flatten(values)).to_numpy()
    return 4 + np.bincount(pc.list_parent_indices(values).to_numpy(), texts, len(column)).astype(np.int64)


class ShardFile(NamedTuple):
    """A finished file, as the manifest lists it, with its path in the corpus."""

    path: str
    rows: int
    bytes: int
    sha256: str

    def to_json(self) -> dict[str, str | int]:
        """Returns the fields by name, as JSON values."""
        return self._asdict()


class ShardWriter:
    """Writes one shard in several formats: a context manager, used once.

    When all files are complete and on the disk, they get their final names. If the body or the writing raises an
    exception, no file is left.

    Attributes:
        files: the finished files, in the order of `formats`; empty before the end.
    """

    def __init__(
        self,
        folder: StoragePath,
        shard: ShardId,
        formats: Sequence[str],
        columns: Sequence[str] = (),
    ) -> None:
        """Takes the folder of the corpus, the identity of the shard, the formats (of FORMAT_NAMES, or KeyError), and
        the further columns, as `Recipe.columns`.
        """
        self._schema = shard_schema(columns)
        self.files: list[ShardFile] = []
        self._folder = folder
        self._formats = {shard_name(shard, EXTENSIONS[name]): find_format(name) for name in formats}
        self._open: list[tuple[str, AtomicFile, TableWriter]] = []  # name in the corpus
        self._rows = 0

    def __enter__(self) -> "ShardWriter":
        with contextlib.ExitStack() as undo:
            for name, shard_format in self._formats.items():
                final = self._folder / name
                make_folder(final.parent)
                file = AtomicFile(final)
                undo.callback(file.discard)
                writer = TableWriter(shard_format, file.path, self._schema)
                undo.callback(writer.abandon)
                self._open.append((name, file, writer))
            self._undo = undo.pop_all()
        return self

    def write(self, table: pa.Table) -> None:
        """Appends rows to every file; ValueError as in TableWriter.write."""
        for name, _, writer in self._open:
            with name_os_errors(self._folder / name):
                writer.write(table)
        self._rows += table.num_rows

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        with self._undo as undo:
            if kind is None:
                for name, _, writer in self._open:
                    with name_os_errors(self._folder / name):
                        writer.close()
                self.files = [self._seal(name, file.path) for name, file, _ in self._open]
                for name, file, _ in self._open:
                    file.publish()
                    undo.callback((self._folder / name).unlink)
                undo.pop_all()

    def _seal(self, name: str, path: Path) -> ShardFile:
        """Returns the description of a closed file."""
        with path.open("rb") as file:
            digest = sha256_of(file)
            return ShardFile(name, self._rows, file.tell(), digest)
