"""The steps of job 2 that find pages which are nearly the same: see `near_pages`.

Bands of signatures go to buckets, where pages that share a band make candidate pairs. The signatures of a pair meet in
the group of its first page, once for each group and page. Pairs that are similar enough are connected to clusters, in
a fixed number of rounds: in each, a group connects the pairs that have one of its pages, and tells the groups of both
pages what it found. No worker holds all pairs.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from c4pipe.clean.work_reader import row_groups
from c4pipe.dedup import near_finish, near_pages, shuffle
from c4pipe.dedup.dedup_plan import DedupPlan
from c4pipe.dedup.dedup_step import REPORT, DedupStep, Files, files_of, rows_of, step_report
from c4pipe.dedup.near_pages import BAND_ROW, NEAR_PAGE, PAIR, STAY
from c4pipe.dedup.shuffle import STALE_ROW
from c4pipe.filters.duplicates import Rows
from c4pipe.filters.minhash import U16
from c4pipe.io.paths import storage_path
from c4pipe.runners import control_totals
from c4pipe.runners.flow import Flow

ROUNDS = 8
"""How often groups tell each other what they connected. Clusters of made crawls need up to five rounds."""

_PAIRS_AT_ONCE = 65_536  # whose signatures are side by side in memory

Grouped = tuple[int, Mapping[str, Iterable[Any]]]
"""The number of a group of files, and what it received, by the name of its collection."""


def find_near_duplicates(flow: Flow, files: Any, stale: Any, plan: DedupPlan) -> tuple[Any, Any, list[Any]]:
    """Adds the steps that find pages which are nearly the same as another one.

    Args:
        flow: what the steps are added to.
        files: (group, its work files).
        stale: (group, packed rows of stale captures).
        plan: the parameters of the steps.

    Returns:
        (group, packed PAIRs) of each page to drop, with the page that stays in its place; (group, the pages that stay,
        see `near_finish`); the reports of the steps.
    """
    read = flow.map(
        "Read bands", flow.co_group_by_key("Stale captures to bands", files=files, stale=stale), ReadBands(plan)
    )
    found = flow.map("Find candidates", flow.group_by_key("Group bands", read["rows"]), FindCandidates(plan))
    asked = flow.co_group_by_key("Candidates to their group", files=files, pairs=found["rows"])
    sent = flow.map("Send signatures", asked, SendSignatures(plan))
    received = flow.co_group_by_key(
        "Signatures to their group", files=files, pairs=sent["pairs"], signatures=sent["signatures"]
    )
    connected = flow.map("Compare signatures", received, CompareSignatures(plan))
    reports = [each[REPORT] for each in (read, found, sent, connected)]
    for number in range(1, ROUNDS + 1):
        grouped = flow.group_by_key(f"Connected pages to their group {number}", connected["rows"])
        connected = flow.map(f"Connect pages {number}", grouped, ConnectPages(plan))
        reports.append(connected[REPORT])
    last = flow.co_group_by_key("Clusters to their group", clusters=connected["rows"], copies=read["copies"])
    dropped = flow.map("Choose pages", last, ChoosePages(plan))
    asked = flow.co_group_by_key("Pages that stay to their group", files=files, staying=dropped["staying"])
    named = flow.map("Name pages that stay", asked, NamePages(plan))
    return dropped["rows"], named["rows"], [*reports, dropped[REPORT], named[REPORT]]


class _NearStep(DedupStep):
    def __init__(self, plan: DedupPlan) -> None:
        super().__init__(plan)
        near = plan.near
        self._bands, self._numbers = near["bands"], near["bands"] * near["rows"]
        self._signature = near_pages.signature_row(self._numbers)

    def _groups(self, files: Any) -> Any:
        return files // np.uint32(self._plan.group)

    def _to_both(self, pairs: Rows, reports: list[control_totals.Report]) -> Iterator[tuple[str, Any]]:
        """Yields PAIRs to the groups of both of their pages."""
        groups, others = self._groups(pairs["file"]), self._groups(pairs["first_file"])
        apart = groups != others
        twice = np.concatenate([pairs, pairs[apart]])
        for block in self._to_groups("clusters", twice, np.r_[groups, others[apart]], PAIR, reports):
            yield "rows", block

    def _minima(self, files: Files, pages: Rows) -> U16:
        """Returns the minima of pages of this group, given NEAR_PAGE rows: a row for each."""
        minima = np.zeros((len(pages), self._numbers), np.uint16)
        for file, path in files:
            wanted = np.flatnonzero(pages["file"] == file)
            rows, first = pages["row"][wanted], 0
            for table in row_groups(storage_path(path), ["minima"]) if len(wanted) else ():
                here = (rows >= first) & (rows < first + len(table))
                if here.any():
                    minima[wanted[here]] = near_pages.minima_of(table["minima"], rows[here] - first)
                first += len(table)
        return minima


class ReadBands(_NearStep):
    """(group, files and stale rows) -> band rows by bucket; pages with the signature of another page of the group."""

    outputs = ("rows", "copies", REPORT)
    tallied = ("bands",)

    def process(self, element: Grouped) -> Iterator[Any]:
        """Reads the bands of a group's pages, and sends those of one page of each signature to their buckets."""
        group, grouped = element
        reports: list[control_totals.Report] = []
        stale = self._receive("stale_captures", grouped["stale"], STALE_ROW, reports)
        pages, bands = [np.empty(0, NEAR_PAGE)], [np.empty((0, self._bands), np.uint64)]
        crawls = [np.empty(0, np.uint64)]
        for file, path in files_of(grouped):
            first, passed_over = 0, rows_of(stale, file)
            crawl = near_finish.crawl_key(storage_path(path), self._plan.near)
            for table in row_groups(storage_path(path), ["page_key", "characters", "band_hashes"]):
                column = table["band_hashes"].combine_chunks()
                has_bands = np.diff(column.offsets.to_numpy()) > 0
                newest = has_bands.copy()
                newest[passed_over[(passed_over >= first) & (passed_over < first + len(table))] - first] = False
                rows = np.flatnonzero(newest)
                pages.append(
                    near_pages.page_rows(table.select(["page_key", "characters"]).take(rows), file, first + rows)
                )
                bands.append(column.flatten().to_numpy().reshape(-1, self._bands)[newest[has_bands]])
                crawls.append(np.full(len(rows), crawl, np.uint64))
                self._tally("bands", len(table))
                first += len(table)
        all_pages, all_bands, all_crawls = map(np.concatenate, (pages, bands, crawls))
        leaders, copies = near_pages.split_copies(all_pages, all_bands, all_crawls)
        rows = near_pages.band_rows(all_pages[leaders], all_bands[leaders], all_crawls[leaders])
        for bucket, packed in shuffle.bucketed(rows, self._plan.band_bits):
            yield "rows", (bucket, self._spill.send(packed))
        reports.append(control_totals.sent("bands", shuffle.totals(rows)))
        for block in self._to_groups("copies", copies, np.full(len(copies), group), PAIR, reports):
            yield "copies", block
        yield step_report(*reports)


class FindCandidates(_NearStep):
    """(bucket, packed band rows) -> (group of the later page, packed pairs of pages that share a band)."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Finds the pairs of a bucket that are to be compared."""
        reports: list[control_totals.Report] = []
        pairs = near_pages.candidates(self._receive("bands", element[1], BAND_ROW, reports))
        for block in self._to_groups("candidates", pairs, self._groups(pairs["file"]), PAIR, reports):
            yield "rows", block
        yield step_report(*reports)


class SendSignatures(_NearStep):
    """(group, files and candidate pairs) -> (group of the first page, pairs), and the later pages' signatures."""

    outputs = ("pairs", "signatures", REPORT)

    def process(self, element: Grouped) -> Iterator[Any]:
        """Sends each pair once, and each signature once to each group that compares it."""
        _, grouped = element
        reports: list[control_totals.Report] = []
        pairs = near_pages.unique_pairs(self._receive("candidates", grouped["pairs"], PAIR, reports))
        groups = self._groups(pairs["first_file"])
        for block in self._to_groups("pairs", pairs, groups, PAIR, reports):
            yield "pairs", block
        # The minima of a later page are read once, and sent once to each group that compares them.
        pages, first, of_page = np.unique(pairs["page"], return_index=True, return_inverse=True)
        minima = self._minima(files_of(grouped), pairs[first])
        to_group, page = np.divmod(np.unique(groups * np.int64(len(pages)) + of_page), max(1, len(pages)))
        rows = np.zeros(len(page), self._signature)
        rows["page"] = pages[page]
        rows["minima"][:, : self._numbers] = minima[page]
        for block in self._to_groups("signatures", rows, to_group, self._signature, reports):
            yield "signatures", block
        yield step_report(*reports)


class CompareSignatures(_NearStep):
    """(group, files, pairs and the signatures of their later pages) -> the pairs that are similar, to both groups."""

    def process(self, element: Grouped) -> Iterator[Any]:
        """Compares the signatures of pairs, and passes on those that are similar enough."""
        _, grouped = element
        reports: list[control_totals.Report] = []
        pairs = self._receive("pairs", grouped["pairs"], PAIR, reports)
        later = self._receive("signatures", grouped["signatures"], self._signature, reports)
        later = later[np.argsort(later["page"])]
        pairs = pairs[np.isin(pairs["page"], later["page"])]  # all, unless the runner lost some: the totals tell that
        _, index, of_page = np.unique(pairs["first_page"], return_index=True, return_inverse=True)
        first = np.empty(len(index), NEAR_PAGE)
        for name in NEAR_PAGE.names or ():
            first[name] = pairs[f"first_{name}"][index]
        minima = self._minima(files_of(grouped), first)
        place = np.searchsorted(later["page"], pairs["page"])
        similar = np.zeros(len(pairs), bool)
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            some = slice(start, start + _PAIRS_AT_ONCE)
            shares = near_pages.similarities(minima[of_page[some]], later["minima"][place[some], : self._numbers])
            similar[some] = shares >= self._plan.near["min_similarity"]
        yield from self._to_both(pairs[similar], reports)
        counts = {"near_duplicates.compared": len(pairs), "near_duplicates.similar": int(similar.sum())}
        yield step_report(*reports, counts if len(pairs) else {})


class ConnectPages(_NearStep):
    """(group, packed pairs) -> a pair of each page with the first one of its cluster, to the groups of both."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Connects the pairs of a group."""
        reports: list[control_totals.Report] = []
        pairs = near_pages.connect(self._receive("clusters", element[1], PAIR, reports))
        yield from self._to_both(pairs, reports)
        yield step_report(*reports)


class ChoosePages(_NearStep):
    """(group, pairs of its clusters, its copies) -> a pair of each page to drop with the page that stays; and these."""

    outputs = ("rows", "staying", REPORT)

    def process(self, element: Grouped) -> Iterator[Any]:
        """Chooses the pages of a group that are dropped, and asks the groups of the pages that stay for their names."""
        group, grouped = element
        reports: list[control_totals.Report] = []
        clusters = self._receive("clusters", grouped["clusters"], PAIR, reports)
        copies = self._receive("copies", grouped["copies"], PAIR, reports)
        dropped, unsettled = near_pages.choose(clusters, copies, self._groups(clusters["file"]) == group)
        own = np.full(len(dropped), group)
        for block in self._to_groups("near_duplicates", dropped, own, PAIR, reports, readers=2):
            yield "rows", block
        staying = near_pages.staying(dropped, group)
        for block in self._to_groups("staying", staying, self._groups(staying["file"]), STAY, reports):
            yield "staying", block
        yield step_report(*reports, {"near_duplicates.unsettled": unsettled} if unsettled else {})


class NamePages(_NearStep):
    """(group, files and rows of pages that stay) -> (group, Arrow stream of pages that stay); the largest clusters."""

    def process(self, element: Grouped) -> Iterator[Any]:
        """Reads URL and signature of the pages that stay, for the groups that drop a page for them."""
        _, grouped = element
        reports: list[control_totals.Report] = []
        rows = self._receive("staying", grouped["staying"], STAY, reports)
        clusters = []
        for file, path in files_of(grouped):
            here = rows[rows["file"] == file]
            numbers, of_page = np.unique(here["row"], return_inverse=True)
            pages = near_finish.read_staying(storage_path(path), numbers)
            sizes = 1 + np.bincount(of_page, here["pages"], len(numbers)).astype(np.int64)
            for number in np.lexsort((pages["page_key"].to_numpy(), -sizes))[: near_finish.MOST].tolist():
                page = pages.slice(number, 1).to_pylist()[0]
                clusters.append({"pages": int(sizes[number]), "key": page["page_key"], "url": page["url"]})
            order = np.argsort(here["group"], kind="stable")
            named = pages.take(pa.array(of_page[order]))
            reports.append(control_totals.sent("stayed", shuffle.totals(named["page_key"].to_numpy())))
            groups, starts, counts = np.unique(here["group"][order], return_index=True, return_counts=True)
            for group, start, count in zip(groups.tolist(), starts.tolist(), counts.tolist(), strict=True):
                yield "rows", (group, self._spill.send(near_finish.encode(named.slice(start, count))))
        yield step_report(*reports, {"near_clusters": clusters} if clusters else {})
