"""Work files: the result of `clean`, and the input of `dedup`. Each is a Parquet file with the pages of one WET file.

A work file has a row for each readable page, in the order of the WET file. A kept page has all columns. The row of any
other page is a tombstone: it has only the key of the URL, the time of capture and a hash for ties. So the newest
capture of a URL is the newest in the crawl, even if a rule dropped it.
"""

import functools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.io.json_files import Digest, FileName, choice, from_json, parse_json, shown, text
from c4pipe.io.parquet_footer import open_parquet, read_footer, reading
from c4pipe.io.paths import StoragePath, open_file
from c4pipe.io.rows import Rows, arrow_array
from c4pipe.lists.lists import LIST_NAMES
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.stored_recipe import check_recipe
from c4pipe.wet.columns import EXTRA, with_extra

WORK_FILE_VERSION = 4
"""The version of this format. Reading a work file of another version is an error."""

HEADER_KEY = b"c4pipe"
"""The key of the header in the metadata of the Parquet file."""

_HEADER_START = b'{"version": %d, ' % WORK_FILE_VERSION  # as `clean` writes it: to parse all JSON takes longer

WORK_SCHEMA = pa.schema(
    [
        pa.field("url_key", pa.uint64(), nullable=False),
        pa.field("captured", pa.int64(), nullable=False),  # microseconds since 1970
        pa.field("tie", pa.uint64(), nullable=False),
        pa.field("page_key", pa.uint64()),  # null in a tombstone
        pa.field("url", pa.string()),
        pa.field("text", pa.string()),
        pa.field("timestamp", pa.string()),
        pa.field("language", pa.string()),
        pa.field("language_probability", pa.float64()),
        pa.field("validation", pa.bool_()),
        pa.field("dropped", pa.string()),
        pa.field("unit_starts", pa.list_(pa.uint32())),
        pa.field("span_hashes", pa.list_(pa.uint64())),
    ]
)

NEAR_COLUMNS = [
    pa.field("band_hashes", pa.list_(pa.uint64())),
    pa.field("minima", pa.binary()),
    pa.field("characters", pa.uint32()),
]
"""Further columns if the recipe has the rule `near_duplicate`. They are empty for a page without n-grams."""

URL_ROW = np.dtype([("hash", "<u8"), ("captured", "<i8"), ("tie", "<u8"), ("file", "<u4"), ("row", "<u4")])
"""A capture of a URL: the URL's key, its time in microseconds since 1970, the hash that decides between captures of the
same time (`hashes.capture_hash`), its file number and its row. 32 bytes."""

PAGE_COLUMNS = [name for name in WORK_SCHEMA.names if name not in ("url_key", "captured", "tie", "span_hashes")]
"""The columns with which deduplication decides about a page."""

GROUP_ROWS = 64 * 1024
"""Rows of a row group, at most."""


def _check_stored_recipe(value: Any, place: str) -> Recipe:
    return _recipe(json.dumps(from_json(dict, value, place)))


@functools.lru_cache(maxsize=8)
def _recipe(recipe: str) -> Recipe:
    """Returns the recipe of a JSON text. Equal texts give the same object, because a crawl has 72,000 headers."""
    return check_recipe(parse_json(recipe), "recipe")


def check_fingerprint(recipe: Recipe, lists: Mapping[str, str], fingerprint: str) -> None:
    """Raises ValueError if a header's recipe and lists have another fingerprint than the header says."""
    if recipe.fingerprint(lists) != fingerprint:
        raise ValueError("its recipe or lists are not those of its fingerprint")


StoredRecipe = Annotated[Recipe, _check_stored_recipe]
ListDigests = Mapping[Annotated[str, choice(*LIST_NAMES)], Digest]
_versions = text("[ -~]{0,1000}", "versions")
TextVersions = Annotated[str, lambda value, place: sys.intern(_versions(value, place))]  # one object for many headers
CrawlName = Annotated[str, text(".{0,200}", "the name of a crawl")]


def work_schema(recipe: Recipe) -> pa.Schema:
    """Returns the columns of a work file of a recipe."""
    schema = pa.schema([*WORK_SCHEMA, *NEAR_COLUMNS]) if recipe.find(NearDuplicate) else WORK_SCHEMA
    return with_extra(schema, recipe.columns)


def page_columns(recipe: Recipe) -> list[str]:
    """Returns the columns that deduplication needs to write a page to the corpus."""
    return [*PAGE_COLUMNS, EXTRA] if recipe.columns else PAGE_COLUMNS


@dataclass(frozen=True)
class WorkHeader:
    """The metadata of a work file.

    Attributes:
        source: the name of the WET file, without folders.
        source_bytes: the size of the WET file, as it is stored.
        ends_sha256: the digest of its ends (`io.EndsDigest`).
        fingerprint: the fingerprint of the recipe and its lists.
        lists: the digests of the lists, by name.
        rows: the number of readable pages.
        spans: the number of spans of the kept pages.
        text_bytes: the UTF-8 bytes of text that go into the corpus if nothing repeats, by language.
        counts: the counters of pages, lines and damage, by name.
        crawl: the crawl that the WET file names (`wet.records.crawl_name`); "" if it names none.
        text_versions: the versions that decided the text (`recipes.choose`); "" if c4pipe did not record them yet.
    """

    source: FileName
    source_bytes: int
    ends_sha256: str
    recipe: StoredRecipe
    fingerprint: str
    lists: ListDigests
    rows: int
    spans: int
    text_bytes: Mapping[str, int]
    counts: Mapping[str, int]
    crawl: CrawlName
    text_versions: TextVersions = ""


def read_header(path: StoragePath) -> WorkHeader:
    """Returns the metadata of a work file.

    Raises UsageError if the file can't be read or has another version, DamagedFileError if it is no work file or was
    changed since it was written.
    """
    with reading(path, "can't be read as a work file", _advice(path)), open_file(path) as file:
        return _header(path, *read_footer(file))


def _header(path: StoragePath, footer: pq.FileMetaData, is_signed: bool) -> WorkHeader:
    header = from_json(WorkHeader, _header_values(path, footer, is_signed))
    # `footer.schema` and the footer would refer to each other: 33 KB for each file, until cycles are searched
    columns = pq.ParquetSchema(footer).to_arrow_schema()
    if footer.num_rows != header.rows or not columns.equals(work_schema(header.recipe)):
        raise ValueError("its rows or columns are not those of a work file with its header")
    check_fingerprint(header.recipe, header.lists, header.fingerprint)
    if unknown := header.text_bytes.keys() - header.recipe.languages:
        raise ValueError(f"text_bytes has the language {min(unknown)[:60]!a}, which its recipe does not keep")
    return header


def _header_values(path: StoragePath, footer: pq.FileMetaData, is_signed: bool) -> dict[str, Any]:
    """Returns the header of a work file of this version as JSON values."""
    metadata = footer.metadata or {}
    if HEADER_KEY not in metadata:
        raise _damaged(path, f"{path} is no work file: c4pipe clean did not write it")
    values = from_json(dict, parse_json(metadata[HEADER_KEY]))
    if values.get("version") != WORK_FILE_VERSION:
        raise UsageError(
            f"{path} has work file version {shown(values.get('version'))}, and this c4pipe reads version "
            f"{WORK_FILE_VERSION}: another release of c4pipe wrote it; clean its input again, with a new --work folder"
        )
    if not is_signed:
        raise _damaged(path, f"{path} can't be read as a work file: its footer has no digest")
    return values


def _damaged(path: StoragePath, message: str) -> DamagedFileError:
    return DamagedFileError(f"{message}; {_advice(path)}")


def _advice(path: StoragePath) -> str:
    clean = "run clean again" if isinstance(path, Path) else "delete it, and run clean again"
    return f"{clean} with this work folder, to make the file anew"


def row_groups(
    path: StoragePath,
    columns: Sequence[str] = tuple(WORK_SCHEMA.names),
    most_rows: int = GROUP_ROWS,
) -> Iterator[pa.Table]:
    """Yields the rows of a work file, in order: each row group, in tables of at most `most_rows`.

    `read_header` must have read the file before: here only the version of its header is compared.

    Raises as `read_header`, DamagedFileError also if a page is damaged.
    """
    with reading(path, "can't be read as a work file", _advice(path)):
        file, is_signed = open_parquet(path)
        if not (is_signed and (file.metadata.metadata or {}).get(HEADER_KEY, b"").startswith(_HEADER_START)):
            _header_values(path, file.metadata, is_signed)  # which names the error
    rows = 0
    for group in range(file.num_row_groups):
        # one thread: a job has a process for each core already
        batches = file.iter_batches(most_rows, [group], list(columns), use_threads=False)
        while True:
            with reading(path, "is damaged", _advice(path)):
                batch = next(batches, None)
            if batch is None:
                break
            rows += len(batch)
            yield pa.Table.from_batches([batch])
    if rows != file.metadata.num_rows:
        raise _damaged(path, f"{path} is damaged: it has {rows:,} rows instead of {file.metadata.num_rows:,}")


def check_pages(path: StoragePath) -> None:
    """Compares a whole work file with its checksums. Raises as `row_groups`."""
    for _ in row_groups(path):
        pass


def url_rows(path: StoragePath, file: int) -> Rows:
    """Returns a URL_ROW for every readable page of a work file, in order, given the number of the file."""
    captures = pa.concat_tables([*row_groups(path, ["url_key", "captured", "tie"])] or [WORK_SCHEMA.empty_table()])
    rows = np.empty(len(captures), dtype=URL_ROW)
    for name, column in (("hash", "url_key"), ("captured", "captured"), ("tie", "tie")):
        rows[name] = captures[column].to_numpy()
    rows["file"] = file
    rows["row"] = np.arange(len(rows))
    return rows


def read_kept(
    path: StoragePath, columns: Sequence[str], stale: Any, most_rows: int = GROUP_ROWS
) -> Iterator[tuple[pa.Table, int]]:
    """Yields the kept pages of a work file without stale captures, in order; nothing for rows without a kept page.

    Args:
        path: the work file.
        columns: the columns to read; `page_key` must be one of them.
        stale: the numbers of the rows that are stale captures (their URL has a newer capture), as an array of integers.
        most_rows: the most rows that are read at once. A few rows fit into memory that is in use; a whole row group
            takes new memory each time, which costs more time than reading.

    Yields:
        (a table, the number of kept pages that were left out because they are stale).
    """
    for table, kept, newest in _captures(path, columns, stale, most_rows):
        if kept.any():
            yield table.filter(arrow_array(newest)).combine_chunks(), int(kept.sum() - newest.sum())


def read_stale(path: StoragePath, columns: Sequence[str], stale: Any) -> Iterator[pa.Table]:
    """Yields the stale captures that `read_kept` leaves out, given its arguments."""
    for table, kept, newest in _captures(path, columns, stale, GROUP_ROWS):
        yield table.filter(arrow_array(kept & ~newest))


def _captures(
    path: StoragePath, columns: Sequence[str], stale: Any, most_rows: int
) -> Iterator[tuple[pa.Table, Any, Any]]:
    """Yields rows, the mask of their kept pages, and the mask of their kept pages that are not stale."""
    first = 0
    for table in row_groups(path, columns, most_rows):
        kept = table["page_key"].is_valid().to_numpy()
        newest = kept.copy()
        newest[stale[(stale >= first) & (stale < first + len(table))] - first] = False
        first += len(table)
        yield table, kept, newest
