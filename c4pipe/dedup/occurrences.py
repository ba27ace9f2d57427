"""Where repeated spans are: rows of fixed width that job 2 sends to the pages' groups of files. No object for a span.

A *place* of a span is the key of its page and the index of its first unit. Places are ordered by page key, then unit.
Spans of a page that follow each other, and that have the same fate, are one row: a *run*.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.clean.work_file import read_kept, url_rows
from c4pipe.dedup import shuffle
from c4pipe.dedup.near_pages import PAIR
from c4pipe.dedup.shuffle import STALE_ROW
from c4pipe.dedup.step import REPORT, DedupStep, Files, files_of, rows_of, step_report
from c4pipe.filters.duplicates import SPAN_ROW, URL_ROW, Rows, find_repeats, find_stale_captures
from c4pipe.io.paths import storage_path
from c4pipe.runners import control_totals

_PLACE = [("page", "<u8"), ("unit", "<u4")]

TWINS = np.dtype([*_PLACE, ("count", "<u4"), ("twin_page", "<u8"), ("twin_unit", "<u4"), ("twin_group", "<u4")])
"""A run of `count` repeated spans, and where a run of the same spans is: its first place, and its group of files.

The twin of a span's first place is the second one, as far as the sender knows it. The twin of any other place is the
first one.
"""

MARKS = np.dtype([*_PLACE, ("count", "<u4"), ("keeper", "<u4")])
"""A run of `count` repeated spans of a page. `keeper` is 1 where the page keeps them, 0 where other pages do."""

ASK = np.dtype([("group", "<u4"), *_PLACE, ("from_group", "<u4"), ("from_page", "<u8"), ("from_unit", "<u4")])
"""A request to a place of a span, in a group of files, from another place of the same span."""

PLACE = np.dtype(_PLACE)
"""A place of a span."""

PAGE = np.dtype(_PLACE[:1])
"""The key of a page."""


def expand(runs: Rows) -> Rows:
    """Returns a row for each span of some runs, with `count` 1."""
    counts = runs["count"].astype(np.intp)
    rows = np.repeat(runs, counts)
    index = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    for name in ("unit", "twin_unit"):
        if name in (rows.dtype.names or ()):
            rows[name] += index.astype(np.uint32)
    rows["count"] = 1
    return rows


def places_in_order(rows: Rows) -> npt.NDArray[np.intp]:
    """Returns the indices that sort rows by their place."""
    return np.lexsort((rows["unit"], rows["page"]))


def place_numbers(rows: Rows) -> npt.NDArray[np.intp]:
    """Returns a number for each row: equal places have equal numbers, which are in the order of the places."""
    order = places_in_order(rows)
    pages, units = rows["page"][order], rows["unit"][order]
    new = np.r_[False, (pages[1:] != pages[:-1]) | (units[1:] != units[:-1])][: len(rows)]
    numbers = np.empty(len(rows), np.intp)
    numbers[order] = np.cumsum(new)
    return numbers


def runs_of(rows: Rows) -> Rows:
    """Returns rows of single spans as runs, in the order of the places.

    Spans make a run where their units follow each other, and also those of their twins, and all other fields are equal.
    """
    rows = rows[np.lexsort((rows["unit"], rows["page"]))]
    if not len(rows):
        return rows
    follows = np.ones(len(rows) - 1, bool)
    for name in rows.dtype.names or ():
        before, after = rows[name][:-1], rows[name][1:]
        follows &= after == before + np.uint32(1) if name in ("unit", "twin_unit") else after == before
    starts = np.flatnonzero(np.r_[True, ~follows])
    runs = rows[starts]
    runs["count"] = np.diff(np.r_[starts, len(rows)])
    return runs


def twins_in_group(first: Rows, repeats: Rows, group: int) -> Rows:
    """Returns the TWINS of the repeats of a group of files, of which it keeps `first` (see `find_repeats`)."""
    return runs_of(_twins(repeats, first[np.searchsorted(first["hash"], repeats["hash"])], group))


def twins_in_bucket(first: Rows, repeats: Rows, files: int) -> Rows:
    """Returns the TWINS of the repeated spans of a bucket, with a field `file`, in the order of the hashes.

    Args:
        first: the first span of each hash (SPAN_ROW).
        repeats: all others, sorted by hash, page key and unit.
        files: how many files make a group.
    """
    keepers = first[np.searchsorted(first["hash"], repeats["hash"])]
    starts = np.flatnonzero(np.r_[True, repeats["hash"][1:] != repeats["hash"][:-1]][: len(repeats)])
    rows = np.concatenate([keepers[starts], repeats])
    others = np.concatenate([repeats[starts], keepers])
    routed = np.empty(len(rows), [*TWINS.descr, ("file", "<u4")])
    twins = _twins(rows, others, others["file"] // np.uint32(files))
    for name in TWINS.names or ():
        routed[name] = twins[name]
    routed["file"] = rows["file"]
    return routed


def _twins(rows: Rows, others: Rows, group: Any) -> Rows:
    """Returns the TWINS of SPAN_ROW rows, each with another place of its span."""
    twins = np.empty(len(rows), TWINS)
    twins["page"], twins["unit"], twins["count"] = rows["page"], rows["unit"], 1
    twins["twin_page"], twins["twin_unit"], twins["twin_group"] = others["page"], others["unit"], group
    return twins


def marks_of(rows: Rows, keeper: Any) -> Rows:
    """Returns the MARKS of rows that have a place; `keeper` tells of all or of each whether the page keeps the span."""
    marks = np.empty(len(rows), MARKS)
    marks["page"], marks["unit"], marks["count"], marks["keeper"] = rows["page"], rows["unit"], 1, keeper
    return runs_of(marks)


class ReadUrls(DedupStep):
    """(group, files) -> (bucket, packed URL rows)."""

    tallied = ("urls",)

    def process(self, element: tuple[int, Files]) -> Iterator[Any]:
        """Reads the URL rows of a group, and sends them to their buckets."""
        read = []
        for file, path in element[1]:
            read.append(url_rows(storage_path(path), file))
            self._tally("urls", len(read[-1]))
        rows = np.concatenate(read)
        rows = rows[np.argsort(rows["hash"], kind="stable")]
        for bucket, packed in shuffle.bucketed(rows, self._plan.url_bits):
            yield "rows", (bucket, self._spill.send(packed))
        yield step_report(control_totals.sent("urls", shuffle.totals(rows)))


class FindStaleCaptures(DedupStep):
    """(bucket, packed URL rows) -> (group, packed rows that are not the newest of their URL)."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Finds the stale captures of a bucket, and sends them to the groups of their files."""
        reports: list[control_totals.Report] = []
        _, stale = find_stale_captures(self._receive("urls", element[1], URL_ROW, reports))
        groups = stale["file"] // self._plan.group
        readers = 3 if self._plan.near else 2
        for block in self._to_groups("stale_captures", stale, groups, STALE_ROW, reports, readers):
            yield "rows", block
        yield step_report(*reports)


class ReadSpans(DedupStep):
    """(group, files and stale rows) -> span rows by bucket; the group's own repeats."""

    outputs = ("rows", "repeats", REPORT)
    tallied = ("spans",)

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        """Reads the span rows of a group, finds its own repeats, and sends the others to their buckets."""
        group, grouped = element
        reports: list[control_totals.Report] = []
        stale = self._receive("stale_captures", grouped["stale"], STALE_ROW, reports)
        near = self._receive("near_duplicates", grouped.get("near", ()), PAIR, reports)
        rows = []
        for file, path in files_of(grouped):
            dropped = np.r_[rows_of(stale, file), rows_of(near, file)]
            for pages, left_out in read_kept(storage_path(path), ["page_key", "span_hashes"], dropped):
                hashes = pages["span_hashes"].combine_chunks()
                rows.append(shuffle.span_rows(pages["page_key"].to_numpy(), file, hashes))
                self._tally("spans", len(pages) + left_out)
        # Each group finds its own repeats first: so even the commonest span sends one row a group.
        first, repeats = find_repeats(np.concatenate([np.empty(0, SPAN_ROW), *rows]))
        for bucket, packed in shuffle.bucketed(first, self._plan.span_bits):
            yield "rows", (bucket, self._spill.send(packed))
        reports.append(control_totals.sent("spans", shuffle.totals(first)))
        if self._plan.moves_keepers:
            name, own = "repeated_spans", twins_in_group(first, repeats, group)
        else:
            name, own = "marks", marks_of(repeats, keeper=0)
        for block in self._to_groups(name, own, np.full(len(own), group), own.dtype, reports):
            yield "repeats", block
        yield step_report(*reports)


class FindRepeats(DedupStep):
    """(bucket, packed span rows) -> (group, packed places of repeated spans)."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Finds the repeated spans of a bucket, and sends their places to the groups of their files."""
        reports: list[control_totals.Report] = []
        first, repeats = find_repeats(self._receive("spans", element[1], SPAN_ROW, reports))
        for block in self._places(first, repeats, reports):
            yield "rows", block
        yield step_report(*reports)

    def _places(self, first: Rows, repeats: Rows, reports: list[control_totals.Report]) -> Iterator[tuple[int, bytes]]:
        files = self._plan.group
        if self._plan.moves_keepers:
            twins = twins_in_bucket(first, repeats, files)
            yield from self._to_groups("repeated_spans", twins, twins["file"] // files, TWINS, reports)
        else:
            for group, rows in shuffle.by_number(repeats, repeats["file"] // files, SPAN_ROW):
                marks = marks_of(rows, keeper=0)
                yield from self._to_groups("marks", marks, np.full(len(marks), group), MARKS, reports)
