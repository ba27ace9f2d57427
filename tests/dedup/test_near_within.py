"""The rule near_duplicate within each crawl: pages of different crawls are never compared."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from c4pipe.cli.main import main
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.inspect.explain import CorpusExplainer
from c4pipe.recipes.presets import RECIPES
from c4pipe.wet.page import Page
from tests.dedup.test_near_duplicates import urls
from tests.helpers.corpora import contents, rows_of
from tests.helpers.near_crawls import TIMESTAMP, clusters_of, kept_of, made_texts, pages_of
from tests.helpers.wet_writer import gzip_member, warcinfo_record, wet_members

RECIPE = 'base = "unfiltered"\noff = ["language"]\non = ["near_duplicate"]\nwithin = "{}"\n'
CRAWLS = ("CC-MAIN-2024-10", "CC-MAIN-2024-18")

Files = Mapping[tuple[str, str], Sequence[Page]]
"""Pages by the name of their crawl, "" for none, and the name of their file."""


def write(folder: Path, files: Files) -> Path:
    (folder / "crawl").mkdir(parents=True)
    for (crawl, name), pages in files.items():
        info = [gzip_member(warcinfo_record(name, TIMESTAMP, {"isPartOf": crawl}))] if crawl else []
        (folder / "crawl" / f"{name}.warc.wet.gz").write_bytes(b"".join([*info, *wet_members(pages, name)]))
    return folder


def build(folder: Path, files: Files, within: str, *options: str) -> dict[str, bytes]:
    """Builds a corpus and returns the bytes of its shards."""
    write(folder, files)
    (folder / "near.toml").write_text(RECIPE.format(within))
    given = ["build", str(folder / "crawl"), "--recipe", str(folder / "near.toml"), "--quiet", *options]
    assert main([*given, "--output", str(folder / "corpus"), "--log", str(folder / "log")]) == 0
    return contents(folder / "corpus" / "und")


def two_crawls(texts: Sequence[str]) -> tuple[list[Page], Files]:
    """Pages in two crawls; the files of both have pages of the same families, and each family is in both."""
    pages = pages_of(texts)
    files = {
        (crawl, f"{crawl}-{file}"): pages[2 * file + of :: 4] for of, crawl in enumerate(CRAWLS) for file in (0, 1)
    }
    return pages, files


def test_of_two_crawls_with_one_page_both_keep_it(tmp_path: Path) -> None:
    text = made_texts(1, sizes=(1,))[0]
    pages = pages_of([text, text])
    files = {(crawl, crawl): [page] for crawl, page in zip(CRAWLS, pages, strict=True)}
    build(tmp_path / "each", files, "crawl")
    build(tmp_path / "all", files, "corpus")
    assert urls(tmp_path / "each") == {page.url for page in pages}
    assert len(urls(tmp_path / "all")) == 1
    log = (tmp_path / "each" / "log").read_text()
    assert "near_duplicate: files of each crawl: CC-MAIN-2024-10=1 CC-MAIN-2024-18=1 unnamed=0" in log
    assert "files of each crawl" not in (tmp_path / "all" / "log").read_text()


def test_each_crawl_is_as_if_it_were_alone(tmp_path: Path) -> None:
    texts = made_texts(150)
    pages, files = two_crawls(texts)
    build(tmp_path / "both", files, "crawl", "--workers", "2")
    kept: set[str] = set()
    for of in range(len(CRAWLS)):
        clusters = clusters_of(texts[of::2], 0.75)
        assert len(clusters) > 20
        kept |= kept_of(pages[of::2], clusters, texts[of::2])
    assert urls(tmp_path / "both") == kept > kept_of(pages, clusters_of(texts, 0.75), texts)
    explainer = CorpusExplainer(tmp_path / "both" / "corpus")
    for page in pages[:40]:
        (verdict,) = explainer.explain(page.url)
        assert (verdict.reason is None) == (page.url in kept)


def test_pages_of_two_languages_are_not_compared(tmp_path: Path) -> None:
    """`explain` compares the same pages as the build."""
    shared = made_texts(1, sizes=(1,))[0]
    english = "It was the best of times, it was the worst of times, and all of us were going to see the queen. " * 40
    german = "Wir haben gestern mit den Kindern einen langen Spaziergang durch den schönen Wald gemacht. " * 40
    pages = pages_of(f"{shared}\n{text}" for text in (english, german))
    write(tmp_path, {("", "a"): pages})
    recipe = 'base = "unfiltered"\nlanguages = ["en", "de"]\non = ["near_duplicate"]\nmin_similarity = 0.5\nrows = 2\n'
    for within, kept in (("language", 2), ("corpus", 1)):
        (tmp_path / "near.toml").write_text(f'{recipe}within = "{within}"\n')
        corpus = tmp_path / within
        given = ["build", str(tmp_path / "crawl"), "--recipe", str(tmp_path / "near.toml"), "--quiet"]
        assert main([*given, "--output", str(corpus), "--workers", "1"]) == 0
        found = {row["url"] for row in rows_of(corpus)}
        assert len(found) == kept
        explainer = CorpusExplainer(corpus)
        for page in pages:
            (verdict,) = explainer.explain(page.url)
            assert (verdict.reason is None) == (page.url in found)


def test_one_crawl_gives_the_same_shards_with_and_without_its_name(tmp_path: Path) -> None:
    pages = pages_of(made_texts(60, sizes=(1, 2, 40)))  # of bands that 40 pages share, not all pairs are compared
    shards = [
        build(tmp_path / f"{within}{number}", {(name, "a"): pages[::2], (name, "b"): pages[1::2]}, within)
        for number, (name, within) in enumerate([("", "corpus"), (CRAWLS[0], "corpus"), (CRAWLS[0], "crawl")])
    ]
    assert shards[0]
    assert shards[0] == shards[1] == shards[2]


def test_files_that_name_no_crawl_are_one_crawl(tmp_path: Path) -> None:
    text = made_texts(1, sizes=(1,))[0]
    pages = pages_of([text] * 3)
    build(tmp_path, {("", "a"): pages[:1], ("", "b"): pages[1:2], (CRAWLS[0], "c"): pages[2:]}, "crawl")
    assert len(urls(tmp_path)) == 2
    log = (tmp_path / "log").read_text()
    assert "2 of 3 WET files name no crawl in their first record (isPartOf): near_duplicate takes all of them" in log


def test_fineweb_compares_within_each_crawl() -> None:
    assert RECIPES["fineweb"].need(NearDuplicate).within == "crawl"


def shards_and_report(folder: Path, *options: str) -> dict[str, bytes]:
    shards = build(folder, two_crawls(made_texts(50))[1], "crawl", *options)
    report = json.loads((folder / "corpus" / "report.json").read_text())
    return shards | {"clusters": json.dumps(report["near_duplicates"]).encode()}


@pytest.mark.beam
@pytest.mark.slow
def test_beam_gives_the_bytes_of_this_machine(tmp_path: Path) -> None:
    here = shards_and_report(tmp_path / "here")
    assert shards_and_report(tmp_path / "beam", "--runner", "DirectRunner") == here


@pytest.mark.spark
@pytest.mark.slow
def test_spark_gives_the_bytes_of_this_machine(tmp_path: Path) -> None:
    here = shards_and_report(tmp_path / "here")
    assert shards_and_report(tmp_path / "spark", "--runner", "spark") == here
