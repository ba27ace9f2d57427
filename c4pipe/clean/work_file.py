"""Work files: the result of `clean`, and the input of `dedup`. Each is a Parquet file with the pages of one WET file.

A work file has a row for each readable page, in the order of the WET file. A kept page has all columns. The row of any
other page is a tombstone: it has only the key of the URL, the time of capture and a hash for ties. So the newest
capture of a URL is the newest one in the crawl, also where a rule dropped it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.clean.kept_pages import KeptPage, RowGroup
from c4pipe.io.atomic import AtomicFile
from c4pipe.io.parquet_footer import sign_footer
from c4pipe.io.paths import StoragePath
from c4pipe.recipes.recipe import Recipe

VERSION = 4
"""The version of this format. Reading a work file of another version is an error."""

HEADER_KEY = b"c4pipe"
"""The key of the header in the metadata of the Parquet file."""
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

NEAR_COLUMNS = [
    pa.field("band_hashes", pa.list_(pa.uint64())),
    pa.field("minima", pa.binary()),
    pa.field("characters", pa.uint32()),
]
"""Further columns where the recipe has the rule `near_duplicate`. Those of a page without n-grams are empty."""

PAGE_COLUMNS = [name for name in SCHEMA.names if name not in ("url_key", "captured", "tie", "span_hashes")]
"""The columns that deduplication needs to write a page to the corpus."""


def work_schema(recipe: Recipe) -> pa.Schema:
    """Returns the columns of a work file of a recipe."""
    return pa.schema([*SCHEMA, *NEAR_COLUMNS]) if recipe.find("near_duplicate") else SCHEMA


@dataclass(frozen=True)
class WorkHeader:
    """The metadata of a work file.

    Attributes:
        source: the name of the WET file, without folders.
        source_bytes: the size of the WET file, as it is stored.
        ends_sha256: the digest of its ends (`io.EndsDigest`).
        recipe: the recipe that cleaned it.
        fingerprint: the fingerprint of the recipe and its lists.
        lists: the digests of these lists, by name.
        rows: the number of readable pages.
        spans: the number of spans of the kept pages.
        text_bytes: the UTF-8 bytes of text that go into the corpus if nothing repeats, by language.
        counts: the counters of pages, lines and the like, by name.
        crawl: the crawl that the WET file names (`wet.crawl_name`); "" where it names none.
    """

    source: str
    source_bytes: int
    ends_sha256: str
    recipe: Recipe
    fingerprint: str
    lists: Mapping[str, str]
    rows: int
    spans: int
    text_bytes: Mapping[str, int]
    counts: Mapping[str, int]
    crawl: str


class WorkWriter:
    """Writes a work file. The file appears when it is complete."""

    def __init__(self, path: StoragePath, columns: pa.Schema = SCHEMA) -> None:
        """Takes the path of the file, and what `work_schema` returned for its recipe."""
        self._file = AtomicFile(path)
        self._schema = columns
        self._writer = pq.ParquetWriter(
            self._file.path,
            columns,
            compression="zstd",
            use_dictionary=["language", "dropped"],
            write_page_checksum=True,
        )
        self._group = RowGroup()
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
        group = self._group
        size = group.add(url_key, captured, tie, page)
        self.rows += 1
        if page is not None:
            self.spans += len(page.span_hashes)
            if page.language is not None and page.dropped is None:
                self.text_bytes[page.language] = self.text_bytes.get(page.language, 0) + size
        if len(group.text) >= _GROUP_BYTES or len(group.ties) >= _GROUP_ROWS:
            self._flush()

    def finish(
        self,
        source: str,
        source_bytes: int,
        recipe: Recipe,
        lists: Mapping[str, str],
        counts: Mapping[str, int],
        ends_sha256: str = "",
        crawl: str = "",
    ) -> None:
        """Writes the header and moves the file to its place. From then on its WET file is not cleaned again.

        The arguments are the values of the header with these names.
        """
        self._flush()
        header = {
            "version": VERSION,
            "source": source,
            "source_bytes": source_bytes,
            "ends_sha256": ends_sha256,
            "recipe": recipe.to_json(),
            "fingerprint": recipe.fingerprint(lists),
            "lists": dict(lists),
            "rows": self.rows,
            "spans": self.spans,
            "text_bytes": dict(sorted(self.text_bytes.items())),
            "counts": dict(sorted(counts.items())),
            "crawl": crawl,
        }
        self._writer.add_key_value_metadata({HEADER_KEY: json.dumps(header).encode()})
        self._writer.close()
        sign_footer(self._file.path)
        self._file.publish()

    def discard(self) -> None:
        """Removes the incomplete file."""
        try:
            self._writer.close()
        finally:
            self._file.discard()

    def _flush(self) -> None:
        if self._group.ties:
            self._writer.write_table(self._group.table(self._schema))
            self._group = RowGroup()


def utf8_size(text: str) -> int:
    """Returns how many bytes a text has in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
