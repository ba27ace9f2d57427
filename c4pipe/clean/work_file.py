"""Work files: the result of `clean`, and the input of `dedup`. Each is a Parquet file with the pages of one WET file.

A work file has a row for each readable page, in the order of the WET file. A kept page has all columns. The row of any
other page is a tombstone: it has only the key of the URL, the time of capture and a hash for ties. So the newest
capture of a URL is the newest one in the crawl, also where a rule dropped it.
"""

import functools
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from c4pipe.display import error_reason
from c4pipe.errors import UsageError
from c4pipe.filters import U64, URL_ROW, Rows
from c4pipe.io import AtomicFile, StoragePath, parquet_source
from c4pipe.native import text_kernel
from c4pipe.recipes import Recipe

VERSION = 4
"""The version of this format. Reading a work file of another version is an error."""

_METADATA = b"c4pipe"
_GROUP_BYTES = 32 * 1024 * 1024  # text of a row group, which limits the memory of writer and reader
_GROUP_ROWS = 64 * 1024

SCHEMA = pa.schema(
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

PAGE_COLUMNS = [name for name in SCHEMA.names if name not in ("url_key", "captured", "tie", "span_hashes")]
"""The columns that deduplication needs to write a page to the corpus."""


@dataclass(frozen=True)
class KeptPage:
    """A page that passed `clean`.

    Attributes:
        page_key: a hash that decides the page's place in the corpus; the page with the smallest key keeps a repeated
            span.
        url: the URL, as it was crawled.
        text: the text after cleaning.
        timestamp: the WARC date, as it was crawled.
        language: the detected language, or None where there is none.
        language_probability: the probability of that language, or None.
        validation: whether the page belongs to the validation split.
        dropped: the rule of the `final` stage that drops the page, if the page loses no repeated span.
        unit_starts: the offset at which each unit (sentence or line) starts, in characters of the text.
        span_hashes: the hash of each span, in the order of the first units.
    """

    page_key: int
    url: str
    text: str
    timestamp: str
    language: str | None
    language_probability: float | None
    validation: bool
    dropped: str | None
    unit_starts: Sequence[int]
    span_hashes: U64


@dataclass(frozen=True)
class WorkHeader:
    """The metadata of a work file.

    Attributes:
        source: the name of the WET file, without folders.
        source_bytes: the size of the WET file, as it is stored.
        recipe: the recipe that cleaned it.
        fingerprint: the fingerprint of the recipe and its lists.
        lists: the digests of these lists, by name.
        rows: the number of readable pages.
        spans: the number of spans of the kept pages.
        text_bytes: the UTF-8 bytes of text that go into the corpus if nothing repeats, by language.
        counts: the counters of pages, lines and the like, by name.
    """

    source: str
    source_bytes: int
    recipe: Recipe
    fingerprint: str
    lists: Mapping[str, str]
    rows: int
    spans: int
    text_bytes: Mapping[str, int]
    counts: Mapping[str, int]


class WorkWriter:
    """Writes a work file. The file appears when it is complete."""

    def __init__(self, path: StoragePath) -> None:
        self._file = AtomicFile(path)
        self._writer = pq.ParquetWriter(
            self._file.path, SCHEMA, compression="zstd", use_dictionary=["language", "dropped"]
        )
        self._keys, self._captured, self._ties = array("Q"), array("q"), array("Q")
        self._pages: list[KeptPage | None] = []
        self._held_bytes = 0
        self.rows = 0
        self.spans = 0
        self.text_bytes: dict[str, int] = {}

    def add(self, url_key: int, captured: int, tie: int, page: KeptPage | None) -> None:
        """Adds a readable page.

        Args:
            url_key: the key of its URL.
            captured: the microsecond of its capture.
            tie: decides between captures of one microsecond (`filters.capture_hash`).
            page: None makes a tombstone.
        """
        self._keys.append(url_key)
        self._captured.append(captured)
        self._ties.append(tie)
        self._pages.append(page)
        self.rows += 1
        if page is not None:
            size = utf8_size(page.text)
            self._held_bytes += size
            self.spans += len(page.span_hashes)
            if page.language is not None and page.dropped is None:
                self.text_bytes[page.language] = self.text_bytes.get(page.language, 0) + size
        if self._held_bytes >= _GROUP_BYTES or len(self._pages) >= _GROUP_ROWS:
            self._flush()

    def finish(
        self, source: str, source_bytes: int, recipe: Recipe, lists: Mapping[str, str], counts: Mapping[str, int]
    ) -> None:
        """Writes the header and moves the file to its place. From then on its WET file is not cleaned again."""
        self._flush()
        header = {
            "version": VERSION,
            "source": source,
            "source_bytes": source_bytes,
            "recipe": recipe.to_json(),
            "fingerprint": recipe.fingerprint(lists),
            "lists": dict(lists),
            "rows": self.rows,
            "spans": self.spans,
            "text_bytes": dict(sorted(self.text_bytes.items())),
            "counts": dict(sorted(counts.items())),
        }
        self._writer.add_key_value_metadata({_METADATA: json.dumps(header).encode()})
        self._writer.close()
        self._file.publish()

    def discard(self) -> None:
        """Removes the incomplete file."""
        try:
            self._writer.close()
        finally:
            self._file.discard()

    def _flush(self) -> None:
        if not self._pages:
            return
        pages = self._pages
        columns = {
            "url_key": pa.array(np.frombuffer(self._keys, dtype=np.uint64)),
            "captured": pa.array(np.frombuffer(self._captured, dtype=np.int64)),
            "tie": pa.array(np.frombuffer(self._ties, dtype=np.uint64)),
            "unit_starts": _lists([page.unit_starts if page else () for page in pages], np.uint32),
            "span_hashes": _lists([page.span_hashes if page else () for page in pages], np.uint64),
        }
        for field in SCHEMA:
            if field.name not in columns:
                values = [getattr(page, field.name) if page else None for page in pages]
                columns[field.name] = pa.array(values, field.type)
        self._writer.write_table(pa.table([columns[field.name] for field in SCHEMA], SCHEMA))
        self._keys, self._captured, self._ties = array("Q"), array("q"), array("Q")
        self._pages, self._held_bytes = [], 0


def utf8_size(text: str) -> int:
    """Returns how many bytes a text has in UTF-8."""
    if text_kernel:
        return int(text_kernel.utf8_size(text))
    return len(text) if text.isascii() else len(text.encode())


def _lists(values: Sequence[Any], dtype: Any) -> pa.ListArray:
    offsets = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    flat = np.concatenate([np.asarray(value, dtype=dtype) for value in values] or [np.empty(0, dtype)])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))


def read_header(path: StoragePath) -> WorkHeader:
    """Returns the metadata of a work file.

    Raises UsageError where the file is no work file, or one of another version.
    """
    try:
        metadata = pq.read_metadata(parquet_source(path)).metadata or {}
    except (pa.ArrowInvalid, OSError) as error:
        raise UsageError(
            f"{path} can't be read as a work file: {error_reason(error)}: delete it, and clean its WET file again"
        ) from error
    if _METADATA not in metadata:
        raise UsageError(f"{path} is no work file: give the --work folder of c4pipe clean, with nothing else in it")
    values = json.loads(metadata[_METADATA])
    version = values.pop("version")
    if version != VERSION:
        raise UsageError(
            f"{path} has work file version {version}, and this c4pipe reads version {VERSION}: "
            "another release of c4pipe wrote it; clean its WET file again, with a new --work folder"
        )
    return WorkHeader(**{**values, "recipe": _recipe(json.dumps(values["recipe"]))})


@functools.lru_cache(maxsize=8)
def _recipe(text: str) -> Recipe:
    """Returns the recipe of a JSON text. Equal texts give the same object, because a crawl has 72,000 headers."""
    return Recipe.from_json(json.loads(text))


def url_rows(path: StoragePath, file: int) -> Rows:
    """Returns a URL_ROW for every readable page of a work file, in order, given the number of the file."""
    table = pq.ParquetFile(parquet_source(path)).read(
        ["url_key", "captured", "tie"]
    )  # read_table imports pyarrow.dataset
    rows = np.empty(len(table), dtype=URL_ROW)
    rows["hash"] = table["url_key"].to_numpy()
    rows["captured"] = table["captured"].to_numpy()
    rows["tie"] = table["tie"].to_numpy()
    rows["file"] = file
    rows["row"] = np.arange(len(table))
    return rows


def read_kept(path: StoragePath, columns: Sequence[str], stale: Any) -> Iterator[tuple[pa.Table, int]]:
    """Yields the kept pages of a work file without stale captures, one row group at a time.

    Args:
        path: the work file.
        columns: the columns to read; `page_key` must be one of them.
        stale: the numbers of the rows that are stale captures, an array of integers: their URL has a newer capture.

    Yields:
        (a table, the number of kept pages that were left out because they are stale).
    """
    for table, kept, newest in _captures(path, columns, stale):
        yield table.filter(pa.array(newest)).combine_chunks(), int(kept.sum() - newest.sum())


def read_stale(path: StoragePath, columns: Sequence[str], stale: Any) -> Iterator[pa.Table]:
    """Yields the stale captures that `read_kept` leaves out. Its arguments are the same."""
    for table, kept, newest in _captures(path, columns, stale):
        yield table.filter(pa.array(kept & ~newest))


def _captures(path: StoragePath, columns: Sequence[str], stale: Any) -> Iterator[tuple[pa.Table, Any, Any]]:
    """Yields each row group, a mask of its kept pages, and a mask of those that are not stale."""
    file = pq.ParquetFile(parquet_source(path), pre_buffer=not isinstance(path, Path))  # fewer requests to a store
    first = 0
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=list(columns))
        kept = pc.is_valid(table["page_key"]).to_numpy()
        newest = kept.copy()
        newest[stale[(stale >= first) & (stale < first + len(table))] - first] = False
        first += len(table)
        yield table, kept, newest
