"""Pages that are nearly the same, end to end: against plain Python, in any order, on any number of workers."""

import json
import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe.cli.main import main
from c4pipe.corpus.opened import Corpus
from c4pipe.dedup import finish, near_survivors
from c4pipe.dedup.near_pages import NEAR_SHUFFLES
from c4pipe.dedup.shuffle import unpack_table
from c4pipe.errors import LostDataError
from c4pipe.jobs import dedup_plan
from c4pipe.text import minhash
from c4pipe.text.comparison import compare_texts
from c4pipe.text.hashes import normalise_url, url_key
from c4pipe.wet.page import Page
from tests.dedup.test_dedup_losses import alter, lose, repeat, spoil
from tests.helpers.corpora import contents, rows_of
from tests.helpers.near_crawls import (
    clusters_of,
    divided,
    jaccard,
    kept_of,
    made_texts,
    pages_of,
    settled,
    similar_pairs,
)
from tests.helpers.wet_writer import write_wet

pytestmark = pytest.mark.slow

RECIPE = 'base = "unfiltered"\noff = ["language"]\non = ["near_duplicate"]\n'
SURVIVOR = 'compare = "survivor"\n'
EXACT = SURVIVOR + 'similarity = "exact"\n'


def write_crawl(folder: Path, pages: Sequence[Page], files: int, more: str = "") -> Path:
    """Writes the pages as WET files, with a recipe file that has the rule."""
    (folder / "crawl").mkdir(parents=True)
    for name, some in divided(pages, files).items():
        write_wet(folder / "crawl" / name, some)
    (folder / "near.toml").write_text(RECIPE + more)
    return folder


def build(
    folder: Path, pages: Sequence[Page], files: int = 3, more: str = "", workers: int = 1, **options: Any
) -> Corpus:
    write_crawl(folder, pages, files, more)
    return c4pipe.build_corpus(
        folder / "crawl",
        output=folder / "corpus",
        recipe=folder / "near.toml",
        workers=workers,
        **options,
    )


def urls(folder: Path) -> set[str]:
    return {row["url"] for row in rows_of(folder / "corpus")}


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


@pytest.mark.parametrize("similarity", ["estimate", "exact"])
@pytest.mark.parametrize("keep", ["longest", "newest", "first"])
def test_each_dropped_page_is_like_the_page_that_stays(tmp_path: Path, keep: str, similarity: str) -> None:
    texts = made_texts(150, sizes=(3, 9))
    times = random.Random(1).choices([f"2019-04-{day:02}T10:12:43Z" for day in range(1, 29)], k=len(texts))
    pages = pages_of(texts)
    pages = [Page(page.url, time, page.body, 0, page.size) for page, time in zip(pages, times, strict=True)]
    more = f'{SURVIVOR}keep = "{keep}"\nsimilarity = "{similarity}"\n'
    corpus = build(tmp_path, pages, more=more, keep_dropped="all")
    days = [int(time[8:10]) for time in times]
    ranks = {"longest": [-len(text) for text in texts], "newest": [-day for day in days], "first": [0] * len(texts)}
    signatures = [minhash.minima(text, 5, 14, 8) for text in texts]
    deviation = (0.75 * 0.25 / 112) ** 0.5 if similarity == "exact" else 0.0

    def order(page: int) -> tuple[int, int]:
        return ranks[keep][page], url_key(normalise_url(pages[page].url))

    def by_signature(one: int, other: int) -> bool:
        return bool((signatures[one] == signatures[other]).mean() >= 0.75)

    def is_alike(one: int, other: int) -> bool:
        distance = (signatures[one] == signatures[other]).mean() - 0.75
        in_doubt = deviation and -2 * deviation <= distance <= 3 * deviation
        return jaccard(texts[one], texts[other]) >= 0.75 if in_doubt else distance >= 0

    pairs = similar_pairs(texts, 0.75 - 2 * deviation)
    expected, unlike = settled(pairs, order, is_alike, rounds=1)
    later, _ = settled([pair for pair in pairs if unlike.issuperset(pair)], order, by_signature)
    left = {page for page, stays in later.items() if not is_alike(stays, page)}
    expected |= {page: stays for page, stays in later.items() if page not in left}
    assert len(unlike) > len(later) > 0
    assert facts_of(tmp_path) == {pages[page].url: pages[stays].url for page, stays in expected.items()}
    assert corpus.manifest["counts"].get("near_duplicates.unsettled", 0) == len(left)
    if deviation:
        assert all(jaccard(texts[page], texts[stays]) >= 0.75 for page, stays in expected.items())


def facts_of(folder: Path) -> dict[str, str]:
    """The page that stays for each dropped page, by URL."""
    paths = sorted((folder / "corpus" / "_dropped").glob("*.dedup.parquet"))
    return {row["url"]: row["fact"].split()[0] for path in paths for row in pq.read_table(path).to_pylist()}


@pytest.mark.parametrize("more", ["", SURVIVOR, EXACT])
def test_the_corpus_is_the_same_however_it_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    texts = made_texts(150, sizes=(1, 2, 40))  # of bands that 40 pages share, not all pairs are compared
    texts += texts[:200]
    pages = pages_of(texts)
    build(tmp_path / "one", pages, 1, more)
    build(tmp_path / "two", pages, 7, more, workers=2)
    build(tmp_path / "turned", pages[::-1], 5, more)
    monkeypatch.setattr(dedup_plan, "group_size", lambda files, rows: 3)
    build(tmp_path / "groups", pages, 20, more)
    names = ("one", "two", "turned", "groups")
    shards = [contents(tmp_path / name / "corpus" / "und") for name in names]
    assert shards[0]
    assert shards[0] == shards[1] == shards[2] == shards[3]
    reports = [json.loads((tmp_path / name / "corpus" / "report.json").read_text()) for name in names]
    assert reports[0]["near_duplicates"]
    assert all(report["near_duplicates"] == reports[0]["near_duplicates"] for report in reports)


def test_a_page_that_is_everywhere_sends_one_row_for_each_band_and_group(tmp_path: Path) -> None:
    everywhere, others = made_texts(40, sizes=(1,))[0], made_texts(30, seed=2, sizes=(1,))
    pages = pages_of([everywhere] * 500 + others)
    corpus = build(tmp_path, pages, files=4)
    counts = corpus.manifest["counts"]
    assert counts["pages.dropped.near_duplicate"] == 499
    assert counts["near_duplicates.compared"] == 3  # one page of each group with the first of all


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of pages of which many are nearly the same, with all dropped pages."""
    folder = tmp_path_factory.mktemp("made")
    build(folder, pages_of(made_texts(120)), keep_dropped="all")
    return folder


def test_dropped_pages_name_the_page_that_stays(made: Path) -> None:
    texts = {page.url: page.body for page in pages_of(made_texts(120))}
    table = pa.concat_tables(map(pq.read_table, sorted((made / "corpus" / "_dropped").glob("*.dedup.parquet"))))
    dropped = [row for row in table.to_pylist() if row["reason"] == "near_duplicate"]
    assert {row["url"] for row in dropped} == texts.keys() - urls(made)
    for row in dropped:
        stays, share = re.fullmatch(r"(\S+) stays; the estimated similarity is (\d\.\d\d)", row["fact"]).groups()  # type: ignore[union-attr]
        assert stays in urls(made)
        assert len(texts[stays]) >= len(row["text"])
        assert row["text"] == texts[row["url"]]
        assert abs(jaccard(texts[stays], row["text"]) - float(share)) < 0.2


def test_the_report_shows_examples_and_the_largest_clusters(made: Path) -> None:
    texts = made_texts(120)
    pages = pages_of(texts)
    data = json.loads((made / "corpus" / "report.json").read_text())
    sizes = sorted((len(cluster) for cluster in clusters_of(texts, 0.75)), reverse=True)[:20]
    assert [each["pages"] for each in data["near_duplicates"]] == sizes
    assert {each["url"] for each in data["near_duplicates"]} <= kept_of(pages, clusters_of(texts, 0.75), texts)
    by_url = {page.url: page.body for page in pages}
    clusters = [{pages[number].url for number in some} for some in clusters_of(texts, 0.75)]
    for each in data["near_duplicates"]:
        cluster = next(some for some in clusters if each["url"] in some)
        assert each["other_url"] == min(cluster - {each["url"]}, key=lambda url: url_key(normalise_url(url)))
        beside = compare_texts(by_url[each["url"]], by_url[each["other_url"]])
        assert (each["alone"], each["other_alone"]) == beside[1:]
    assert len(data["examples"]["near_duplicate"]) == 15
    report = (made / "corpus" / "report.html").read_text()
    assert data["near_duplicates"][0]["url"] in report.replace("<wbr>", "")
    assert data["near_duplicates"][0]["other_url"] in report.replace("<wbr>", "")
    assert "pages that are nearly the same as another" in report


def test_a_report_that_is_made_later_shows_the_same(made: Path, tmp_path: Path) -> None:
    built = (made / "corpus" / "report.json").read_bytes()
    page = (made / "corpus" / "report.html").read_bytes()
    shutil.copytree(made / "corpus", tmp_path / "corpus")
    for name in ("report.json", "report.html"):
        (tmp_path / "corpus" / name).unlink()
    assert main(["report", str(tmp_path / "corpus"), "--workers", "1", "--quiet"]) == 0
    assert (tmp_path / "corpus" / "report.json").read_bytes() == built
    assert (tmp_path / "corpus" / "report.html").read_bytes() == page


def test_a_dropped_page_keeps_no_copy_of_a_span(tmp_path: Path) -> None:
    long, other, *_ = made_texts(9, sizes=(1,))
    sentences = long.split("\n")
    near = "\n".join(sentences[:-1])  # loses to the longer page
    pages = pages_of([long, near, other + "\n" + "\n".join(sentences[:3])])
    more = 'min_similarity = 0.5\n[repeated_span]\nunit = "line"\nsize = 1\nwhitespace = "stripped"\n'
    recipe = RECIPE.replace('["near_duplicate"]', '["near_duplicate", "repeated_span"]')
    write_crawl(tmp_path, pages, 2)
    (tmp_path / "near.toml").write_text(recipe + more)
    corpus = c4pipe.build_corpus(tmp_path / "crawl", output=tmp_path / "corpus", recipe=tmp_path / "near.toml")
    assert [each.name for each in corpus.recipe.corpus] == [
        "normalised_url", "stale_capture", "near_duplicate", "repeated_span",
    ]  # fmt: skip
    counts = corpus.manifest["counts"]
    assert counts["pages.dropped.near_duplicate"] == 1
    assert counts["units.newest"] == len(sentences) + len(other.split("\n")) + 3
    assert counts["units.dropped.repeated_span"] == 3
    assert urls(tmp_path) == {pages[0].url, pages[2].url}


def test_diff_shows_the_dropped_pages(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plain.toml").write_text('base = "unfiltered"\noff = ["language"]\n')
    c4pipe.build_corpus(made / "crawl", output=tmp_path / "plain", recipe=tmp_path / "plain.toml", workers=1)
    pages = {page.url for page in pages_of(made_texts(120))}
    dropped = pages - urls(made)
    assert main(["diff", str(tmp_path / "plain"), str(made / "corpus"), "--json", "--examples", "1000"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pages"] == {
        **dict.fromkeys(("only_second", "other_text"), 0),
        "only_first": len(dropped),
        "same_text": len(pages - dropped),
    }
    assert {each["url"] for each in found["examples"]["only_first"]} == dropped
    assert found["counts"]["pages.dropped.near_duplicate"] == [None, len(dropped)]
    assert main(["diff", str(tmp_path / "plain"), str(made / "corpus")]) == 0
    assert re.search(rf"^  near_duplicate +- +{len(dropped)} +\+{len(dropped)}$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("damage", [lose, repeat, alter], ids=["lost", "repeated", "altered"])
@pytest.mark.parametrize("shuffle", NEAR_SHUFFLES)
def test_damage_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shuffle: str, damage: Callable[[list[bytes]], list[bytes]]
) -> None:
    texts = made_texts(40, sizes=(3, 9))
    if shuffle in ("stayed", "texts"):
        whole = unpack_table
        left = iter([True])

        def spoiled_decode(data: bytes) -> pa.Table:
            table = whole(data)
            if not next(left, False):
                return table
            if damage is lose:
                return table.slice(1)
            if damage is repeat:
                return pa.concat_tables([table, table])
            return table.set_column(0, table.schema.field(0), [table["page_key"].to_numpy() + np.uint64(1)])

        monkeypatch.setattr(finish if shuffle == "stayed" else near_survivors, "unpack_table", spoiled_decode)
    else:
        spoil(monkeypatch, shuffle, damage)
    monkeypatch.setattr(dedup_plan, "group_size", lambda files, rows: 2)
    with pytest.raises(LostDataError, match=rf"did not deliver the shuffle {shuffle} \("):
        build(tmp_path, pages_of([*texts, *texts[:8]]), 4, EXACT)
    assert not (tmp_path / "corpus" / "manifest.json").exists()


def build_on(folder: Path, pages: Sequence[Page], *options: str) -> dict[str, bytes]:
    write_crawl(folder, pages, 5, EXACT)
    given = ["build", str(folder / "crawl"), "--recipe", str(folder / "near.toml"), "--quiet", *options]
    assert main([*given, "--output", str(folder / "corpus")]) == 0
    report = json.loads((folder / "corpus" / "report.json").read_text())
    return contents(folder / "corpus" / "und") | {"clusters": json.dumps(report["near_duplicates"]).encode()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "runner",
    [pytest.param("spark", marks=pytest.mark.spark), pytest.param("DirectRunner", marks=pytest.mark.beam)],
)
def test_other_runners_give_the_bytes_of_this_machine(tmp_path: Path, runner: str) -> None:
    pages = pages_of(made_texts(60, sizes=(3, 9)))
    assert build_on(tmp_path / "other", pages, "--runner", runner) == build_on(tmp_path / "here", pages)
