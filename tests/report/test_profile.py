"""The profile of a corpus: it counts what plain Python counts, and profiles add up."""

import hashlib
import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA
from c4pipe.report import html_page, profile
from c4pipe.report.profile import COUNTS, Profile, Profiler
from tests.helpers.reports import (
    Row,
    data_of,
    manifest_of,
)

HOSTS = st.sampled_from(["a.example", "WWW.b.example", "www.c.example:8080", "user:word@d.example", "[::1]:80", ""])
URLS = st.builds(
    "{}{}{}".format, st.sampled_from(["https://", "http://", ""]), HOSTS, st.sampled_from(["", "/x?y@z", "#f"])
)
ROWS = st.builds(
    lambda url, text, month, probability: dict(
        zip(CORPUS_SCHEMA.names, (url, text, f"2019-{month:02}-01T00:00:00Z", "en", probability), strict=True)
    ),
    URLS,
    st.text(st.sampled_from("aé\n𝄞 "), max_size=40),
    st.integers(1, 12),
    st.sampled_from([0.99, 0.995, 1.0]),
)


def profiled(rows: list[Row], at_once: int = 3) -> Profile:
    profiler = Profiler("en", "train")
    for first in range(0, len(rows), at_once):
        profiler.add(pa.Table.from_pylist(rows[first : first + at_once], CORPUS_SCHEMA))
    return profiler.result()


def host(url: str) -> str:
    """The host of a URL, by string methods instead of a pattern."""
    rest = (
        re.split("[/?#]", url.partition("://")[2] if "://" in url else url)[0]
        .rpartition("@")[2]
        .lower()
        .removeprefix("www.")
    )
    return rest.partition("]")[0] + "]" if rest.startswith("[") else rest.partition(":")[0]


def sample_key(url: str) -> str:
    return hashlib.blake2b(url.encode(), digest_size=8, person=b"c4pipe sample").hexdigest()


def plain_counts(rows: list[Row]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts["pages"]["en/train"] += 1
        strings = (row[name] for name in ("url", "text", "timestamp", "language"))
        counts["table_bytes"]["en/train"] += sum(4 + len(each.encode()) for each in strings) + 8
        counts["domain_pages"][host(row["url"])] += 1
        counts["domain_bytes"][host(row["url"])] += len(row["text"].encode())
        counts["language_bytes"]["en"] += len(row["text"].encode())
    return counts


@given(st.lists(ROWS, max_size=30), st.integers(1, 40))
@settings(max_examples=60)
def test_a_profile_counts_what_plain_python_counts(rows: list[Row], at_once: int) -> None:
    counted: Any = profiled(rows, at_once)
    plain = plain_counts(rows)
    assert {name: Counter(counted[name]) for name in COUNTS} == {name: plain[name] for name in COUNTS}
    assert (counted["domains"], counted["domains_cut"]) == (len(plain["domain_pages"]), False)
    by_hash = sorted(sample_key(row["url"]) for row in rows)[: profile.SAMPLE_PAGES]
    assert [page["key"] for page in counted["sample"]] == by_hash
    assert all(page["key"] == sample_key(page["url"]) for page in counted["sample"])
    assert counted["language_bytes"] == ({"en": sum(len(row["text"].encode()) for row in rows)} if rows else {})


@given(st.lists(st.lists(ROWS, max_size=8), max_size=5), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_profiles_add_up_in_any_order(shards: list[list[Row]], chance: random.Random) -> None:
    parts = [profiled(rows) for rows in shards]
    total: Any = profile.add_profiles(parts)
    chance.shuffle(parts)
    middle = len(parts) // 2
    assert profile.add_profiles([profile.add_profiles(parts[:middle]), profile.add_profiles(parts[middle:])]) == total
    whole: Any = profiled([row for rows in shards for row in rows])
    for name in (*COUNTS, "sample"):
        assert total[name] == whole[name]


def test_domains_that_are_cut_off_are_told_as_at_least(corpus: Path) -> None:
    rows = [
        dict(
            zip(
                CORPUS_SCHEMA.names, (f"https://s{n % 300}.example/{n}", "A b c.", "2019-01-01", "en", 1.0), strict=True
            )
        )
        for n in range(500)
    ]
    counted = profile.add_profiles([profiled(rows, 100)] * 2)
    assert (counted["domains"], counted["domains_cut"], len(counted["domain_pages"])) == (300, True, profile.DOMAINS)
    assert set(counted["domain_pages"].values()) == {4}  # s0 to s199 have two pages in each
    shown = html_page.render_report(manifest_of(corpus), data_of(corpus) | {"profile": counted})
    assert "at least 300 hosts" in shown
    assert "the numbers are lower bounds" in shown
