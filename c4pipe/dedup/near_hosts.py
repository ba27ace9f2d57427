"""Hosts whose pages are nearly the same as pages of another host, for the report: counted by rows of fixed width."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa

from c4pipe.dedup.near_finish import MOST, read_staying
from c4pipe.dedup.near_pages import whole_hashes
from c4pipe.filters.duplicates import Rows
from c4pipe.io.paths import StoragePath
from c4pipe.report.profile import domains

_PLACES = ("file", "row", "first_file", "first_row")

HOSTS = np.dtype([("hash", "<u8"), ("pages", "<u4"), *((name, "<u4") for name in _PLACES)])
"""Two hosts: a hash of both, how many pages of the first are dropped for a page of the second, and where one such page
and the page that stays are."""


def host_pairs(pairs: Rows, urls: pa.Array, staying: pa.Array) -> Rows:
    """Returns the HOSTS rows of pages that are dropped, each pair of different hosts once, in the order of hashes.

    Args:
        pairs: a PAIR of each page with the page that stays.
        urls: the URLs of these pages.
        staying: the URLs of the pages that stay.
    """
    hosts = domains(pa.concat_arrays([urls, staying])).dictionary_encode("encode")
    names = hosts.dictionary.to_pylist()
    hashes = np.array([mmh3.hash64(name or "", signed=False)[0] for name in names], np.uint64)
    both = hashes[hosts.indices.to_numpy()].reshape(2, -1).T
    rows = np.empty(len(pairs), HOSTS)
    rows["hash"], rows["pages"] = whole_hashes(both), 1
    for name in _PLACES:
        rows[name] = pairs[name]
    return add_up(rows[both[:, 0] != both[:, 1]])


def add_up(rows: Rows) -> Rows:
    """Returns HOSTS rows with one row of each hash, in the order of the hashes."""
    rows = rows[np.argsort(rows["hash"], kind="stable")]
    starts = np.flatnonzero(np.r_[True, rows["hash"][1:] != rows["hash"][:-1]][: len(rows)])
    sums = rows[starts]
    if len(rows):
        sums["pages"] = np.add.reduceat(rows["pages"], starts)
    return sums


def most_copied(rows: Rows) -> list[dict[str, int]]:
    """Returns the pairs of hosts with most pages, given all HOSTS rows of their hashes; ties by hash."""
    sums = add_up(rows)
    order = np.lexsort((sums["hash"], -sums["pages"].astype(np.int64)))[:MOST]
    return [{name: int(sums[name][each]) for name in HOSTS.names or ()} for each in order.tolist()]


def with_names(pairs: Iterable[Mapping[str, int]], files: Sequence[StoragePath]) -> list[dict[str, Any]]:
    """Returns the pairs with most pages for the report: `host`, the host `of` the pages that stay, and `pages`.

    Args:
        pairs: what `most_copied` returned for each bucket, in any order.
        files: the work files, by number.
    """
    most = sorted(pairs, key=lambda each: (-each["pages"], each["hash"]))[:MOST]
    places = sorted({(each[f"{side}file"], each[f"{side}row"]) for each in most for side in ("", "first_")})
    names: dict[tuple[int, int], str] = {}
    for file in sorted({file for file, _ in places}):
        rows = [row for of, row in places if of == file]
        pages = read_staying(files[file], np.array(rows, np.uint32), ["url"])
        hosts = domains(pages["url"].combine_chunks()).to_pylist()
        names.update(zip(((file, row) for row in rows), hosts, strict=True))
    return [
        {
            "host": names[each["file"], each["row"]],
            "of": names[each["first_file"], each["first_row"]],
            "pages": each["pages"],
        }
        for each in most
    ]
