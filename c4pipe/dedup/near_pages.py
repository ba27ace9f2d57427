"""Pages that are nearly the same: rows of fixed width from bands of signatures to clusters. No object for a page.

A *page row* names a page and its place: `rank`, `page` (its key), `file` and `row`. Pages are ordered by (rank, page
key): the smallest rank is the longest text. So the first page of a cluster stays.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4pipe.dedup.shuffle import Shuffle, shuffles_of
from c4pipe.io.rows import Indices, Rows, is_new
from c4pipe.text.hashes import U64
from c4pipe.text.minhash import U16

_PAGE = [("rank", "<u4"), ("page", "<u8"), ("file", "<u4"), ("row", "<u4")]

NEAR_PAGE = np.dtype(_PAGE)
"""A page: rank (2^32 - 1 minus the characters of its text), key, number of its work file, row in that file."""

BAND_ROW = np.dtype([("hash", "<u8"), ("signature", "<u4"), *_PAGE])
"""A band of a page: its hash, 32 bits of the hash of the page's whole signature, and the page."""

PAIR = np.dtype([*_PAGE, *((f"first_{name}", kind) for name, kind in _PAGE)])
"""Two pages that are, or may be, of one cluster: the later page, then the first page."""

STAY = np.dtype([("page", "<u8"), ("file", "<u4"), ("row", "<u4"), ("pages", "<u4"), ("group", "<u4")])
"""A page that stays: its key, file and row; the number of pages that a group drops for it, and that group."""

BANDS = Shuffle("bands", "bands of signatures, to their bucket", BAND_ROW)
"""32 bytes: band hash, signature hash, rank, page key, file, row. To the bucket of the band hash."""

COPIES = Shuffle("copies", "pages with the signature of another page of their group, to their group", PAIR)
"""40 bytes: two pages with one signature, each with rank, key, file and row. To their own group."""

CANDIDATES = Shuffle("candidates", "pages that share a band, to the group of the later page", PAIR)
"""40 bytes, as `COPIES`. To the group of the later page."""

PAIRS = Shuffle("pairs", "pages to compare, to the group of the first page", PAIR)
"""40 bytes, as `COPIES`, each pair once. To the group of the first page."""

SIGNATURES = Shuffle("signatures", "signatures to compare, to the group of the first page")
"""232 bytes for 112 minima: page key, 16 bits of each minimum (`signature_row`). To the group of the first page."""

CLUSTERS = Shuffle("clusters", "pages of one cluster, to the groups of both", PAIR)
"""40 bytes: a page and the first page of its cluster, in each round. To the groups of both."""

NEAR_DUPLICATES = Shuffle("near_duplicates", "pages that are nearly the same as another, to their group", PAIR)
"""40 bytes: a page to drop and the page that stays. To the group of the page to drop, for two steps."""

STAYING = Shuffle("staying", "pages that stay, to their group", STAY)
"""24 bytes: key, file and row of the page that stays, number of pages, group. To the group of the page that stays."""

STAYED = Shuffle("stayed", "pages that stay, to the groups that drop a page for them")
"""Arrow streams with key, URL and minima. To the groups that drop a page for the page that stays."""

NEAR_SHUFFLES = shuffles_of(globals())
"""The shuffles of the rule `near_duplicate`, by name: their rows, and the receivers of the rows."""

NEIGHBOURS = 4
"""The number of pages that a page is compared with among the pages that share a band, in the order of signatures."""

_NAMES = tuple(NEAR_PAGE.names or ())
_MOST_RANK = 2**32 - 1
_ODD = np.uint64(0x9E3779B97F4A7C15)


def signature_row(numbers: int) -> np.dtype[np.void]:
    """Returns the dtype of a row with a page's key and the last 16 bits of its minima; rows are whole 32-bit words."""
    return np.dtype([("page", "<u8"), ("minima", "<u2", (numbers + numbers % 2,))])


def page_rows(pages: pa.Table, file: int, rows: Indices) -> Rows:
    """Returns the NEAR_PAGE rows of pages with `page_key` and `characters`, given their file and their rows there."""
    made = np.empty(len(pages), NEAR_PAGE)
    made["rank"] = _MOST_RANK - pages["characters"].to_numpy()
    made["page"], made["file"], made["row"] = pages["page_key"].to_numpy(), file, rows
    return made


def split_copies(pages: Rows, bands: U64, crawls: U64) -> tuple[Indices, Rows]:
    """Finds pages of one crawl with the same signature among the pages of a group of files.

    Args:
        pages: NEAR_PAGE rows.
        bands: the band hashes of each page. Shape: [pages, bands].
        crawls: the key of each page's crawl (`near_duplicates.crawl_key`).

    Returns:
        The index of the first page of each signature, in the order of the signatures' hashes, and a PAIR of each other
        page with the first page of its signature.
    """
    whole = whole_hashes(bands) ^ crawls
    order = _order(whole, pages)
    first = is_new(whole[order])
    leaders = order[first]
    of_leader = leaders[(np.cumsum(first) - 1)[~first]]
    return leaders, pairs_of(pages[order[~first]], pages[of_leader])


def whole_hashes(bands: U64) -> U64:
    """Returns a hash of each page's signature, from band hashes of the shape [pages, bands]."""
    whole = np.zeros(len(bands), np.uint64)
    for column in bands.T:
        whole = (whole ^ (whole >> np.uint64(29))) * _ODD + column
    whole ^= whole >> np.uint64(32)
    whole *= _ODD
    return whole


def band_rows(pages: Rows, bands: U64, crawls: U64) -> Rows:
    """Returns the BAND_ROWs of pages, in the order of their hashes.

    The key of the page's crawl is in the hash of a band, so pages of two crawls share no band. The key is not in
    `signature`, so the order of the pages of one crawl does not depend on the crawl's name.
    """
    hashes = (bands ^ crawls[:, np.newaxis]).reshape(-1)
    order = np.argsort(hashes)
    of_page = order // max(1, bands.shape[1])
    rows = np.empty(len(hashes), BAND_ROW)
    rows["hash"] = hashes[order]
    rows["signature"] = (whole_hashes(bands) >> np.uint64(32))[of_page]
    for name in _NAMES:
        rows[name] = pages[name][of_page]
    return rows


def candidates(rows: Rows) -> Rows:
    """Returns the PAIRs to compare among the BAND_ROWs of a bucket: each pair once.

    Pages with the same signature are compared with the first page of the signature. Of all signatures that share a
    band, each first page is compared with the next NEIGHBOURS pages in the order of signatures. So the pairs do not
    depend on the order of pages in files and groups, and no page is in many pairs.
    """
    hashes = np.ascontiguousarray(rows["hash"])
    order = np.argsort(hashes)
    first = is_new(hashes[order])
    shared = ~(first & np.r_[first[1:], True][: len(first)])
    rows = rows[order[shared]]
    # One number to sort by: the index of the hash in the order of hashes, then the signature.
    bands = np.cumsum(first)[shared].astype(np.uint64) << np.uint64(32) | rows["signature"]
    rows = rows[_order(bands, rows)]
    leads = is_new(rows["hash"], rows["signature"])
    leaders = rows[leads]
    pairs = [pairs_of(rows[~leads], leaders[(np.cumsum(leads) - 1)[~leads]])]
    for distance in range(1, min(NEIGHBOURS + 1, len(leaders))):
        near = np.flatnonzero(leaders["hash"][distance:] == leaders["hash"][:-distance])
        pairs.append(pairs_of(leaders[near], leaders[near + distance]))
    return unique_pairs(np.concatenate(pairs))


def pairs_of(some: Rows, others: Rows) -> Rows:
    """Returns the PAIRs of page rows of any kind, in each the later page before the first."""
    later = (some["rank"] > others["rank"]) | ((some["rank"] == others["rank"]) & (some["page"] > others["page"]))
    pairs = np.empty(len(some), PAIR)
    for name in _NAMES:
        pairs[name] = np.where(later, some[name], others[name])
        pairs[f"first_{name}"] = np.where(later, others[name], some[name])
    return pairs


def unique_pairs(pairs: Rows) -> Rows:
    """Returns each PAIR once, in the order of the keys of the later pages, then of the order of the first pages."""
    # Equal pairs have equal mixtures, so they become neighbours; then fewer pairs are sorted.
    mixtures = (pairs["page"] ^ (pairs["first_page"] >> np.uint64(29))) * _ODD + pairs["first_page"]
    pairs = pairs[np.argsort(mixtures)]
    pairs = pairs[is_new(pairs["page"], pairs["first_page"])]
    pairs = pairs[np.lexsort((pairs["first_page"], pairs["first_rank"], pairs["page"]))]
    return pairs[is_new(pairs["page"], pairs["first_page"])]


def minima_of(column: pa.ChunkedArray) -> U16:
    """Returns the minima of pages from the column `minima` of a work file. All pages must have minima.

    Shape: [pages, minima].
    """
    array = column.combine_chunks()
    if not len(array):
        return np.empty((0, 0), np.uint16)
    ends = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1] // 2
    minima: U16 = np.frombuffer(array.buffers()[2], "<u2")[ends[0] : ends[-1]].reshape(len(array), -1)
    return minima


def similarities(one: U16, other: U16) -> npt.NDArray[np.float64]:
    """Returns the share of equal minima of pairs of signatures: row i of both arrays is pair i."""
    equal: npt.NDArray[np.float64] = (one == other).mean(axis=1)
    return equal


def connect(pairs: Rows) -> Rows:
    """Returns a PAIR of each later page with the first page of its cluster, as far as these PAIRs tell."""
    keys = np.r_[pairs["page"], pairs["first_page"]]
    order = np.argsort(keys)
    new = is_new(keys[order])
    by_key, chosen = np.cumsum(new) - 1, order[new]
    pages = np.empty(len(chosen), NEAR_PAGE)
    for name in _NAMES:
        pages[name] = np.r_[pairs[name], pairs[f"first_{name}"]][chosen]
    by_rank = np.argsort(pages["rank"], kind="stable")  # pages of one rank stay in the order of their keys
    place = np.empty(len(pages), np.intp)
    place[by_rank] = np.arange(len(pages))
    numbers = np.empty(len(order), np.intp)
    numbers[order] = place[by_key]
    pages = pages[by_rank]
    labels = components(numbers[: len(pairs)], numbers[len(pairs) :], len(pages))
    linked = np.flatnonzero(labels != np.arange(len(pages)))
    return pairs_of(pages[linked], pages[labels[linked]])


def choose(clusters: Rows, copies: Rows, is_own: npt.NDArray[np.bool_]) -> tuple[Rows, int]:
    """Chooses the pages of a group to drop. A page that stays is never dropped for another page.

    Args:
        clusters: PAIRs of pages with the first page of their cluster.
        copies: PAIRs of the group's pages with the first page of the same signature.
        is_own: whether the later page of each of `clusters` is of this group.

    Returns:
        A PAIR of each page to drop with the page that stays, in the order of page keys. And the number of unsettled
        pairs: the rounds ended before their cluster was whole.
    """
    all_own = unique_pairs(clusters[is_own])
    first = is_new(all_own["page"])
    own = all_own[first]
    unsettled = int((~first).sum() + np.isin(own["page"], clusters["first_page"]).sum())
    place = np.searchsorted(own["page"], copies["first_page"])
    found = np.minimum(place, max(0, len(own) - 1))
    follows = own["page"][found] == copies["first_page"] if len(own) else np.zeros(len(copies), bool)
    copies = copies.copy()
    for name in (f"first_{name}" for name in _NAMES):
        copies[name][follows] = own[name][found[follows]]
    dropped = np.concatenate([own, copies])
    return dropped[np.argsort(dropped["page"])], unsettled


def staying(dropped: Rows, group: int) -> Rows:
    """Returns a STAY row of each page that stays, given the PAIRs of a group's pages to drop."""
    order = np.argsort(dropped["first_page"], kind="stable")
    new = np.flatnonzero(is_new(dropped["first_page"][order]))
    first = dropped[order[new]]
    rows = np.empty(len(new), STAY)
    for name in ("page", "file", "row"):
        rows[name] = first[f"first_{name}"]
    rows["pages"], rows["group"] = np.diff(np.r_[new, len(order)]), group
    return rows


def components(one: Indices, other: Indices, number: int) -> Indices:
    """Returns for each node the smallest node of its connected component, given the ends of edges and all nodes."""
    labels = np.arange(number)
    while True:
        ends = labels[one], labels[other]
        least, most = np.minimum(*ends), np.maximum(*ends)
        open_edges = np.flatnonzero(least != most)
        if not len(open_edges):
            return labels
        one, other, least, most = (each[open_edges] for each in (one, other, least, most))
        np.minimum.at(labels, most, least)
        while (labels[labels] != labels).any():
            labels = labels[labels]


def _order(keys: U64, pages: Rows) -> Indices:
    """Returns the order of rows by key, then by rank and page."""
    order = np.argsort(keys)
    first = is_new(keys[order])
    tied = ~(first & np.r_[first[1:], True][: len(first)])
    some = order[tied]
    order[tied] = some[np.lexsort((pages["page"][some], pages["rank"][some], keys[some]))]
    return order
