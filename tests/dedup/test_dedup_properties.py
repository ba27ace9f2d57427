"""Job 2 as a whole, compared with the rules in a few lines of plain Python, and what must hold for any input."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from c4pipe.corpus import layout
from c4pipe.dedup import finish, shuffle
from c4pipe.jobs import dedup_plan
from c4pipe.text.hashes import is_validation, normalise_url
from tests.helpers.dedup_oracle import (
    FIRST_RECIPE,
    LANGUAGES,
    LINE_RECIPE,
    NAMES,
    TIMES,
    URLS,
    Capture,
    Corpus,
    Crawl,
    Row,
    captures,
    corpus_of,
    crawls,
    deduplicated,
    digests,
    joining_crawl,
    line_crawls,
    line_oracle,
    oracle,
    place_of,
    random_crawl,
    random_line_crawl,
    read,
    resplit,
    run,
    runs,
    spans,
    untied,
    write_work,
)
from tests.helpers.known_oracle import own_counts


@runs(18)
@given(crawls, st.sampled_from([1, 2, 3]))
@example(random_crawl(10), 1)
@example(random_crawl(11, files=5, captures=60), 3)
@example(random_crawl(12, files=2, captures=30), 2)
@example(joining_crawl(), 1)
def test_as_the_rules_say(crawl: Crawl, shards: int) -> None:
    expected, counts = oracle(crawl)
    event(f"edited and kept: {counts['pages.edited.repeated_span'] > counts['pages.dropped.few_sentences_left']}")
    with corpus_of(crawl, shards) as (folder, manifest):
        corpus = read(folder, manifest)
    assert corpus == expected
    assert own_counts(manifest) == +counts
    check_no_span_twice(corpus)
    validation = sum(len(rows) for (_, split), rows in corpus.items() if split == "validation")
    assert manifest["counts"].get("pages.validation", 0) == validation


@runs(5)
@given(crawls, st.sampled_from([1, 3]))
@example(random_crawl(10), 1)
def test_the_first_copies_only(crawl: Crawl, shards: int) -> None:
    """With keep = "first", a page loses all units of each span that is not the first."""
    expected, counts = oracle(crawl, "first")
    with corpus_of(crawl, shards, recipe=FIRST_RECIPE) as (folder, manifest):
        assert read(folder, manifest) == expected
    assert own_counts(manifest) == +counts


@runs(8)
@given(line_crawls, st.sampled_from([1, 3]))
@example(random_line_crawl(20, captures=40), 2)
def test_lines_as_the_rules_say(crawl: Crawl, shards: int) -> None:
    expected, counts = line_oracle(crawl)
    event(f"edited and kept: {counts['pages.edited.repeated_span'] > counts['pages.dropped.few_sentences_left']}")
    with corpus_of(crawl, shards, recipe=LINE_RECIPE) as (folder, manifest):
        corpus = read(folder, manifest, LINE_RECIPE)
    assert corpus == expected
    assert own_counts(manifest) == +counts
    lines = [line.strip().lower() for rows in corpus.values() for row in rows for line in row["text"].split("\n")]
    assert len(lines) == len(set(lines)), "a line stands twice"


def check_no_span_twice(corpus: Corpus) -> None:
    """No span stands twice in a corpus, unless removal put it together: then its places do not follow each other."""
    occurrences: Counter[tuple[str, ...]] = Counter()
    for rows in corpus.values():
        for row in rows:
            left = [sentence for line in resplit(row["text"]) for sentence in line]
            places = [place_of(sentence) for sentence in left]
            for unit, span in enumerate(spans(left)):
                occurrences[span] += places[unit : unit + 3] == list(range(places[unit], places[unit] + 3))
    assert [span for span, number in occurrences.items() if number > 1] == []


@runs(3)
@given(crawls)
@example(random_crawl(13, captures=40))
def test_its_own_output_again(crawl: Crawl) -> None:
    """A second time, only what removal put together goes: spans that occur twice in the first output."""
    once = deduplicated(crawl)
    again = {"again": [capture_of(row) for rows in once.values() for row in rows]}
    assert oracle_rows(again["again"]) == once
    found = Counter(span for capture in again["again"] for span in spans(capture.sentences))
    repeated = {span for span, number in found.items() if number > 1}
    event(f"removal put a repeated span together: {bool(repeated)}")
    twice = deduplicated(again)
    assert twice == (oracle(again)[0] if repeated else once)
    texts = {row["url"]: row["text"] for rows in twice.values() for row in rows}
    for capture in again["again"]:
        if not repeated.intersection(spans(capture.sentences)):
            assert texts[capture.url] == capture.text


def capture_of(row: Row) -> Capture:
    return Capture(row["url"], row["timestamp"], resplit(row["text"]), row["language"])


def oracle_rows(captures: Sequence[Capture]) -> Corpus:
    """The rows of captures as they are: cutting a text again and joining it gives the text back."""
    corpus: Corpus = {(language, split): [] for language in LANGUAGES for split in ("train", "validation")}
    for capture in captures:
        validation = is_validation(normalise_url(capture.url), 1000)
        corpus[capture.language, "validation" if validation else "train"].append(capture.row)
    return corpus


@runs(4)
@given(st.lists(captures, max_size=20).map(untied), st.data())
def test_same_bytes_for_any_order_and_split_into_files(pages: list[Capture], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(pages))
    number = data.draw(st.integers(1, 3))
    expected = digests({NAMES[0]: pages}, 2)
    assert digests({NAMES[part]: shuffled[part::number] for part in range(number)}, 2) == expected


def test_same_bytes_of_lines_for_any_order_and_split_into_files() -> None:
    crawl = random_line_crawl(21)
    assert line_oracle(crawl)[1]["pages.edited.repeated_span"] > 3
    expected = digests(crawl, 2, recipe=LINE_RECIPE)
    everything = [capture for captures in crawl.values() for capture in captures]
    for number in (1, 4):
        files = {f"{part:02}": everything[::-1][part::number] for part in range(number)}
        assert digests(files, 2, recipe=LINE_RECIPE) == expected


def test_same_bytes_in_every_format_for_any_order_and_split_into_files() -> None:
    formats = ("parquet", "tfrecord", "json")
    crawl = random_crawl(1)
    expected = digests(crawl, 2, formats)
    assert len(expected) == len(LANGUAGES) * (2 + 1) * len(formats)
    everything = [capture for captures in crawl.values() for capture in captures]
    assert digests({"one": everything[::-1]}, 2, formats) == expected
    assert digests({f"{number:02}": everything[number::7] for number in range(7)}, 2, formats) == expected


def test_same_bytes_for_several_work_folders(tmp_path: Path) -> None:
    crawl = random_crawl(2)
    whole = run([write_work(tmp_path / "work", crawl)], tmp_path / "whole")
    months = [write_work(tmp_path / name, {name: captures}) for name, captures in crawl.items()]
    assert run(months[::-1], tmp_path / "months")["shards"] == whole["shards"]


def test_same_pages_for_any_number_of_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "TRAIN_PER_VALIDATION", 3)
    crawl = random_crawl(3, captures=30)
    expected = oracle(crawl)[0]
    assert sum(map(len, expected.values())) > 20
    for shards in (1, 2, 7, 30):
        assert deduplicated(crawl, shards) == expected


def test_same_bytes_for_any_number_of_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = random_crawl(4)
    expected = digests(crawl)
    for bucket_bytes, fewest_bits in ((20, 3), (100, 5), (1 << 26, 1), (1 << 26, 16)):
        monkeypatch.setattr(shuffle, "BUCKET_BYTES", bucket_bytes)
        monkeypatch.setattr(shuffle, "FEWEST_BITS", fewest_bits)
        assert digests(crawl) == expected


@pytest.mark.parametrize("files", [2, 3, 100])
def test_same_bytes_for_any_groups_of_files(monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    crawl = random_crawl(4)
    expected = digests(crawl)
    asked: list[int] = []

    def group_size(count: int, rows: int) -> int:
        asked.append(count)
        return files

    monkeypatch.setattr(dedup_plan, "group_size", group_size)
    monkeypatch.setattr(finish, "_HELD_BYTES", 2000)  # pages leave several times in a group
    assert digests(crawl) == expected
    assert asked


Case = tuple[int, str, str | None, int]
"""A capture of one URL: its file, time and text (None: dropped by `clean`), and the form of the URL."""
OLD, NEW, NEWER = TIMES
NEWEST: dict[str, tuple[list[Case], str | None]] = {
    "the newest, though its file comes first": ([(0, NEW, "A.", 0), (1, OLD, "B.", 0)], "A."),
    "the newest, though it stands last": ([(0, OLD, "A.", 0), (0, NEW, "B.", 2)], "B."),
    "the newest of three": ([(0, OLD, "A.", 0), (1, NEWER, "B.", 1), (2, NEW, "C.", 2)], "B."),
    "a newer page that was dropped": ([(0, OLD, "A.", 0), (1, NEW, None, 1)], None),
    "an older page that was dropped": ([(0, NEW, "A.", 0), (1, OLD, None, 0)], "A."),
}


def test_newest_of_a_url() -> None:
    crawl: dict[str, list[Capture]] = {name: [] for name in NAMES[::-1]}
    for number, (cases, _) in enumerate(NEWEST.values()):
        for file, time, text, form in cases:
            capture = Capture(URLS[3 * number + form], time, ((text,),) if text else None)
            crawl[NAMES[file]].append(capture)
    corpus = deduplicated(crawl)
    texts = {normalise_url(row["url"]): row["text"] for rows in corpus.values() for row in rows}
    left = {name: texts.get(normalise_url(URLS[3 * number])) for number, name in enumerate(NEWEST)}
    assert left == {name: text for name, (_, text) in NEWEST.items()}
    assert corpus == oracle(crawl)[0]


@pytest.mark.parametrize("crawl", [{NAMES[0]: []}, {NAMES[0]: [Capture(URLS[0], TIMES[0], None)], NAMES[1]: []}])
def test_nothing_to_keep(crawl: Crawl) -> None:
    with corpus_of(crawl, 2) as (folder, manifest):
        assert not any(read(folder, manifest).values())
    assert [file["rows"] for file in manifest["shards"]] == [0] * len(LANGUAGES) * 3
    assert manifest["counts"].get("pages.kept", 0) == 0
