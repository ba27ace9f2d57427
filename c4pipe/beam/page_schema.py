"""The elements between the transforms: pages, as rows with a schema. Importing this module registers their coders."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa

from c4pipe.dedup.shuffle import pack_table
from c4pipe.errors import UsageError
from c4pipe.io.rows import by_number
from c4pipe.text.hashes import capture_hash


class Page(NamedTuple):
    """A page. A row with a schema: Beam's `Select`, `GroupBy` and SQL know its fields.

    Attributes:
        url: the URL, as it was crawled. `KeepNewest` and `RemoveRepeatedSpans` tell pages apart by it.
        timestamp: the WARC date, such as `2019-04-18T10:12:43Z`.
        text: the text: as it was crawled, or as the last transform left it.
        language: the code of the detected language, such as `en`; None if no rule has detected it yet.
        language_probability: the probability of that language, from 0 to 1; None if `language` is None.
        source: the name of the page's WET file; "" for a page from elsewhere.
        capture: a signed 64-bit hash of the page as it was crawled, which decides between captures of one moment
            (`capture_of`); None until `CleanPages` has computed it.
    """

    url: str
    timestamp: str
    text: str
    language: str | None = None
    language_probability: float | None = None
    source: str = ""
    capture: int | None = None


class DroppedPage(NamedTuple):
    """A page that a recipe drops.

    Attributes:
        page: the page, as it came in.
        reason: the name of the rule that drops it, such as `few_sentences`.
        stage: the stage of that rule in the recipe (`c4pipe.recipes.STAGES`). A page of the stage `readable` does not
            count as a capture of its URL.
    """

    page: Page
    reason: str
    stage: str


class CleanedPages(NamedTuple):
    """What `CleanPages` returns. `KeepNewest` takes both; to any other transform give `kept`.

    Attributes:
        kept: PCollection of Page: the pages that passed, with their cleaned text and their language.
        dropped: PCollection of DroppedPage.
    """

    kept: beam.PCollection
    dropped: beam.PCollection


for _element in (Page, DroppedPage):
    beam.coders.registry.register_coder(_element, beam.coders.RowCoder)

_TYPES = {"language_probability": pa.float64(), "capture": pa.int64()}  # the other fields are strings
_SCHEMA = pa.schema([(name, _TYPES.get(name, pa.string())) for name in Page._fields])
_MOST_BITS = 16


def capture_of(page: Page) -> int:
    """Returns the `capture` of a page; if it has none, computes it from the page in its present form."""
    if page.capture is not None:
        return page.capture
    unsigned = capture_hash(page.url, page.timestamp, page.text.encode("utf-8", "replace"))
    return unsigned - (1 << 64) * (unsigned >> 63)


def table_of(pages: Sequence[Page]) -> pa.Table:
    """Returns pages as a table with their fields as columns."""
    columns = zip(*pages, strict=True) if pages else [()] * len(_SCHEMA)
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)], _SCHEMA)


def pages_of(table: pa.Table) -> Iterable[Page]:
    """Returns the rows of a table that has the columns of `table_of`, as pages."""
    return map(Page._make, zip(*(table[name].to_pylist() for name in _SCHEMA.names), strict=True))


def bits_of_buckets(buckets: int) -> int:
    """Returns the number of hash bits of a number of buckets. Raises UsageError unless it is a power of two."""
    bits = buckets.bit_length() - 1
    if buckets < 2 or buckets != 1 << bits or bits > _MOST_BITS:
        raise UsageError(f"buckets={buckets}: give a power of two from 2 to {1 << _MOST_BITS:,}")
    return bits


def to_buckets(table: pa.Table, hashes: Any, bits: int) -> Iterator[tuple[int, bytes]]:
    """Yields (bucket, its packed rows) for each bucket that has rows, given the hash of each row."""
    buckets = hashes >> np.uint64(64 - bits)
    for bucket, rows in by_number(np.arange(len(table)), buckets):
        yield bucket, pack_table(table.take(pa.array(rows)))
