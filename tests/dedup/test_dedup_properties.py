"""Job 2 as a whole, held against the rules in a few lines of plain Python, and what must hold for any input."""

import hashlib
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from c4pipe.clean.work_file import KeptPage, WorkWriter, read_kept
from c4pipe.corpus import layout
from c4pipe.dedup import page_batches, shuffle, steps
from c4pipe.dedup.page_batches import decode, encode
from c4pipe.dedup.repeats import REPEAT
from c4pipe.dedup.shuffle import DROP, SHUFFLES, STALE_ROW, unpack
from c4pipe.errors import LostDataError
from c4pipe.filters.duplicates import SPAN_ROW, URL_ROW, Rows
from c4pipe.filters.sentences import SentenceSplitter
from c4pipe.filters.spans import span_hashes, unit_hashes
from c4pipe.filters.urls import is_validation, normalise_url, url_key, url_md5
from c4pipe.jobs import pipeline
from c4pipe.jobs.options import DedupOptions
from c4pipe.jobs.pipeline import dedup
from c4pipe.jobs.progress import Progress
from c4pipe.recipes.presets import C4, TFDS
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.runner import RunnerOptions
from c4pipe.wet.page import microseconds

Row = dict[str, Any]
Lines = tuple[tuple[str, ...], ...]
LANGUAGES = ("en", "de")
RECIPE = C4.with_languages(LANGUAGES)
LINE_RECIPE = TFDS.without("language", "bad_words")
"""Recipe `tfds` for texts that are made up: no detector knows their language. All pages are in the folder `und`."""
PUNKT = SentenceSplitter("en", as_nltk=True)


@dataclass(frozen=True)
class Capture:
    """A page that was crawled; `lines` are its sentences, line by line, and None where `clean` dropped it."""

    url: str
    timestamp: str
    lines: Lines | None
    language: str = "en"

    @property
    def text(self) -> str:
        return "\n".join("".join(line) for line in self.lines or ())

    @property
    def sentences(self) -> list[str]:
        return [sentence for line in self.lines or () for sentence in line]

    @property
    def row(self) -> Row:
        values = (self.url, self.text, self.timestamp, self.language, 0.999)
        return dict(zip(("url", "text", "timestamp", "language", "language_probability"), values, strict=True))


Crawl = Mapping[str, Sequence[Capture]]
"""Captures by the name of their WET file, in the file's order."""
Corpus = dict[tuple[str, str], list[Row]]
"""Rows by language and split, in the order of the shards."""


# --- the oracle: rules 4, 15, 16 and 19 ------------------------------------------------------------------


def newest_of(crawl: Crawl) -> dict[str, Capture]:
    newest: dict[str, Capture] = {}
    for name in sorted(crawl):
        for capture in crawl[name]:
            best = newest.setdefault(normalise_url(capture.url), capture)
            if capture.timestamp > best.timestamp:  # all of one form: they sort as they are
                newest[normalise_url(capture.url)] = capture
    return newest


def stale_captures(crawl: Crawl) -> int:
    cleaned = sum(capture.lines is not None for captures in crawl.values() for capture in captures)
    return cleaned - sum(page.lines is not None for page in newest_of(crawl).values())


def split_of(url: str) -> str:
    return "validation" if int(hashlib.md5(url.encode()).hexdigest(), 16) % 1000 == 0 else "train"


def oracle(crawl: Crawl) -> tuple[Corpus, Counter[str]]:
    newest = newest_of(crawl)
    counts: Counter[str] = Counter()
    corpus: Corpus = {(language, split): [] for language in LANGUAGES for split in ("train", "validation")}
    seen = set()
    for url, page in sorted(newest.items(), key=lambda item: url_key(item[0])):
        gone: set[int] = set()
        for unit, span in enumerate(spans(page.sentences) if page.lines else ()):
            gone.update(range(unit, unit + 3) if span in seen else ())
            seen.add(span)
        left = len(page.sentences) - len(gone)
        if page.lines and (left >= 3 or not gone):
            corpus[page.language, split_of(url)].append(replace(page, lines=without(page.lines, gone)).row)
        if gone:
            counts["pages.edited.repeated_span"] += 1
            counts["units.dropped.repeated_span"] += len(gone)
            counts["pages.dropped.few_sentences_left"] += left < 3
            counts["units.dropped.few_sentences_left"] += left if left < 3 else 0
    counts["pages.dropped.stale_capture"] = stale_captures(crawl)
    counts["units.newest"] = sum(len(page.sentences) for page in newest.values())
    counts["units.kept"] = counts["units.newest"] - sum(n for name, n in counts.items() if name.startswith("units.d"))
    counts["pages.kept"] = sum(map(len, corpus.values()))
    for (language, _), rows in corpus.items():
        counts[f"pages.kept.{language}"] += len(rows)
    counts["bytes.kept"] = sum(len(row["text"].encode()) for rows in corpus.values() for row in rows)
    return corpus, counts


def line_oracle(crawl: Crawl) -> tuple[Corpus, Counter[str]]:
    """The same for LINE_RECIPE: of each line, trimmed and in lower case, the page of the smallest MD5 has one."""
    corpus: Corpus = {("und", split): [] for split in ("train", "validation")}
    counts: Counter[str] = Counter({"pages.dropped.stale_capture": stale_captures(crawl)})
    seen: set[str] = set()
    for page in sorted(newest_of(crawl).values(), key=lambda page: hashlib.md5(page.url.encode()).hexdigest()):
        before = page.text.split("\n") if page.lines else []
        left = []
        for line in before:
            if line.strip().lower() not in seen:
                left.append(line)
                seen.add(line.strip().lower())
        short = len(PUNKT.starts(["\n".join(left)])) < 3
        if page.lines and not short:
            row = replace(page, lines=tuple((line,) for line in left)).row
            corpus["und", split_of(normalise_url(page.url))].append(row)
        counts["units.newest"] += len(before)
        counts["pages.edited.repeated_span"] += left != before
        counts["units.dropped.repeated_span"] += len(before) - len(left)
        counts["pages.dropped.few_sentences_left"] += bool(before) and short
        counts["units.dropped.few_sentences_left"] += short * len(left)
    counts["units.kept"] = counts["units.newest"] - sum(n for name, n in counts.items() if name.startswith("units.d"))
    counts["pages.kept"] = sum(map(len, corpus.values()))
    for (language, _), rows in corpus.items():
        counts[f"pages.kept.{language}"] += len(rows)
    counts["bytes.kept"] = sum(len(row["text"].encode()) for rows in corpus.values() for row in rows)
    return corpus, counts


def folded(sentence: str) -> str:
    return " ".join(sentence.lower().split())


def spans(sentences: Sequence[str]) -> list[tuple[str, ...]]:
    units = [folded(sentence) for sentence in sentences]
    return list(zip(units, units[1:], units[2:], strict=False))


def without(lines: Lines, gone: set[int]) -> Lines:
    number = iter(range(1_000_000))
    left = [[sentence for sentence in line if next(number) not in gone] for line in lines]
    return tuple((*line[:-1], line[-1].rstrip()) for line in left if line)


# --- crawls to try it on ---------------------------------------------------------------------------------

_FEW = (
    "Rivers carry the silt.",
    "Clouds drift east today!",
    "Bäume wachsen 😀 hoch.",
    "Stone walls keep warm?",
    "Every lamp went out.",
    "Seven boats came home.",
    "Nobody heard the bell.",
)
VOCABULARY = (*_FEW, *(f"{each[:-1]} {end}" for each in _FEW for end in ("again!", "at 9?", "in Łódź 😀.")))
_LETTERS = 5  # the letters that every sentence starts with


def dressed(sentence: int, place: int, gap: str) -> str:
    """A sentence whose first letters tell its place in its page, which folds away: bit by bit, upper case is 1."""
    text = VOCABULARY[sentence]
    head = (letter.upper() if place >> bit & 1 else letter.lower() for bit, letter in enumerate(text[:_LETTERS]))
    return "".join(head) + text[_LETTERS:].replace(" ", gap)


def place_of(sentence: str) -> int:
    return sum(letter.isupper() << bit for bit, letter in enumerate(sentence[:_LETTERS]))


def in_lines(shape: Iterable[Iterable[tuple[int, str]]]) -> Lines:
    place, lines = 0, []
    for line in shape:
        sentences = []
        for number, gap in line:
            sentences.append(dressed(number, place, gap) + gap)
            place += 1
        sentences[-1] = sentences[-1].rstrip()
        lines.append(tuple(sentences))
    return tuple(lines)


def resplit(text: str) -> Lines:
    """The sentences of a text that is made of VOCABULARY."""
    return tuple(tuple(re.findall(r"\S[^.!?]*[.!?]\s*", line)) for line in text.split("\n"))


def _urls() -> list[str]:
    """Some URLs in several forms each, two of them of the validation split."""
    names = [f"example.com/{number}" for number in range(10_000)]
    validation = [name for name in names if int(hashlib.md5(name.encode()).hexdigest(), 16) % 1000 == 0]
    forms = ("http://{}", "https://www.{}/", "http://{}?utm_source=x")
    return [form.format(name) for name in names[:9] + validation[:2] + names[9:80] for form in forms]


URLS = _urls()
TIMES = ("2019-04-18T10:12:43Z", "2019-04-18T10:12:44Z", "2019-05-01T00:00:00Z")
NAMES = ("CC-00000.warc.wet.gz", "CC-00001.warc.wet.gz", "CC-00002.warc.wet.gz")

gaps = st.sampled_from([" ", "  ", "\t", "\u00a0"])
sentences = st.tuples(st.integers(0, len(_FEW) - 1), gaps)
lines = st.lists(st.lists(sentences, min_size=1, max_size=5), min_size=1, max_size=6).map(in_lines)
pages = st.one_of(lines, lines, lines, lines, st.none())
languages = st.sampled_from(("en", "en", "en", "de"))
captures = st.builds(Capture, st.sampled_from(URLS[:33]), st.sampled_from(TIMES), pages, languages)
placed = st.lists(st.tuples(st.sampled_from(NAMES), captures), min_size=6, max_size=40)
crawls = placed.map(lambda pairs: {name: [each for at, each in pairs if at == name] for name in NAMES})


def as_line_page(pieces: Sequence[tuple[str, Sequence[str], bool]]) -> Lines:
    """Lines of (blanks before it and in it, sentences, whether in capitals); a page's text is trimmed."""
    made = [
        blanks + (blanks or " ").join(each.upper() if capitals else each for each in few)
        for blanks, few, capitals in pieces
    ]
    return ((made[0].strip(),), *((line,) for line in made[1:]))


_GREEK = ("Ὀδυσσεὺς ἦλθε.", "ΟΔΟΣ ΣΑΣ.", "İstanbul is far.")  # lower case of these is not what it seems
blank = st.sampled_from(["", "", "", " ", "\u00a0 "])
few = st.lists(st.sampled_from((*_FEW, *_GREEK)), min_size=1, max_size=2)
line_pages = st.lists(st.tuples(blank, few, st.booleans()), min_size=1, max_size=7).map(as_line_page)
line_captures = st.builds(
    Capture,
    st.sampled_from(URLS[:33]),
    st.sampled_from(TIMES),
    st.one_of(line_pages, line_pages, line_pages, line_pages, st.none()),
    st.just("und"),
)
placed_lines = st.lists(st.tuples(st.sampled_from(NAMES), line_captures), min_size=6, max_size=40)
line_crawls = placed_lines.map(lambda pairs: {name: [each for at, each in pairs if at == name] for name in NAMES})


def untied(captures: Iterable[Capture]) -> list[Capture]:
    """The captures, without those that have another's URL and time."""
    return list({(normalise_url(each.url), each.timestamp): each for each in captures}.values())


def random_crawl(seed: int, files: int = 3, captures: int = 12) -> dict[str, list[Capture]]:
    """A crawl without ties, in which spans repeat here and there but most pages keep something."""
    chance = random.Random(seed)

    def line() -> list[tuple[int, str]]:
        common_first = [int(len(VOCABULARY) * chance.random() ** 2.5) for _ in range(chance.randint(1, 4))]
        return [(number, chance.choice("  \t")) for number in common_first]

    made = untied(
        Capture(
            chance.choice(URLS),
            chance.choice(TIMES),
            in_lines(line() for _ in range(chance.randint(1, 5))) if chance.random() < 0.9 else None,
            chance.choice(("en", "en", "de")),
        )
        for _ in range(files * captures)
    )
    return {f"CC-{number:05}.warc.wet.gz": made[number::files] for number in range(files)}


def random_line_crawl(seed: int, files: int = 3, captures: int = 12) -> dict[str, list[Capture]]:
    """The same with lines that repeat here and there."""
    chance = random.Random(seed)

    def line() -> tuple[str, list[str], bool]:
        common_first = [VOCABULARY[int(len(VOCABULARY) * chance.random() ** 1.5)] for _ in range(chance.randint(1, 3))]
        return chance.choice(("", "", "", " ", "\u00a0")), common_first, chance.random() < 0.2

    made = untied(
        Capture(
            chance.choice(URLS),
            chance.choice(TIMES),
            as_line_page([line() for _ in range(chance.randint(1, 6))]) if chance.random() < 0.9 else None,
            "und",
        )
        for _ in range(files * captures)
    )
    return {f"CC-{number:05}.warc.wet.gz": made[number::files] for number in range(files)}


# --- running it ------------------------------------------------------------------------------------------


def write_work(folder: Path, crawl: Crawl, recipe: Recipe = RECIPE) -> Path:
    """Writes a crawl's work files, as `clean` would."""
    folder.mkdir()
    for name, captures in crawl.items():
        writer = WorkWriter(folder / f"{name}.parquet")
        counts: Counter[str] = Counter({"pages.read": len(captures)})
        for capture in captures:
            captured = microseconds(capture.timestamp)
            assert captured is not None
            writer.add(url_key(normalise_url(capture.url)), captured, as_kept(capture, recipe))
            counts["pages.dropped.few_sentences" if capture.lines is None else "pages.cleaned"] += 1
        writer.finish(name, 1000, recipe, {}, counts)
    return folder


def key_of(url: str, recipe: Recipe) -> int:
    """A page's place in the corpus."""
    return url_md5(url) >> 64 if recipe is LINE_RECIPE else url_key(normalise_url(url))


def as_kept(capture: Capture, recipe: Recipe) -> KeptPage | None:
    if capture.lines is None:
        return None
    if recipe is LINE_RECIPE:
        return as_kept_lines(capture)
    starts: list[int] = []
    line_start = 0
    for line in capture.lines:
        starts.extend(line_start + sum(map(len, line[:number])) for number in range(len(line)))
        line_start += sum(map(len, line)) + 1
    return KeptPage(
        page_key=key_of(capture.url, recipe),
        url=capture.url,
        text=capture.text,
        timestamp=capture.timestamp,
        language=capture.language,
        language_probability=0.999,
        validation=is_validation(normalise_url(capture.url), 1000),
        dropped=None,
        unit_starts=starts,
        span_hashes=span_hashes(unit_hashes(capture.sentences, "collapsed"), 3),
    )


def as_kept_lines(capture: Capture) -> KeptPage:
    lines = capture.text.split("\n")
    return KeptPage(
        page_key=key_of(capture.url, LINE_RECIPE),
        url=capture.url,
        text=capture.text,
        timestamp=capture.timestamp,
        language=capture.language,
        language_probability=0.999,
        validation=is_validation(normalise_url(capture.url), 1000),
        dropped="few_sentences_left" if len(PUNKT.starts([capture.text])) < 3 else None,
        unit_starts=[sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))],
        span_hashes=span_hashes(unit_hashes(lines, "stripped"), 1),
    )


def run(work: Sequence[Path], output: Path, shards: int = 1, formats: tuple[str, ...] = ("parquet",)) -> Row:
    options = DedupOptions(tuple(work), output, formats, shards, RunnerOptions(workers=1))
    return dedup(options, Progress(Console(quiet=True), quiet=True))


@contextmanager
def corpus_of(
    crawl: Crawl, shards: int = 1, formats: tuple[str, ...] = ("parquet",), recipe: Recipe = RECIPE
) -> Iterator[tuple[Path, Row]]:
    """Runs job 2 on a crawl; gives the corpus's folder and manifest."""
    with tempfile.TemporaryDirectory() as name:
        work = write_work(Path(name) / "work", crawl, recipe)
        yield Path(name) / "corpus", run([work], Path(name) / "corpus", shards, formats)


def read(folder: Path, manifest: Row, recipe: Recipe = RECIPE) -> Corpus:
    """Reads the corpus, and checks that every row is in the shard where it belongs."""
    corpus: Corpus = {(language, split): [] for language in recipe.languages for split in ("train", "validation")}
    assert sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*")) == [
        file["path"] for file in manifest["shards"]
    ]
    for file in manifest["shards"]:
        found = re.fullmatch(r"(\w+)/c4-(\w+)-(\d{5})-of-(\d{5})\.parquet", file["path"])
        assert found
        rows = pq.read_table(folder / file["path"]).to_pylist()
        for row in rows:
            assert key_of(row["url"], recipe) * int(found[4]) >> 64 == int(found[3])
        corpus[found[1], found[2]].extend(rows)
    return corpus


def deduplicated(crawl: Crawl, shards: int = 1) -> Corpus:
    with corpus_of(crawl, shards) as (folder, manifest):
        return read(folder, manifest)


def digests(
    crawl: Crawl, shards: int = 1, formats: tuple[str, ...] = ("parquet",), recipe: Recipe = RECIPE
) -> dict[str, str]:
    """The SHA-256 of every shard, computed from the files."""
    with corpus_of(crawl, shards, formats, recipe) as (folder, manifest):
        paths = [file["path"] for file in manifest["shards"]]
        return {path: hashlib.sha256((folder / path).read_bytes()).hexdigest() for path in paths}


def runs(examples: int) -> Callable[[Any], Any]:
    """Settings of a property for which every example runs the pipeline: it takes half a second."""
    phases = [phase for phase in Phase if phase != Phase.explain]
    slow = [HealthCheck.too_slow]
    return settings(max_examples=examples, deadline=None, phases=phases, suppress_health_check=slow)


# --- properties ------------------------------------------------------------------------------------------


@runs(18)
@given(crawls, st.sampled_from([1, 2, 3]))
@example(random_crawl(10), 1)
@example(random_crawl(11, files=5, captures=60), 3)
@example(random_crawl(12, files=2, captures=30), 2)
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


def own_counts(manifest: Row) -> dict[str, int]:
    """The counts of job 2 that are not zero."""
    own = (
        "pages.kept",
        "pages.edited",
        "pages.dropped.stale_capture",
        "pages.dropped.few_sentences_left",
        "bytes.",
        "units.",
    )
    return {name: number for name, number in manifest["counts"].items() if name.startswith(own) and number}


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

    monkeypatch.setattr(pipeline, "group_size", group_size)
    monkeypatch.setattr(steps, "_HELD_BYTES", 2000)  # pages leave several times in a group
    assert digests(crawl) == expected
    assert asked


Case = tuple[int, str, str | None, int]
"""A capture of one URL: its file, time and text (None: dropped by `clean`), and the form of the URL."""
OLD, NEW, NEWER = TIMES
NEWEST: dict[str, tuple[list[Case], str | None]] = {
    "the newest, though its file comes first": ([(0, NEW, "A.", 0), (1, OLD, "B.", 0)], "A."),
    "the newest, though it stands last": ([(0, OLD, "A.", 0), (0, NEW, "B.", 2)], "B."),
    "the newest of three": ([(0, OLD, "A.", 0), (1, NEWER, "B.", 1), (2, NEW, "C.", 2)], "B."),
    "tie: the first file by name": ([(1, OLD, "A.", 1), (0, OLD, "B.", 0)], "B."),
    "tie: the first in the file": ([(0, OLD, "A.", 0), (0, OLD, "B.", 1), (0, OLD, "C.", 0)], "A."),
    "tie: the file before the position": ([(0, OLD, "A.", 0), (0, NEW, "B.", 0), (1, NEW, "C.", 0)], "B."),
    "a newer page that was dropped": ([(0, OLD, "A.", 0), (1, NEW, None, 1)], None),
    "an older page that was dropped": ([(0, NEW, "A.", 0), (1, OLD, None, 0)], "A."),
    "tie: dropped first": ([(0, OLD, None, 0), (0, OLD, "A.", 0)], None),
    "tie: dropped second": ([(0, OLD, "A.", 0), (0, OLD, None, 0)], "A."),
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


# --- a loss is an error ----------------------------------------------------------------------------------

ROWS = {"urls": URL_ROW, "older": STALE_ROW, "spans": SPAN_ROW, "drops": DROP, "lost": REPEAT}
"""What the shuffles of rows carry; that of pages carries Arrow streams."""


def lose(pieces: list[bytes]) -> list[bytes]:
    return pieces[1:]


def repeat(pieces: list[bytes]) -> list[bytes]:
    return [*pieces, pieces[0]]


def alter(pieces: list[bytes]) -> list[bytes]:
    """Another hash, key or row number in the first row: they all stand at a row's start."""
    return [bytes([pieces[0][0] ^ 1]) + pieces[0][1:], *pieces[1:]]


def alter_pages(pieces: list[bytes]) -> list[bytes]:
    pages = decode(pieces[:1])
    keys = pages["page_key"].to_numpy().copy()
    keys[0] ^= np.uint64(1)
    return [encode(pages.set_column(0, "page_key", [keys])), *pieces[1:]]


def spoil(
    monkeypatch: pytest.MonkeyPatch, name: str, damage: Callable[[list[bytes]], list[bytes]], skip: int = 0
) -> list[str]:
    """Lets one group of a shuffle be damaged where it comes out; gives a list that has its name afterwards.

    The first `skip` groups come out whole.
    """
    spoiled: list[str] = []
    whole = iter(range(skip))

    def damaged(pieces: Iterable[bytes]) -> list[bytes]:
        found = list(pieces)
        if not found or spoiled or next(whole, None) is not None:
            return found
        spoiled.append(name)
        return damage(found)

    def spoiled_unpack(pieces: Iterable[bytes], dtype: np.dtype[Any]) -> Rows:
        return unpack(damaged(pieces) if dtype == ROWS[name] else pieces, dtype)

    if name == "pages":
        monkeypatch.setattr(page_batches, "decode", lambda batches: decode(damaged(batches)))
    else:
        monkeypatch.setattr(shuffle, "unpack", spoiled_unpack)
    return spoiled


@pytest.fixture(scope="module")
def crawl() -> Crawl:
    """A crawl for which every shuffle has something to carry, beyond what a file settles by itself."""
    made = random_crawl(5, captures=20)
    counts = oracle(made)[1]
    assert counts["pages.dropped.stale_capture"] > 3
    assert all(files_with_older(made))
    assert counts["units.dropped.repeated_span"] > 3
    return made


def check_nothing_published(output: Path) -> None:
    assert [path.name for path in output.iterdir()] == ["_building"]
    assert list(output.rglob("manifest.json")) == []


def files_with_older(crawl: Crawl) -> list[bool]:
    """Tells of each file whether it has a capture that is not the newest of its URL (without ties)."""
    newest: dict[str, str] = {}
    for capture in (each for captures in crawl.values() for each in captures):
        url = normalise_url(capture.url)
        newest[url] = max(newest.get(url, ""), capture.timestamp)
    return [any(each.timestamp < newest[normalise_url(each.url)] for each in captures) for captures in crawl.values()]


# Older captures go to their file twice: before its spans are read, and when its pages are finished.
DELIVERIES = [*((shuffle, 0) for shuffle in SHUFFLES), ("older", 3)]


@pytest.mark.parametrize("damage", [lose, repeat, alter], ids=["lost", "repeated", "altered"])
@pytest.mark.parametrize(("shuffle", "skip"), DELIVERIES, ids=[*SHUFFLES, "older again"])
def test_damage_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    crawl: Crawl,
    shuffle: str,
    skip: int,
    damage: Callable[[list[bytes]], list[bytes]],
) -> None:
    if shuffle == "pages" and damage is alter:
        damage = alter_pages
    spoiled = spoil(monkeypatch, shuffle, damage, skip)
    work = write_work(tmp_path / "work", crawl)
    if skip == 0:  # and in groups of two, for the first of two
        monkeypatch.setattr(pipeline, "group_size", lambda *counts: 2)
    with pytest.raises(LostDataError, match=rf"did not deliver the shuffle {shuffle} \("):
        run([work], tmp_path / "corpus")
    assert spoiled == [shuffle]
    check_nothing_published(tmp_path / "corpus")


@pytest.mark.parametrize("times", [0, 2], ids=["lost", "repeated"])
def test_a_work_file_must_come_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crawl: Crawl, times: int) -> None:
    """No control total sees a file that a step was never given, but the number of pages does."""

    def unreliable(path: Path, *args: Any) -> Iterator[Any]:
        for _ in range(times if path.name.startswith(sorted(crawl)[1]) else 1):
            yield from read_kept(path, *args)

    monkeypatch.setattr(steps, "read_kept", unreliable)
    work = write_work(tmp_path / "work", crawl)
    with pytest.raises(LostDataError, match=r"pages were read, .* dropped, .* kept"):
        run([work], tmp_path / "corpus")
    check_nothing_published(tmp_path / "corpus")


def test_after_a_loss_the_same_command_makes_the_corpus(tmp_path: Path, crawl: Crawl) -> None:
    work = write_work(tmp_path / "work", crawl)
    with pytest.MonkeyPatch.context() as patch:
        spoil(patch, "spans", lose)
        with pytest.raises(LostDataError):
            run([work], tmp_path / "corpus")
    made = run([work], tmp_path / "corpus")
    assert read(tmp_path / "corpus", made) == oracle(crawl)[0]
    assert json.loads((tmp_path / "corpus" / "manifest.json").read_text()) == json.loads(json.dumps(made))
