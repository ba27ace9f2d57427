"""The shuffles of job 2: rows of fixed width, in NumPy. No Beam, no Python object for a row.

A *bucket* has all rows whose hash begins with the same bits. Work files are in *groups*; a bucket sends its results to
the groups of their files. The docstring of each shuffle says what a row is, and where it goes.

An *occurrence* of a span is the key of its page and the index of its first unit.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4pipe.clean.work_file import URL_ROW
from c4pipe.io.rows import Rows, by_number, groups_of, ranges, with_fields
from c4pipe.runners.control_totals import Totals

BUCKET_BYTES = 64 * 1024 * 1024
"""Bytes of rows in a bucket, on average: the number of buckets follows from it."""

FEWEST_BITS = 3  # eight buckets even for a small crawl, so that all workers have work

MOST_GROUPS = 4096
"""The most groups of files in a job: with one group for each file, a crawl would have half a billion blocks of rows."""

GROUPS = 16
"""The number of groups below which files do not share a group."""

FEW_ROWS = 4096
"""Rows of small files that make a group."""

_OCCURRENCE = [("page", "<u8"), ("unit", "<u4")]


def _with_prefix(prefix: str, fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(prefix + name, kind) for name, kind in fields]


SPAN_ROW = np.dtype([("hash", "<u8"), ("page", "<u8"), ("file", "<u4"), ("unit", "<u4")])
"""A span: its hash, the key and the file number of its page, and the index of its first unit."""

SPAN_COLUMNS = ["page_key", "span_hashes"]
"""The columns of a work file that `span_rows` needs."""

STALE_ROW = np.dtype([("file", "<u4"), ("row", "<u4")])
"""A capture that is not the newest of its URL: the number of its work file, and its row there."""

REPEATED = np.dtype([*_OCCURRENCE, ("count", "<u4"), *_with_prefix("other_", _OCCURRENCE), ("other_group", "<u4")])
"""A run of `count` repeated spans, and another occurrence of the same spans: its first unit, and its group of files.
Each occurrence names the first occurrence of its span. The first names the second, as far as the sender knows it.
"""

KNOWN_GROUP = 2**32 - 1
"""The `other_group` of spans that a known corpus has: all their occurrences go."""

MARK = np.dtype([*_OCCURRENCE, ("count", "<u4"), ("survives", "<u4")])
"""A run of `count` repeated spans of a page. `survives` is 1 if the page keeps them, else 0."""

_PLACE = [("group", "<u4"), *_OCCURRENCE]

PLACE = np.dtype(_PLACE)
"""An occurrence of a span, with its group of files."""

REQUEST = np.dtype([*_PLACE, *_with_prefix("from_", _PLACE)])
"""Two occurrences of a span: the survivor could move to the first occurrence from the second."""

OCCURRENCE = np.dtype(_OCCURRENCE)
"""An occurrence of a span."""

PAGE = np.dtype([("page", "<u8")])
"""The key of a page."""

REMOVED = np.dtype([("hash", "<u8"), ("domain", "<u8"), ("page", "<u8"), ("file", "<u4"), ("unit", "<u4")])
"""An occurrence of a repeated span: its hash, the hash of the page's host, and where it is."""


class Sent(NamedTuple):
    """Rows that a step sends through a shuffle: their totals, and (number of a bucket or group, block of rows)."""

    shuffle: "Shuffle"
    totals: Totals
    blocks: Iterable[tuple[int, bytes]]


class Shuffle(NamedTuple):
    """A channel of rows: some steps send them, other steps receive them.

    Attributes:
        name: its name in graphs, control totals and errors.
        carries: its rows and their receivers in words, for errors.
        dtype: the fields of its rows. Pages are sent as Arrow streams; their control totals are those of the page keys.
    """

    name: str
    carries: str
    dtype: np.dtype[Any] = PAGE

    def to_buckets(self, rows: Rows, bits: int) -> Sent:
        """Sends rows that are sorted by hash to the buckets of this number of bits."""
        return Sent(self, totals(rows), bucketed(rows, bits))

    def to_groups(self, rows: Rows, groups: npt.NDArray[Any]) -> Sent:
        """Sends each row to its group; the rows may have more fields than the shuffle."""
        rows = with_fields(rows, self.dtype)
        return Sent(self, totals(rows), ((group, some.tobytes()) for group, some in by_number(rows, groups)))

    def to_group(self, rows: Rows, group: int) -> Sent:
        """Sends all rows to one group."""
        return Sent(self, totals(rows), [(group, rows.tobytes())] if len(rows) else [])


URLS = Shuffle("urls", "captures of URLs, to their bucket", URL_ROW)
"""32 bytes: URL hash, time, text hash (for ties), file and row of a capture. To the bucket of the URL hash."""

STALE_CAPTURES = Shuffle("stale_captures", "captures that are not the newest, to their file", STALE_ROW)
"""8 bytes: file and row. To the group of the file."""

KNOWN_URLS = Shuffle("known_urls", "captures whose URL a known corpus has, to their file", STALE_ROW)
"""8 bytes: file and row. To the group of the file."""

SPANS = Shuffle("spans", "spans, to their bucket", SPAN_ROW)
"""24 bytes: span hash, page key, file, unit. To the bucket of the span hash."""

REPEATED_SPANS = Shuffle("repeated_spans", "repeated spans, to the group of their page", REPEATED)
"""32 bytes: page key, unit, count, and another occurrence with its group. To the group of the page."""

MARKS = Shuffle("marks", "repeated spans that stay or go, to the group of their page", MARK)
"""20 bytes: page key, unit, count, whether the page keeps the spans. To the group of the page, for two steps."""

PROPOSALS = Shuffle("proposals", "occurrences that stay as a whole, to the page that keeps the span", REQUEST)
"""32 bytes: the survivor with its group, and the duplicate left with its group. To the group of the survivor."""

OPTIONS = Shuffle(
    "options", "occurrences to which copies of spans could move, to the group of the page that keeps the span", REQUEST
)
"""32 bytes: a second occurrence and the survivor, each with its group. To the group of the survivor."""

CANDIDATE_PAGES = Shuffle("candidate_pages", "pages to which copies of spans could move, to their group", PAGE)
"""8 bytes: page key. To the group of the page."""

CONFLICTS = Shuffle("conflicts", "marks of pages on which copies of spans may come or go, to their group", MARK)
"""20 bytes, as `MARKS`, only of pages on which survivors may come or go. To the group of the page, for four steps."""

REQUESTS = Shuffle("requests", "copies of spans that should move, to their new page", REQUEST)
"""32 bytes: the new occurrence and the survivor, each with its group. To the group of the new occurrence."""

LEAVING = Shuffle("leaving", "copies of spans that should move, to the group of their page", OCCURRENCE)
"""12 bytes: page key and unit of a survivor that should move. To the group of its page."""

CHANGES = Shuffle("changes", "copies of spans that come or go, to the group of their page", OCCURRENCE)
"""12 bytes: page key and unit of an occurrence that survives from now on, or no longer. To the group of its page."""

REMOVED_SPANS = Shuffle("removed_spans", "spans that were removed from pages, to be counted", REMOVED)
"""32 bytes: span hash, host hash, page key, file, unit. To the bucket of the span hash."""

PAGES = Shuffle("pages", "pages, to their shard")
"""Compressed Arrow streams of finished pages, one for each group and shard. To the shard."""


def shuffles_of(module: Mapping[str, object]) -> dict[str, str]:
    """Returns the rows and receivers of each shuffle in the globals of a module, by the shuffle's name."""
    return {each.name: each.carries for each in module.values() if isinstance(each, Shuffle)}


SHUFFLES = shuffles_of(globals())
"""The shuffles of job 2 by name, in the order in which they are checked."""


def group_size(files: int, rows: int) -> int:
    """Returns how many files make a group, for a number of files and their rows.

    A crawl of many files has large groups, but no group has more rows than a bucket. Files of few pages share a group,
    since each step costs about a millisecond for a group; but all workers have groups.
    """
    few = min(files // GROUPS, FEW_ROWS * files // max(1, rows))
    return max(1, min(max(few, -(-files // MOST_GROUPS)), BUCKET_BYTES * files // max(1, rows * SPAN_ROW.itemsize)))


def bucket_bits(rows: int, row_bytes: int) -> int:
    """Returns the number of hash bits that divide a number of rows into buckets of at most BUCKET_BYTES on average."""
    buckets = -(-rows * row_bytes // BUCKET_BYTES)
    return max(FEWEST_BITS, (buckets - 1).bit_length() if buckets > 1 else 0)


def bucketed(rows: Rows, bits: int) -> Iterator[tuple[int, bytes]]:
    """Yields (bucket, packed rows) for each bucket that has rows. The rows must be sorted by hash."""
    buckets = rows["hash"] >> np.uint64(64 - bits)
    starts, ends = groups_of(buckets)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(buckets[start]), rows[start:end].tobytes()


def pack_table(table: pa.Table) -> bytes:
    """Returns a table as a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack_table(packed: bytes) -> pa.Table:
    """Returns the table that `pack_table` packed."""
    return pa.ipc.open_stream(packed).read_all().combine_chunks()


def unpack(blocks: Iterable[bytes], dtype: np.dtype[Any]) -> Rows:
    """Returns the rows of packed blocks as one array."""
    return np.frombuffer(b"".join(blocks), dtype=dtype)


def totals(rows: Rows) -> Totals:
    """Returns the control totals of rows of any kind: a lost, repeated or altered row changes them."""
    return Totals(len(rows), int(np.ascontiguousarray(rows).view("<u4").sum(dtype=np.uint64)))


def span_rows(pages: pa.Table, file: int) -> Rows:
    """Returns the SPAN_ROW rows of pages with SPAN_COLUMNS, given the number of their file."""
    spans = pages["span_hashes"].combine_chunks()
    lengths = np.diff(spans.offsets.to_numpy())
    rows = np.empty(int(lengths.sum()), dtype=SPAN_ROW)
    rows["hash"] = spans.flatten().to_numpy()
    rows["page"] = np.repeat(pages["page_key"].to_numpy(), lengths)
    rows["file"] = file
    rows["unit"] = ranges(np.zeros(len(lengths)), lengths)
    return rows
