"""Annotated files: each has all pages of one WET file, with what each rule of a recipe decides about them (Parquet)."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.clean.annotation_columns import annotated_schema
from c4pipe.clean.work_file import CrawlName, ListDigests, StoredRecipe, check_fingerprint, utf8_size
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.io.atomic import AtomicFile, make_folder, name_os_errors
from c4pipe.io.parquet_footer import open_parquet, sign_footer
from c4pipe.io.paths import StoragePath
from c4pipe.io.records import FileName, from_json, parse_json, shown, to_json
from c4pipe.io.words import error_reason
from c4pipe.recipes.recipe import Recipe

VERSION = 1
"""The version of this format. Reading a file of another version is an error."""

HEADER_KEY = b"c4pipe_annotated"
"""The key of the header in the metadata of the Parquet file."""

_GROUP_BYTES = 32 * 1024 * 1024  # text of a row group, which limits the memory of writer and reader
_GROUP_ROWS = 64 * 1024
_DICTIONARIES = ["reason", "language"]
_OF_FILE = ("damage.", "records.skipped.")  # counters of a file, which its pages do not tell
_UNREADABLE = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError, MemoryError)
"""What Arrow raises for a file that is missing or damaged."""


@dataclass(frozen=True)
class AnnotatedHeader:
    """The metadata of an annotated file.

    Attributes:
        source: the name of the WET file, without folders.
        source_bytes: the size of the WET file, as it is stored.
        ends_sha256: the digest of its ends (`io.EndsDigest`).
        recipe: the recipe whose rules were applied.
        fingerprint: the fingerprint of the recipe and its lists.
        lists: the digests of these lists, by name.
        language_labels: how many languages the column `language_labels` has; 0 for no such column.
        c4pipe: the release of c4pipe that applied the rules.
        rows: the number of pages.
        damage: the counters of damage and of skipped records in the file, by name.
        crawl: the crawl that the WET file names (`wet.records.crawl_name`); "" where it names none.
    """

    source: FileName
    source_bytes: int
    ends_sha256: str
    recipe: StoredRecipe
    fingerprint: str
    lists: ListDigests
    language_labels: int
    c4pipe: str
    rows: int
    damage: Mapping[str, int]
    crawl: CrawlName


class AnnotatedWriter:
    """Writes an annotated file. The file appears when it is complete; an older file of that name is replaced."""

    def __init__(self, path: StoragePath, recipe: Recipe, lists: Mapping[str, str], labels: int) -> None:
        """Takes its path, the recipe, the digests of its lists, and how many languages `language_labels` has."""
        make_folder(path.parent)
        self._path, self._recipe, self._lists, self._labels = path, recipe, lists, labels
        self._schema = annotated_schema(recipe, labels)
        self._file = AtomicFile(path)
        self._writer = pq.ParquetWriter(
            self._file.path, self._schema, compression="zstd", use_dictionary=_DICTIONARIES, write_page_checksum=True
        )
        self._held: list[Mapping[str, Any]] = []
        self._held_bytes = self._rows = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds the page of an `annotator.Row`."""
        self._held.append(row)
        self._rows += 1
        self._held_bytes += utf8_size(row["text"])
        if self._held_bytes >= _GROUP_BYTES or len(self._held) >= _GROUP_ROWS:
            self._flush()

    def finish(
        self, source: str, source_bytes: int, ends_sha256: str, counts: Mapping[str, int], crawl: str = ""
    ) -> None:
        """Writes the header and gives the file its name. The arguments are those of `WorkWriter.finish`."""
        from importlib.metadata import version

        self._flush()
        header = AnnotatedHeader(
            source=source,
            source_bytes=source_bytes,
            ends_sha256=ends_sha256,
            recipe=self._recipe,
            fingerprint=self._recipe.fingerprint(self._lists),
            lists=dict(self._lists),
            language_labels=self._labels,
            c4pipe=version("c4pipe"),
            rows=self._rows,
            damage={name: number for name, number in sorted(counts.items()) if name.startswith(_OF_FILE)},
            crawl=crawl,
        )
        values = {"version": VERSION, **to_json(header)}
        self._writer.add_key_value_metadata({HEADER_KEY: json.dumps(values).encode()})
        with name_os_errors(self._path):
            self._writer.close()
            sign_footer(self._file.path)
        self._file.publish()

    def discard(self) -> None:
        """Removes an unfinished file."""
        try:
            self._writer.close()
        finally:
            self._file.discard()

    def _flush(self) -> None:
        if self._held:
            arrays = [pa.array([row.get(field.name) for row in self._held], field.type) for field in self._schema]
            with name_os_errors(self._path):
                self._writer.write_table(pa.table(arrays, self._schema))
            self._held, self._held_bytes = [], 0


def read_annotated_header(path: StoragePath) -> AnnotatedHeader:
    """Returns the metadata of an annotated file.

    Raises UsageError where the file can't be read or is of another version, DamagedFileError where it is no annotated
    file, or was changed since it was written.
    """
    with _reading(path, "can't be read as an annotated file"):
        file, is_signed = open_parquet(path)
        metadata = file.metadata.metadata or {}
        if HEADER_KEY not in metadata or not is_signed:
            raise _damaged(f"{path} is no annotated file: c4pipe clean --annotate did not write it")
        values = from_json(dict, parse_json(metadata[HEADER_KEY]))
        if values.get("version") != VERSION:
            raise UsageError(
                f"{path} has version {shown(values.get('version'))} of annotated files, and this c4pipe reads "
                f"version {VERSION}: another release of c4pipe wrote it; annotate its input file again, in a new folder"
            )
        header = from_json(AnnotatedHeader, values)
        if file.metadata.num_rows != header.rows:
            raise ValueError("its rows are not those of its header")
        check_fingerprint(values)
        if not file.schema_arrow.equals(annotated_schema(header.recipe, header.language_labels)):
            raise ValueError("its columns are not those of its header")
    return header


@contextlib.contextmanager
def _reading(path: StoragePath, what: str) -> Iterator[None]:
    """Turns what Arrow raises into DamagedFileError; UsageError where the system or a store does not let us read."""
    try:
        yield
    except UsageError:
        raise
    except _UNREADABLE as error:
        message = f"{path} {what}: {error_reason(error)}"
        refused = isinstance(error, OSError) and (error.errno is not None or not isinstance(path, Path))
        raise UsageError(message) if refused else _damaged(message) from error


def _damaged(message: str) -> DamagedFileError:
    return DamagedFileError(f"{message}; delete it, and run the same c4pipe command with --annotate again")
