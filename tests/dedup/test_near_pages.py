"""Signatures, candidate pairs and clusters, against plain Python."""

import hashlib
import random
import re
import unicodedata
from array import array
from collections import Counter
from itertools import accumulate, combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from c4pipe.dedup import near_pages, shuffle
from c4pipe.dedup.near_pages import BAND_ROW, NEAR_PAGE, PAIR
from c4pipe.io.rows import Rows
from c4pipe.native import text_kernel
from c4pipe.text import minhash
from c4pipe.text.character_sets import OTHER_PUNCTUATION, characters
from c4pipe.text.english_words import english_words
from c4pipe.text.page_text import JoinedWords
from scripts.make_near_curve import PLOT, plot, share_a_band
from tests.helpers.near_crawls import jaccard, joined, made_words, settled

EDGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60)


def signature_in_plain_python(text: str, ngram: int, numbers: int) -> list[int]:
    """The law: each n-gram's SHA-1, each permutation modulo 2^64 and then the prime, and the minimum of each."""
    words = english_words().words(minhash.simplify(text))
    hashes = {
        int.from_bytes(hashlib.sha1(" ".join(words[at : at + ngram]).encode()).digest()[:8], "little")
        for at in range(len(words) - ngram + 1)
    }
    generator, prime = np.random.RandomState(1), 2**61 - 1
    factors = generator.randint(1, prime, dtype=np.uint64, size=(1, numbers))[0].tolist()
    summands = generator.randint(0, prime, dtype=np.uint64, size=(1, numbers))[0].tolist()
    pairs = list(zip(factors, summands, strict=True))
    return [min((each * a + b) % 2**64 % prime for each in hashes) for a, b in pairs] if hashes else []


def simplified_step_by_step(text: str) -> str:
    """The law: datatrove's steps (`utils/text.py`, simplify_text), each over the whole text."""
    marks = characters(OTHER_PUNCTUATION) + ".?!．。？！"
    text = re.sub("\\d+(?:[.,،٫⎖⎗⎘]\\d+)?", "0", text.lower())
    text = " ".join(re.sub(f"[{re.escape(marks)}]+", " ", text).split())
    return "".join(each for each in unicodedata.normalize("NFD", text) if unicodedata.category(each) != "Mn").strip()


SIMPLIFIED = [
    *"12309.,،٫⎖१٣１ \t\n\u3000\x85\x1caÄéΣ’—≠한Ấ́",
    "\u302e\u302f",
    "\U0001d165",
    "\u0958",
    "\ud800",
    *map(chr, range(0xE0, 0x120)),
]


@settings(max_examples=500, deadline=None)
@given(text=st.lists(st.one_of(st.sampled_from(SIMPLIFIED), st.characters()), max_size=60).map("".join))
@example("12,300.5 and 1٫2⎖3 of ٣١ x \u0301 ．1")
@example("\U0001d16d\u302e")  # not of the category Mn, but NFD changes their order
@example("".join(map(chr, range(0xE0, 0x180))))  # many letters with accents
def test_a_text_is_simplified_as_step_by_step(text: str) -> None:
    assert minhash.simplify(text) == simplified_step_by_step(text)


@settings(max_examples=50, deadline=None)
@given(text=st.text(max_size=200), ngram=st.integers(1, 5), bands=st.integers(1, 4), rows=st.integers(1, 5))
def test_a_signature_is_that_of_plain_python(text: str, ngram: int, bands: int, rows: int) -> None:
    signature = minhash.minima(text, ngram, bands, rows)
    assert signature.tolist() == signature_in_plain_python(text, ngram, bands * rows)
    assert len(minhash.band_hashes(signature, bands)) == (bands if len(signature) else 0)


def test_a_signature_of_many_ngrams_is_that_of_plain_python() -> None:
    text = " ".join(made_words(random.Random(0), 900))
    assert minhash.minima(text, 5, 3, 2).tolist() == signature_in_plain_python(text, 5, 6)


@given(texts=st.lists(st.lists(st.sampled_from(["a", "b", "ab", "ba", "\ud800", "\u4e00a"]), max_size=12), max_size=2))
def test_the_similarity_of_two_sets_of_ngrams(texts: list[list[str]]) -> None:
    one, other = [*texts, [], []][:2]
    joined_words = [
        JoinedWords("".join(each), memoryview(array("q", accumulate(map(len, each), initial=0))))
        for each in (one, other)
    ]
    sets = [set(zip(*(each[at:] for at in range(3)), strict=False)) for each in (one, other)]
    expected = len(sets[0] & sets[1]) / max(1, len(sets[0] | sets[1]))
    assert minhash.jaccard(*(minhash.ngram_set(each, 3) for each in joined_words)) == expected


def test_numbers_can_be_kept() -> None:
    assert minhash.simplify("Bus 904, at 19.10 (\u0663)") == "bus 0 at 0 0"
    assert minhash.simplify("Bus 904, at 19.10 (\u0663)", "kept") == "bus 904 at 19 10 \u0663"
    one, other = (minhash.minima(f"the bus {number} leaves at noon", 5, 2, 2, "", (), "kept") for number in (7, 8))
    assert not (one == other).any()


@pytest.mark.parametrize("kernel", [text_kernel, None], ids=["c", "python"])
def test_short_pages_can_be_one_ngram(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minhash, "text_kernel", kernel)
    texts = ("cat dog", "Cat, dog!", "cat", "", "a b c d e")
    short = [minhash.minima(text, 5, 2, 2, "", (), "zero", "whole") for text in texts]
    assert short[0].tolist() == short[1].tolist()
    assert not (short[0] == short[2]).any()
    assert not len(short[3])
    assert short[4].tolist() == minhash.minima("a b c d e", 5, 2, 2).tolist()
    sets = [minhash.ngram_set(minhash.compared_words(text, 5, short_pages="whole"), 5) for text in ("cat dog", "cat")]
    assert minhash.jaccard(sets[0], sets[0]) == 1 > minhash.jaccard(*sets) == 0


@given(text=st.text(max_size=100))
def test_a_simplified_text_has_no_capitals_digits_and_accents(text: str) -> None:
    simple = minhash.simplify(text)
    assert simple == simple.strip()
    assert not re.search(r"[1-9.,!?\t\n]", simple)
    assert not [each for each in simple if unicodedata.category(each) == "Mn"]
    again = minhash.simplify(simple)  # it can differ: `≠` gives `=`, which is punctuation
    assert minhash.simplify(again) == again


def test_bands_are_shared_as_often_as_the_formula_says() -> None:
    rng = random.Random(5)
    vocabulary = made_words(rng, 4000)
    found: Counter[int] = Counter()
    expected: Counter[int] = Counter()
    pairs: Counter[int] = Counter()
    right = wrong = missed = 0
    for _ in range(700):
        words = rng.choices(vocabulary, k=rng.randint(80, 160))
        share = rng.choice((0.005, 0.01, 0.02, 0.03, 0.05, 0.08))
        one, other = " ".join(words), " ".join(rng.choice(vocabulary) if rng.random() < share else w for w in words)
        similarity = jaccard(one, other)
        signatures = [minhash.minima(each, 5, 14, 8) for each in (one, other)]
        shared = set.intersection(*(set(minhash.band_hashes(each, 14).tolist()) for each in signatures))
        shortened = [minhash.short_minima(each)[None] for each in signatures]
        (estimate,) = near_pages.similarities(*shortened)
        assert abs(estimate - similarity) < 0.2  # four standard deviations of 112 draws
        part = int(similarity * 5)
        pairs[part] += 1
        found[part] += bool(shared)
        expected[part] += share_a_band(similarity, 14, 8)  # type: ignore[assignment]
        drops = bool(shared) and estimate >= 0.75
        right += drops and similarity >= 0.75
        wrong += drops and similarity < 0.75
        missed += not drops and similarity >= 0.75
    for part, number in pairs.items():
        assert abs(found[part] - expected[part]) <= 4 * max(1.0, (number / 4) ** 0.5), part
    assert right / (right + missed) > 0.9
    assert right / (right + wrong) > 0.9


def test_the_plot_is_made_from_the_recipe() -> None:
    assert PLOT.read_text(encoding="utf-8") == plot(), "run: python scripts/make_near_curve.py"


def pages_at(*keys: int, rank: int = 0) -> Rows:
    pages = np.zeros(len(keys), NEAR_PAGE)
    pages["page"], pages["rank"], pages["row"] = keys, rank, np.arange(len(keys))
    return pages


@given(edges=EDGES)
def test_components_are_those_of_a_plain_union_find(edges: list[tuple[int, int]]) -> None:
    one, other = (np.array([edge[side] for edge in edges], np.intp) for side in (0, 1))
    labels = near_pages.components(one, other, 31).tolist()
    expected = {node: min(cluster) for cluster in joined(edges) for node in cluster}
    assert labels == [expected.get(node, node) for node in range(31)]


@settings(max_examples=60, deadline=None)
@given(edges=EDGES, ranks=st.lists(st.integers(0, 3), min_size=31, max_size=31), groups=st.integers(1, 31))
def test_groups_that_tell_each_other_find_the_clusters(
    edges: list[tuple[int, int]], ranks: list[int], groups: int
) -> None:
    pages = pages_at(*range(31))
    pages["rank"], pages["file"] = ranks, np.arange(31) % groups
    edges = [edge for edge in edges if edge[0] != edge[1]]
    pairs = near_pages.pairs_of(pages[[one for one, _ in edges]], pages[[other for _, other in edges]])
    for _ in range(8):
        here = [pairs[(pairs["file"] == group) | (pairs["first_file"] == group)] for group in range(groups)]
        pairs = np.concatenate([near_pages.connect(each) for each in here])
    dropped: dict[int, int] = {}
    stays: dict[int, int] = {}
    for group in range(groups):
        mine = pairs[(pairs["file"] == group) | (pairs["first_file"] == group)]
        chosen, unsettled = near_pages.choose(mine, np.empty(0, PAIR), mine["file"] == group)
        assert unsettled == 0
        dropped.update(zip(chosen["page"].tolist(), chosen["first_page"].tolist(), strict=True))
    for cluster in joined(edges):
        first, *others = sorted(cluster, key=lambda page: (ranks[page], page))
        stays.update(dict.fromkeys(others, first))
    assert dropped == stays


@settings(max_examples=200, deadline=None)
@given(
    edges=EDGES,
    ranks=st.lists(st.integers(0, 3), min_size=31, max_size=31),
    signatures=st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=31, max_size=31),
    rng=st.randoms(use_true_random=False),
)
def test_pages_unlike_the_first_page_are_clusters_of_their_own(
    edges: list[tuple[int, int]], ranks: list[int], signatures: list[list[int]], rng: random.Random
) -> None:
    pages, minima = pages_at(*range(31)), np.array(signatures, np.uint16)
    pages["rank"] = ranks
    edges = [edge for edge in edges if edge[0] != edge[1]]
    same = [pair for pair in combinations(range(31), 2) if signatures[pair[0]] == signatures[pair[1]]]
    expected, _ = settled(
        edges + same,
        lambda page: (ranks[page], page),
        lambda one, other: bool((minima[one] == minima[other]).mean() >= 0.6),
    )
    pairs = near_pages.pairs_of(pages[[one for one, _ in edges]], pages[[other for _, other in edges]])
    order = rng.sample(range(31), 31)
    found, left = near_pages.settle(pages[order], minima[order], np.zeros(31, np.uint64), pairs, 0.6)
    assert dict(zip(found["page"].tolist(), found["first_page"].tolist(), strict=True)) == expected
    assert left == 0


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2), st.integers(0, 40)), max_size=40),
    rng=st.randoms(use_true_random=False),
)
def test_candidates_depend_on_no_order_and_connect_all_that_share_a_band(
    rows: list[tuple[int, int, int, int]], rng: random.Random
) -> None:
    made = np.zeros(len(rows), BAND_ROW)
    for place, (band, signature, rank, page) in enumerate(rows):
        made[place] = (band, signature, rank, page, 0, 0)
    _, first = np.unique(made[["hash", "page"]], return_index=True)
    made = made[first]
    for page in np.unique(made["page"]).tolist():  # a page has one signature and one length
        same = made["page"] == page
        made["signature"][same], made["rank"][same] = made["signature"][same][0], made["rank"][same][0]
    pairs = near_pages.candidates(made)
    order = list(range(len(made)))
    rng.shuffle(order)
    assert near_pages.candidates(made[order]).tolist() == pairs.tolist()
    by_band = [made["page"][made["hash"] == band].tolist() for band in range(4)]
    expected = joined((some[0], each) for some in by_band for each in some[1:])
    found = joined(zip(pairs["page"].tolist(), pairs["first_page"].tolist(), strict=True))
    assert found == [each for each in expected if len(each) > 1]


def test_no_page_is_in_many_pairs() -> None:
    rows = np.zeros(10_000, BAND_ROW)
    rows["page"] = rows["signature"] = np.arange(len(rows))
    pairs = near_pages.candidates(rows)
    assert np.bincount(np.r_[pairs["page"], pairs["first_page"]].astype(int)).max() == 2 * near_pages.NEIGHBOURS


def test_a_page_that_stays_is_dropped_for_no_other_where_rounds_are_too_few() -> None:
    pages = pages_at(0, 1, 2, 3)
    pairs = near_pages.pairs_of(pages[:-1], pages[1:])  # a chain that nobody has connected
    dropped, unsettled = near_pages.choose(pairs, np.empty(0, PAIR), np.ones(3, bool))
    assert dropped["page"].tolist() == [1, 2, 3]
    assert unsettled == 2


@pytest.mark.parametrize("numbers", [1, 7, 112])
def test_rows_of_signatures_are_whole_words(numbers: int) -> None:
    rows = np.zeros(3, near_pages.signature_row(numbers))
    assert shuffle.totals(rows).rows == 3


@given(pages=st.lists(st.integers(0, 255), max_size=20))
def test_minima_are_those_of_the_pages(pages: list[int]) -> None:
    column = pa.chunked_array([[bytes([page] * 6) for page in [1, *pages]]], pa.binary()).slice(1)
    assert near_pages.minima_of(column).tolist() == [[257 * page] * 3 for page in pages]


@given(
    pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60),
    ranks=st.lists(st.integers(0, 3), min_size=10, max_size=10),
)
def test_each_pair_is_kept_once_and_in_order(pairs: list[tuple[int, int]], ranks: list[int]) -> None:
    pages = pages_at(*range(10))
    pages["rank"] = ranks
    made = near_pages.pairs_of(pages[[one for one, _ in pairs]], pages[[other for _, other in pairs]])
    unique = near_pages.unique_pairs(made)
    expected = sorted({(page, rank, first) for _, page, _, _, rank, first, _, _ in made.tolist()})
    assert [(page, rank, first) for _, page, _, _, rank, first, _, _ in unique.tolist()] == expected


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=40))
def test_of_pages_with_one_signature_the_first_leads(rows: list[tuple[int, int]]) -> None:
    pages = pages_at(*range(len(rows)))
    pages["rank"] = [rank for rank, _ in rows]
    bands = np.array([[signature] * 2 for _, signature in rows], np.uint64).reshape(-1, 2)
    leaders, copies = near_pages.split_copies(pages, bands, np.zeros(len(pages), np.uint64))
    first = {
        signature: min((rank, page) for page, (rank, s) in enumerate(rows) if s == signature) for _, signature in rows
    }
    assert sorted(leaders.tolist()) == sorted(page for _, page in first.values())
    found = sorted(zip(copies["page"].tolist(), copies["first_page"].tolist(), strict=True))
    assert found == [(page, first[s][1]) for page, (_, s) in enumerate(rows) if page != first[s][1]]
