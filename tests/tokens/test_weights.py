"""Token files whose documents come several times, by their number of copies."""

import json
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
from c4pipe.report.html_page import REPORT_PAGE
from c4pipe.text.hashes import is_validation, normalise_url
from c4pipe.tokens import find_pages
from c4pipe.wet.page import Page
from tests.dedup.test_near_duplicates import build
from tests.helpers.commands import run_tokens as run
from tests.helpers.crawls import files_of
from tests.helpers.megatron import read_indexed
from tests.helpers.near_crawls import TIMESTAMP, made_texts
from tests.helpers.reports import Tables
from tests.helpers.reports import number as number_of

TABLE, WEIGHTS = "1:0.5,2:2,5:3,9:0", {1: 0.5, 2: 2, 5: 3, 9: 0}


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


# By the quantiles of a column

MIX = 'column = "score"\nby = "topic"\ntarget_tokens = 30_000\n'


@pytest.fixture(scope="module")
def scored(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus that has scores and topics, the vocabulary of `folder`, and a mix."""
    scored = tmp_path_factory.mktemp("scored")
    rows: list[dict[str, Any]] = [
        {"text": " ".join(["the sea and the land"] * (1 + number % 40)), "url": f"https://site.example/{number}"}
        | {"score": number * 7 % 400 / 400, "topic": "art" if number % 4 else "science"}
        for number in range(400)
    ]
    (scored / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    columns = ["score:float", "topic"]
    c4pipe.import_text(scored / "rows.jsonl", output=scored / "corpus", columns=columns, shards=2, workers=1)
    (scored / "mix.toml").write_text(MIX)
    (scored / "vocab").symlink_to(folder / "vocab")
    return scored


def planned(scored: Path) -> Any:
    return json.loads((scored / "corpus" / "tokens.json").read_text())["plans"]


def test_a_target_is_planned_once_and_then_written_and_read(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write = [*command(scored, "mixed", None), "--weights", scored / "mix.toml"]
    assert run(*write) == 2
    assert "has no plan of these weights in tokens.json" in capsys.readouterr().err
    plan = ["tokens", str(scored / "corpus"), "--vocab", str(scored / "vocab"), "--plan", str(scored / "mix.toml")]
    assert main.main([*plan, "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    last = shown.split("\n")[-2].split()
    assert (last[0], last[-1]) == ("all", "30,000")
    (kept,) = planned(scored)
    pages: Any = list(read.documents(scored / "corpus"))
    processor = sentencepiece.SentencePieceProcessor(model_file=str(scored / "vocab" / "spm.model"))
    for label in kept["times"]["labels"]:
        own = [page for page in pages if page["topic"] == label["label"]]
        assert sum(label["documents"]) == len(own)
        assert sum(label["tokens"]) == sum(len(processor.encode(page["text"])) + 1 for page in own)
        assert label["times"][:7] == [0] * 7 != label["times"][-7:]
    before = files_of(scored / "corpus")
    assert main.main([*plan, "--workers", "1", "--quiet"]) == 0
    assert files_of(scored / "corpus") == before
    assert main.main(["report", str(scored / "corpus"), "--quiet"]) == 0
    tables = Tables((scored / "corpus" / REPORT_PAGE).read_text())
    shown_labels = [(row[0], number_of(row[1])) for row in tables.rows["plans"][1:]]
    assert shown_labels == [(label["label"], sum(label["tokens"])) for label in kept["times"]["labels"]]
    assert sum(number_of(row[2]) for row in tables.rows["plans"][1:]) == pytest.approx(30_000, abs=2)
    assert run(*write) == 0
    weights = {"column": "score", "by": "topic", "target_tokens": 30_000}
    wanted = [page["url"] for page in read.documents(scored / "corpus", weights=weights)]
    rows = pq.read_table(scored / "mixed" / "c4-und-train_documents.parquet")
    assert rows["url"].to_pylist() == wanted
    assert sum(rows["tokens"].to_pylist()) == pytest.approx(30_000, rel=0.03)


def test_other_shares_quantiles_and_targets(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["tokens", str(scored / "corpus"), "--vocab", str(scored / "vocab"), "--workers", "1", "--quiet", "--plan"]
    mix = scored / "shares.toml"
    mix.write_text(MIX + "[mix]\nart = 0.25\nscience = 0.75\n")
    assert main.main([*plan, str(mix)]) == 0
    taken = {
        label["label"]: np.dot(label["tokens"], label["times"]) for label in planned(scored)[-1]["times"]["labels"]
    }
    assert taken == {"art": pytest.approx(7500), "science": pytest.approx(22_500)}
    assert main.main([*plan, str(mix), "--target-tokens", "1_000_000", "--max-repeat", "2"]) == 2
    assert "can't be reached: at most " in capsys.readouterr().err
    mix.write_text('column = "score"\nquantiles = [[0.5, 0], [1, 2]]\nshares = "tokens"\n')
    assert main.main([*plan, str(mix)]) == 0
    (label,) = planned(scored)[-1]["times"]["labels"]
    assert label["tokens"][0] <= sum(label["tokens"]) / 2 < label["tokens"][0] + 300
    mix.write_text(MIX + "[mix]\nmusic = 1\n")
    assert main.main([*plan, str(mix)]) == 2
    assert "mix: no document has the label 'music' in topic" in capsys.readouterr().err


def test_token_files_by_quantiles_of_pages_need_no_plan(scored: Path) -> None:
    assert run(*command(scored, "halves", "score@0.5:0,1:2")) == 0
    rows = pq.read_table(scored / "halves" / "c4-und-train_documents.parquet")
    weights = {"column": "score", "quantiles": [[0.5, 0], [1, 2]]}
    wanted = [page["url"] for page in read.documents(scored / "corpus", weights=weights)]
    assert rows["url"].to_pylist() == wanted
    assert len(wanted) == len(set(wanted)) * 2 == 400


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--plan", "none.toml"], "none.toml can't be read: no such file"),
        (["--plan", "bad.toml"], "bad.toml can't be read: "),
        (["--plan", "1:1"], "weights have no 1: give column"),
        (["--target-tokens", "5"], "--target-tokens is not for a count of tokens"),
        (["--plan", "score@1:1", "--target-tokens", "5"], "give either quantiles or target_tokens"),
        (["--plan", "score"], "give either quantiles or target_tokens"),
        (["--plan", "score", "--target-tokens", "x"], "--target-tokens x: give a number of tokens"),
        (["--plan", "scor@1:1"], "has no column scor of numbers"),
        (["--format", "olmo", "--plan", "score@1:1"], "--plan is not for --format"),
    ],
)
def test_wrong_plans_are_one_sentence(
    more: list[str], says: str, scored: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scored)
    (scored / "bad.toml").write_text("column = \n")
    assert run("corpus", "--vocab", "vocab", *more) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
