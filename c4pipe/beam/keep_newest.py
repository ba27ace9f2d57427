"""`KeepNewest`: one page of each URL."""

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np

from c4pipe.beam import page_schema
from c4pipe.beam.page_schema import DroppedPage, Page, capture_of
from c4pipe.beam.stage_reports import REPORT, CheckTotals, CountingFn, PageTransform, check_batch
from c4pipe.beam.tagged_blocks import HELD_BYTES, PAGES, ROWS, Block, blocks_of, bucket_bits, buckets_of
from c4pipe.clean import text_cleaner
from c4pipe.dedup import shuffle
from c4pipe.filters.duplicates import URL_ROW, Rows, find_stale_captures
from c4pipe.filters.urls import normalise_url, url_key
from c4pipe.runners import control_totals
from c4pipe.runners.control_totals import Report
from c4pipe.wet.page import text_order

_NO_TIME = -(1 << 62)  # of a page whose timestamp is no WARC date: older than all others


class KeepNewest(PageTransform):
    """Keeps the newest page of each URL. URLs are compared without scheme, `www.`, tracking query and trailing slash.

    Input: a PCollection of Page, or the `CleanedPages` that `CleanPages` returns. With the latter, dropped pages count
    as captures, too: where the newest capture of a URL was dropped, no older one takes its place. `c4pipe build` does
    the same. Of pages of one moment, a hash of the page as it was crawled decides.

    Returns a PCollection of Page.

    >>> import apache_beam as beam
    >>> from c4pipe.beam import KeepNewest, Page
    >>> with beam.Pipeline(options=IN_MEMORY) as pipeline:
    ...     old = Page("http://example.com/", "2018-01-01T00:00:00Z", "old")
    ...     new = Page("https://www.example.com", "2019-01-01T00:00:00Z", "new")
    ...     newest = pipeline | beam.Create([old, new]) | KeepNewest()
    ...     _ = newest | beam.Map(lambda page: print(page.url, page.text))
    https://www.example.com new

    Pages are shuffled once, in compressed batches, to the bucket of their URL's hash; a bucket needs 32 bytes of memory
    for each capture.

    Metrics: `pages_dropped/stale_capture`.
    """

    def __init__(self, scheme: str = "start", *, timestamps: str = "WARC dates", buckets: int = 1024) -> None:
        """Takes how URLs and timestamps are compared.

        Args:
            scheme: `start` removes the scheme at the start of a URL, as `c4` does; `anywhere` removes each, as `tfds`.
            timestamps: `WARC dates` are compared as times, as `c4` does; `any text` is compared as text, as `tfds`.
            buckets: the number of buckets, a power of two: more for more than a billion pages.
        """
        super().__init__()
        self._order = scheme, timestamps
        self._bits = bucket_bits(buckets)

    def expand(self, pages: Any) -> beam.PCollection:
        """Finds the newest captures. Raises UsageError for pages that are unbounded or windowed."""
        kept, dropped = pages if isinstance(pages, tuple) else (pages, None)
        check_batch(kept, self)
        types: dict[str, Any] = {REPORT: Report}
        send = beam.ParDo(_SendPages(self._order, self._bits)).with_input_types(Page)
        sent = kept | "Send pages" >> send.with_output_types(Block, **types).with_outputs(REPORT, main="blocks")
        blocks, reports = [sent.blocks], [sent[REPORT]]
        if dropped is not None:
            check_batch(dropped, self)
            send = beam.ParDo(_SendDropped(self._order, self._bits)).with_input_types(DroppedPage)
            typed = send.with_output_types(Block, **types).with_outputs(REPORT, main="blocks")
            sent = dropped | "Send dropped captures" >> typed
            blocks, reports = [*blocks, sent.blocks], [*reports, sent[REPORT]]
        buckets = tuple(blocks) | "All captures" >> beam.Flatten() | "Group by URL" >> beam.GroupByKey()
        find = beam.ParDo(_FindNewest()).with_output_types(Page, **types).with_outputs(REPORT, main="pages")
        found = buckets | "Find newest" >> find
        _ = (*reports, found[REPORT]) | "Check shuffles" >> CheckTotals()
        return found.pages

    def display_data(self) -> dict[str, Any]:
        """Returns how URLs and timestamps are compared, and the number of buckets."""
        shown = beam.transforms.display.DisplayDataItem
        return {
            "scheme": shown(self._order[0], label="A URL's scheme is removed at"),
            "timestamps": shown(self._order[1], label="Timestamps are compared as"),
            "buckets": shown(1 << self._bits, label="Buckets"),
        }


def _row(page: Page, order: tuple[str, str]) -> tuple[int, int, int, int, int]:
    """Returns the URL_ROW of a page, without a file."""
    scheme, timestamps = order
    if timestamps == "any text":
        captured = text_order(page.timestamp)
    else:
        captured = text_cleaner.page_of_text("", page.url, page.timestamp).captured
    moment = _NO_TIME if captured is None else captured
    return url_key(normalise_url(page.url, scheme)), moment, capture_of(page) % (1 << 64), 0, 0


class _SendRows(CountingFn):
    """Sends the row of each capture to the bucket of its URL."""

    def __init__(self, order: tuple[str, str], bits: int) -> None:
        super().__init__()
        self._order, self._bits = order, bits

    def start_bundle(self) -> None:
        super().start_bundle()
        self._rows: list[tuple[int, int, int, int, int]] = []

    def _send_rows(self) -> tuple[Rows, Iterator[Block]]:
        """Returns the rows that wait, in their order, and their blocks."""
        rows, self._rows = np.array(self._rows, URL_ROW), []
        self._reports.append(control_totals.sent("captures", shuffle.totals(rows)))
        by_hash = rows[np.argsort(rows["hash"], kind="stable")]
        return rows, ((bucket, ROWS + packed) for bucket, packed in shuffle.bucketed(by_hash, self._bits))


class _SendDropped(_SendRows):
    """DroppedPage -> (bucket, packed rows). A page that is not readable is no capture."""

    def process(self, element: DroppedPage) -> Iterator[Block]:
        if element.stage != "readable":
            self._rows.append(_row(element.page, self._order))
        if len(self._rows) * URL_ROW.itemsize >= HELD_BYTES:
            yield from self._rest()

    def _rest(self) -> Iterator[Block]:
        _, blocks = self._send_rows()
        yield from blocks


class _SendPages(_SendRows):
    """Page -> (bucket, packed rows) and (bucket, pages)."""

    def start_bundle(self) -> None:
        super().start_bundle()
        self._held: list[Page] = []
        self._held_bytes = 0

    def process(self, element: Page) -> Iterator[Block]:
        self._rows.append(_row(element, self._order))
        self._held.append(element)
        self._held_bytes += len(element.text)
        if self._held_bytes >= HELD_BYTES:
            yield from self._rest()

    def _rest(self) -> Iterator[Block]:
        if not self._held:
            return
        rows, blocks = self._send_rows()
        yield from blocks
        self._reports.append(control_totals.sent("captured_pages", shuffle.totals(rows)))
        table = page_schema.table_of(self._held)
        for name in URL_ROW.names or ():
            table = table.append_column(f"row_{name}", [np.ascontiguousarray(rows[name])])
        for bucket, part in buckets_of(table, rows["hash"], self._bits):
            yield bucket, PAGES + page_schema.pack(part)
        self._held, self._held_bytes = [], 0


class _FindNewest(CountingFn):
    """(bucket, blocks of rows and of pages) -> the pages that are the newest of their URL."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Page]:
        _, blocks = element
        rows = shuffle.unpack(blocks_of(blocks, ROWS), URL_ROW)
        self._reports.append(control_totals.received("captures", shuffle.totals(rows)))
        newest, _ = find_stale_captures(rows)
        taken = np.zeros(len(newest), bool)  # equal rows of several pages: one of them stays
        for packed in blocks_of(blocks, PAGES):
            table = page_schema.unpack(packed)
            rows = np.empty(len(table), URL_ROW)
            for name in URL_ROW.names or ():
                rows[name] = table[f"row_{name}"].to_numpy()
            self._reports.append(control_totals.received("captured_pages", shuffle.totals(rows)))
            places = np.minimum(np.searchsorted(newest["hash"], rows["hash"]), len(newest) - 1)
            chosen = np.flatnonzero((newest[places] == rows) & ~taken[places])
            chosen = chosen[np.sort(np.unique(places[chosen], return_index=True)[1])]
            taken[places[chosen]] = True
            self._counts["pages.dropped.stale_capture"] += len(table) - len(chosen)
            yield from page_schema.pages_of(table.take(chosen))
