"""The clusters of pages that are nearly the same as some pages, from the work files of a corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.work_reader import read_kept
from c4pipe.dedup import near_duplicates, near_pages
from c4pipe.filters.duplicates import Rows
from c4pipe.filters.spans import U64
from c4pipe.io.paths import StoragePath

_COLUMNS = ["page_key", "url", "band_hashes", "minima", "characters"]


@dataclass(frozen=True)
class NearPage:
    """The page of a cluster that stays.

    Attributes:
        page_key: its key.
        url: its URL, as crawled.
        similarity: the estimated similarity of the page that was asked for to it.
    """

    page_key: int
    url: str
    similarity: float


def staying_pages(
    files: Sequence[StoragePath], stale: Sequence[Any], page_keys: U64, near: Mapping[str, Any]
) -> dict[int, NearPage]:
    """Returns the page that stays of the cluster of each page, by its key; without pages that have no n-grams.

    Pages are compared as the build compares them. All work files are read once for each page that lies between a page
    and the one that stays, and twice more.

    Args:
        files: the work files.
        stale: for each file, the numbers of the rows that are stale captures.
        page_keys: the keys of the pages.
        near: the parameters of the rule `near_duplicate`.
    """
    crawls = [near_duplicates.crawl_key(path, near) for path in files]
    found = _pages(files, crawls, stale, lambda pages: _with_key(pages, page_keys))
    sharing, reached, new, pairs = found.slice(0, 0), found, found, np.empty(0, near_pages.PAIR)
    while len(new):
        bands = new["band_hashes"].combine_chunks().flatten().to_numpy()
        more = _pages(files, crawls, stale, lambda pages, bands=bands: _with_band(pages, bands))
        sharing = pa.concat_tables([sharing, more.filter(pa.array(~_is_in(more, sharing)))])
        # All pages that share a band with a reached page are there: so the pairs of these pages are those of the build.
        pairs = _similar_pairs(sharing, near["min_similarity"])
        keys = reached["page_key"].to_numpy()
        pairs = pairs[np.isin(pairs["page"], keys) | np.isin(pairs["first_page"], keys)]
        linked = np.isin(sharing["page_key"].to_numpy(), np.r_[pairs["page"], pairs["first_page"]])
        new = sharing.filter(pa.array(linked & ~_is_in(sharing, reached)))
        reached = pa.concat_tables([reached, new])
    first = {int(each["page"]): int(each["first_row"]) for each in near_pages.connect(pairs)}
    own = {key: row for row, key in enumerate(sharing["page_key"].to_pylist())}
    return {key: _near_page(sharing, own[key], first.get(key, own[key])) for key in found["page_key"].to_pylist()}


def _near_page(pages: pa.Table, own: int, first: int) -> NearPage:
    minima = near_pages.minima_of(pages["minima"].take(pa.array([own, first])))
    (share,) = near_pages.similarities(minima[:1], minima[1:]).tolist()
    return NearPage(pages["page_key"][first].as_py(), pages["url"][first].as_py(), share)


def _similar_pairs(pages: pa.Table, least: float) -> Rows:
    """Returns the PAIRs of pages that the build compares and that are similar; `row` is the number of a page here."""
    rows = near_pages.page_rows(pages, 0, np.arange(len(pages)))
    bands = pages["band_hashes"].combine_chunks().flatten().to_numpy().reshape(len(pages), -1)
    minima = near_pages.minima_of(pages["minima"])
    pairs = near_pages.candidates(near_pages.band_rows(rows, bands, pages["crawl"].to_numpy()))
    return pairs[near_pages.similarities(minima[pairs["row"]], minima[pairs["first_row"]]) >= least]


def _is_in(pages: pa.Table, others: pa.Table) -> npt.NDArray[np.bool_]:
    return np.isin(pages["page_key"].to_numpy(), others["page_key"].to_numpy())


def _pages(files: Sequence[StoragePath], crawls: Sequence[int], stale: Sequence[Any], choose: Any) -> pa.Table:
    """Returns those pages of all work files, without stale captures, whose rows `choose` returns for each table.

    The key of the crawl of each file is a further column.
    """
    return pa.concat_tables(
        [
            chosen.append_column("crawl", pa.array(np.full(len(chosen), crawl, np.uint64)))
            for path, crawl, rows in zip(files, crawls, stale, strict=True)
            for pages, _ in read_kept(path, _COLUMNS, rows)
            for chosen in [pages.take(pa.array(choose(pages)))]
        ]
    )


def _with_key(pages: pa.Table, keys: U64) -> Any:
    has_bands = pc.list_value_length(pages["band_hashes"]).to_numpy() > 0
    return np.flatnonzero(np.isin(pages["page_key"].to_numpy(), keys) & has_bands)


def _with_band(pages: pa.Table, bands: Any) -> Any:
    column = pages["band_hashes"].combine_chunks()
    return np.unique(pc.list_parent_indices(column).to_numpy()[np.isin(column.flatten().to_numpy(), bands)])
