"""Near-duplicates of pages of known corpora: against plain Python, which compares each pair."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from c4pipe.errors import UsageError
from c4pipe.filters import minhash
from c4pipe.inspect.explain import CorpusExplainer
from c4pipe.jobs import dedup
from tests.dedup.test_near_duplicates import build, urls
from tests.helpers.near_crawls import clusters_of, jaccard, kept_of, made_texts, pages_of

Sketch = tuple[int, ...]


def bands_of(text: str) -> tuple[list[tuple[int, bytes]], Sketch]:
    """The bands of a text, and the last bit of each number of its signature."""
    signature = minhash.minima(text, 5, 14, 8)
    return [(band, signature[band * 8 : band * 8 + 8].tobytes()) for band in range(14)], tuple((signature & 1).tolist())


def order(sketch: Sketch) -> tuple[int, ...]:
    """The order of sketches in an index: two numbers of 64 bits, little-endian."""
    return tuple(np.packbits([*sketch, *[0] * 16]).view("<u8").tolist())


def near_known(texts: Sequence[str], known: Sequence[str], least: float) -> set[int]:
    """The numbers of the texts that are nearly the same as a known text, by the sketches."""
    sketches: Mapping[tuple[int, bytes], set[Sketch]] = defaultdict(set)
    for text in known:
        bands, sketch = bands_of(text)
        for band in bands:
            sketches[band].add(sketch)
    few = {band: sorted(some, key=order)[:4] for band, some in sketches.items()}
    found = set()
    for number, text in enumerate(texts):
        bands, own = bands_of(text)
        equal = (
            sum(a == b for a, b in zip(own, sketch, strict=True)) for band in bands for sketch in few.get(band, ())
        )
        if any(number / 112 >= (1 + least) / 2 if least else True for number in equal):
            found.add(number)
    return found


def texts_of(folder: Path) -> dict[str, str]:
    tables = [pq.read_table(path, columns=["url", "text"]) for path in (folder / "corpus").glob("und/*.parquet")]
    return {row["url"]: row["text"] for table in tables for row in table.to_pylist()}


@pytest.mark.parametrize(("least", "files", "group"), [(0.75, 3, 100), (0.9, 7, 2), (0.0, 1, 100)])
def test_pages_that_are_nearly_a_known_page_go(
    tmp_path: Path, least: float, files: int, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dedup, "group_size", lambda files, rows: group)
    more = f"min_similarity = {least}\n"
    texts = made_texts(150, sizes=(1, 2, 3, 9))
    pages = pages_of(texts)
    first, second = pages[: len(pages) // 3], pages[len(pages) // 3 :]
    build(tmp_path / "known", first, more=more, index=True)
    corpus = build(
        tmp_path / "new", second, files, more, known=[tmp_path / "known" / "corpus"], keep_dropped="all", workers=2
    )
    known = texts_of(tmp_path / "known")
    dropped = near_known([page.body for page in second], list(known.values()), least)
    left = [page for number, page in enumerate(second) if number not in dropped]
    left_texts = [page.body for page in left]
    clusters = clusters_of(left_texts, least)
    assert min(len(dropped), len(clusters)) > 10
    assert urls(tmp_path / "new") == kept_of(left, clusters, left_texts)
    assert corpus.counts["pages.dropped.known_near_duplicate"] == len(dropped)
    rows = [
        row
        for path in (tmp_path / "new" / "corpus" / "_dropped").glob("*.dedup.parquet")
        for row in pq.read_table(path).to_pylist()
        if row["reason"] == "known_near_duplicate"
    ]
    assert {row["url"] for row in rows} == {second[number].url for number in dropped}
    if least:  # the sketch is an estimate
        similar = [max(jaccard(row["text"], text) for text in known.values()) for row in rows]
        assert np.mean(np.array(similar) >= least) > 0.85
        assert min(similar) > least - 0.25


def test_explained_as_built(tmp_path: Path) -> None:
    pages = pages_of(made_texts(30, sizes=(1, 2, 5)))
    build(tmp_path / "known", pages[:20], index=True)
    corpus = build(tmp_path / "new", pages[15:], known=[tmp_path / "known" / "corpus"])
    explainer = CorpusExplainer(tmp_path / "new" / "corpus", known=[tmp_path / "known" / "corpus"])
    verdicts = [verdict for page in pages[15:] for verdict in explainer.explain(page.url)]
    reasons = [verdict.reason for verdict in verdicts]
    names = ("known_near_duplicate", "known_url", "near_duplicate")
    assert [reasons.count(name) for name in names] == [corpus.counts[f"pages.dropped.{name}"] for name in names]
    assert min(reasons.count(name) for name in names) > 0
    assert {each.url for each in verdicts if each.reason is None} == urls(tmp_path / "new")
    (fact,) = {each.rules[-1].fact for each in verdicts if each.reason == "known_near_duplicate"}
    assert fact == f"{tmp_path / 'known' / 'corpus'} has a page that is nearly the same"


def test_pages_of_another_crawl_are_not_compared(tmp_path: Path) -> None:
    pages = pages_of(made_texts(20, sizes=(1, 3)))
    build(tmp_path / "known", pages[:20], more='within = "crawl"\n', index=True)
    assert not list((tmp_path / "known" / "corpus" / "_index").glob("bands-*"))
    crawl = 'within = "crawl"\n'
    corpus = build(tmp_path / "new", pages[20:], more=crawl, known=[tmp_path / "known" / "corpus"])
    alone = build(tmp_path / "alone", pages[20:], more=crawl)
    assert corpus.manifest["shards"] == alone.manifest["shards"]
    with pytest.raises(UsageError, match=r"the bands of its index are missing, and those of the recipe near are ngram"):
        build(tmp_path / "other", pages[20:], known=[tmp_path / "known" / "corpus"])
