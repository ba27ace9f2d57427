"""Near-duplicates of pages of known corpora: against plain Python, which compares each pair."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe.cli.main import main
from c4pipe.errors import UsageError
from c4pipe.inspect.explain import CorpusExplainer
from c4pipe.jobs import dedup
from c4pipe.text import minhash
from c4pipe.wet.page import Page
from tests.dedup.test_near_duplicates import RECIPE, build, urls
from tests.helpers.crawls import sample_pages
from tests.helpers.near_crawls import clusters_of, jaccard, kept_of, made_texts, pages_of
from tests.helpers.wet_writer import write_wet

Sketch = tuple[int, ...]
Counts = Mapping[str, int]


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
    assert [row.number for row in corpus.funnel if row.name == "known_near_duplicate"] == [len(dropped)]
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


def built_apart_and_together(
    folder: Path, known: Sequence[Page], new: Sequence[Page], recipe: str
) -> tuple[set[str], Counts]:
    """Builds the known corpus, the new corpus beside it, and the corpus of `dedup` of both.

    Returns the URLs of the corpus of both without those of the known corpus, and the counts of the new corpus. Checks
    that the new corpus has these URLs.
    """
    (folder / "near.toml").write_text(recipe)
    for name, pages in (("known", known), ("new", new)):
        (folder / name).mkdir()
        for number in range(2):
            write_wet(folder / name / f"{name}-{number}.warc.wet.gz", pages[number::2])
        clean = ["clean", str(folder / name), "--recipe", str(folder / "near.toml")]
        assert main([*clean, "--work", str(folder / name / "work"), "--workers", "1", "--quiet"]) == 0
    work = {name: str(folder / name / "work") for name in ("known", "new")}
    known_corpus = str(folder / "known" / "corpus")
    for more in (
        [work["known"], "--output", known_corpus, "--index"],
        [work["new"], "--output", str(folder / "new" / "corpus"), "--known", known_corpus],
        [work["known"], work["new"], "--output", str(folder / "both" / "corpus")],
    ):
        assert main(["dedup", *more, "--workers", "1", "--quiet"]) == 0
    of_both = all_urls(folder / "both")
    of_known = all_urls(folder / "known")
    assert of_known < of_both, "the pages of the known corpus do not win"
    assert all_urls(folder / "new") == of_both - of_known
    return of_both - of_known, c4pipe.open_corpus(folder / "new" / "corpus").counts


def all_urls(folder: Path) -> set[str]:
    shards = (folder / "corpus").glob("*/*.parquet")
    return {url for path in shards if path.parent.name[0] != "_" for url in pq.read_table(path)["url"].to_pylist()}


def renamed(page: Page, body: str) -> Page:
    """A page of another site with this text."""
    return Page(page.url.replace("://", "://copy-of."), page.timestamp, body, page.position, len(body.encode()))


def test_as_dedup_of_both_where_the_known_pages_are_the_longest(tmp_path: Path) -> None:
    pages = pages_of(made_texts(90, sizes=(1,)))
    known, others = pages[:45], pages[45:]
    shorter = [renamed(page, page.body.rsplit("\n", 1)[0]) for page in known if page.body.count("\n") > 12]
    twice = [renamed(page, page.body) for page in others[:10]]
    kept, counts = built_apart_and_together(tmp_path, known, [*others, *shorter, *twice], RECIPE)
    assert len(kept) == len(others)
    assert counts["pages.dropped.known_near_duplicate"] == len(shorter) > 10
    assert counts["pages.dropped.near_duplicate"] == len(twice)


def test_as_dedup_of_both_on_the_sample_pages_with_fineweb(tmp_path: Path) -> None:
    pages = sample_pages()
    known = pages[::2]
    of_known = {page.url for page in known}  # a newer capture in the new corpus wins in `dedup` of both
    others = [page for page in pages[1::2] if page.url not in of_known]
    recipe = 'base = "fineweb"\n[near_duplicate]\nwithin = "corpus"\n'
    longest = [max(page.body.split("\n"), key=len) for page in known]  # cleaning drops short lines
    shorter = [
        renamed(page, page.body.replace(line, line.partition(" ")[2], 1))
        for page, line in zip(known, longest, strict=True)
    ]
    new = [*others, *shorter]
    kept, counts = built_apart_and_together(tmp_path, known, new, recipe)
    assert len(kept) > 10
    assert counts["pages.dropped.known_near_duplicate"] > 10
