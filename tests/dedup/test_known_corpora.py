"""A corpus beside known corpora: what `dedup` makes of both if the pages of the known corpora come first and stay."""

import gzip
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import event, example, given

from c4pipe.corpus.opened import open_corpus
from c4pipe.dedup.known import INDEX
from c4pipe.errors import UsageError
from c4pipe.io.paths import list_names, read_file, storage_path
from c4pipe.jobs.api import build_corpus, dedup_files
from c4pipe.jobs.index import write_index
from c4pipe.recipes.presets import C4
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.text.hashes import normalise_url, url_key
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.dedup_oracle import (
    FIRST_RECIPE,
    LINE_RECIPE,
    NAMES,
    RECIPE,
    Corpus,
    Crawl,
    conflicting_captures,
    crawls,
    oracle,
    random_crawl,
    random_line_crawl,
    read,
    run,
    runs,
    write_work,
)
from tests.helpers.known_oracle import known_spans, own_counts
from tests.helpers.s3 import store_of
from tests.helpers.web_data import by_data
from tests.helpers.wet import wet_bytes

pytestmark = pytest.mark.slow

CONFLICTS = dict(zip(NAMES, conflicting_captures(3), strict=True))


def both(folder: Path, known: Crawl, crawl: Crawl, recipe: Recipe = RECIPE) -> tuple[Corpus, Corpus, Any]:
    """Builds the known corpus, then the other one beside it; gives both, and the manifest of the second."""
    first = run([write_work(folder / "known-work", known, recipe)], folder / "known", index=True)
    work = write_work(folder / "work", crawl, recipe)
    second = run([work], folder / "corpus", known=[folder / "known"])
    return read(folder / "known", first, recipe), read(folder / "corpus", second, recipe), second


@runs(20)
@given(crawls, crawls)
@example(random_crawl(31, captures=60), random_crawl(32, captures=60))
@example({NAMES[0]: CONFLICTS[NAMES[0]][:1]}, CONFLICTS)
@example({NAMES[0]: CONFLICTS[NAMES[1]][2:]}, CONFLICTS)
def test_as_if_both_were_one_and_the_known_pages_stayed(known: Crawl, crawl: Crawl) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, corpus, manifest = both(Path(folder), known, crawl)
    rows = [row for some in first.values() for row in some]
    expected, counts = oracle(crawl, "one", {normalise_url(row["url"]) for row in rows}, known_spans(rows))
    assert corpus == expected
    assert own_counts(manifest) == +counts
    event(f"known URLs: {counts['pages.dropped.known_url'] > 0}, known spans: {counts['spans.known'] > 0}")


def test_the_first_copies_only(tmp_path: Path) -> None:
    known, crawl = random_crawl(33, captures=60), random_crawl(34, captures=60)
    first, corpus, manifest = both(tmp_path, known, crawl, FIRST_RECIPE)
    rows = [row for some in first.values() for row in some]
    expected, counts = oracle(crawl, "first", {normalise_url(row["url"]) for row in rows}, known_spans(rows))
    assert corpus == expected
    assert own_counts(manifest) == +counts
    assert min(counts["pages.dropped.known_url"], counts["spans.known"]) > 5


def test_no_line_of_a_known_corpus(tmp_path: Path) -> None:
    known, crawl = random_line_crawl(35, captures=10), random_line_crawl(36, captures=40)
    first, corpus, manifest = both(tmp_path, known, crawl, LINE_RECIPE)
    lines, others = (
        {line.strip().lower() for some in rows.values() for row in some for line in row["text"].split("\n")}
        for rows in (first, corpus)
    )
    assert len(lines) > 20
    assert len(others) > 20
    assert not lines & others
    assert manifest["counts"]["spans.known"] > 5


def test_the_manifest_names_the_indexes_and_a_repeated_command_does_nothing(tmp_path: Path) -> None:
    crawls_of = {name: random_crawl(seed) for seed, name in enumerate(("a", "b"))}
    known = [tmp_path / name for name in crawls_of]
    for (name, crawl), corpus in zip(crawls_of.items(), known, strict=True):
        run([write_work(tmp_path / f"work-{name}", crawl)], corpus, index=True)
    work = write_work(tmp_path / "work", random_crawl(9))
    manifest = run([work], tmp_path / "corpus", known=known)
    assert len(manifest["known"]) == 2
    assert run([work], tmp_path / "corpus", known=known[::-1]) == manifest
    for others, words in (
        (known[:1], r"\(known\[[01]\]: .* there, .* now"),
        ((), r"\(known: .* there, nothing now"),
    ):
        with pytest.raises(UsageError, match=words):
            run([work], tmp_path / "corpus", known=others)
    alone = run([work], tmp_path / "alone")
    assert "known" not in alone
    with pytest.raises(UsageError, match=r"\(known: nothing there, .* now"):
        run([work], tmp_path / "alone", known=known)
    for corpus in known:  # their folders have what they had: nothing is written there
        write_index(corpus, RunnerOptions(workers=1), Progress())
    assert run([work], tmp_path / "corpus", known=known) == manifest


@pytest.mark.parametrize("name", ["web-articles", "multilingual-handbook"])
def test_real_pages_as_if_both_were_one(largest_data: Path, tmp_path: Path, name: str) -> None:
    """`dedup` of both keeps the pages of the smaller keys as they are where first copies stay."""
    data = gzip.decompress((largest_data / "pages" / f"{name}.warc.wet.gz").read_bytes())
    pages = [each for each in read_pages(io.BytesIO(data)) if isinstance(each, Page)]
    keys = [url_key(normalise_url(page.url)) for page in pages]
    middle = sorted(keys)[len(keys) // 3]
    first = [page for page, key in zip(pages, keys, strict=True) if key <= middle]
    crawl = [page for page, key in zip(pages, keys, strict=True) if key > middle]
    again = [Page(page.url, "2001-01-01T00:00:00Z", page.body) for page in first]  # older: both drop them
    known = corpus_of_pages(largest_data, tmp_path, "known", first)
    final = [Page(row["url"], row["timestamp"], row["text"]) for row in known.values()]
    there = [page for page in again if page.url in known]
    expected = corpus_of_pages(largest_data, tmp_path, "both", [*final, *crawl, *there])
    assert sum(expected[url] != row for url, row in known.items()) <= 1  # cuts have joined a span that is there, too
    corpus = corpus_of_pages(largest_data, tmp_path, "corpus", [*crawl, *there], known=[tmp_path / "known"])
    assert len(corpus) > by_data(largest_data, shipped=20, real=50)
    assert corpus == {url: row for url, row in expected.items() if url not in known}
    counts = open_corpus(tmp_path / "corpus").counts
    assert min(counts["pages.dropped.known_url"], counts["spans.known"]) > 10


def corpus_of_pages(data: Path, folder: Path, name: str, pages: Sequence[Page], **options: Any) -> dict[str, Any]:
    """Builds a corpus with an index from pages, and gives its rows by URL."""
    crawl = folder / f"{name}.warc.wet.gz"
    crawl.write_bytes(wet_bytes(pages))
    recipe = C4.with_languages(["en", "de", "fr"]).change("repeated_span", keep="first")
    options |= {"recipe": recipe, "lists": data / "lists", "workers": 1, "index": True}
    corpus = build_corpus(crawl, output=folder / name, **options)
    return {row["url"]: row for each in corpus.shards() for row in pq.read_table(str(each.file)).to_pylist()}


@pytest.mark.parametrize(
    "runner",
    [pytest.param("spark", marks=pytest.mark.spark), pytest.param("FnApiRunner", marks=pytest.mark.beam), None],
)
def test_the_same_bytes_from_other_runners_and_in_a_store(
    runner: str | None, tmp_path: Path, moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index, and the corpus beside it. Two processes of this machine keep both in a store."""
    known, crawl = (write_work(tmp_path / f"work-{seed}", random_crawl(seed)) for seed in (37, 38))
    run([known], tmp_path / "known", index=True)
    expected = run([crawl], tmp_path / "corpus", known=[tmp_path / "known"])
    assert min(expected["counts"]["pages.dropped.known_url"], expected["counts"]["spans.known"]) > 2
    folder = storage_path(tmp_path / "other" if runner else "s3://bucket/other")
    with store_of(moto, {"bucket/key": b""}, monkeypatch):
        options: Any = {"runner": runner, "workers": None if runner else 2}
        dedup_files([known], output=str(folder / "known"), shards=1, index=True, **options)
        output, corpora = str(folder / "corpus"), [str(folder / "known")]
        again = dedup_files([crawl], output=output, shards=1, known=corpora, **options).manifest
        index = {name: read_file(folder / "known" / INDEX / name) for name in list_names(folder / "known" / INDEX)}
    assert index == {path.name: path.read_bytes() for path in (tmp_path / "known" / INDEX).iterdir()}
    for name, value in expected.items():
        assert again.get(name) == value or name == "sha256", name
