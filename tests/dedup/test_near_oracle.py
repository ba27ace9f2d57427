"""Near-duplicates against the exact similarity of pairs of pages: what is found and what is missed."""

import random
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from c4pipe.text import minhash
from scripts.make_near_curve import share_a_band
from tests.dedup.test_near_duplicates import EXACT, SURVIVOR, build
from tests.helpers.near_crawls import jaccard, made_texts, made_words
from tests.helpers.near_crawls import pages_of as made_pages
from tests.helpers.pages import pages_of

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import near_pairs  # noqa: E402

PAGES, REAL, LEAST = 2500, 600, 0.75


def edited(text: str, rng: random.Random, words: list[str]) -> str:
    """A copy of a text in which a share of the words are others, and some of its end is missing."""
    share = rng.choice((0.0, 0.005, 0.01, 0.02, 0.04, 0.08))
    lines = text.split("\n")
    lines = lines[: rng.randint(-(-len(lines) * 9 // 10), len(lines))]
    return "\n".join(
        " ".join(rng.choice(words) if rng.random() < share else word for word in line.split(" ")) for line in lines
    )


def texts_of(folder: Path) -> list[str]:
    """Texts of real pages, edited copies of some of them, and made texts."""
    rng = random.Random(24)
    words = made_words(rng, 2000)
    files = [path for path in sorted(folder.rglob("*.wet.gz")) if "broken" not in path.parts]
    real = [page.body for path in files for page in pages_of(path)]
    real = sorted({text for text in real if 300 < len(text) < 6000})
    texts = rng.sample(real, min(REAL, len(real)))
    texts += [edited(text, rng, words) for text in rng.choices(texts, k=REAL)]
    made = made_texts(PAGES, seed=24)
    return texts + made[: PAGES - len(texts)]


def all_similarities(texts: Sequence[str]) -> dict[tuple[int, int], float]:
    """The exact similarity of each pair of texts that have an n-gram in common; the smaller number comes first."""
    sets = [np.unique(minhash.ngram_hashes(text, 5)) for text in texts]
    hashes, ids = np.unique(np.concatenate(sets), return_inverse=True)
    sizes = np.array([len(each) for each in sets])
    owners = np.repeat(np.arange(len(sets)), sizes)
    order = np.argsort(ids, kind="stable")
    starts, index = np.searchsorted(ids[order], np.arange(len(hashes) + 1)), owners[order]
    found, end = {}, 0
    for number, size in enumerate(sizes.tolist()):
        mine = ids[end : end + size]
        end += size
        same = [index[starts[each] : starts[each + 1]] for each in mine]
        common = np.bincount(np.concatenate([np.empty(0, np.intp), *same]), minlength=len(sets))
        for other in (np.flatnonzero(common[number + 1 :]) + number + 1).tolist():
            found[number, other] = float(common[other] / (size + sizes[other] - common[other]))
    return found


def shared_bands(texts: Sequence[str]) -> set[tuple[int, int]]:
    """The pairs of texts that share a band."""
    bands: dict[int, list[int]] = {}
    for number, text in enumerate(texts):
        for band in minhash.band_hashes(minhash.minima(text, 5, 14, 8), 14).tolist():
            bands.setdefault(band, []).append(number)
    return {pair for same in bands.values() for pair in combinations(same, 2)}


@pytest.mark.slow
def test_what_is_dropped_against_the_exact_similarity_of_each_pair(tmp_path: Path, largest_data: Path) -> None:
    texts = texts_of(largest_data)
    pages = made_pages(texts)
    assert len(pages) == PAGES
    exact = all_similarities(texts)
    shared = shared_bands(texts)

    # Bands: for each tenth of similarity, as many pairs share one as the formula says.
    assert shared <= exact.keys()
    for tenth in range(10):
        some = {pair: each for pair, each in exact.items() if min(int(each * 10), 9) == tenth}
        chances = np.array([share_a_band(each, 14, 8) for each in some.values()])
        deviation = float((chances * (1 - chances)).sum()) ** 0.5
        assert abs(len(shared & some.keys()) - chances.sum()) <= 4 * max(1.0, deviation), tenth

    build(tmp_path, pages, keep_dropped="all")
    stays = near_pairs.read_dropped(tmp_path / "corpus")
    assert stays.keys().isdisjoint(stays.values())
    # Recall: of the pairs that are alike, as many are in one cluster as share a band by the formula.
    alike = [pair for pair, each in exact.items() if each >= LEAST]
    recall = np.mean([stays.get(one, one) == stays.get(other, other) for one, other in alike])
    assert len(alike) > 750
    assert recall > 0.95
    assert abs(recall - np.mean([share_a_band(exact[pair], 14, 8) for pair in alike])) < 0.02
    # Precision: dropped pages are like the page that stays, most of them; through others, they can be less so.
    similar = np.array([exact.get((min(pair), max(pair)), 0.0) for pair in stays.items()])
    assert len(similar) > 500
    assert (similar >= LEAST).mean() > 0.88
    assert (similar >= LEAST - 0.1).mean() > 0.98
    assert similar.min() > 0.45
    # A page goes only for a page that it is like: by the estimate, and exactly.
    for name, more, most_wrong in (("survivor", SURVIVOR, 0.1), ("exact", EXACT, 0.0)):
        build(tmp_path / name, pages, more=more, keep_dropped="all")
        found = near_pairs.read_dropped(tmp_path / name / "corpus")
        similar = np.array([exact.get((min(pair), max(pair)), 0.0) for pair in found.items()])
        assert found.keys().isdisjoint(found.values())
        assert len(found) > 0.85 * len(stays)

        assert (similar < LEAST).mean() <= most_wrong
        assert similar.min() > LEAST - 0.15


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision", "recall"),
    [("cluster", 0.75, 0.97), ("survivor", 0.85, 0.97), ("estimate", 0.95, 0.97), ("recommended", 0.99, 0.97)],
)
def test_precision_and_recall_on_known_pairs(tmp_path: Path, name: str, precision: float, recall: float) -> None:
    corpus = near_pairs.Corpus(ROOT / "tests" / "data", 500)
    assert {pair.kind for pair in corpus.pairs} == near_pairs.KINDS.keys()
    for one, other, kind, similarity in corpus.pairs:
        zero = jaccard(corpus.texts[one], corpus.texts[other])  # with 0 for numbers
        assert zero == 1.0 > similarity if kind == "numbers" else zero == similarity
    build(tmp_path, made_pages(corpus.texts), more=near_pairs.OURS[name][1], keep_dropped="all")
    reached = near_pairs.score(corpus, near_pairs.read_dropped(tmp_path / "corpus"))
    assert reached.precision >= precision
    assert reached.recall >= recall
