"""The repeated spans that the pages of a group lose and keep. No object for a span that is not removed."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.work_file import row_groups
from c4pipe.dedup.order import order_of_occurrences
from c4pipe.dedup.shuffle import REMOVED
from c4pipe.dedup.survivors import Occurrences
from c4pipe.io.atomic import write_bytes
from c4pipe.io.parquet_footer import open_parquet, parquet_writer, reading
from c4pipe.io.paths import StoragePath, read_file
from c4pipe.io.rows import Rows, arrow_array, groups_of, is_new, ranges, unique
from c4pipe.io.words import short
from c4pipe.report.data import DEDUP_DATA, MOST_SHOWN, read_dedup_data
from c4pipe.report.profile import domains
from c4pipe.text.hashes import U64, span_hashes, unit_hashes
from c4pipe.text.spans import cut, units_of

MOVED_SPANS = "moved_spans.parquet"
"""The file's name in a corpus. Only corpora with `keep = "one"` and spans of several units have it."""

MOVED = np.dtype([("hash", "<u8"), ("page", "<u8"), ("unit", "<u4")])
"""The hash of a span, the key of the page that keeps it, and the index of its first unit in that page."""


def write_moved(folder: StoragePath, blocks: Iterable[bytes]) -> str:
    """Writes the file of a corpus from packed MOVED rows, in the order of the hashes, each row once.

    Returns the SHA-256 of the file in hex. Raises OSError.
    """
    rows = unique(np.frombuffer(b"".join(blocks), MOVED))
    sink = pa.BufferOutputStream()
    table = pa.table({name: arrow_array(rows[name]) for name in MOVED.names or ()})
    with parquet_writer(sink, table.schema, compression="snappy") as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    write_bytes(folder / MOVED_SPANS, data)
    return sha256(data).hexdigest()


def read_moved(folder: StoragePath, hashes: U64) -> Rows:
    """Returns the MOVED rows of spans with these hashes. Raises as `reading`, also if the file was changed."""
    path = folder / MOVED_SPANS
    found = read_dedup_data(folder)
    digest = found.get("moved_spans") if found else None
    with reading(path, "can't be read", "copy the corpus again"), open_parquet(path)[0] as file:
        if digest not in (None, sha256(read_file(path, sys.maxsize)).hexdigest()):
            raise ValueError(f"it was changed after c4pipe wrote it, as its digest in {DEDUP_DATA} shows")
        table = file.read()
        rows = np.empty(len(table), MOVED)
        for name in MOVED.names or ():
            rows[name] = table[name].to_numpy()
    return rows[np.isin(rows["hash"], hashes)]


JOINED = 2**32 - 1
"""The `unit` of a REMOVED row for a joined span, which appeared when removal joined its units: no index."""


def _units_by_page(occurrences: Rows) -> dict[int, list[int]]:
    """Returns, by page key, the index of the first unit of each occurrence, given occurrences in the order of pages."""
    starts, ends = groups_of(occurrences["page"])
    places = zip(occurrences["page"][starts].tolist(), starts.tolist(), ends.tolist(), strict=True)
    units = occurrences["unit"].tolist()
    return {page: units[start:end] for page, start, end in places}


class Removals:
    """The repeated spans of the pages of a group.

    Attributes:
        spans: by page key, the first unit of each span that the page loses.
        kept: by page key, the first unit of each span that the page keeps; only of pages that lose some.
        counts: the counters of the group's spans.
    """

    def __init__(self, marks: Rows, changes: Rows, size: int) -> None:
        """Takes the MARK rows of the group, OCCURRENCE rows of all changes, and the number of units in a span."""
        occurrences = Occurrences(marks, size)
        occurrences.change(changes)
        duplicates = occurrences.duplicates_left()
        repeats = occurrences.rows[~occurrences.survives]
        self.spans: Mapping[int, Sequence[int]] = _units_by_page(occurrences.rows[~occurrences.survives & ~duplicates])
        edited = np.isin(occurrences.rows["page"], np.fromiter(self.spans, np.uint64, len(self.spans)))
        self.kept: Mapping[int, Sequence[int]] = _units_by_page(occurrences.rows[occurrences.survives & edited])
        self.counts = Counter(
            {"spans.repeated": int(occurrences.survives.sum()), "spans.doubled": int(duplicates.sum())}
            if occurrences.survives.any()
            else {}
        )
        self._size = size
        self._joined: list[U64] = []
        self._survivors = occurrences.rows["page"][occurrences.survives]
        self._repeats = LocatedOccurrences(repeats)
        self._moved = LocatedOccurrences(occurrences.rows[occurrences.survives & (occurrences.rows["survives"] == 0)])

    def add(self, pages: pa.Table, file: int) -> None:
        """Notes file, host and span hashes of pages with `page_key`, `url` and `span_hashes`."""
        self._repeats.add(pages, file)
        self._moved.add(pages, file)

    def add_kept(self, pages: pa.Table, page_keys: Any, whitespace: str) -> None:
        """Counts the spans whose copy is on pages of the corpus, and notes spans that removal has joined.

        Args:
            pages: the pages before removal, with `page_key`, `text` and `unit_starts`.
            page_keys: the keys of the pages in the corpus.
            whitespace: the white space by which units are compared (see `unit_hashes`).
        """
        if self._size > 1:
            edited = np.isin(pages["page_key"].to_numpy(), [key for key in page_keys.tolist() if key in self.spans])
            edited_pages = pages.select(["page_key", "text", "unit_starts"]).filter(arrow_array(edited)).to_pylist()
            units = [unit for page in edited_pages for unit in self._joined_units(page)]
            self._joined.append(span_hashes(unit_hashes(units, whitespace), self._size)[:: self._size])
        if len(self._survivors):
            ends = (np.searchsorted(self._survivors, page_keys, side) for side in ("left", "right"))
            first, last = (each.sum() for each in ends)
            self.counts["spans.kept"] += int(last - first)

    def _joined_units(self, page: Mapping[str, Any]) -> list[str]:
        """Returns the units of the joined spans of an edited page."""
        key, starts, last = page["page_key"], page["unit_starts"], self._size - 1
        removed = units_of(self.spans[key], self._size) - units_of(self.kept.get(key, ()), self._size)
        left = [unit for unit in range(len(starts)) if unit not in removed]
        first_and_last = zip(range(len(left)), left, left[last:], strict=False)
        joined = [at for at, first, end in first_and_last if end - first > last]
        starts = [*starts, len(page["text"])]
        units = (unit for at in joined for unit in left[at : at + self._size])
        return [page["text"][starts[unit] : starts[unit + 1]] for unit in units]

    def repeats(self) -> Rows:
        """Returns, in the order of the hashes, a REMOVED row for each removed occurrence and each joined span."""
        hashes = np.concatenate([np.empty(0, np.uint64), *self._joined])
        joined = np.zeros(len(hashes), REMOVED)
        joined["hash"], joined["unit"] = hashes, JOINED
        rows = np.concatenate([self._repeats.rows(), joined])
        return rows[np.argsort(rows["hash"], kind="stable")]

    def moved(self) -> list[bytes]:
        """Returns packed MOVED rows: the survivors that are not the first occurrence of their span."""
        rows = self._moved.rows()
        return [rows[list(MOVED.names or ())].astype(MOVED).tobytes()] if len(rows) else []


class LocatedOccurrences:
    """Occurrences of spans, whose hash, file and host come from the pages."""

    def __init__(self, occurrences: Rows) -> None:
        """Takes rows with `page` and `unit`, in the order of the occurrences."""
        self._rows = np.zeros(len(occurrences), REMOVED)
        self._seen = np.zeros(len(occurrences), bool)
        for name in ("page", "unit"):
            self._rows[name] = occurrences[name]
        self._pages = np.ascontiguousarray(occurrences["page"])  # NumPy would copy a field for each search

    def add(self, pages: pa.Table, file: int) -> None:
        """Notes file, host and hashes of the spans on these pages."""
        keys = pages["page_key"].to_numpy()
        starts, ends = (np.searchsorted(self._pages, keys, side) for side in ("left", "right"))
        here = np.flatnonzero(ends > starts)
        if not len(here):
            return
        pages = pages.select(["url", "span_hashes"]).take(arrow_array(here))
        hosts = domains(pages["url"].combine_chunks()).to_pylist()
        hashes = pages["span_hashes"].combine_chunks()
        offsets, values = hashes.offsets.to_numpy(), hashes.values.to_numpy()
        starts, lengths = starts[here], (ends - starts)[here]
        occurrences = ranges(starts, lengths)
        domain = np.array([mmh3.hash64(host or "", signed=False)[0] for host in hosts], np.uint64)
        units = np.repeat(offsets[:-1], lengths) + self._rows["unit"][occurrences].astype(np.intp)
        self._seen[occurrences] = True
        self._rows["file"][occurrences], self._rows["domain"][occurrences] = file, np.repeat(domain, lengths)
        self._rows["hash"][occurrences] = values[np.minimum(units, len(values) - 1)]

    def rows(self) -> Rows:
        """Returns the REMOVED rows of the added pages, in the order of the hashes."""
        rows = self._rows[self._seen]
        return rows[np.argsort(rows["hash"], kind="stable")]


_ROWS_AT_ONCE = 512  # of a work file that are read at once
_SIZE = 301  # shown characters of a span, including the mark where it is cut

Repeat = dict[str, Any]
"""A repeated span: `times` (occurrences), `domains` (of the pages that lost it), its `hash`, and one occurrence."""


def most_repeated(rows: Rows) -> list[Repeat]:
    """Returns the spans that are removed most often, given all REMOVED rows of their hashes; ties by hash."""
    rows = rows[order_of_occurrences(rows, [rows["hash"], rows["domain"]])]
    starts, ends = groups_of(rows["hash"])
    hosts = np.diff(np.r_[0, np.cumsum(is_new(rows["hash"], rows["domain"]))][np.r_[starts, len(rows)]])
    return [
        {
            "times": int(ends[each] - starts[each]) + 1,  # one copy stays
            "domains": int(hosts[each]),
            **_occurrence(rows[starts[each] : ends[each]]),
        }
        for each in np.lexsort((rows["hash"][starts], starts - ends))[:MOST_SHOWN].tolist()
    ]


def _occurrence(rows: Rows) -> dict[str, int]:
    """Returns an occurrence of a span in its first work file: so few files have the texts of all spans."""
    first = rows[np.argmin(rows["file"])]
    return {name: int(first[name]) for name in ("hash", "page", "file", "unit")}


def joined_copies(rows: Rows) -> int:
    """Returns how many joined spans are second copies in the corpus, given all REMOVED rows of their hashes.

    A joined span is a second copy if the same span is repeated (so a copy stays), or is joined in another place, too.
    """
    joined = rows["unit"] == JOINED
    hashes, times = np.unique(rows["hash"][joined], return_counts=True)
    once = ~np.isin(hashes, unique(rows["hash"][~joined]), assume_unique=True)
    return int(times.sum() - once.sum())


def with_texts(repeats: Iterable[Repeat], files: Sequence[StoragePath], size: int) -> list[Repeat]:
    """Returns the most repeated of all spans with their text, for the report.

    Args:
        repeats: the results of `most_repeated` for all buckets, in any order.
        files: the work files, by number.
        size: units in a span.
    """
    most = sorted(repeats, key=lambda each: (-each["times"], each["hash"]))[:MOST_SHOWN]
    texts: dict[int, str] = {}
    for number in sorted({each["file"] for each in most}):
        texts |= _texts(files[number], [each for each in most if each["file"] == number], size)
    return [
        {
            "times": each["times"],
            "domains": each["domains"],
            "hash": f"{each['hash']:016x}",
            "text": texts[each["hash"]],
        }
        for each in most
    ]


def _texts(file: StoragePath, spans: Sequence[Mapping[str, Any]], size: int) -> dict[int, str]:
    """Returns the texts of spans of a work file, by their hashes. Raises OSError if the page of a span is missing."""
    texts: dict[int, str] = {}
    wanted = np.array([span["page"] for span in spans], np.uint64)
    for pages in row_groups(file, ["page_key", "text", "unit_starts"], _ROWS_AT_ONCE):
        for row in np.flatnonzero(pc.is_in(pages["page_key"], arrow_array(wanted)).to_numpy()).tolist():
            (page,) = pages.slice(row, 1).to_pylist()
            for span in spans:
                if span["page"] == page["page_key"] and span["hash"] not in texts:
                    units = cut(page["text"], page["unit_starts"])[span["unit"] : span["unit"] + size]
                    texts[span["hash"]] = short("".join(units).strip(), _SIZE)
        if len(texts) == len(spans):
            return texts
    raise OSError(f"{file} does not have the page of a span that came from it")
