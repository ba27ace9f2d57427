"""Token files whose documents come several times, by their number of copies."""

from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import sentencepiece

import c4pipe
from c4pipe import read
from c4pipe.cli import main
from c4pipe.text.hashes import is_validation, normalise_url
from c4pipe.tokens import find_pages
from c4pipe.wet.page import Page
from tests.dedup.test_near_duplicates import build
from tests.helpers.crawls import files_of
from tests.helpers.megatron import read_indexed
from tests.helpers.near_crawls import TIMESTAMP, made_texts

TABLE, WEIGHTS = "1:0.5,2:2,5:3,9:0", {1: 0.5, 2: 2, 5: 3, 9: 0}


def run(*arguments: Any) -> int:
    return main.main(["tokens", *map(str, arguments), "--workers", "1", "--quiet"])


def page_of(text: str, number: int) -> Page:
    """A page of the text; one page of 40 has a URL of the validation split."""
    urls = (f"https://site.example/{number}/{each}" for each in count())
    url = next(url for url in urls if number % 40 or is_validation(normalise_url(url), 1000))
    return Page(url, TIMESTAMP, text, number, len(text.encode()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus that has the column `copies`, a vocabulary, and weighted token files."""
    folder = tmp_path_factory.mktemp("weighted")
    pages = [page_of(text, number) for number, text in enumerate(made_texts(60, sizes=(1, 2, 5, 9)))]
    build(folder, pages, copies=True, shards=3)
    more = ["--size", "300", "--workers", "1", "--quiet"]
    assert main.main(["vocab", str(folder / "corpus" / "und"), "--output", str(folder / "vocab"), *more]) == 0
    assert run(*command(folder, "tokens")) == 0
    return folder


def command(folder: Path, output: str, weights: str | None = TABLE) -> list[Any]:
    table = ["--weights", weights] if weights is not None else []
    return [folder / "corpus", "--vocab", folder / "vocab", "--format", "megatron", "--output", folder / output, *table]


def test_each_document_comes_as_often_as_its_weight_says(folder: Path) -> None:
    rows = pq.read_table(folder / "tokens" / "c4-und-train_documents.parquet").to_pylist()
    pages = list(read.documents(folder / "corpus", weights=WEIGHTS))
    assert [row["url"] for row in rows] == [page["url"] for page in pages]
    found = Counter(row["url"] for row in rows)
    copies = {page["url"]: page["copies"] for page in read.documents(folder / "corpus")}  # type: ignore[typeddict-item]
    assert {1, 2, 5, 9} <= set(copies.values())
    for url, number in copies.items():
        assert found[url] in ((0, 1) if number == 1 else (2,) if number < 5 else (3,) if number < 9 else (0,))
    assert {found[url] for url, number in copies.items() if number == 1} == {0, 1}
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocab" / "spm.model"))
    indexed = read_indexed(folder / "tokens" / "c4-und-train_text_document")
    assert indexed.rows == [processor.encode(page["text"], add_eos=True) for page in pages]
    for number in (0, len(rows) - 1):
        (place,) = find_pages(folder / "tokens" / "c4-und-train_text_document", number)
        shard = pq.read_table(folder / "corpus" / place.shard)
        assert shard["url"][place.row].as_py() == place.url == pages[number]["url"]
    assert [row["start"] for row in rows] == [0, *np.cumsum([row["tokens"] for row in rows])[:-1]]


def test_validation_has_each_document_once(folder: Path) -> None:
    rows = pq.read_table(folder / "tokens" / "c4-und-validation_documents.parquet")
    pages = [page["url"] for page in read.documents(folder / "corpus", split="validation")]
    assert rows["url"].to_pylist() == pages != []


def test_other_weights_are_refused_and_the_same_change_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(folder / "tokens")
    assert run(*command(folder, "tokens", "9:0.0,5:3,2:2,1:.5")) == 0
    for other in ("1:1", None):
        assert run(*command(folder, "tokens", other)) == 2
        assert (
            "has other token files (weights: [[1, 0.5], [2, 2.0], [5, 3.0], [9, 0.0]], and here "
            in capsys.readouterr().err
        )
    assert files_of(folder / "tokens") == before
    written = c4pipe.write_token_files(
        folder / "corpus", folder / "vocab", output=folder / "again", workers=2, weights=WEIGHTS
    )
    assert written.manifest["weights"] == [[1, 0.5], [2, 2], [5, 3], [9, 0]]
    assert files_of(folder / "again") == before


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ("1", "'1' is no table COPIES:TIMES"),
        ("1:1,1:2", "with each number of copies once, such as 1:1,2:2,100:8"),
        ("0:1", "weights: 0: 1.0: give numbers of copies from 1 on"),
    ],
)
def test_wrong_weights_are_one_sentence(
    weights: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*command(folder, "wrong", weights)) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (folder / "wrong").exists()


def test_weights_need_copies_and_a_format(small_corpus: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small_corpus, *command(folder, "wrong")[1:]) == 2
    assert f"{small_corpus} has no column copies, and weights need it" in capsys.readouterr().err
    assert run(folder / "corpus", "--vocab", folder / "vocab", "--weights", "1:1") == 2
    assert "--weights is not for a count of tokens" in capsys.readouterr().err
