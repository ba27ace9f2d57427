"""Near-duplicates: the steps that find them, and choose the page that stays of each cluster.

Bands of signatures go to buckets, where pages that share a band make candidate pairs. The signatures of a pair meet in
the group of its first page, once for each group and page. Pairs that are similar enough are connected to clusters, in
a fixed number of rounds: in each, a group connects the pairs that have one of its pages, and tells the groups of both
pages. No worker holds all pairs. With `compare = "survivor"`, each page is then compared with the first page of its
cluster, and the few pages that are unlike it meet in the group of that page. The functions on rows are in `near_pages`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.examples import EXAMPLES_PER_FILE, Example, make_example
from c4pipe.clean.work_file import read_header, read_stale, row_groups
from c4pipe.dedup import near_pages
from c4pipe.dedup.near_survivors import NearStep, keep_similar, read_rows, schema_of
from c4pipe.dedup.shuffle import STALE_CAPTURES
from c4pipe.dedup.step import DedupPlan, Received, StepItem, rows_of
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.io.rows import Rows, arrow_array, unique
from c4pipe.report.data import MOST_SHOWN
from c4pipe.runners.graph import Graph, Output
from c4pipe.text.comparison import compare_texts
from c4pipe.text.hashes import U64
from c4pipe.wet.columns import COPIES_COLUMN, EXTRA, parse_columns

STAYED_PAGE = schema_of("page_key", "url", "minima")
"""The columns of a page that stays, for the groups that drop a page for it."""

_SHOWN = schema_of("url", "text")
_COLUMNS = ["page_key", "url", "timestamp", "text", "minima"]


class NearDuplicates:
    """The pages of a group of files to drop."""

    def __init__(self, pairs: Rows, staying: Iterable[pa.Table]) -> None:
        """Takes a PAIR of each page to drop with the page that stays, and STAYED_PAGE tables of the pages that stay."""
        self._pairs = pairs[np.argsort(pairs["page"])]
        table = pa.concat_tables([STAYED_PAGE.empty_table(), *staying])
        table = table.take(arrow_array(np.argsort(table["page_key"].to_numpy()))).combine_chunks()
        self._keys: U64 = table["page_key"].to_numpy()
        self._staying = table

    def rows(self, file: int) -> npt.NDArray[np.uint32]:
        """Returns the numbers of the rows of a work file to drop."""
        rows: npt.NDArray[np.uint32] = self._pairs["row"][self._pairs["file"] == file]
        return rows

    def pages(self, path: StoragePath, rows: npt.NDArray[np.uint32], further: Sequence[str] = ()) -> Iterator[pa.Table]:
        """Yields tables of the pages to drop, given their rows in a work file.

        Columns: `page_key`, `url`, `timestamp`, `text`, further columns, and `fact`, which names the page that stays.
        """
        for pages in read_stale(path, [*_COLUMNS, *further], rows) if len(rows) else ():
            if len(pages):
                yield pages.drop_columns(["minima"]).append_column("fact", pa.array(self._facts(pages), pa.string()))

    def _facts(self, pages: pa.Table) -> list[str]:
        stays = self._pairs["first_page"][np.searchsorted(self._pairs["page"], pages["page_key"].to_numpy())]
        if not np.isin(stays, self._keys).all():  # the runner lost pages: the control totals differ
            return [""] * len(pages)
        staying = self._staying.take(arrow_array(np.searchsorted(self._keys, stays)))
        shares = near_pages.similarities(near_pages.minima_of(pages["minima"]), near_pages.minima_of(staying["minima"]))
        exact = self._pairs["similarity"][np.searchsorted(self._pairs["page"], pages["page_key"].to_numpy())]
        return [*map(fact_of, staying["url"].to_pylist(), exact.tolist(), shares.tolist())]

    def examples(self, path: StoragePath, file: int) -> list[Example]:
        """Returns examples of the pages of a work file to drop."""
        mine = self._pairs[self._pairs["file"] == file][:EXAMPLES_PER_FILE]  # in the order of their keys
        return [
            make_example(NearDuplicate.name, page["page_key"], page["url"], page["timestamp"], page["fact"], [""])
            for pages in self.pages(path, mine["row"])
            for page in pages.to_pylist()
        ]


def fact_of(url: str, exact: float, estimate: float) -> str:
    """Says which page stays for a dropped page, and their similarity: an estimate if `exact` is 0."""
    known = f"the similarity is {exact:.2f}" if exact else f"the estimated similarity is {estimate:.2f}"
    return f"{url} stays; {known}"


class Copies:
    """The number of pages that were dropped for each page of a group that stays."""

    def __init__(self, staying: Rows) -> None:
        self._keys, of_page = np.unique(staying["page"], return_inverse=True)
        self._dropped = np.bincount(of_page, staying["pages"], len(self._keys)).astype(np.int64)

    def fill(self, pages: pa.Table) -> pa.Table:
        """Returns pages with COPIES_COLUMN: the number of pages of their cluster, 1 for a page without a cluster."""
        keys = pages["page_key"].to_numpy()
        here = np.flatnonzero(np.isin(keys, self._keys))
        numbers = np.ones(len(pages), np.int64)
        numbers[here] += self._dropped[np.searchsorted(self._keys, keys[here])]
        extra = pages[EXTRA].combine_chunks()
        arrays, name = extra.flatten(), parse_columns([COPIES_COLUMN])[0].name
        arrays[extra.type.get_field_index(name)] = arrow_array(numbers)
        number = pages.schema.get_field_index(EXTRA)
        filled = pa.StructArray.from_arrays(arrays, fields=list(extra.type))
        return pages.set_column(number, pages.schema.field(number), filled)


def crawl_key(path: StoragePath, near: NearDuplicate) -> int:
    """Returns a 64-bit hash of the crawl's name in a work file.

    The key is 0 if the WET file names no crawl, or if the rule compares pages of all crawls.
    """
    return _key(read_header(path).crawl) if near.within == "crawl" else 0


def _key(name: str) -> int:
    return int(mmh3.hash64(name, signed=False)[0]) if name else 0


def comparison_keys(pages: pa.Table, near: NearDuplicate, crawl: int) -> U64:
    """Returns the key of each page's language, or `crawl` (see `crawl_key`): pages with other keys are not compared."""
    if near.within != "language":
        return np.full(len(pages), crawl, np.uint64)
    encoded = pc.dictionary_encode(pc.fill_null(pages["language"].cast(pa.string()), "")).combine_chunks()
    keys: U64 = np.array(list(map(_key, encoded.dictionary.to_pylist())), np.uint64)[encoded.indices.to_numpy()]
    return keys


def largest_clusters(clusters: Iterable[Mapping[str, Any]], files: Sequence[StoragePath]) -> list[dict[str, Any]]:
    """Returns the largest clusters for the report, in each the page that stays beside a page that was dropped.

    Args:
        clusters: the results of `NamePages`, in any order.
        files: the work files, by number.
    """
    most = sorted(clusters, key=lambda each: (-each["pages"], each["key"]))[:MOST_SHOWN]
    pages: dict[tuple[int, int], Mapping[str, str]] = {}
    places = np.array([each[name] for each in most for name in ("place", "other")], np.uint32).reshape(-1, 2)
    for file in unique(places[:, 0]).tolist():
        rows = unique(places[places[:, 0] == file, 1])
        found = read_rows(files[file], rows, _SHOWN).to_pylist()
        pages |= {(file, row): page for row, page in zip(rows.tolist(), found, strict=True)}
    shown = []
    for cluster in most:
        page, other = pages[tuple(cluster["place"])], pages[tuple(cluster["other"])]
        texts = compare_texts(page["text"], other["text"])
        urls = {"url": page["url"], "other_url": other["url"]}
        shown.append({"pages": cluster["pages"], **urls, "alone": texts.alone, "other_alone": texts.other_alone})
    return shown


CONNECT_ROUNDS = 8
"""The rounds in which groups tell each other the pairs that they connected. Synthetic crawls need up to five."""


def find_near_duplicates(
    graph: Graph, files: Output, stale: Output, plan: DedupPlan
) -> tuple[list[Output], list[Output]]:
    """Adds the steps that find near-duplicates.

    Args:
        graph: the graph.
        files: (group, its work files).
        stale: the output through STALE_CAPTURES.
        plan: the parameters of the steps.

    Returns:
        The outputs through NEAR_DUPLICATES; those through STAYED and, if the pages have COPIES_COLUMN, STAYING.
    """
    near = plan.near
    assert near
    read = graph.add("Read bands", ReadBands(plan), files, stale)
    found = graph.add("Find candidates", FindCandidates(plan), read["bands"])
    sent = graph.add("Send signatures", SendSignatures(plan), files, found["candidates"])
    connected = graph.add("Compare signatures", CompareSignatures(plan), files, sent["pairs"], sent["signatures"])
    similar = connected["clusters"]
    for number in range(1, CONNECT_ROUNDS + 1):
        connected = graph.add(f"Connect pages {number}", ConnectPages(plan), connected["clusters"])
    dropped = graph.add("Choose pages", ChoosePages(plan), connected["clusters"], read["copies"])
    chosen = [dropped]
    if near.compare == "survivor":
        chosen = keep_similar(graph, files, dropped, similar, plan)
    staying = [each["staying"] for each in chosen]
    named = graph.add("Name pages that stay", NamePages(plan), files, *staying)
    sizes = staying if COPIES_COLUMN in plan.rules.columns else []
    return [each["near_duplicates"] for each in chosen], [named["stayed"], *sizes]


class ReadBands(NearStep):
    """The files and stale captures of a group -> bands by bucket; pairs of pages with one signature in the group."""

    sends = (near_pages.BANDS, near_pages.COPIES)
    tallied = ("bands",)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Reads the bands of a group's pages. Of pages with equal signatures, only one sends its bands to buckets."""
        stale = received.rows(STALE_CAPTURES)
        pages, bands = [np.empty(0, near_pages.NEAR_PAGE)], [np.empty((0, self._bands), np.uint64)]
        crawls = [np.empty(0, np.uint64)]
        for file, path in received.files:
            first, passed_over = 0, rows_of(stale, file)
            crawl = crawl_key(storage_path(path), self._near)
            ranked_by = ["page_key", *near_pages.RANKED_BY[self._near.keep]]
            columns = [*ranked_by, "band_hashes", "language"]
            for table in row_groups(storage_path(path), columns):
                column = table["band_hashes"].combine_chunks()
                has_bands = np.diff(column.offsets.to_numpy()) > 0
                newest = has_bands.copy()
                newest[passed_over[(passed_over >= first) & (passed_over < first + len(table))] - first] = False
                rows = np.flatnonzero(newest)
                ranked = table.select(ranked_by).take(arrow_array(rows))
                pages.append(near_pages.page_rows(ranked, file, first + rows, self._near.keep))
                bands.append(column.flatten().to_numpy().reshape(-1, self._bands)[newest[has_bands]])
                crawls.append(comparison_keys(table, self._near, crawl)[rows])
                self._tally("bands", len(table))
                first += len(table)
        all_pages, all_bands, all_crawls = np.concatenate(pages), np.concatenate(bands), np.concatenate(crawls)
        leaders, copies = near_pages.split_copies(all_pages, all_bands, all_crawls)
        rows = near_pages.band_rows(all_pages[leaders], all_bands[leaders], all_crawls[leaders])
        yield near_pages.BANDS.to_buckets(rows, self._plan.band_bits)
        yield near_pages.COPIES.to_group(copies, received.key)


class FindCandidates(NearStep):
    """The bands of a bucket -> pairs of pages that share a band, by the group of the later page."""

    sends = (near_pages.CANDIDATES,)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Finds the pairs of a bucket to compare."""
        pairs = near_pages.candidates(received.rows(near_pages.BANDS))
        yield near_pages.CANDIDATES.to_groups(pairs, self._groups(pairs["file"]))


class SendSignatures(NearStep):
    """The files and candidate pairs of a group -> pairs, and signatures of later pages, by group of the first page."""

    sends = (near_pages.PAIRS, near_pages.SIGNATURES)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Sends each pair once, and each signature once to each group that compares it."""
        pairs = near_pages.unique_pairs(received.rows(near_pages.CANDIDATES))
        groups = self._groups(pairs["first_file"])
        yield near_pages.PAIRS.to_groups(pairs, groups)
        yield self._send_signatures(received.files, pairs, groups)


class CompareSignatures(NearStep):
    """The files, pairs and signatures of a group -> the pairs that are similar, to both groups."""

    sends = (near_pages.CLUSTERS,)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Compares the signatures of pairs, and sends the similar pairs."""
        pairs, shares = self._compare_signatures(received, received.rows(near_pages.PAIRS), "first_", "")
        similar = shares >= self._near.least_estimate
        yield self._to_both(pairs[similar])
        if len(pairs):
            yield {"near_duplicates.compared": len(pairs), "near_duplicates.similar": int(similar.sum())}


class ConnectPages(NearStep):
    """The pairs of a group -> a pair of each page with the first page of its cluster, to the groups of both pages."""

    sends = (near_pages.CLUSTERS,)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Connects the pairs of a group."""
        yield self._to_both(near_pages.connect(received.rows(near_pages.CLUSTERS)))


class ChoosePages(NearStep):
    """The clusters and copies of a group -> pairs of a page to drop with the page that stays; the pages that stay."""

    sends = (near_pages.NEAR_DUPLICATES, near_pages.STAYING)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Chooses the pages of a group to drop, and asks other groups for the URLs of the pages that stay."""
        clusters, copies = received.rows(near_pages.CLUSTERS), received.rows(near_pages.COPIES)
        dropped, unsettled = near_pages.choose(clusters, copies, self._groups(clusters["file"]) == received.key)
        yield from self._drop(dropped, unsettled)


class NamePages(NearStep):
    """The files and rows of pages that stay -> Arrow streams of these pages, by the group that drops pages for them."""

    sends = (near_pages.STAYED,)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Reads URL and signature of the pages that stay, for the groups that drop a page for them."""
        asked = received.rows(near_pages.STAYING)
        yield from self._send_pages(near_pages.STAYED, received.files, asked, STAYED_PAGE)
        keys, first, of_page = np.unique(asked["page"], return_index=True, return_inverse=True)
        sizes = 1 + np.bincount(of_page, asked["pages"], len(keys)).astype(np.int64)
        clusters = []
        for number in np.lexsort((keys, -sizes))[:MOST_SHOWN].tolist():
            _, *other = min(asked[of_page == number][["other_page", "other_file", "other_row"]].tolist())
            places = {"place": [*asked[first[number]][["file", "row"]].tolist()], "other": other}
            clusters.append({"pages": int(sizes[number]), "key": int(keys[number]), **places})
        if clusters:
            yield {"near_clusters": clusters}
