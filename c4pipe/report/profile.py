"""What the pages of a corpus are like: counts by language, length, domain and month. In Arrow and NumPy. No Beam.

A profile is made of JSON values and has no time in it: the same pages give the same bytes. Profiles of shards add up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.corpus.shard_writer import PROBABILITY
from c4pipe.display.excerpt import URL_SIZE, excerpt, short

Profile = dict[str, Any]
"""Counters by name (COUNTS), numbers, and lists of pages."""

COUNTS = ("pages", "characters", "lines", "line_characters", "months", "domain_pages", "domain_bytes")
"""Pages by `language/split`, by the power of two that their characters and their lines reach; lines by that of their
characters; pages by month; pages and UTF-8 bytes by domain."""

DOMAINS = 200
"""Domains of a shard that are told; the others are counted together."""

FIRST = 3  # pages shown of a language
UNSURE = 5  # pages shown of the least sure language

_HOST = r"(?i)^(?:[a-z][a-z0-9+.-]*://)?(?:[^/?#]*@)?(?:www\.)?(?P<host>\[[^\]/?#]*\]|[^:/?#]*)"


class Profiler:
    """Profiles one shard, some pages at a time."""

    def __init__(self, language: str, split: str, number: int) -> None:
        """Takes the shard's language, split and number: pages of the first train shard are shown."""
        self._place = f"{language}/{split}"
        self._show = FIRST if number == 0 and split == "train" else 0
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTS}
        self._domains: list[pa.Table] = []
        self._first: list[dict[str, Any]] = []
        self._unsure: list[dict[str, Any]] = []

    def add(self, pages: pa.Table) -> None:
        """Adds pages in the shard's order: a table with the columns of `shards.SCHEMA`."""
        if not len(pages):
            return
        pages = pages.combine_chunks()
        lines = pc.split_pattern(pages["text"], "\n")
        self._counts["pages"][self._place] += len(pages)
        self._counts["characters"].update(_powers(pc.utf8_length(pages["text"])))
        self._counts["lines"].update(_powers(pc.list_value_length(lines)))
        self._counts["line_characters"].update(_powers(pc.utf8_length(pc.list_flatten(lines))))
        months = pc.value_counts(pc.utf8_slice_codeunits(pages["timestamp"], 0, 7)).to_pylist()
        self._counts["months"].update({each["values"]: each["counts"] for each in months})
        sizes = pc.cast(pc.binary_length(pages["text"]), pa.int64())
        self._domains.append(
            _sums(pa.table({"host": domains(pages["url"]), "pages": np.ones(len(pages), np.int64), "bytes": sizes}))
        )
        self._first += [_shown(row) for row in pages.slice(0, max(0, self._show - len(self._first))).to_pylist()]
        least = np.argsort(pages[PROBABILITY].to_numpy(), kind="stable")[:UNSURE]
        self._unsure = _least_sure([*self._unsure, *map(_shown, pages.take(pa.array(least)).to_pylist())])

    def result(self) -> Profile:
        """Returns the profile of the pages so far."""
        if self._domains:
            found = _sums(pa.concat_tables(self._domains))
            found = found.sort_by([("pages", "descending"), ("bytes", "descending"), ("host", "ascending")])
            top = found.slice(0, DOMAINS).to_pylist()
            self._counts["domain_pages"].update({each["host"]: each["pages"] for each in top})
            self._counts["domain_bytes"].update({each["host"]: each["bytes"] for each in top})
        known = len(found) if self._domains else 0
        return _plain(self._counts, known, known > DOMAINS, self._first, self._unsure)


def add(profiles: Iterable[Profile]) -> Profile:
    """Returns the sum of profiles, in whatever order they come.

    Where a shard had more than DOMAINS, the number of domains and what each has are told as "at least".
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTS}
    most, cut = 0, False
    first: list[dict[str, Any]] = []
    unsure: list[dict[str, Any]] = []
    for each in profiles:
        for name in COUNTS:
            counts[name].update(each[name])
        most, cut = max(most, each["domains"]), cut or each["domains_cut"]
        first += each["first"]
        unsure = _least_sure([*unsure, *each["unsure"]])
    return _plain(counts, max(most, len(counts["domain_pages"])), cut, first, unsure)


def top_domains(profile: Profile, most: int = DOMAINS) -> Profile:
    """Returns a profile with its largest domains only; `domains` still counts them all."""
    order = sorted(profile["domain_pages"].items(), key=lambda item: (-item[1], item[0]))[:most]
    sizes = profile["domain_bytes"]
    return {**profile, "domain_pages": dict(order), "domain_bytes": {host: sizes[host] for host, _ in order}}


def domains(urls: pa.Array) -> pa.Array:
    """Returns the host of each URL as it stands there, in lower case, without `www.` and port."""
    return pc.utf8_lower(pc.struct_field(pc.extract_regex(urls, _HOST), "host"))


def _plain(
    counts: Mapping[str, Counter[str]], known: int, cut: bool, first: list[dict[str, Any]], unsure: list[dict[str, Any]]
) -> Profile:
    return {
        **{name: dict(sorted(counts[name].items(), key=_place)) for name in COUNTS},
        "domains": known,
        "domains_cut": cut,
        "first": sorted(first, key=lambda page: (page["language"], *_identity(page))),
        "unsure": unsure,
    }


def _place(item: tuple[str, int]) -> tuple[int, str]:
    """Puts numbers in their order, and names in one."""
    return len(item[0]), item[0]


def _sums(table: pa.Table) -> pa.Table:
    """Returns pages and bytes of each host, exact up to 2^53 (Arrow's own `group_by` would import its datasets)."""
    hosts = table["host"].combine_chunks().dictionary_encode("encode")
    places = hosts.indices.to_numpy()
    sums = {name: np.bincount(places, table[name].to_numpy()).astype(np.int64) for name in ("pages", "bytes")}
    return pa.table({"host": hosts.dictionary, **sums})


def _powers(numbers: pa.Array) -> dict[str, int]:
    """Counts numbers by the largest power of two that they reach; 0 by itself."""
    values = numbers.to_numpy(zero_copy_only=False) if isinstance(numbers, pa.Array) else numbers.to_numpy()
    bits = np.bincount(np.frexp(values.astype(np.float64))[1])
    return {str(1 << number >> 1): int(count) for number, count in enumerate(bits) if count}


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a page as it is shown: the beginning of its text, and of its URL where that is long."""
    shown = {name: row[name] for name in ("timestamp", "language", PROBABILITY)}
    return {"url": short(row["url"], URL_SIZE), **shown, "text": excerpt(row["text"])}


def _least_sure(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(pages, key=lambda page: (page[PROBABILITY], *_identity(page)))[:UNSURE]


def _identity(page: Mapping[str, Any]) -> tuple[str, ...]:
    return page["url"], page["timestamp"], *page["text"]
