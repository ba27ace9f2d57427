"""`KeepNewest`: one page of each URL."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np

from c4pipe.beam import page_schema
from c4pipe.beam.page_schema import DroppedPage, Page, bits_of_buckets, capture_of
from c4pipe.beam.stage_reports import (
    CAPTURED_PAGES,
    CAPTURES,
    KEPT,
    PageFlow,
    PageTransform,
    check_batch,
    check_shuffles,
)
from c4pipe.clean.work_file import URL_ROW
from c4pipe.dedup import shuffle
from c4pipe.dedup.order import find_stale_captures
from c4pipe.dedup.shuffle import Sent
from c4pipe.dedup.step import Received, RowStep, StepItem
from c4pipe.filters.corpus_rules import StaleCapture
from c4pipe.runners.control_totals import REPORT
from c4pipe.runners.graph import Graph
from c4pipe.text.hashes import normalise_url, url_key
from c4pipe.text.languages import language_counter
from c4pipe.wet.page import moment_of, text_order

_NO_TIME = -(1 << 62)  # of a page whose timestamp is no WARC date: older than all others


class KeepNewest(PageTransform):
    """Keeps the newest page of each URL. URLs are compared without scheme, `www.`, tracking query and trailing slash.

    Input: a PCollection of Page, or the `CleanedPages` that `CleanPages` returns. With the latter, dropped pages count
    as captures, too: if the newest capture of a URL was dropped, no older capture takes its place. `c4pipe build` does
    the same. Between pages of one moment, a hash of the page as crawled decides.

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
        self._bits = bits_of_buckets(buckets)

    def expand(self, pages: Any) -> beam.PCollection:
        """Finds the newest captures. Raises UsageError for pages that are unbounded or windowed."""
        kept, dropped = pages if isinstance(pages, tuple) else (pages, None)
        flow, graph, sent = PageFlow(kept.pipeline), Graph(), []
        for name, some, kind in (("Send pages", kept, Page), ("Send dropped captures", dropped, DroppedPage)):
            if some is not None:
                check_batch(some, self)
                sent.append(flow.map_pages(name, some, SendCaptures(self._order, self._bits), kind))
        captures = [graph.given(each["captures"], "captures") for each in sent]
        pages = graph.given(sent[0]["captured_pages"], "captured_pages")
        found = graph.add("Find newest", FindNewest(), *captures, pages)
        newest, report = graph.run(flow, [found[KEPT], found[REPORT]])
        check_shuffles([*(each[REPORT] for each in sent), report])
        return newest


def _row(page: Page, order: tuple[str, str]) -> tuple[int, int, int, int, int]:
    """Returns the URL_ROW of a page, without a file."""
    scheme, timestamps = order
    captured = (text_order if timestamps == "any text" else moment_of)(page.timestamp)
    moment = _NO_TIME if captured is None else captured
    return url_key(normalise_url(page.url, scheme)), moment, capture_of(page) % (1 << 64), 0, 0


class SendCaptures(RowStep):
    """Pages -> their captures, and the pages, by bucket; dropped pages -> their captures alone.

    A dropped page that is not readable is no capture.
    """

    sends = (CAPTURES, CAPTURED_PAGES)

    def __init__(self, order: tuple[str, str], bits: int) -> None:
        """Takes how URLs and timestamps are compared, and the number of hash bits that make a bucket."""
        super().__init__("")
        self._order, self._bits = order, bits

    def run(self, received: Received) -> Iterator[StepItem]:
        """Sends a batch, of pages or of dropped pages."""
        pages: list[Page] = []
        dropped: list[Page] = []
        for each in received.given(KEPT):
            if not isinstance(each, DroppedPage):
                pages.append(each)
            elif each.stage != "readable":
                dropped.append(each.page)
        rows = np.array([_row(page, self._order) for page in (*pages, *dropped)], URL_ROW)
        yield CAPTURES.to_buckets(rows[np.argsort(rows["hash"], kind="stable")], self._bits)
        if pages:
            table = page_schema.table_of(pages)
            for name in URL_ROW.names or ():
                table = table.append_column(f"row_{name}", [np.ascontiguousarray(rows[name])])
            yield Sent(CAPTURED_PAGES, shuffle.totals(rows), page_schema.to_buckets(table, rows["hash"], self._bits))


class FindNewest(RowStep):
    """The captures and pages of a bucket -> the newest page of each URL."""

    def __init__(self) -> None:
        super().__init__("")
        self.outputs = (KEPT, REPORT)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Finds the newest pages of a bucket, a block at a time."""
        newest, _ = find_stale_captures(received.rows(CAPTURES))
        taken = np.zeros(len(newest), bool)  # equal rows of several pages: one of them stays
        stale = Counter[str | None]()  # by language, None if it is not known
        for packed in received.streams(CAPTURED_PAGES):
            table = shuffle.unpack_table(packed)
            rows = np.empty(len(table), URL_ROW)
            for name in URL_ROW.names or ():
                rows[name] = table[f"row_{name}"].to_numpy()
            received.count(CAPTURED_PAGES, rows)
            places = np.minimum(np.searchsorted(newest["hash"], rows["hash"]), len(newest) - 1)
            chosen = np.flatnonzero((newest[places] == rows) & ~taken[places])
            chosen = chosen[np.sort(np.unique(places[chosen], return_index=True)[1])]
            taken[places[chosen]] = True
            stale.update(table["language"].take(np.setdiff1d(np.arange(len(table)), chosen)).to_pylist())
            yield from ((KEPT, page) for page in page_schema.pages_of(table.take(chosen)))
        yield {f"pages.dropped.{StaleCapture.name}": stale.total()}
        yield {language_counter(each, StaleCapture.name): number for each, number in stale.items() if each}
