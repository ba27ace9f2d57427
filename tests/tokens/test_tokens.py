"""Tokens of a corpus, against SentencePiece in plain Python; and its beginning, read as a corpus."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe import read
from c4pipe.cli import main
from c4pipe.errors import UsageError
from c4pipe.io.json_files import write_checked_json
from c4pipe.io.paths import storage_path
from c4pipe.read.by_column import TOKENS_FILE
from c4pipe.read.order import Order
from c4pipe.read.reader import Reader
from c4pipe.read.source import find
from c4pipe.tokens import subset, tokenizer
from c4pipe.vocab.model import load_model
from tests.helpers.commands import run_tokens as run
from tests.helpers.corpora import rows_of, write_edited
from tests.helpers.crawls import files_of
from tests.helpers.s3 import store_of
from tests.helpers.web import serve


def train_rows(corpus: Path, language: str) -> list[dict[str, Any]]:
    """The rows of a language's train shards, in order."""
    return rows_of(corpus / language, "c4-train-*.parquet")


def report(corpus: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((corpus / TOKENS_FILE).read_text())
    return values


@pytest.fixture(scope="module")
def models(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Two vocabularies, by their number of pieces."""
    folder = tmp_path_factory.mktemp("models")
    for size in (300, 320):
        more = ["--size", str(size), "--workers", "1", "--quiet"]
        assert main.main(["vocab", str(small_corpus / "en"), "--output", str(folder / str(size)), *more]) == 0
    return {size: folder / str(size) for size in (300, 320)}


@pytest.fixture(scope="module")
def counted(small_corpus: Path, models: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with its counts, and with token-budget subsets of several sizes."""
    corpus = Path(shutil.copytree(small_corpus, tmp_path_factory.mktemp("counted") / "corpus"))
    for size in (1, 4096, 9000):
        assert run(corpus / "en", "--vocab", models[300], "--budget-subset", size) == 0
    assert run(corpus, "--vocab", models[300]) == 0
    return corpus


@pytest.fixture
def corpus(small_corpus: Path, tmp_path: Path) -> Path:
    """A corpus without counts."""
    return Path(shutil.copytree(small_corpus, tmp_path / "corpus"))


@pytest.fixture(scope="module")
def lengths(small_corpus: Path, models: dict[int, Path]) -> list[int]:
    """The tokens of each English document, by SentencePiece alone."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(models[300] / "spm.model"))
    return [len(processor.encode(row["text"])) + 1 for row in train_rows(small_corpus, "en")]


# Counts


def test_counts_are_those_of_sentencepiece(counted: Path, models: dict[int, Path]) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(models[300] / "spm.model"))
    made = report(counted)
    shards = sorted(path for path in counted.glob("*/c4-*.parquet"))
    assert [each["path"] for each in made["shards"]] == [str(path.relative_to(counted)) for path in shards]
    totals: dict[str, dict[str, dict[str, int]]] = {}
    for path, each in zip(shards, made["shards"], strict=True):
        texts = pq.read_table(path)["text"].to_pylist()
        count = sum(len(processor.encode(text, add_eos=True)) for text in texts)
        assert (each["documents"], each["tokens"]) == (len(texts), count)
        split = "validation" if "-validation-" in path.name else "train"
        total = totals.setdefault(path.parent.name, {}).setdefault(split, {"documents": 0, "tokens": 0})
        total["documents"] += len(texts)
        total["tokens"] += count
    assert made["totals"] == totals
    assert totals["de"]["train"]["tokens"] > 1000
    assert made["manifest"] == find(counted).digest


def test_same_bytes_for_any_workers_and_order(counted: Path, corpus: Path, models: dict[int, Path]) -> None:
    model = models[300] / "spm.model"
    assert main.main(["tokens", str(corpus), "--vocab", str(model), "--workers", "2", "--quiet"]) == 0
    assert (corpus / TOKENS_FILE).read_bytes() == (counted / TOKENS_FILE).read_bytes()
    assert sorted(path.name for path in corpus.iterdir()) == sorted(
        path.name for path in counted.iterdir() if not path.name.startswith("subset-")
    )


@pytest.mark.parametrize("is_other", [False, True])
def test_what_was_counted_is_not_counted_again_but_by_another_version(
    corpus: Path, counted: Path, models: dict[int, Path], is_other: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = corpus / "_tokens"
    shard = corpus / "en" / "c4-train-00000-of-00005.parquet"
    before = shard.read_bytes()
    shard.write_bytes(before[:-9] + b"not there")  # as large, and no Parquet
    assert run(corpus, "--vocab", models[300]) == 1
    assert not (corpus / TOKENS_FILE).exists()
    there = {path: path.stat().st_mtime_ns for path in waiting.glob("*.parquet.json")}
    assert there  # those in front of the one that can't be read
    shard.write_bytes(before)
    first = min(there)
    changed = {**json.loads(first.read_text()), "tokens": 7}
    del changed["sha256"]
    write_checked_json(first, changed)
    if is_other:
        monkeypatch.setattr(tokenizer, "version", lambda library: "0.0.1")
    assert run(corpus, "--vocab", models[300]) == 0
    first_of_new = report(corpus)["shards"][0]
    assert first_of_new == (report(counted)["shards"][0] if is_other else changed)  # which was taken from there
    assert report(corpus)["shards"][1:] == report(counted)["shards"][1:]
    assert not waiting.exists()


def test_counts_that_were_edited_are_not_used(corpus: Path, counted: Path, models: dict[int, Path]) -> None:
    shard = corpus / "en" / "c4-train-00000-of-00005.parquet"
    before = shard.read_bytes()
    shard.write_bytes(before[:-9] + b"not there")
    assert run(corpus, "--vocab", models[300]) == 1
    shard.write_bytes(before)
    edited = list((corpus / "_tokens").glob("*.parquet.json"))
    assert edited
    for path in edited:
        path.write_text(json.dumps({**json.loads(path.read_text()), "tokens": 7}))
    assert run(corpus, "--vocab", models[300]) == 0
    assert report(corpus) == report(counted)


def test_counts_of_other_things_are_not_used(corpus: Path, models: dict[int, Path]) -> None:
    shard = corpus / "en" / "c4-train-00000-of-00005.parquet"
    before = shard.read_bytes()
    shard.write_bytes(before[:-9] + b"not there")
    assert run(corpus, "--vocab", models[320]) == 1  # leaves counts by another vocabulary
    shard.write_bytes(before)
    assert run(corpus, "--vocab", models[300]) == 0
    by_300 = report(corpus)
    path = corpus / "manifest.json"
    path.write_text(path.read_text() + "\n")  # another digest: as if it had been built anew
    assert run(corpus, "--vocab", models[320]) == 0
    by_320 = report(corpus)
    assert by_320["totals"]["en"]["train"]["tokens"] < by_300["totals"]["en"]["train"]["tokens"]
    assert by_320["manifest"] != by_300["manifest"]


def test_the_languages_of_a_corpus_one_by_one(corpus: Path, counted: Path, models: dict[int, Path]) -> None:
    assert run(corpus / "de", "--vocab", models[300]) == 0
    assert list(report(corpus)["totals"]) == ["de"]
    assert run(corpus / "en", "--vocab", models[300]) == 0
    assert report(corpus) == report(counted)


@pytest.mark.slow
def test_a_corpus_in_a_store(
    counted: Path, small_corpus: Path, models: dict[int, Path], moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"bucket/corpus/{path}": data for path, data in files_of(small_corpus).items()}
    files["bucket/corpus/spm.model"] = (models[300] / "spm.model").read_bytes()
    with store_of(moto, files, monkeypatch):
        corpus = "s3://bucket/corpus"
        assert run(f"{corpus}/en", "--vocab", f"{corpus}/spm.model", "--budget-subset", 9000) == 0
        assert run(corpus, "--vocab", f"{corpus}/spm.model") == 0
        assert (storage_path(corpus) / TOKENS_FILE).read_bytes() == (counted / TOKENS_FILE).read_bytes()
        assert not (storage_path(corpus) / "_tokens").exists()
        assert list(read.documents(f"{corpus}/subset-en-9000.json")) == list(
            read.documents(counted / "subset-en-9000.json")
        )


# Token-budget subsets


@pytest.mark.parametrize("size", [1, 4096, 9000])
def test_a_subset_is_the_beginning_that_reaches_its_size(counted: Path, lengths: list[int], size: int) -> None:
    documents = list(read.documents(counted / f"subset-en-{size}.json"))
    assert documents == train_rows(counted, "en")[: len(documents)]
    assert sum(lengths[: len(documents) - 1]) < size <= sum(lengths[: len(documents)])
    made = json.loads((counted / f"subset-en-{size}.json").read_text())
    assert made["documents"] == len(documents)
    assert made["tokens"] == sum(lengths[: len(documents)])
    assert len(read.random_access(counted / f"subset-en-{size}.json")) == len(documents)


def test_a_subset_can_end_with_a_document_or_with_the_corpus(
    corpus: Path, models: dict[int, Path], lengths: list[int]
) -> None:
    for documents in (len(lengths) - 3, len(lengths)):
        size = sum(lengths[:documents])
        assert run(corpus / "en", "--vocab", models[300], "--budget-subset", size) == 0
        assert len(read.documents(corpus / f"subset-en-{size}.json")) == documents


@given(
    parts=st.integers(1, 60),
    seed=st.none() | st.integers(0, 99),
    window=st.sampled_from([1, 7, 1000]),
    size=st.sampled_from([1, 4096, 9000]),
    data=st.data(),
)
@settings(max_examples=40)
def test_parts_of_a_subset_have_each_document_once(
    counted: Path, parts: int, seed: int | None, window: int, size: int, data: st.DataObject
) -> None:
    subset_source = find(counted / f"subset-en-{size}.json")
    wanted = [row["url"] for row in read.documents(counted / f"subset-en-{size}.json")]
    given_urls = []
    for part in range(parts):
        order = Order(seed, 1, part, parts, window)
        first, second = Reader(subset_source, order), Reader(subset_source, order)
        stop = data.draw(st.integers(0, len(first)))
        given_urls += [next(first)["url"] for _ in range(stop)]
        second.restore(json.loads(json.dumps(first.state())))
        given_urls += [document["url"] for document in second]
    assert sorted(given_urls) == sorted(wanted)


def test_a_state_belongs_to_its_subset(counted: Path) -> None:
    states = {
        json.dumps(read.documents(counted / name, languages=languages).state())
        for name, languages in (("subset-en-4096.json", None), ("subset-en-9000.json", None), ("", ["en"]))
    }
    assert len(states) == 3


def test_a_subset_behind_a_web_server(counted: Path) -> None:
    with serve(files_of(counted)) as server:
        documents = read.documents(f"{server.url}/subset-en-4096.json", seed=3)
        assert list(documents) == list(read.documents(counted / "subset-en-4096.json", seed=3))


def test_what_is_printed(corpus: Path, models: dict[int, Path], capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--vocab", str(models[300]), "--budget-subset", "2^12", "--training-tokens", "2^16", "--workers", "1"]
    assert main.main(["tokens", str(corpus / "en"), *more]) == 0
    made = json.loads((corpus / "subset-en-4096.json").read_text())
    total = report(corpus)["totals"]["en"]["train"]
    printed = capsys.readouterr().out
    assert f"{total['tokens']:,}" in printed
    assert f"subset-en-4096.json ({made['documents']:,} documents, {made['tokens']:,} tokens)" in printed
    assert "65,536 tokens reads it 16 times" in printed


@pytest.mark.parametrize(("size", "times"), [("2^29", 64), ("2^27", 256), ("2^25", 1024), ("2^23", 4096)])
def test_the_repeats_of_the_paper(size: str, times: int) -> None:
    for more in (0, 900):  # what is left of the last document
        written = subset.Subset(Path("subset.json"), 1, subset.parse_tokens("--budget-subset", size) + more)
        assert written.epochs(subset.parse_tokens("--training-tokens", "2^35")) == times


# What can be wrong


def test_errors_are_one_sentence(counted: Path, models: dict[int, Path], tmp_path: Path, error: Any) -> None:
    english = [counted / "en", "--vocab", models[300]]
    assert "--budget-subset 2^x: give a number of tokens, such as 2^29" in error(*english, "--budget-subset", "2^x")
    assert "--training-tokens 0: give a number" in error(*english, "--budget-subset", "9", "--training-tokens", "0")
    assert "has only" in error(*english, "--budget-subset", "2^40")
    one_language = "has the languages de, en, and a token-budget subset has one language"
    assert one_language in error(counted, "--vocab", models[300], "--budget-subset", "9")
    assert f"{tmp_path / 'no'} does not exist: give the folder of a" in error(counted, "--vocab", tmp_path / "no")
    assert "subset-en-9000.json is a file: give the folder" in error(
        counted / "subset-en-9000.json", "--vocab", models[300]
    )
    assert "has no manifest.json, which build writes last" in error(models[300], "--vocab", models[300])
    ours, theirs = (load_model(models[size] / "spm.model").sha256 for size in (300, 320))
    message = error(counted, "--vocab", models[320])
    assert ours in message
    assert theirs in message


def test_a_subset_that_does_not_fit_is_refused(counted: Path, tmp_path: Path) -> None:
    file = counted / "subset-en-4096.json"
    changes: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
        (lambda made: made.update(format="c4pipe take"), "is no token-budget subset"),
        (lambda made: made.update(version=9), "is no token-budget subset"),
        (lambda made: made.update(manifest="0"), "is a subset of another corpus"),
        (lambda made: made["shards"][0].update(path="en/x"), "is a subset of another corpus"),
        (lambda made: made.pop("shards"), "is no token-budget subset"),
    ]
    for change, wanted in changes:
        made = json.loads(file.read_text())
        change(made)
        other = counted / "subset-other.json"
        write_edited(other, made)
        with pytest.raises(UsageError, match=wanted):
            read.documents(other)
        other.unlink()
    with pytest.raises(UsageError, match="leave out split and languages"):
        read.documents(file, languages=["en"])
    with pytest.raises(UsageError, match="is no token-budget subset"):
        read.documents(tmp_path / "none.json")


def test_progress_as_json(corpus: Path, models: dict[int, Path], capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--vocab", str(models[300]), "--workers", "1", "--json-progress", "--quiet"]
    assert main.main(["tokens", str(corpus), *more]) == 0
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    of_tokens = [event for event in events if event.get("job") == "tokens"]
    assert of_tokens
    assert of_tokens[-1]["share"] == 1
    assert of_tokens[-1]["files"] == of_tokens[-1]["files_total"] == len(list(corpus.glob("*/c4-*.parquet")))
