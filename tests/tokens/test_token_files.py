"""Token files against SentencePiece in plain Python, and an independent reader of Megatron's format."""

import contextlib
import hashlib
import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

import c4pipe
from c4pipe.cli import main
from c4pipe.errors import UsageError
from c4pipe.runners.events import ProgressEvent
from c4pipe.tokens import tokenizer
from c4pipe.tokens.folder import dtype_of, find_pages
from c4pipe.vocab.model import SentencePieceModel, load_model
from tests.helpers.commands import run_tokens as run
from tests.helpers.crawls import files_of
from tests.helpers.full_disk import files_of_at_most
from tests.helpers.machine import library
from tests.helpers.malformed import RAW, malformed
from tests.helpers.megatron import read_indexed

LENGTH = 64
UNREAD = {"versions", "eos", "recipe", "fingerprint"}


@pytest.fixture(scope="module")
def written(small_corpus: Path, vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The token files of a corpus, by layout."""
    folder = tmp_path_factory.mktemp("written")
    for layout, more in (("megatron", []), ("npy", ["--length", LENGTH])):
        assert run(small_corpus, "--vocab", vocabulary, "--format", layout, "--output", folder / layout, *more) == 0
    return {layout: folder / layout for layout in ("megatron", "npy")}


@pytest.fixture(scope="module")
def pages(small_corpus: Path, vocabulary: Path) -> dict[str, list[dict[str, Any]]]:
    """The documents of each language and split, in order: shard, row, URL and ids by SentencePiece alone."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary / "spm.model"))
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(small_corpus.glob("*/c4-*.parquet")):
        documents = found.setdefault(f"c4-{path.parent.name}-{path.name.split('-')[1]}", [])
        for row, values in enumerate(pq.read_table(path).to_pylist()):
            ids = processor.encode(values["text"], add_eos=True)
            shard = str(path.relative_to(small_corpus))
            documents.append({"shard": shard, "row": row, "url": values["url"], "ids": ids})
    return found


# What is in the files


def test_megatron_reads_the_ids_of_sentencepiece(written: dict[str, Path], pages: dict[str, Any]) -> None:
    assert {name for name in pages if pages[name]} >= {"c4-en-train", "c4-de-train"}
    for name, documents in pages.items():
        prefix = written["megatron"] / f"{name}_text_document"
        if not documents:  # nobody can map an empty file
            assert not list(prefix.parent.glob(f"{name}*"))
            continue
        indexed = read_indexed(prefix)
        assert indexed.dtype == "uint16"
        assert indexed.rows == [each["ids"] for each in documents]
        assert indexed.documents == list(range(len(documents) + 1))
        assert indexed.offsets[0] == 0
        assert (prefix.parent / f"{prefix.name}.bin").stat().st_size == 2 * sum(indexed.lengths)


def test_an_array_has_the_same_ids_in_rows(written: dict[str, Path], pages: dict[str, Any]) -> None:
    totals = json.loads((written["npy"] / "manifest.json").read_text())["totals"]
    for name, documents in pages.items():
        ids = [token for each in documents for token in each["ids"]]
        _, language, split = name.split("-")
        total = totals[language][split]
        assert total["rows"] * LENGTH + total["left_out"] == total["tokens"] == len(ids)
        path = written["npy"] / f"{name}.npy"
        if not total["rows"]:
            assert not path.exists()
            continue
        rows = np.load(path, mmap_mode="r")
        assert rows.dtype == np.uint16
        assert rows.shape == (total["rows"], LENGTH)
        assert rows.ravel().tolist() == ids[: rows.size]


def test_each_document_leads_to_its_page(written: dict[str, Path], pages: dict[str, Any]) -> None:
    for name, documents in pages.items():
        start = 0
        for number, wanted in enumerate(documents):
            (place,) = find_pages(written["megatron"] / f"{name}_text_document", number)
            assert (place.shard, place.row, place.url) == (wanted["shard"], wanted["row"], wanted["url"])
            assert (place.document, place.start, place.tokens) == (number, start, len(wanted["ids"]))
            start += place.tokens


def test_each_row_leads_to_its_pages(written: dict[str, Path], pages: dict[str, Any]) -> None:
    path = written["npy"] / "c4-en-train.npy"
    owners = [number for number, each in enumerate(pages["c4-en-train"]) for _ in each["ids"]]
    for row in range(len(np.load(path, mmap_mode="r"))):
        places = find_pages(path, row)
        assert [place.document for place in places] == sorted(set(owners[row * LENGTH : (row + 1) * LENGTH]))
        assert all(place.url == pages["c4-en-train"][place.document]["url"] for place in places)


def test_the_manifest_describes_the_files(written: dict[str, Path], small_corpus: Path, vocabulary: Path) -> None:
    for layout, folder in written.items():
        manifest = json.loads((folder / "manifest.json").read_text())
        files = {each["name"]: (each["bytes"], each["sha256"]) for each in manifest["files"]}
        contents = {name: data for name, data in files_of(folder).items() if name != "manifest.json"}
        assert files == {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in contents.items()}
        assert manifest["layout"] == layout
        assert manifest["manifest"] == hashlib.sha256((small_corpus / "manifest.json").read_bytes()).hexdigest()
        assert manifest["vocabulary"] == load_model(vocabulary / "spm.model").sha256
        assert manifest["eos"] == 1


@pytest.fixture(scope="module")
def model(vocabulary: Path) -> SentencePieceModel:
    return load_model(vocabulary / "spm.model")


@given(st.lists(st.text(max_size=40), max_size=5))
@settings(max_examples=50)
def test_ids_as_arrays_are_those_of_sentencepiece(model: SentencePieceModel, texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]  # Parquet has no halves of pairs
    plain = model._processor.encode(texts)
    assert [row.tolist() for row in model.encode(texts)] == plain


@pytest.mark.parametrize(
    ("layout", "pieces", "wanted"),
    [
        ("megatron", 65_499, "uint16"),
        ("megatron", 65_500, "int32"),
        ("npy", 65_536, "uint16"),
        ("npy", 65_537, "uint32"),
    ],
)
def test_the_type_of_ids_follows_from_the_vocabulary(layout: str, pieces: int, wanted: str) -> None:
    assert dtype_of(layout, pieces) == wanted


@pytest.mark.optional
def test_megatron_core_reads_and_writes_the_same_bytes(written: dict[str, Path], tmp_path: Path) -> None:
    reader = library("megatron.core.datasets.indexed_dataset", "pip install megatron-core")
    for index in written["megatron"].glob("*.idx"):
        prefix = index.with_suffix("")
        dataset, copy = reader.IndexedDataset(str(prefix)), tmp_path / prefix.name
        builder = reader.IndexedDatasetBuilder(f"{copy}.bin", dtype=np.uint16)
        for row, wanted in zip(dataset, read_indexed(prefix).rows, strict=True):
            assert row.tolist() == wanted
            builder.add_document(wanted, [len(wanted)])
        builder.finalize(f"{copy}.idx")
        for end in (".bin", ".idx"):
            assert Path(f"{copy}{end}").read_bytes() == Path(f"{prefix}{end}").read_bytes()


# Runs


def test_same_bytes_on_two_workers_and_from_python(
    small_corpus: Path, vocabulary: Path, written: dict[str, Path], tmp_path: Path
) -> None:
    events: list[ProgressEvent] = []
    folder = tmp_path / "new"
    files = c4pipe.write_token_files(small_corpus, vocabulary, output=folder, workers=2, progress=events.append)
    assert files_of(files.path) == files_of(written["megatron"])
    assert files.manifest["totals"]["en"]["train"]["documents"] > 10
    assert events[-1].share == 1
    assert events[-1].job == "tokens"
    one = c4pipe.write_token_files(small_corpus / "de", vocabulary, output=tmp_path / "de", workers=1)
    same = {name: data for name, data in files_of(one.path).items() if name != "manifest.json"}
    assert same == {name: files_of(written["megatron"])[name] for name in same}
    assert any(name.startswith("c4-de-train") for name in same)


def test_a_second_run_changes_nothing(
    small_corpus: Path, vocabulary: Path, written: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written["megatron"]
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    more = ["--vocab", str(vocabulary), "--format", "megatron", "--output", str(folder), "--workers", "1"]
    assert main.main(["tokens", str(small_corpus), *more]) == 0
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    printed = capsys.readouterr()
    assert f"token files: {folder} (" in printed.out
    assert f"{folder} is complete already, and nothing was done: " in printed.err


def test_parts_that_are_done_are_not_done_again(
    small_corpus: Path,
    vocabulary: Path,
    written: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corpus = Path(shutil.copytree(small_corpus, tmp_path / "corpus"))
    first, second = (corpus / "en" / f"c4-train-0000{number}-of-00005.parquet" for number in (0, 4))
    while not pq.read_metadata(first).num_rows:
        first = first.with_name(first.name.replace("0000", "00001", 1))
    whole = {path: path.read_bytes() for path in (first, second)}
    arguments = [corpus, "--vocab", vocabulary, "--format", "megatron", "--output", tmp_path / "new"]
    second.write_bytes(whole[second][:-9] + b"not there")  # as large, and no Parquet
    assert run(*arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{second} can't be read" in line
    assert not (tmp_path / "new" / "manifest.json").exists()
    assert run(*arguments[:3], "--format", "npy", "--length", 8, "--output", tmp_path / "new") == 2
    assert "has the parts of other token files (layout: 'megatron', and here 'npy')" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(tokenizer, "version", lambda library: "0.0.1")
        assert run(*arguments) == 2
    said = f"(library: 'sentencepiece {version('sentencepiece')}', and here 'sentencepiece 0.0.1')"
    assert said in capsys.readouterr().err
    second.write_bytes(whole[second])
    first.write_bytes(whole[first][:-9] + b"not there")  # is not read any more
    part = tmp_path / "new" / "_parts" / f"en-{first.name}.ids"
    data = part.read_bytes()
    part.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    assert run(*arguments) == 1
    assert f"{part} is damaged: its checksum is another one; delete it" in capsys.readouterr().err
    part.write_bytes(data)
    assert run(*arguments) == 0
    assert files_of(tmp_path / "new") == files_of(written["megatron"])


# What can be wrong


def test_errors_are_one_sentence(
    small_corpus: Path, vocabulary: Path, written: dict[str, Path], tmp_path: Path, error: Any
) -> None:
    new = ["--output", tmp_path / "new"]
    base = [small_corpus, "--vocab", vocabulary]
    assert "--format hdf5: it is none of megatron, npy" in error(*base, *new, "--format", "hdf5")
    assert "--format npy has rows of one length: give it with --length" in error(*base, *new, "--format", "npy")
    assert "--length 0: give a number of tokens" in error(*base, *new, "--format", "npy", "--length", 0)
    megatron = [*base, "--format", "megatron"]
    assert "--length 8 is only for --format npy" in error(*megatron, *new, "--length", 8)
    assert "--format needs a folder for the files" in error(*megatron)
    assert "trainers map token files into memory" in error(*megatron, "--output", "s3://bucket/tokens")
    assert "--budget-subset is not for --format" in error(*megatron, *new, "--budget-subset", 9)
    assert "--output is not for a count of tokens" in error(*base, *new)
    assert "tokens needs a vocabulary: name its folder with --vocab" in error(small_corpus)
    assert "--vocab is not for --find" in error(*base, "--find", 1)
    assert "has no manifest.json" in error(vocabulary, "--vocab", vocabulary, "--format", "megatron", *new)
    assert not (tmp_path / "new").exists()
    assert "is not that of token files" in error(*megatron, "--output", small_corpus)
    assert "has other files, such as 'quality.json'" in error(*megatron, "--output", vocabulary)
    other = error(*base[:2], vocabulary / "spm.model", "--format", "npy", "--length", 9, "--output", written["npy"])
    assert f"{written['npy']} has other token files (length: 64, and here 9): give another folder" in other
    assert "(layout: 'npy', and here 'megatron')" in error(*megatron, "--output", written["npy"])


def test_a_full_disk_is_one_sentence(small_corpus: Path, vocabulary: Path, tmp_path: Path, error: Any) -> None:
    arguments = [small_corpus, "--vocab", vocabulary, "--format", "megatron", "--output", tmp_path / "new"]
    with files_of_at_most(3000):
        message = error(*arguments, status=1)
    assert str(tmp_path / "new" / "_parts") in message
    assert "can't be written: " in message
    assert "File too large" in message or "file too large" in message
    assert not (tmp_path / "new" / "manifest.json").exists()
    assert run(*arguments) == 0


def test_what_can_not_be_found(written: dict[str, Path], tmp_path: Path, error: Any) -> None:
    folder = tmp_path / "tokens"
    shutil.copytree(written["megatron"], folder)
    count = json.loads((folder / "manifest.json").read_text())["totals"]["en"]["train"]["documents"]
    train = folder / "c4-en-train_text_document"
    known = f"there is no number {count} in {folder / 'c4-en-train'}: it has documents 0 to {count - 1}"
    assert known in error(train, "--find", count)
    assert "there is no number -1" in error(train, "--find", -1)
    assert "is none of the token files in" in error(folder / "c4-fr-train.bin", "--find", 0)
    assert f"{folder} is a folder with several token files: give a file, such as {folder}/" in error(
        folder, "--find", 0
    )
    assert "has no manifest.json, which c4pipe tokens --format writes last" in error(tmp_path / "no", "--find", 0)
    documents = folder / "c4-en-train_documents.parquet"
    data = documents.read_bytes()
    documents.write_bytes(data[:-40] + bytes(40))
    assert f"{documents} can't be read" in error(train, "--find", 0)
    documents.unlink()
    assert f"{documents} can't be read" in error(train, "--find", 0)


def test_a_folder_that_was_damaged_is_not_complete(
    small_corpus: Path, vocabulary: Path, written: dict[str, Path], tmp_path: Path, error: Any
) -> None:
    folder = Path(shutil.copytree(written["megatron"], tmp_path / "tokens"))
    index = folder / "c4-en-train_text_document.idx"
    index.write_bytes(index.read_bytes()[:-1])
    arguments = [small_corpus, "--vocab", vocabulary, "--format", "megatron", "--output", folder]
    assert f"{index} has " in error(*arguments)
    index.unlink()
    assert f"{index} is missing" in error(*arguments)


@pytest.mark.parametrize("layout", ["megatron", "npy"])
def test_a_malformed_manifest_is_one_sentence(written: dict[str, Path], tmp_path: Path, layout: str) -> None:
    folder = Path(shutil.copytree(written[layout], tmp_path / "tokens"))
    manifest = folder / "manifest.json"
    values = json.loads(manifest.read_text())
    values["files"] = values["files"][:1]
    del values["sha256"]  # a manifest without it is read
    cases = [*RAW.items(), *malformed(values, {"name", "sha256"}, UNREAD, {"versions"})]
    assert len(cases) > 50
    taken = []
    for what, data in cases:
        manifest.write_bytes(data)
        with contextlib.suppress(UsageError):
            find_pages(folder / "c4-en-train", 0)
            taken.append(what)
    assert [what for what in taken if not what.startswith("without totals.")] == []  # with fewer languages or splits


def test_what_find_prints(written: dict[str, Path], pages: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(written["megatron"] / "c4-en-train_text_document", "--find", 3) == 0
    wanted = pages["c4-en-train"][3]
    where = f"document 3: {wanted['shard']}, row {wanted['row']}, {len(wanted['ids']):,} tokens, {wanted['url']}"
    assert capsys.readouterr().out == f"{where}\n"
