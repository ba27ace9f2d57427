"""The option --copies: each page says how many pages of the inputs were nearly the same."""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe import read
from c4pipe.errors import UsageError
from c4pipe.jobs import dedup_plan
from c4pipe.wet.columns import CRAWL_PROVENANCE
from tests.dedup.test_near_duplicates import build, write_crawl
from tests.helpers.corpora import rows_of
from tests.helpers.doc_examples import python_blocks
from tests.helpers.documents import ROOT
from tests.helpers.near_crawls import clusters_of, kept_of, made_texts, pages_of

CRAWL = ROOT / "samples" / "crawl"
TEXTS = made_texts(120, sizes=(1, 2, 5, 9))


def copies_of(folder: Path) -> dict[str, int]:
    tables = [pq.read_table(path, columns=["url", "copies"]) for path in (folder / "corpus").glob("und/*.parquet")]
    return {row["url"]: row["copies"] for table in tables for row in table.to_pylist()}


def expected() -> Mapping[str, int]:
    pages, clusters = pages_of(TEXTS), clusters_of(TEXTS, 0.75)
    of_url = {pages[number].url: len(cluster) for cluster in clusters for number in cluster}
    return {url: of_url.get(url, 1) for url in kept_of(pages, clusters, TEXTS)}


@pytest.mark.parametrize(
    "runner",
    [pytest.param("spark", marks=pytest.mark.spark), pytest.param("FnApiRunner", marks=pytest.mark.beam)],
)
def test_a_page_has_the_size_of_its_cluster_on_other_runners(runner: str, tmp_path: Path) -> None:
    write_crawl(tmp_path, pages_of(TEXTS), 5)
    c4pipe.build_corpus(
        tmp_path / "crawl", output=tmp_path / "corpus", recipe=tmp_path / "near.toml", copies=True, runner=runner
    )
    assert copies_of(tmp_path) == expected()


@pytest.mark.parametrize(("files", "workers", "group"), [(1, 1, 100), (9, 2, 100), (9, 1, 2)])
def test_a_page_has_the_size_of_its_cluster(
    files: int, workers: int, group: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dedup_plan, "group_size", lambda files, rows: group)
    build(tmp_path, pages_of(TEXTS), files, workers=workers, copies=True, format="parquet,tfrecord,json")
    found = copies_of(tmp_path)
    assert found == expected()
    assert {1, 2, 5} < set(found.values())
    assert sum(found.values()) == len(TEXTS)
    assert {page["url"]: page["copies"] for page in read.documents(tmp_path / "corpus")}.items() <= found.items()  # type: ignore[typeddict-item]
    for name in ("tfrecord", "json"):
        shards = c4pipe.open_corpus(tmp_path / "corpus").shards(None, name)
        assert sum(shard.rows for shard in shards) == len(found)


def test_all_other_bytes_are_the_same_without_it(tmp_path: Path) -> None:
    build(tmp_path / "without", pages_of(TEXTS))
    build(tmp_path / "with", pages_of(TEXTS), copies=True)
    columns = ["url", "text", "timestamp", "language", "language_probability"]
    for path in sorted((tmp_path / "without" / "corpus").glob("und/*.parquet")):
        other = tmp_path / "with" / "corpus" / "und" / path.name
        assert pq.read_schema(path).names == columns
        assert pq.read_table(path).equals(pq.read_table(other, columns=columns))


def test_provenance_and_copies_together(tmp_path: Path) -> None:
    corpus = build(tmp_path, pages_of(TEXTS), copies=True, provenance=True)
    assert corpus.recipe.columns == (*CRAWL_PROVENANCE, "copies:int")
    (row,) = pq.read_table(next((tmp_path / "corpus").glob("und/*train*.parquet"))).slice(0, 1).to_pylist()
    assert row["warc_file"].startswith("CC-")
    assert row["copies"] >= 1


def test_imported_pages_and_pages_that_lose_spans(tmp_path: Path) -> None:
    rows = [{"text": text, "id": number} for number, text in enumerate(TEXTS)]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "my.toml").write_text('base = "as-is"\non = ["near_duplicate", "repeated_span"]\n')
    c4pipe.import_text(
        tmp_path / "texts.jsonl",
        recipe=tmp_path / "my.toml",
        columns="id",
        copies=True,
        output=tmp_path / "corpus",
        workers=1,
    )
    found = rows_of(tmp_path / "corpus")
    assert sum(page["copies"] for page in found) == len(TEXTS)
    assert sorted(page["copies"] for page in found) == sorted(expected().values())
    assert {page["id"] for page in found} <= set(range(len(TEXTS)))


WEIGHTS = {1: 1, 2: 2, 3: 3, 5: 5, 100: 8, 1000: 1}


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with the column `copies`, in several shards."""
    folder = tmp_path_factory.mktemp("counted")
    build(folder, pages_of(TEXTS), copies=True, shards=3)
    return folder / "corpus"


def weighted_urls(corpus: Path, weights: Mapping[int, float] = WEIGHTS, **order: Any) -> list[str]:
    return [page["url"] for page in read.documents(corpus, weights=weights, **order)]


def test_pages_are_read_by_weights(counted: Path) -> None:
    sizes = expected()
    once = [page["url"] for page in read.documents(counted)]
    wanted = Counter({url: (5 if sizes[url] > 4 else min(sizes[url], 3)) for url in once})
    epochs = [weighted_urls(counted, seed=1, epoch=epoch) for epoch in (0, 0, 1)]
    assert Counter(epochs[0]) == Counter(epochs[2]) == wanted
    assert epochs[0] == epochs[1] != epochs[2]
    assert len(read.documents(counted, weights=WEIGHTS)) == wanted.total()
    parts = [weighted_urls(counted, seed=1, shard_index=index, num_shards=4) for index in range(4)]
    assert Counter(chain(*parts)) == wanted
    assert weighted_urls(counted, {1: 1}) == once


def test_pages_of_a_file_come_once_before_one_comes_again(counted: Path) -> None:
    first = c4pipe.open_corpus(counted).shards()[0]
    urls = weighted_urls(counted)
    assert len(set(urls[: first.rows])) == first.rows


def test_fractions_and_pages_that_are_left_out(counted: Path) -> None:
    sizes = expected()
    found = Counter(weighted_urls(counted, {1: 1.5, 2: 0}))
    assert {sizes[url] for url in found} == {1}
    assert set(found.values()) == {1, 2}
    assert found == Counter(weighted_urls(counted, {1: 1.5, 2: 0}, seed=2, epoch=3))


def test_a_weighted_reader_goes_on_from_its_state(counted: Path) -> None:
    whole = weighted_urls(counted, seed=3)
    reader = read.documents(counted, seed=3, weights=WEIGHTS)
    before = [next(reader)["url"] for _ in range(len(whole) // 2)]
    other = read.documents(counted, seed=3, weights=WEIGHTS)
    other.restore(json.loads(json.dumps(reader.state())))
    assert before + [page["url"] for page in other] == whole
    with pytest.raises(UsageError, match="the state belongs to other documents or arguments"):
        read.documents(counted, seed=3).restore(reader.state())
    with pytest.raises(UsageError, match="the state belongs to other documents or arguments"):
        read.documents(counted, seed=3, weights={1: 2}).restore(reader.state())


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({}, "weights={}: give a table"),
        ({0: 1}, "weights: 0: 1: give numbers of copies from 1 on"),
        ({1: -1}, "weights: 1: -1: give numbers of copies from 1 on, and weights from 0 to 1,000"),
        ({1: float("nan")}, "weights: 1: nan: give"),
        ({"1": 1}, "weights: '1': 1: give"),
    ],
)
def test_wrong_weights_are_one_sentence(weights: Any, says: str, counted: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read.documents(counted, weights=weights)
    assert str(caught.value).startswith(says)


def test_weights_need_the_column(small_corpus: Path) -> None:
    with pytest.raises(UsageError, match="has no column copies, and weights need it: build the corpus with --copies"):
        read.documents(small_corpus, weights={1: 1})


def test_the_block_of_the_page_runs(
    counted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = python_blocks(ROOT / "docs" / "near_duplicates.md")
    monkeypatch.chdir(counted.parent)
    exec(compile(code, "near_duplicates.md", "exec"), {})
    assert int(capsys.readouterr().out) == len(weighted_urls(counted))


def test_the_column_needs_the_rule(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--copies: recipe c4 has no rule near_duplicate: give a recipe file with"):
        c4pipe.build_corpus(CRAWL, output=tmp_path / "corpus", copies=True, workers=1)
    assert not (tmp_path / "corpus").exists()
