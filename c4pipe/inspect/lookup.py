"""Looks up a URL in the work files of a corpus, with the pages that decide about it.

Files are read one at a time, as deduplication reads them; only rows that matter to the URL stay in memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.work_file import read_kept, row_groups, url_rows
from c4pipe.dedup import near_duplicates, near_pages, shuffle
from c4pipe.dedup.known import SPAN_HASHES, URL_HASHES, KnownHashes
from c4pipe.dedup.order import find_repeats, find_stale_captures
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.io.paths import StoragePath
from c4pipe.io.rows import Rows
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.comparison import compare_texts
from c4pipe.text.hashes import U64
from c4pipe.text.minhash import jaccard

_COLUMNS = ["page_key", "url", "band_hashes", "minima", "characters", "captured", "language"]


@dataclass(frozen=True)
class StayingPage:
    """The page of a cluster that stays, and its similarity to the requested page.

    Attributes:
        page_key, url: of the page that stays.
        similarity: the estimated similarity.
        exact: the exact similarity if the build has compared the texts; else 0.
    """

    page_key: int
    url: str
    similarity: float
    exact: float


@dataclass(frozen=True)
class NearCopy:
    """The page that stays in the place of a near-duplicate.

    Attributes:
        url: its URL.
        estimated: the similarity of both pages, by their signatures.
        exact: the similarity of both pages, by all their n-grams.
        shared: the longest passage that both have.
        alone: what the dropped page has alone, in brackets among the words around it.
        other_alone: the same of the page that stays.
    """

    url: str
    estimated: float
    exact: float
    shared: str
    alone: str
    other_alone: str


def compare_pages(page: Mapping[str, Any], other: Mapping[str, Any], estimated: float, rules: Recipe) -> NearCopy:
    """Compares a near-duplicate with the page that stays in its place, given the columns of both in work files."""
    exact = jaccard(*near_pages.ngrams_of([page, other], rules))
    return NearCopy(other["url"], round(estimated, 4), round(exact, 4), *compare_texts(page["text"], other["text"]))


def _make_staying_page(pages: pa.Table, own: int, first: int, exact: float) -> StayingPage:
    minima = near_pages.minima_of(pages["minima"].take(pa.array([own, first])))
    (share,) = near_pages.similarities(minima[:1], minima[1:]).tolist()
    return StayingPage(pages["page_key"][first].as_py(), pages["url"][first].as_py(), share, exact)


def _similar_pairs(pages: pa.Table, near: NearDuplicate) -> Rows:
    """Returns the PAIRs of similar pages that the build compares; `row` is the index of a page in `pages`."""
    rows = near_pages.page_rows(pages, 0, np.arange(len(pages)), near.keep)
    bands = pages["band_hashes"].combine_chunks().flatten().to_numpy().reshape(len(pages), -1)
    minima = near_pages.minima_of(pages["minima"])
    pairs = near_pages.candidates(near_pages.band_rows(rows, bands, pages["within"].to_numpy()))
    shares = near_pages.similarities(minima[pairs["row"]], minima[pairs["first_row"]])
    return pairs[shares >= near.least_estimate]


def _find_dropped(pages: pa.Table, pairs: Rows, rules: Recipe) -> Rows:
    """Returns a DROPPED row of each dropped page, given all similar pairs of whole clusters."""
    near, chosen = rules.need(NearDuplicate), near_pages.connect(pairs)
    if near.compare == "cluster":
        return near_pages.with_similarity(chosen, 0.0)
    minima = near_pages.minima_of(pages["minima"])
    first, unlike = _compare_with_first(pages, chosen, rules)
    settled, _ = near_pages.settle(unlike, minima[unlike["row"]], unlike["first_page"], pairs, near.min_similarity)
    later, _ = _compare_with_first(pages, settled, rules)
    return np.concatenate([first, later])


def _compare_with_first(pages: pa.Table, chosen: Rows, rules: Recipe) -> tuple[Rows, Rows]:
    """Returns DROPPED rows of PAIRs of similar pages, and all other PAIRs, as the build compares them."""
    near, minima = rules.need(NearDuplicate), near_pages.minima_of(pages["minima"])
    shares = near_pages.similarities(minima[chosen["row"]], minima[chosen["first_row"]])
    exact = np.zeros(len(chosen))
    for place in np.flatnonzero(in_doubt := near.leaves_in_doubt(shares)).tolist():
        both = pages.take(pa.array(chosen[["row", "first_row"]][place].tolist())).to_pylist()
        exact[place] = jaccard(*near_pages.ngrams_of(both, rules))
    is_alike = np.where(in_doubt, exact, shares) >= near.min_similarity
    return near_pages.with_similarity(chosen[is_alike], exact[is_alike]), chosen[~is_alike]


def _is_in(pages: pa.Table, others: pa.Table) -> npt.NDArray[np.bool_]:
    return np.isin(pages["page_key"].to_numpy(), others["page_key"].to_numpy())


def _with_key(pages: pa.Table, keys: U64) -> Any:
    has_bands = pc.list_value_length(pages["band_hashes"]).to_numpy() > 0
    return np.flatnonzero(np.isin(pages["page_key"].to_numpy(), keys) & has_bands)


def _rows_with(column: pa.ChunkedArray, values: U64) -> Any:
    """Returns the numbers of the rows whose list has one of these values."""
    lists = column.combine_chunks()
    return np.unique(pc.list_parent_indices(lists).to_numpy()[np.isin(lists.flatten().to_numpy(), values)])


_NO_STALE = np.empty(0, shuffle.STALE_ROW)


class WorkFiles:
    """Work files, numbered from 0 in the order in which deduplication reads them."""

    def __init__(self, files: Sequence[StoragePath], known: Mapping[str, KnownHashes]) -> None:
        """Takes the files, and the hashes of known corpora by folder."""
        self._files, self._known = files, known

    def in_known(self, kind: str, hashes: Iterable[int]) -> dict[int, str]:
        """Returns the folder of a known corpus for each hash, of a kind of `dedup.known`, that such a corpus has."""
        wanted = np.array(sorted(set(hashes)), np.uint64)
        return {
            found: folder
            for folder, known in self._known.items()
            for found in wanted[known.mask(kind, wanted)].tolist()
        }

    def captures(self, url_keys: set[int]) -> tuple[Rows, Rows]:
        """Returns the captures of URLs by their keys, as URL_ROW: the newest of each URL, and all stale captures."""
        keys = np.array(sorted(url_keys), np.uint64)
        rows = (url_rows(path, file) for file, path in enumerate(self._files))
        return find_stale_captures(np.concatenate([each[np.isin(each["hash"], keys)] for each in rows]))

    def page(self, capture: Any) -> dict[str, Any]:
        """Returns the values of a row of a work file by column, given its URL_ROW."""
        row = int(capture["row"])
        for table in row_groups(self._files[capture["file"]]):
            if row < len(table):
                break
            row -= len(table)
        values: dict[str, Any] = table.slice(row, 1).to_pylist()[0]
        return values

    def staying_pages(self, page_keys: U64, rules: Recipe) -> dict[int, StayingPage]:
        """Returns for each page, by key, the page of its cluster that stays. Pages without n-grams are left out.

        Pages are compared as in the build. All work files are read twice, and once more for each page on the chain
        from a page to the page that stays.
        """
        near = rules.need(NearDuplicate)
        found = self._select_pages(near, lambda pages: _with_key(pages, page_keys))
        sharing, reached, new, pairs = found.slice(0, 0), found, found, np.empty(0, near_pages.PAIR)
        while len(new):
            bands = new["band_hashes"].combine_chunks().flatten().to_numpy()
            more = self._select_pages(near, lambda pages, bands=bands: _rows_with(pages["band_hashes"], bands))
            sharing = pa.concat_tables([sharing, more.filter(pa.array(~_is_in(more, sharing)))])
            # All pages that share a band with a reached page are included, so these pairs are the same as in the build.
            pairs = _similar_pairs(sharing, near)
            keys = reached["page_key"].to_numpy()
            pairs = pairs[np.isin(pairs["page"], keys) | np.isin(pairs["first_page"], keys)]
            linked = np.isin(sharing["page_key"].to_numpy(), np.r_[pairs["page"], pairs["first_page"]])
            new = sharing.filter(pa.array(linked & ~_is_in(sharing, reached)))
            reached = pa.concat_tables([reached, new])
        dropped = _find_dropped(sharing, pairs, rules)
        first = dict(zip(dropped["page"].tolist(), dropped[["first_row", "similarity"]].tolist(), strict=True))
        own = {key: row for row, key in enumerate(sharing["page_key"].to_pylist())}
        return {
            key: _make_staying_page(sharing, own[key], *first.get(key, (own[key], 0.0)))
            for key in found["page_key"].to_pylist()
        }

    def _select_pages(self, near: NearDuplicate, choose: Any) -> pa.Table:
        """Returns the rows that `choose` selects, without stale captures; in `within`, pages to compare are equal."""
        columns = [*_COLUMNS, "text"] if near.similarity == "exact" else _COLUMNS
        found = []
        for path, rows in zip(self._files, self._stale, strict=True):
            crawl = near_duplicates.crawl_key(path, near)
            for pages, _ in read_kept(path, columns, rows):
                chosen = pages.take(pa.array(choose(pages)))
                keys = near_duplicates.comparison_keys(chosen, near, crawl)
                found.append(chosen.append_column("within", pa.array(keys)))
        return pa.concat_tables(found)

    @cached_property
    def _stale(self) -> list[Any]:
        """The rows of captures that dedup passes over, for each file."""
        rows = np.concatenate([url_rows(path, file) for file, path in enumerate(self._files)])
        passed = self._passed_over(*find_stale_captures(rows))
        return [passed["row"][passed["file"] == file] for file in range(len(self._files))]

    def _passed_over(self, newest: Rows, stale: Rows) -> Rows:
        """Returns stale captures, and captures that known corpora have."""
        urls = np.array([*self.in_known(URL_HASHES, newest["hash"].tolist())], np.uint64)
        return np.concatenate([stale, newest[np.isin(newest["hash"], urls)]])

    def repeats(
        self, page_key: int, span_hashes: Sequence[int], moved: Rows, rules: Recipe
    ) -> tuple[list[tuple[int, str]], list[int]]:
        """Returns the repeated spans that a page loses, and the first units of the repeated spans that it keeps.

        A lost span is the number of its first unit, from 0, and the URL of the page (or folder of a known corpus) with
        its copy. `moved` (MOVED) has the spans whose survivor is not their first occurrence.
        """
        if not span_hashes:
            return [], []
        rows, urls = self._read_spans(np.array(span_hashes, np.uint64))
        if rules.has(NearDuplicate.name):
            stays = self.staying_pages(np.unique(rows["page"]), rules)
            dropped = [key for key, page in stays.items() if page.page_key != key]
            rows = rows[~np.isin(rows["page"], np.array(dropped, np.uint64))]
        known = self.in_known(SPAN_HASHES, span_hashes)
        first, repeats = find_repeats(rows[~np.isin(rows["hash"], np.array([*known], np.uint64))])
        first = first[np.isin(first["hash"], repeats["hash"])]
        survivors = {int(each["hash"]): (int(each["page"]), int(each["unit"])) for each in (*first, *moved)}
        lost: list[tuple[int, str]] = []
        kept: list[int] = []
        for unit, span in enumerate(span_hashes):
            if span in known:
                lost.append((unit, known[span]))
            elif survivors.get(span) == (page_key, unit):
                kept.append(unit)
            elif span in survivors:
                lost.append((unit, urls[survivors[span][0]]))
        return lost, kept

    def _read_spans(self, hashes: U64) -> tuple[Rows, dict[int, str]]:
        """Returns the spans with these hashes in the newest captures, and the URLs of pages by page key."""
        captures = {file: self._read_pages_with(hashes, file, _NO_STALE) for file in range(len(self._files))}
        files = [file for file, pages in captures.items() if len(pages)]
        keys = {key for file in files for key in captures[file]["url_key"].to_pylist()}
        stale = self._passed_over(*self.captures(keys))
        rows: list[Rows] = []
        urls: dict[int, str] = {}
        for file in files:
            pages = self._read_pages_with(hashes, file, stale)
            spans = shuffle.span_rows(pages, file)
            rows.append(spans[np.isin(spans["hash"], hashes)])
            urls |= zip(pages["page_key"].to_pylist(), pages["url"].to_pylist(), strict=True)
        return np.concatenate(rows), urls

    def _read_pages_with(self, hashes: U64, file: int, stale: Rows) -> pa.Table:
        """Returns the pages of a work file that have one of these spans, without stale captures."""
        columns = ["url_key", "url", *shuffle.SPAN_COLUMNS]
        tables = []
        for pages, _ in read_kept(self._files[file], columns, stale["row"][stale["file"] == file]):
            tables.append(pages.take(pa.array(_rows_with(pages["span_hashes"], hashes))))
        return pa.concat_tables(tables).combine_chunks()
