"""Pages that are nearly the same: rows of fixed width from bands of signatures to clusters. No object for a page.

A *page row* names a page and its place: `rank`, `page` (its key), `file` and `row`. Pages are ordered by (rank, page
key): the smallest rank is the longest text, or the newest page. So the first page of a cluster stays.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4pipe.dedup.shuffle import Shuffle, shuffles_of
from c4pipe.filters.checked_page import tokenizer_of
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.io.rows import Indices, Rows, is_new, with_fields
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.hashes import U64
from c4pipe.text.languages import UNKNOWN
from c4pipe.text.minhash import U16, compared_words, ngram_set

_PAGE = [("rank", "<u4"), ("page", "<u8"), ("file", "<u4"), ("row", "<u4")]

NEAR_PAGE = np.dtype(_PAGE)
"""A page: rank (see `ranks`), key, number of its work file, row in that file."""
BAND_ROW = np.dtype([("hash", "<u8"), ("signature", "<u4"), *_PAGE])
"""A band of a page: its hash, 32 bits of the hash of the page's whole signature, and the page."""

PAIR = np.dtype([*_PAGE, *((f"first_{name}", kind) for name, kind in _PAGE)])
"""Two pages that are, or may be, of one cluster: the later page, then the first page."""

DROPPED = np.dtype([*PAIR.descr, ("similarity", "<f4")])
"""A page to drop, the page that stays, and their exact similarity; 0 if an estimate was enough."""

LINK = np.dtype([("page", "<u8"), ("first_page", "<u8")])
"""The keys of two pages of a PAIR."""

_PLACE = [("page", "<u8"), ("file", "<u4"), ("row", "<u4")]

STAY = np.dtype([*_PLACE, ("pages", "<u4"), ("group", "<u4"), *((f"other_{name}", kind) for name, kind in _PLACE)])
"""A page that stays: its key, file and row; the number of pages that a group drops for it, and that group; key, file
and row of the first of these pages.
"""

OPEN_PAGE = [*_PAGE, ("first_page", "<u8")]
"""The fields of a page unlike the first page of its cluster: the page, and the key of the first page."""

BANDS = Shuffle("bands", "bands of signatures, to their bucket", BAND_ROW)
"""32 bytes: band hash, signature hash, rank, page key, file, row. To the bucket of the band hash."""

COPIES = Shuffle("copies", "pages with the signature of another page of their group, to their group", PAIR)
"""40 bytes: two pages with one signature, each with rank, key, file and row. To their own group."""

CANDIDATES = Shuffle("candidates", "pages that share a band, to the group of the later page", PAIR)
"""40 bytes, as `COPIES`. To the group of the later page."""

PAIRS = Shuffle("pairs", "pages to compare, to the group of the first page", PAIR)
"""40 bytes, as `COPIES`, each pair once. To the group of the first page."""

SIGNATURES = Shuffle("signatures", "signatures to compare, to the group of the other page")
"""232 bytes for 112 minima: page key, 16 bits of each minimum (`signature_row`). To the group of the other page."""

CLUSTERS = Shuffle("clusters", "pages of one cluster, to the groups of both", PAIR)
"""40 bytes: a page and the first page of its cluster, in each round. To the groups of both."""

OPEN_PAGES = Shuffle("open_pages", "pages unlike the first page of their cluster, to the group of that page")
"""252 bytes for 112 minima: rank, key, file, row, key of the first page, 16 bits of each minimum. To the group of that
page.
"""

LINKS = Shuffle("links", "similar pages of one cluster, to the group of its first page", LINK)
"""16 bytes: the keys of two similar pages; the later one is unlike the first page. To the group of the first page."""

TEXTS = Shuffle("texts", "texts that decide, to the groups of pages to compare")
"""Arrow streams with key, text and language. To the groups that may drop a page for the page of the text."""

NEAR_DUPLICATES = Shuffle("near_duplicates", "pages that are nearly the same as another, to their group", DROPPED)
"""44 bytes: a page to drop, the page that stays, their similarity. To the group of the page to drop, for two steps."""

STAYING = Shuffle("staying", "pages that stay, to their group", STAY)
"""40 bytes: a page that stays, number of pages, group, and one of these pages. To the group of the page that stays."""

STAYED = Shuffle("stayed", "pages that stay, to the groups that drop a page for them")
"""Arrow streams with key, URL and minima. To the groups that drop a page for the page that stays."""

NEAR_SHUFFLES = shuffles_of(globals())
"""The shuffles of the rule `near_duplicate`, by name: their rows, and the receivers of the rows."""

NEIGHBOURS = 4
"""The number of pages that a page is compared with among the pages that share a band, in the order of signatures."""

_NAMES = tuple(name for name, _ in _PAGE)

SETTLE_ROUNDS = 100
"""The most rounds in which pages are compared with the first page of their cluster. Most clusters need two."""

_PAIRS_AT_ONCE = 65_536  # whose signatures are side by side in memory
_MOST_RANK = 2**32 - 1
_ODD = np.uint64(0x9E3779B97F4A7C15)


def signature_row(numbers: int, page: Sequence[tuple[str, str]] = (("page", "<u8"),)) -> np.dtype[np.void]:
    """Returns the dtype of a row with a page's key and the last 16 bits of its minima; rows are whole 32-bit words."""
    return np.dtype([*page, ("minima", "<u2", (numbers + numbers % 2,))])


RANKED_BY = {"longest": ["characters"], "newest": ["captured"], "first": []}
"""The column that decides which page of a cluster stays, for each `keep`. Between equal pages, the page key decides."""


def ranks(pages: pa.Table, keep: str) -> npt.NDArray[np.uint32]:
    """Returns the ranks of pages with RANKED_BY: 2^32 - 1 minus characters, or minus seconds since 1970; or 0."""
    if keep == "longest":
        return np.asarray(_MOST_RANK - pages["characters"].to_numpy(), np.uint32)
    if keep == "newest":
        seconds = pages["captured"].to_numpy() // 1_000_000
        return np.asarray(_MOST_RANK - np.clip(seconds, 0, _MOST_RANK), np.uint32)
    return np.zeros(len(pages), np.uint32)


def page_rows(pages: pa.Table, file: int, rows: Indices, keep: str) -> Rows:
    """Returns the NEAR_PAGE rows of pages with `page_key` and RANKED_BY, given their file and their rows there."""
    made = np.empty(len(pages), NEAR_PAGE)
    made["rank"] = ranks(pages, keep)
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


def whole_hashes(bands: U64 | U16) -> U64:
    """Returns a hash of each page's signature, from band hashes of the shape [pages, bands], or from minima."""
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


def similarities_of(one: U16, rows: Indices, other: U16, other_rows: Indices) -> npt.NDArray[np.float64]:
    """Returns the share of equal minima of pairs of rows of two arrays of signatures."""
    shares = np.empty(len(rows))
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        some = slice(start, start + _PAIRS_AT_ONCE)
        shares[some] = similarities(one[rows[some]], other[other_rows[some]])
    return shares


def settle(pages: Rows, minima: U16, clusters: U64, links: Rows, least: float) -> tuple[Rows, int]:
    """Chooses the pages to drop such that each is similar to the page that stays in its place.

    In each round, the first page of each cluster stays, and similar pages are dropped for it. All others are left, and
    are clusters of their own in the next round, by the links between them. Pages of one signature are linked, too.

    Args:
        pages: NEAR_PAGE rows.
        minima: their minima. Shape: [pages, minima].
        clusters: a number of each page; pages with different numbers are in different clusters.
        links: rows with the keys `page` and `first_page` of similar pages, also of pages that are not given.
        least: the least share of equal minima of similar pages.

    Returns:
        A PAIR of each page to drop with the page that stays, in any order. And the number of pages that are left.
    """
    order = np.lexsort((pages["page"], pages["rank"]))
    pages, minima = with_fields(pages[order], NEAR_PAGE), minima[order]
    one, other = _find_links(pages["page"], links)
    whole = whole_hashes(minima) ^ clusters[order]
    by_signature = np.argsort(whole, kind="stable")
    same = ~is_new(whole[by_signature])
    one, other = np.r_[one, by_signature[same]], np.r_[other, by_signature[np.roll(same, -1)]]
    found, left = [np.empty(0, PAIR)], np.zeros(len(pages), bool)
    for _ in range(SETTLE_ROUNDS):
        labels = components(one, other, len(pages))
        later = np.flatnonzero(labels != np.arange(len(pages)))
        similar = similarities_of(minima, later, minima, labels[later]) >= least
        found.append(pairs_of(pages[later[similar]], pages[labels[later[similar]]]))
        left[:] = False
        left[later[~similar]] = True
        if not left.any():
            break
        both = left[one] & left[other]
        one, other = one[both], other[both]
    return np.concatenate(found), int(left.sum())


def _find_links(keys: U64, links: Rows) -> tuple[Indices, Indices]:
    """Returns the indices of both pages of each link between two pages with these keys."""
    order = np.argsort(keys)
    links = links[np.isin(links["page"], keys) & np.isin(links["first_page"], keys)]
    one, other = (order[np.searchsorted(keys, links[name], sorter=order)] for name in ("page", "first_page"))
    return one, other


def with_similarity(pairs: Rows, similarity: Any) -> Rows:
    """Returns the DROPPED rows of PAIRs."""
    rows = np.empty(len(pairs), DROPPED)
    for name in PAIR.names or ():
        rows[name] = pairs[name]
    rows["similarity"] = similarity
    return rows


def ngrams_of(pages: Iterable[Mapping[str, Any]], rules: Recipe) -> Iterator[U64]:
    """Yields the set of n-grams (`minhash.ngram_set`) of each page, given its `text` and `language`."""
    near = rules.need(NearDuplicate)
    for page in pages:
        tokenizer = tokenizer_of(rules.by_language, page["language"] or UNKNOWN)
        more = tokenizer, near.scripts, near.numbers, near.short_pages
        words = compared_words(page["text"], near.ngram, *more)
        yield ngram_set(words, near.ngram)


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


def staying(dropped: Rows, groups: npt.NDArray[Any]) -> Rows:
    """Returns a STAY row of each page that stays and each group, given PAIRs of pages to drop and their groups."""
    order = np.lexsort((dropped["page"], groups, dropped["first_page"]))
    new = np.flatnonzero(is_new(dropped["first_page"][order], groups[order]))
    first = dropped[order[new]]
    rows = np.empty(len(new), STAY)
    for name in ("page", "file", "row"):
        rows[name], rows[f"other_{name}"] = first[f"first_{name}"], first[name]
    rows["pages"], rows["group"] = np.diff(np.r_[new, len(order)]), groups[order[new]]
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
