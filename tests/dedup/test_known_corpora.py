"""A corpus beside known corpora: what `dedup` makes of both where the pages of the known corpora come first and stay."""

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from c4pipe.errors import UsageError
from c4pipe.filters.hashes import normalise_url
from c4pipe.jobs.index import write_index
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from tests.dedup.test_falling_pages import all_pages
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
    own_counts,
    random_crawl,
    random_line_crawl,
    read,
    run,
    runs,
    write_work,
)
from tests.helpers.falling_pages import CHANCE, FEW, SIZE, Pages, handed_on, made_rows
from tests.helpers.known_oracle import known_spans
from tests.helpers.survivor_oracle import units_at

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


@settings(deadline=None, max_examples=100)
@given(all_pages, st.integers(1, 4), st.sampled_from([FEW, CHANCE]), st.randoms(use_true_random=False))
def test_no_page_takes_a_known_span_so_that_it_stays(pages: Pages, files: int, recipe: Recipe, chance: Any) -> None:
    rows, finisher = made_rows(pages, recipe)
    hashes = sorted({each for row in rows.values() for each in row["span_hashes"]})
    known = set(chance.sample(hashes, len(hashes) // 3))
    made = handed_on(rows, finisher, files, known=known)
    assert not [place for span in known for place in made.places.get(span, ()) if place in made.survivors]
    needed = {unit for place in made.survivors for unit in units_at(place, SIZE)}
    for span in known:
        for place in made.places.get(span, ()):
            assert made.gone.intersection(units_at(place, SIZE)) or needed.issuperset(units_at(place, SIZE))
    event(f"pages fell: {len(made.stay) < len(pages)}")


def test_the_manifest_names_the_indexes_and_a_repeated_command_does_nothing(tmp_path: Path) -> None:
    crawls_of = {name: random_crawl(seed) for seed, name in enumerate(("a", "b"))}
    known = [tmp_path / name for name in crawls_of]
    for (name, crawl), corpus in zip(crawls_of.items(), known, strict=True):
        run([write_work(tmp_path / f"work-{name}", crawl)], corpus, index=True)
    work = write_work(tmp_path / "work", random_crawl(9))
    manifest = run([work], tmp_path / "corpus", known=known)
    assert len(manifest["known"]) == 2
    assert run([work], tmp_path / "corpus", known=known[::-1]) == manifest
    for others, words in ((known[:1], "2 known corpora there, 1 now"), ((), "2 known corpora there, 0 now")):
        with pytest.raises(UsageError, match=words):
            run([work], tmp_path / "corpus", known=others)
    alone = run([work], tmp_path / "alone")
    assert "known" not in alone
    with pytest.raises(UsageError, match="0 known corpora there, 2 now"):
        run([work], tmp_path / "alone", known=known)
    for corpus in known:  # their folders have what they had: nothing is written there
        write_index(corpus, RunnerOptions(workers=1), Progress())
    assert run([work], tmp_path / "corpus", known=known) == manifest


def test_a_corpus_is_empty_beside_itself(tmp_path: Path) -> None:
    crawl = random_crawl(random.Random(3).randrange(1000))
    run([write_work(tmp_path / "work", crawl)], tmp_path / "known", index=True)
    manifest = run([tmp_path / "work"], tmp_path / "corpus", known=[tmp_path / "known"])
    kept = {name: number for name, number in manifest["counts"].items() if name == "pages.kept"}
    assert manifest["counts"]["pages.dropped.known_url"] > 10, kept
