"""Statistics of the pages of a corpus: counts by language and domain, computed with Arrow and NumPy.

A profile is made of JSON values: the same pages give the same bytes. The profiles of shards can be added.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypedDict, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.corpus.formats.shard_format import PROBABILITY
from c4pipe.io.json_files import check_sum, whole
from c4pipe.io.rows import arrow_array
from c4pipe.io.words import URL_SIZE, excerpt, short


class PageExcerpt(TypedDict):
    """The beginning of a page. Every second piece of its text is marked."""

    url: str
    timestamp: str
    language: str
    language_probability: float
    text: Sequence[str]


class Profile(TypedDict):
    """Counts and pages of a corpus or a shard; docs/formats.md describes each member."""

    pages: Mapping[str, int]  # by language/split
    table_bytes: Mapping[str, int]  # by language/split
    domain_pages: Mapping[str, Annotated[int, whole(1)]]
    domain_bytes: Mapping[str, int]
    language_bytes: Mapping[str, int]  # UTF-8 bytes of text
    domains: int  # how many there are
    domains_cut: bool  # whether some were left out
    sample: Sequence[PageExcerpt]


COUNTS = ("pages", "table_bytes", "domain_pages", "domain_bytes", "language_bytes")
"""The members of a profile that are counters: they are added."""

DOMAINS = 200
"""The most domains of a shard that a profile names: the domains with the most pages."""

SAMPLE_PAGES = 5
"""How many pages of each language `sample` has: the pages with the smallest hashes. Nothing else uses these hashes."""

_HOST = r"(?i)^(?:[a-z][a-z0-9+.-]*://)?(?:[^/?#]*@)?(?:www\.)?(?P<host>\[[^\]/?#]*\]|[^:/?#]*)"


class Profiler:
    """Makes the profile of one shard, a batch of pages at a time."""

    def __init__(self, language: str, split: str) -> None:
        """Starts the empty profile of a shard."""
        self._language, self._name = language, f"{language}/{split}"
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTS}
        self._domains: list[pa.Table] = []
        self._sample: list[dict[str, Any]] = []

    def add(self, pages: pa.Table) -> None:
        """Adds a batch of pages in the shard's order: a table with the columns of `writer.SCHEMA`."""
        if not len(pages):
            return
        pages = pages.combine_chunks()
        self._counts["pages"][self._name] += len(pages)
        self._counts["table_bytes"][self._name] += sum(map(_bytes_in_memory, pages.columns))
        sizes = pc.cast(pc.binary_length(pages["text"]), pa.int64())
        self._domains.append(
            _sums(pa.table({"host": domains(pages["url"]), "pages": pa.repeat(1, len(pages)), "bytes": sizes}))
        )
        self._counts["language_bytes"][self._language] += int(pc.sum(sizes).as_py())
        self._add_to_sample(pages)

    def _add_to_sample(self, pages: pa.Table) -> None:
        keys = [_sample_key(url) for url in pages["url"].to_pylist()]
        limit = sorted([*(page["key"] for page in self._sample), *keys])[:SAMPLE_PAGES][-1]
        rows = [row for row, key in enumerate(keys) if key <= limit]
        if rows:
            found = pages.take(pa.array(rows, pa.int64())).to_pylist()
            excerpts = [{"key": keys[row], **_excerpt(page)} for row, page in zip(rows, found, strict=True)]
            self._sample = _smallest([*self._sample, *excerpts])

    def result(self) -> Profile:
        """Returns the profile of the pages so far."""
        if self._domains:
            hosts = _sums(pa.concat_tables(self._domains))
            hosts = hosts.sort_by([("pages", "descending"), ("bytes", "descending"), ("host", "ascending")])
            largest = hosts.slice(0, DOMAINS).to_pylist()
            self._counts["domain_pages"].update({each["host"]: each["pages"] for each in largest})
            self._counts["domain_bytes"].update({each["host"]: each["bytes"] for each in largest})
        domain_count = len(hosts) if self._domains else 0
        return _profile(self._counts, domain_count, domain_count > DOMAINS, self._sample)


def add_profiles(profiles: Iterable[Profile]) -> Profile:
    """Returns the sum of profiles, which does not depend on their order.

    If a shard had more than DOMAINS domains, the number of domains and each domain's pages and bytes are lower bounds.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTS}
    domain_count, cut = 0, False
    sample: dict[str, list[Any]] = {}
    for each in profiles:
        for name in counts:
            counts[name].update(cast(dict[str, Any], each)[name])
        domain_count, cut = max(domain_count, each["domains"]), cut or each["domains_cut"]
        for page in each["sample"]:
            sample.setdefault(page["language"], []).append(page)
    pages = [page for language in sorted(sample) for page in _smallest(sample[language])]
    return _profile(counts, max(domain_count, len(counts["domain_pages"])), cut, pages)


def check_profile(profile: Profile, counts: Mapping[str, int]) -> None:
    """Raises ValueError if the sums of a profile are not the counters of its corpus, if these are given."""
    if profile["domain_pages"].keys() != profile["domain_bytes"].keys():
        raise ValueError("profile.domain_bytes has other hosts than profile.domain_pages")
    if not counts:
        return
    number = sum(profile["pages"].values())
    check_sum("the sum of profile.pages", number, counts.get("pages.kept", 0), "manifest.json")
    number = sum(profile["language_bytes"].values())
    check_sum("the sum of profile.language_bytes", number, counts.get("bytes.kept", 0), "manifest.json")
    pages = Counter[str]()
    for folder, number in profile["pages"].items():
        language, _, split = folder.partition("/")
        pages[f"pages.kept.{language}"] += number
        pages["pages.validation"] += number if split == "validation" else 0
    for name, number in pages.items():
        check_sum(f"the sum of profile.pages for {name}", number, counts.get(name, 0), "manifest.json")


def largest_domains(profile: Profile, size: int = DOMAINS) -> Profile:
    """Returns a profile that names only the `size` domains with the most pages; `domains` still counts all domains."""
    order = sorted(profile["domain_pages"].items(), key=lambda item: (-item[1], item[0]))[:size]
    sizes = profile["domain_bytes"]
    return {**profile, "domain_pages": dict(order), "domain_bytes": {host: sizes[host] for host, _ in order}}


def domains(urls: pa.Array) -> pa.Array:
    """Returns the host of each URL in lower case, without `www.` and port."""
    return pc.utf8_lower(pc.struct_field(pc.extract_regex(urls, _HOST), "host"))


def _profile(counts: Mapping[str, Counter[str]], domain_count: int, cut: bool, sample: list[Any]) -> Profile:
    sums = {name: dict(sorted(counts[name].items())) for name in COUNTS}
    return cast(Profile, {**sums, "domains": domain_count, "domains_cut": cut, "sample": sample})


def _bytes_in_memory(column: Any) -> int:
    """Returns the bytes of a column in Arrow's memory, without the first offsets and the bits of nulls, which depend on
    the batches. A value of less than one byte counts as one byte.
    """
    if pa.types.is_list(column.type):
        return 4 * len(column) + _bytes_in_memory(pc.list_flatten(column))
    if pa.types.is_string(column.type):
        return 4 * len(column) + int(pc.sum(pc.cast(pc.binary_length(column), pa.int64())).as_py() or 0)
    return len(column) * max(1, int(column.type.bit_width) // 8)


def _sums(table: pa.Table) -> pa.Table:
    """Returns pages and bytes of each host, exact up to 2^53 (Arrow's own `group_by` would import its datasets)."""
    hosts = table["host"].combine_chunks().dictionary_encode("encode")
    indices = hosts.indices.to_numpy()
    sums = [np.bincount(indices, table[name].to_numpy()).astype(np.int64) for name in ("pages", "bytes")]
    return pa.table([hosts.dictionary, *map(arrow_array, sums)], ["host", "pages", "bytes"])


def _excerpt(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a page with the beginning of its text, and of its URL if that is long."""
    columns = {name: row[name] for name in ("timestamp", "language", PROBABILITY)}
    return {"url": short(row["url"], URL_SIZE), **columns, "text": excerpt(row["text"])}


def _sample_key(url: str) -> str:
    # Not the hash that decides which page keeps a repeated span: the pages that keep spans would be a biased sample.
    return hashlib.blake2b(url.encode("utf-8", "surrogateescape"), digest_size=8, person=b"c4pipe sample").hexdigest()


def _smallest(pages: list[Any]) -> list[Any]:
    return sorted(pages, key=lambda page: (page["key"], *_identity(page)))[:SAMPLE_PAGES]


def _identity(page: Mapping[str, Any]) -> tuple[Any, ...]:
    return page["url"], page["timestamp"], page[PROBABILITY], *page["text"]
