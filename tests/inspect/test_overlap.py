"""Overlap with evaluation sets: sentences of pages as examples, against plain Python over all pages of the corpus."""

import json
from collections import defaultdict
from dataclasses import asdict
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe.cli import main
from c4pipe.errors import UsageError
from c4pipe.inspect import overlap
from c4pipe.inspect.overlap import FileOverlap, find_overlap
from c4pipe.text.ngrams import ngram_words
from c4pipe.text.scripts.facts import SCRIPTS
from c4pipe.text.scripts.words import letter_words
from tests.helpers.corpora import only_format

ROOT = Path(__file__).resolve().parents[2]
SIZES = (8, 13)

Gram = tuple[str, ...]


class Shared(NamedTuple):
    """A match, without its longest text."""

    url: str
    shard: str
    row: int
    file: str
    example: int
    ngram: int
    shared: int
    total: int


def words_of(text: str) -> list[str]:
    return ngram_words(text).decode().split()


@cache
def grams(text: str, size: int) -> list[Gram]:
    """The n-grams of a text; the pages have no language, so those of each script without blanks are cut."""
    words = letter_words(ngram_words(text).decode(), tuple(SCRIPTS), size).split()
    return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]


def pages_of(corpus: Path) -> list[tuple[str, int, dict[str, Any]]]:
    """The pages of a corpus: shard, row and columns."""
    files = sorted(corpus.glob("[!_]*/*.parquet"))
    return [
        (f"{file.parent.name}/{file.name}", row, page)
        for file in files
        for row, page in enumerate(pq.read_table(file).to_pylist())
    ]


def plain_overlap(
    corpus: Path, examples: dict[str, list[str]], size: int, max_pages: int
) -> tuple[set[Shared], dict[str, FileOverlap]]:
    """What `find_overlap` should return for n-grams of one size; each example is one text."""
    pages = pages_of(corpus)
    pages_with: dict[Gram, set[int]] = defaultdict(set)
    for number, (_, _, page) in enumerate(pages):
        for gram in grams(page["text"], size):
            pages_with[gram].add(number)
    matches, files = set(), {}
    for file, texts in examples.items():
        own = [grams(text, size) for text in texts]
        rare = [[gram for gram in each if 0 < len(pages_with.get(gram, ())) <= max_pages] for each in own]
        found = [
            Shared(pages[page][2]["url"], *pages[page][:2], file, line, size, count, len(own[line - 1]))
            for line, each in enumerate(rare, 1)
            for page in sorted({page for gram in each for page in pages_with[gram]})
            if (count := sum(page in pages_with[gram] for gram in each))
        ]
        matches |= set(found)
        files[file] = FileOverlap(
            file,
            size,
            len(texts),
            sum(map(bool, own)),
            sum(map(bool, rare)),
            sum(len(some) >= Fraction(7, 10) * len(each) for some, each in zip(rare, own, strict=True) if each),
            len({(match.shard, match.row) for match in found}),
        )
    return matches, files


@pytest.fixture(scope="module")
def web_corpus(web_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = tmp_path_factory.mktemp("web") / "corpus"
    inputs = [str(path) for path in sorted((web_data / "wet").glob("*.gz"))]
    recipe = corpus.with_name("all.toml")
    recipe.write_text('base = "unfiltered"\noff = ["language"]\n')
    more = ["--recipe", str(recipe), "--shards", "3", "--workers", "1", "--quiet"]
    assert main.main(["build", *inputs, *more, "--output", str(corpus)]) == 0
    return corpus


def write_examples(corpus: Path, folder: Path) -> dict[str, list[str]]:
    """Makes two files of examples, of pieces of the pages and of words that follow each other on none."""
    words = [text.split() for _, _, page in pages_of(corpus) if len((text := page["text"]).split()) > 60]
    whole = [" ".join(each[9:40]) for each in words[::2]]
    half = [f"{' '.join(each[5:25])} {' '.join(each[50:20:-1])}" for each in words[1::2]]
    none = ["", "too short to be found", " ".join(words[0][::-1])]
    files = {"whole.txt": whole, "half.jsonl": [*half, *none, *whole[:3]]}
    (folder / "whole.txt").write_text("".join(f"{text}\n" for text in whole))
    rows = [json.dumps({"id": number, "text": text}) for number, text in enumerate(files["half.jsonl"])]
    (folder / "half.jsonl").write_text("".join(f"{row}\n" for row in rows))
    return {str(folder / name): texts for name, texts in files.items()}


@pytest.mark.slow
@pytest.mark.parametrize("max_pages", [10, 1])
def test_pages_share_with_examples_what_plain_python_finds(web_corpus: Path, tmp_path: Path, max_pages: int) -> None:
    examples = write_examples(web_corpus, tmp_path)
    found = find_overlap(web_corpus, list(examples), max_pages=max_pages, workers=1)
    assert len(found.matches) > 20
    for size in SIZES:
        matches, files = plain_overlap(web_corpus, examples, size, max_pages)
        ours = [Shared(*list(asdict(each).values())[:8]) for each in found.matches if each.ngram == size]
        assert len(ours) == len(set(ours))
        assert set(ours) == matches
        assert [each for each in found.files if each.ngram == size] == list(files.values())
    texts = {(shard, row): "".join(words_of(page["text"])) for shard, row, page in pages_of(web_corpus)}
    for match in found.matches:
        assert match.share == match.shared / match.total
        text = match.text.replace(" ", "")
        width = len(text) if text.isascii() else match.ngram  # letters of an n-gram, at least
        assert all(text[at : at + width] in texts[match.shard, match.row] for at in range(len(text) - width + 1))
        assert text in "".join(words_of(examples[match.file][match.example - 1]))
        assert not text.isascii() or match.ngram <= len(match.text.split()) < match.ngram + match.shared
    order = [(match.shard, match.row, match.ngram) for match in found.matches]
    assert order == sorted(order)


def test_an_ngram_on_many_pages_is_ignored_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same sentence on 30 pages in two shards, and another on three of them."""
    sentence = "all rights are reserved by the owner of this page and by all of his friends"
    corpus = made_corpus(
        tmp_path,
        [f"{sentence} {number} {'a rare sentence of eight words is here' * (number < 3)}" for number in range(30)],
    )
    examples = tmp_path / "examples.txt"
    examples.write_text(f"{sentence}\na rare sentence of eight words is here\n")
    found = find_overlap(corpus, examples, workers=1, ngrams=[8])
    assert {(match.example, match.shared) for match in found.matches} == {(2, 1)}
    assert found.common == {8: 9}
    assert found.files[0].pages == 3
    all_of_them = find_overlap(corpus, examples, workers=1, ngrams=[8], max_pages=30)
    assert (len(all_of_them.matches), all_of_them.common) == (33, {8: 0})
    assert main.main(["overlap", str(corpus), "--against", str(examples), "--ngrams", "8", "--workers", "1"]) == 0
    assert "ignored: 9 n-grams of 8 words, on more than 10 pages\n" in capsys.readouterr().out


@pytest.mark.parametrize("pages", [11, 200])
def test_hits_of_a_common_ngram_do_not_grow_with_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    texts = [f"the same eight words are on each page {number} {'and more ' * 3000}" for number in range(pages)]
    corpus = made_corpus(tmp_path, texts, shards=1)
    rows: list[int] = []
    read = overlap.FindSharedNgrams.read
    monkeypatch.setattr(overlap.FindSharedNgrams, "read", lambda *given: note(read(*given), rows))
    examples = tmp_path / "examples.txt"
    examples.write_text("the same eight words are on each page\n")
    found = find_overlap(corpus, examples, ngrams=[8], workers=1)
    assert found.common == {8: 1}
    assert found.matches == ()
    assert max(rows) <= 10 + 3  # and a batch, of two pages


def note(table: Any, rows: list[int]) -> Any:
    rows.append(len(table))
    return table


def made_corpus(folder: Path, texts: list[str], shards: int = 2) -> Path:
    """A corpus of pages with these texts."""
    records = [
        f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: https://example.com/{number}\r\n"
        f"WARC-Date: 2030-01-01T00:00:00Z\r\nContent-Length: {len(text.encode())}\r\n\r\n{text}\r\n\r\n"
        for number, text in enumerate(texts)
    ]
    (folder / "made.wet").write_text("".join(records), newline="")
    (folder / "all.toml").write_text('base = "unfiltered"\noff = ["language"]\n')
    more = ["--recipe", str(folder / "all.toml"), "--shards", str(shards), "--workers", "1", "--quiet"]
    assert main.main(["build", str(folder / "made.wet"), *more, "--output", str(folder / "corpus")]) == 0
    return folder / "corpus"


def test_the_file_of_matches_has_the_same_bytes_for_any_number_of_workers(small_corpus: Path, tmp_path: Path) -> None:
    examples = [str(path) for path in write_examples(small_corpus, tmp_path)]
    files = [tmp_path / workers / "matches.parquet" for workers in "12"]
    for file in files:
        command = ["overlap", str(small_corpus), "--against", *examples, "--output", str(file), "--quiet"]
        assert main.main([*command, "--workers", file.parent.name]) == 0
        assert [each.name for each in file.parent.iterdir()] == ["matches.parquet"]
    assert files[0].read_bytes() == files[1].read_bytes()
    rows = pq.read_table(files[0]).to_pylist()
    assert rows == [asdict(each) for each in c4pipe.find_overlap(small_corpus, examples, workers=1).matches] != []


def test_each_format_of_shards_has_the_same_matches(small_corpus: Path, tmp_path: Path) -> None:
    examples = list(write_examples(small_corpus, tmp_path))
    found = find_overlap(small_corpus, examples, workers=1)
    for name in ("tfrecord", "json"):
        alone = find_overlap(only_format(small_corpus, name, tmp_path / name), examples, workers=1)
        assert alone.files == found.files
        assert [each.text for each in alone.matches] == [each.text for each in found.matches]
    english = find_overlap(small_corpus / "en", examples, workers=1)
    assert english.matches == tuple(each for each in found.matches if each.shard.startswith("en/"))


def test_what_is_printed_fits_80_columns(
    small_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = list(write_examples(small_corpus, tmp_path))
    target = tmp_path / "matches.parquet"
    command = ["overlap", str(small_corpus), "--against", *examples, "--output", str(target), "--workers", "1"]
    assert main.main(command) == 0
    shown = capsys.readouterr().out.splitlines()
    assert max(len(line.rstrip()) for line in shown if str(tmp_path) not in line) <= 80
    found = find_overlap(small_corpus, examples, workers=1)
    url, count = found.top_pages(1)[0]
    assert shown[-1] == f"{len(found.matches)} matches: {target}"
    assert any(line.split() == [str(count), url] for line in shown)
    counts = [[str(value) for value in list(asdict(each).values())[1:]] for each in found.files]
    assert [row for row in counts if not any(line.split()[1:] == row for line in shown)] == []


def test_nothing_is_written_where_an_argument_is_wrong(small_corpus: Path, tmp_path: Path) -> None:
    examples = tmp_path / "short.txt"
    examples.write_text("only four words here\n")
    with pytest.raises(UsageError, match=r"no text of .*short\.txt has 8 words"):
        find_overlap(small_corpus, examples, output=tmp_path / "new" / "matches.parquet")
    assert not (tmp_path / "new").exists()
