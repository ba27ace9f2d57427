"""The steps of job 2 that find duplicates: stale captures of a URL, and repeated spans."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from c4pipe.clean import read_kept, url_rows
from c4pipe.dedup import shuffle
from c4pipe.dedup.dedup_step import REPORT, DedupStep, Files, files_of, rows_of, step_report
from c4pipe.dedup.shuffle import DROP, STALE_ROW
from c4pipe.filters import SPAN_ROW, URL_ROW, find_repeats, find_stale_captures
from c4pipe.io import storage_path
from c4pipe.runners import control_totals


class ReadUrls(DedupStep):
    """(group, files) -> (bucket, packed URL rows)."""

    def process(self, element: tuple[int, Files]) -> Iterator[Any]:
        """Reads the URL rows of a group, and sends them to their buckets."""
        rows = np.concatenate([url_rows(storage_path(path), file) for file, path in element[1]])
        rows = rows[np.argsort(rows["hash"], kind="stable")]
        for bucket, packed in shuffle.bucketed(rows, self._plan.url_bits):
            yield "rows", (bucket, self._spill.send(packed))
        yield step_report(control_totals.sent("urls", shuffle.totals(rows)))


class FindStaleCaptures(DedupStep):
    """(bucket, packed URL rows) -> (group, packed rows that are not the newest of their URL)."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Finds the stale captures of a bucket, and sends them to the groups of their files."""
        rows = self._unpack(element[1], URL_ROW)
        _, stale = find_stale_captures(rows)
        sent: control_totals.Report = {}
        for rows_of_group in self._by_group("stale_captures", stale, STALE_ROW, sent):
            yield "rows", rows_of_group
        received = control_totals.received("urls", shuffle.totals(rows))
        yield step_report(received, sent, sent)  # sent twice: to `ReadSpans` and to `FinishPages`


class ReadSpans(DedupStep):
    """(group, files and stale rows) -> span rows by bucket, drops by group."""

    outputs = ("rows", "drops", REPORT)

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        """Reads the span rows of a group, drops its own repeats, and sends the others to their buckets."""
        _, grouped = element
        stale = self._unpack(grouped["stale"], STALE_ROW)
        rows = [
            shuffle.span_rows(pages["page_key"].to_numpy(), file, pages["span_hashes"].combine_chunks())
            for file, path in files_of(grouped)
            for pages, _ in read_kept(storage_path(path), ["page_key", "span_hashes"], rows_of(stale, file))
        ]
        # Each group drops its own repeats first: so even the commonest span sends one row a group.
        first, repeats = find_repeats(np.concatenate([np.empty(0, SPAN_ROW), *rows]))
        for bucket, packed in shuffle.bucketed(first, self._plan.span_bits):
            yield "rows", (bucket, self._spill.send(packed))
        sent: control_totals.Report = {}
        for drops in self._by_group("drops", repeats, DROP, sent):
            yield "drops", drops
        yield step_report(
            control_totals.received("stale_captures", shuffle.totals(stale)),
            control_totals.sent("spans", shuffle.totals(first)),
            sent,
        )


class FindRepeats(DedupStep):
    """(bucket, packed span rows) -> (group, packed drops)."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Finds the repeated spans of a bucket, and sends them to the groups of their files."""
        rows = self._unpack(element[1], SPAN_ROW)
        _, repeats = find_repeats(rows)
        sent: control_totals.Report = {}
        for drops in self._by_group("drops", repeats, DROP, sent):
            yield "rows", drops
        yield step_report(control_totals.received("spans", shuffle.totals(rows)), sent)
