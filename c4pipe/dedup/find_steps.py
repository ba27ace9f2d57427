"""The steps of job 2 that find duplicates: stale captures of a URL, and repeated spans."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from c4pipe.clean.work_reader import read_kept, url_rows
from c4pipe.dedup import shuffle, span_places
from c4pipe.dedup.dedup_step import REPORT, DedupStep, Files, files_of, rows_of, step_report
from c4pipe.dedup.near_pages import PAIR
from c4pipe.dedup.shuffle import STALE_ROW
from c4pipe.dedup.span_places import MARKS, TWINS
from c4pipe.filters.duplicates import SPAN_ROW, URL_ROW, Rows, find_repeats, find_stale_captures
from c4pipe.io.paths import storage_path
from c4pipe.runners import control_totals


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
            name, own = "repeated_spans", span_places.twins_in_group(first, repeats, group)
        else:
            name, own = "marks", span_places.marks_of(repeats, keeper=0)
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
            twins = span_places.twins_in_bucket(first, repeats, files)
            yield from self._to_groups("repeated_spans", twins, twins["file"] // files, TWINS, reports)
        else:
            for group, rows in shuffle.by_number(repeats, repeats["file"] // files, SPAN_ROW):
                marks = span_places.marks_of(rows, keeper=0)
                yield from self._to_groups("marks", marks, np.full(len(marks), group), MARKS, reports)
