"""Pages that are nearly the same, end to end: against plain Python, in any order, on any number of workers."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import c4pipe
from c4pipe.corpus import Corpus
from c4pipe.jobs import corpus_plan
from c4pipe.wet.page import Page
from c4pipe.wet.writer import write_wet
from tests.helpers.corpora import contents
from tests.helpers.near_crawls import clusters_of, divided, jaccard, joined, kept_of, made_texts, pages_of

RECIPE = 'base = "unfiltered"\noff = ["language"]\non = ["near_duplicate"]\n'
SHARDS = ("und/*.parquet", "report.json", "manifest.json", "README.md")


def write_crawl(folder: Path, pages: Sequence[Page], files: int, more: str = "") -> Path:
    """Writes the pages as WET files, with a recipe file that has the rule."""
    (folder / "crawl").mkdir(parents=True)
    for name, some in divided(pages, files).items():
        write_wet(folder / "crawl" / name, some)
    (folder / "near.toml").write_text(RECIPE + more)
    return folder


def build(
    folder: Path, pages: Sequence[Page], files: int = 3, more: str = "", workers: int = 1, **options: object
) -> Corpus:
    write_crawl(folder, pages, files, more)
    return c4pipe.build_corpus(
        folder / "crawl",
        output=folder / "corpus",
        recipe=folder / "near.toml",
        workers=workers,
        **options,  # type: ignore[arg-type]
    )


def urls(folder: Path) -> set[str]:
    import pyarrow.parquet as pq

    return {url for path in (folder / "corpus").glob("und/*.parquet") for url in pq.read_table(path)["url"].to_pylist()}


@pytest.mark.parametrize("least", [0.0, 0.75, 0.9])
def test_one_page_of_each_cluster_stays(tmp_path: Path, least: float) -> None:
    texts = made_texts(300)
    pages = pages_of(texts)
    corpus = build(tmp_path, pages, more=f"min_similarity = {least}\n")
    clusters = clusters_of(texts, least)
    assert len(clusters) > 50
    assert urls(tmp_path) == kept_of(pages, clusters, texts)
    counts = corpus.manifest["counts"]
    assert counts["pages.dropped.near_duplicate"] == sum(map(len, clusters)) - len(clusters)
    assert counts.get("near_duplicates.unsettled", 0) == 0


def test_the_corpus_is_the_same_however_it_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = made_texts(150, sizes=(1, 2, 40))  # of bands that 40 pages share, not all pairs are compared
    pages = pages_of(texts)
    build(tmp_path / "one", pages, files=1)
    build(tmp_path / "two", pages, files=7, workers=2)
    build(tmp_path / "turned", pages[::-1], files=5)
    monkeypatch.setattr(corpus_plan, "group_size", lambda files, rows: 3)
    build(tmp_path / "groups", pages, files=20)
    shards = [contents(tmp_path / name / "corpus" / "und") for name in ("one", "two", "turned", "groups")]
    assert shards[0]
    assert shards[0] == shards[1] == shards[2] == shards[3]


def test_a_page_that_is_everywhere_sends_one_row_for_each_band_and_group(tmp_path: Path) -> None:
    everywhere, others = made_texts(40, sizes=(1,))[0], made_texts(30, seed=2, sizes=(1,))
    pages = pages_of([everywhere] * 500 + others)
    corpus = build(tmp_path, pages, files=4)
    counts = corpus.manifest["counts"]
    assert counts["pages.dropped.near_duplicate"] == 499
    assert counts["near_duplicates.compared"] == 3  # one page of each group with the first of all
