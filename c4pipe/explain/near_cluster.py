"""The cluster of pages that are nearly the same as one page, from the work files of a corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean import read_kept
from c4pipe.dedup import near_pages
from c4pipe.io import StoragePath

_COLUMNS = ["url_key", "page_key", "url", "band_hashes", "minima", "characters"]


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


def staying_page(
    files: Sequence[StoragePath], stale: Sequence[Any], page_key: int, near: Mapping[str, Any]
) -> NearPage | None:
    """Returns the page that stays of the cluster of a page; None where the page has no n-grams.

    All work files are read once for each page that lies between the two, and twice more.

    Args:
        files: the work files.
        stale: for each file, the numbers of the rows that are stale captures.
        page_key: the key of the page.
        near: the parameters of the rule `near_duplicate`.
    """
    found = _pages(files, stale, lambda pages: np.flatnonzero(pages["page_key"].to_numpy() == np.uint64(page_key)))
    if not len(found) or not found["minima"][0].as_py():
        return None
    own, new = near_pages.minima_of(found["minima"])[:1], found
    while len(new):
        bands, signatures = (
            new["band_hashes"].combine_chunks().flatten().to_numpy(),
            near_pages.minima_of(new["minima"]),
        )
        sharing = _pages(files, stale, lambda pages, bands=bands: _with_band(pages, bands))
        best = np.array(
            [near_pages.similarities(signatures, each[None]).max() for each in near_pages.minima_of(sharing["minima"])],
            np.float64,
        )
        known = np.isin(sharing["page_key"].to_numpy(), found["page_key"].to_numpy())
        new = sharing.filter(pa.array((best >= near["min_similarity"]) & ~known))
        found = pa.concat_tables([found, new])
    first = found.sort_by([("characters", "descending"), ("page_key", "ascending")]).slice(0, 1)
    (share,) = near_pages.similarities(own, near_pages.minima_of(first["minima"])).tolist()
    return NearPage(first["page_key"][0].as_py(), first["url"][0].as_py(), share)


def _pages(files: Sequence[StoragePath], stale: Sequence[Any], choose: Any) -> pa.Table:
    """Returns those pages of all work files, without stale captures, whose rows `choose` returns for each table."""
    return pa.concat_tables(
        [
            pages.take(pa.array(choose(pages)))
            for path, rows in zip(files, stale, strict=True)
            for pages, _ in read_kept(path, _COLUMNS, rows)
        ]
    )


def _with_band(pages: pa.Table, bands: Any) -> Any:
    column = pages["band_hashes"].combine_chunks()
    return np.unique(pc.list_parent_indices(column).to_numpy()[np.isin(column.flatten().to_numpy(), bands)])
