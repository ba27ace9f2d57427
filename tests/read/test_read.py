"""A finished corpus as training code reads it: each document once, however it is divided, stopped and resumed."""

import gzip
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import islice, product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe import read
from c4pipe.corpus.shard_writer import FORMATS
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io import web_path
from c4pipe.io.retry import NetworkOptions
from c4pipe.read.order import Order, after, permutation
from c4pipe.read.reader import Reader
from c4pipe.read.source import find
from tests.helpers.s3 import store_of
from tests.helpers.web import Web, serve

Change = Callable[[dict[str, Any]], None]

orders = st.builds(
    lambda seed, epoch, parts, window: Order(seed, epoch, 0, parts, window),
    st.none() | st.integers(0, 2**70),
    st.integers(0, 3),
    st.integers(1, 70),
    st.sampled_from([1, 3, 7, 1000]),
)


def only(corpus: Path, name: str, folder: Path) -> Path:
    """Makes a copy of a corpus, as it is when built with one format."""
    made = json.loads((corpus / "manifest.json").read_text())
    made["formats"] = [name]
    made["shards"] = [each for each in made["shards"] if each["path"].endswith(f".{FORMATS[name].extension}")]
    for shard in made["shards"]:
        (folder / shard["path"]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(corpus / shard["path"], folder / shard["path"])
    (folder / "manifest.json").write_text(json.dumps(made))
    return folder


@pytest.fixture(scope="module")
def corpora(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same corpus in each format alone."""
    return {name: only(small_corpus, name, tmp_path_factory.mktemp(name)) for name in FORMATS}


@pytest.fixture
def corpus(corpora: dict[str, Path], tmp_path: Path) -> Path:
    """A corpus of Parquet, to be broken."""
    return Path(shutil.copytree(corpora["parquet"], tmp_path / "corpus"))


@pytest.fixture(scope="module")
def rows(small_corpus: Path) -> list[dict[str, Any]]:
    """The rows of all train shards, in order."""
    files = sorted(small_corpus.glob("*/c4-train-*.parquet"))
    found: list[dict[str, Any]] = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert len(found) > 50
    return found


def urls(documents: Any) -> list[str]:
    return [document["url"] for document in documents]


def contents(folder: Path, prefix: str = "") -> dict[str, bytes]:
    return {f"{prefix}{p.relative_to(folder)}": p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def edit(corpus: Path, change: Change) -> None:
    path = corpus / "manifest.json"
    made = json.loads(path.read_text())
    change(made)
    path.write_text(json.dumps(made))


def largest(corpus: Path) -> Path:
    return max(corpus.glob("en/c4-train-*"), key=lambda path: path.stat().st_size)


# What is read


def test_documents_are_the_rows_of_the_shards(corpora: dict[str, Path], rows: list[dict[str, Any]]) -> None:
    assert list(read.documents(corpora["parquet"])) == rows
    assert list(read.documents(corpora["json"])) == rows
    for document, row in zip(read.documents(str(corpora["tfrecord"])), rows, strict=True):
        assert list(document) == list(row)
        assert document == {**row, "language_probability": pytest.approx(row["language_probability"], rel=1e-6)}


def test_parquet_is_read_where_there_are_several_formats(small_corpus: Path, rows: list[dict[str, Any]]) -> None:
    documents = read.documents(small_corpus)
    assert {shard.format for shard in documents.source.shards} == {"parquet"}
    assert list(documents) == rows


def test_languages_and_splits(small_corpus: Path, rows: list[dict[str, Any]]) -> None:
    german = [row for row in rows if row["language"] == "de"]
    assert 0 < len(german) < len(rows)
    assert list(read.documents(small_corpus, languages=["de"])) == german
    assert list(read.documents(small_corpus / "de")) == german
    assert list(read.documents(small_corpus, languages=["en", "de"])) == rows
    validation = read.documents(small_corpus, "validation")
    assert len(validation.source.shards) == 2
    assert list(validation) == []


def test_a_file_of_text_has_a_document_a_line(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_bytes("One.\r\n\n  Zwei. \u00e4\n \t\nThree.".encode())
    documents = read.documents(tmp_path / "my.txt")
    assert len(documents) == 3
    assert [document["text"] for document in documents] == ["One.", "Zwei. ä", "Three."]
    documents = read.documents(tmp_path / "my.txt", seed=1, part=1, parts=2)
    assert [set(document) for document in documents] == [set(next(read.documents(tmp_path / "my.txt")))] * 2
    for more in ({"split": "validation"}, {"languages": ["en"]}):
        with pytest.raises(UsageError, match=r"my\.txt is a file of text: it has neither splits nor languages"):
            read.documents(tmp_path / "my.txt", **more)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(C4pipeError, match=r"latin\.txt can't be read: 'utf-8' codec"):
        list(read.documents(tmp_path / "latin.txt"))
    with pytest.raises(UsageError, match=r"none\.txt can't be read"):
        read.documents(tmp_path / "none.txt")


# Order


@given(orders, st.lists(st.integers(0, 50), max_size=12))
def test_parts_have_each_row_once(order: Order, sizes: list[int]) -> None:
    parts = [Order(order.seed, order.epoch, part, order.parts, order.window) for part in range(order.parts)]
    spans = [part.spans(sizes) for part in parts]
    found = [(shard, row) for each in spans for shard, first, end in each for row in range(first, end)]
    assert sorted(found) == [(shard, row) for shard, size in enumerate(sizes) for row in range(size)]
    lengths = [sum(end - first for _, first, end in each) for each in spans]
    assert max(lengths) - min(lengths) <= 1


@given(orders, st.lists(st.integers(0, 50), max_size=8), st.integers(1, 9), st.integers(0, 400))
def test_a_part_is_divided_as_the_whole_is(order: Order, sizes: list[int], count: int, skipped: int) -> None:
    def numbered(spans: Any) -> list[tuple[int, int]]:
        return [(shard, row) for shard, first, end in spans for row in range(first, end)]

    whole = numbered(order.spans(sizes))
    divided = [row for number in range(count) for row in numbered(order.split(number, count).spans(sizes))]
    assert divided == whole
    assert numbered(after(order.spans(sizes), skipped)) == whole[skipped:]


@settings(max_examples=20)
@given(order=orders, name=st.sampled_from(list(FORMATS)))
def test_each_document_is_read_once_an_epoch(
    corpora: dict[str, Path], rows: list[dict[str, Any]], order: Order, name: str
) -> None:
    source = find(corpora[name])
    readers = [Reader(source, Order(order.seed, order.epoch, p, order.parts, order.window)) for p in range(order.parts)]
    found = [url for reader in readers for url in urls(reader)]
    assert sorted(found) == sorted(urls(rows))
    assert [reader.position for reader in readers] == list(map(len, readers))
    if order.seed is None:
        assert found == urls(rows)


@settings(max_examples=30)
@given(
    order=orders,
    part=st.integers(0, 2),
    name=st.sampled_from(list(FORMATS)),
    stops=st.lists(st.integers(0, 20), max_size=5),
)
def test_a_reader_goes_on_where_another_stopped(
    corpora: dict[str, Path], order: Order, part: int, name: str, stops: list[int]
) -> None:
    source, order = find(corpora[name]), order.split(part, 3)
    found: list[Any] = []
    state = json.dumps(Reader(source, order).state())
    for stop in [*stops, None]:
        reader = Reader(source, order)
        reader.restore(json.loads(state))
        found += islice(reader, stop)
        state = json.dumps(reader.state())
    assert found == list(Reader(source, order))


def test_the_order_is_that_of_seed_and_epoch_alone(small_corpus: Path, rows: list[dict[str, Any]]) -> None:
    def order(seed: int, epoch: int) -> list[str]:
        return urls(read.documents(small_corpus, seed=seed, epoch=epoch))

    drawn = [order(seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert all(drawn.count(each) == 1 and each != urls(rows) for each in drawn)
    assert order(0, 1) == drawn[1]
    # Numbers that must never change, whatever the version of NumPy: states are saved with them.
    assert permutation(12, 7, 0) == [0, 8, 5, 2, 3, 4, 9, 10, 7, 6, 1, 11]
    assert permutation(4, 2**70, 3, 1, 2, 9) == [1, 3, 2, 0]


def test_every_epoch_part_and_window_has_an_order_of_its_own() -> None:
    shards = [[span.shard for span in Order(seed, epoch).spans([5] * 20)] for seed in (1, 2) for epoch in (0, 1)]
    assert all(sorted(each) == list(range(20)) for each in shards)
    turns = [
        list(Order(seed, epoch, part, parts).turns(window, 20))
        for seed, epoch, (part, parts), window in product((1, 2), (0, 1), ((0, 1), (0, 2), (1, 2)), (0, 1))
    ]
    drawn = [tuple(each) for each in shards + turns]
    assert len(set(drawn)) == len(drawn) == 28


def test_rows_are_shuffled_in_their_window(small_corpus: Path) -> None:
    order = Order(seed=5, window=9)
    source = find(small_corpus)
    spans = order.spans(source.rows)
    before = [
        urls(Reader(source, Order()))[sum(source.rows[:s]) + row]
        for s, first, end in spans
        for row in range(first, end)
    ]
    found = urls(Reader(source, order))
    for start in range(0, len(found), 9):
        assert sorted(found[start : start + 9]) == sorted(before[start : start + 9])
        assert len(found) - start < 9 or found[start : start + 9] != before[start : start + 9]


# Resuming


def test_what_was_read_is_not_read_again(corpus: Path) -> None:
    documents = read.documents(corpus)
    expected = list(read.documents(corpus))
    for shard in documents.source.shards[:-1]:
        assert isinstance(shard.file, Path)
        shard.file.unlink()
    documents.skip(sum(documents.source.rows[:-1]) + 3)
    assert list(documents) == expected[-len(list(range(documents.source.rows[-1] - 3))) :]


def test_row_groups_that_were_read_are_not_read_again(corpus: Path) -> None:
    expected = list(read.documents(corpus, languages=["en"]))
    file = corpus / "en" / "c4-train-00000-of-00005.parquet"
    groups = pq.read_metadata(file)
    first = groups.row_group(0)
    data = bytearray(file.read_bytes())
    data[4 : first.column(4).data_page_offset] = bytes(first.column(4).data_page_offset - 4)
    file.write_bytes(data)
    with pytest.raises(C4pipeError, match=r"en/c4-train-00000-of-00005\.parquet can't be read: "):
        list(read.documents(corpus, languages=["en"]))
    documents = read.documents(corpus, languages=["en"])
    documents.skip(first.num_rows)
    assert list(documents) == expected[first.num_rows :]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"seed": 2}, "seed is 1 there and 2 here"),
        ({"epoch": 1}, "epoch is 0 there and 1 here"),
        ({"parts": 3}, "parts is 2 there and 3 here"),
        ({"part": 0}, "part is 1 there and 0 here"),
        ({"window": 5}, "window is 10000 there and 5 here"),
        ({"languages": ["en"]}, r"'languages': \['de', 'en'\]\} there and .*'languages': \['en'\]\} here"),
        ({"split": "validation"}, "'split': 'train'.* there and .*'split': 'validation'.* here"),
    ],
)
def test_a_state_of_another_order_is_refused(small_corpus: Path, changed: dict[str, Any], says: str) -> None:
    arguments: dict[str, Any] = {"seed": 1, "part": 1, "parts": 2}
    state = read.documents(small_corpus, **arguments).state()
    with pytest.raises(UsageError, match=says):
        read.documents(small_corpus, **{**arguments, **changed}).restore(state)


def test_a_state_of_another_corpus_is_refused(small_corpus: Path, corpora: dict[str, Path]) -> None:
    documents = read.documents(small_corpus)
    with pytest.raises(UsageError, match=r"source is \{'digest': '[0-9a-f]{64}'.* there and "):
        documents.restore(read.documents(corpora["json"]).state())
    with pytest.raises(UsageError, match="the state has no 'source'"):
        documents.restore({"step": 3})
    with pytest.raises(UsageError, match=r"1,000 documents can't be skipped: \d\d are left"):
        documents.restore({**documents.state(), "documents": 1000})


def test_a_corpus_that_was_moved_is_the_same(small_corpus: Path, tmp_path: Path) -> None:
    documents = read.documents(small_corpus, seed=1)
    list(islice(documents, 20))
    moved = read.documents(shutil.copytree(small_corpus, tmp_path / "moved"), seed=1)
    moved.restore(documents.state())
    assert list(moved) == list(documents)


# What can be wrong


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"part": 2, "parts": 2}, "part=2, parts=2: .*0 <= part < parts"),
        ({"parts": 0}, "part=0, parts=0"),
        ({"seed": -1}, "seed=-1: give 0 or more"),
        ({"epoch": -1}, "epoch=-1: epochs count from 0"),
        ({"window": 0}, "window=0: give 1 document or more"),
        ({"split": "test"}, "split='test': a corpus has train and validation"),
        ({"languages": "en"}, r"languages='en': give a list, as \['en'\]"),
        ({"languages": ["en", "fr"]}, "has no language 'fr', but de, en"),
    ],
)
def test_what_can_not_be_asked_for(small_corpus: Path, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read.documents(small_corpus, **arguments)


def test_a_folder_that_is_no_corpus(small_corpus: Path, corpus: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "none", small_corpus / "_work", small_corpus / "manifest.json"):
        with pytest.raises(UsageError, match=rf"{folder} is no complete corpus, a folder with a manifest\.json"):
            read.documents(folder)
    with pytest.raises(UsageError, match=f"{small_corpus} has no language 'fr', but de, en"):
        read.documents(small_corpus / "fr")
    edit(corpus, lambda made: made.update(version=3))
    with pytest.raises(UsageError, match=r"manifest\.json is of 'c4pipe corpus', version 3: this c4pipe reads .* 2"):
        read.documents(corpus)
    (corpus / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match=r"manifest\.json can't be read: "):
        read.documents(corpus)


def test_a_shard_that_is_missing_or_cut_is_named(corpus: Path) -> None:
    shard = largest(corpus)
    data = shard.read_bytes()
    shard.write_bytes(data[:-1])
    with pytest.raises(C4pipeError, match=rf"{shard} has {len(data) - 1:,} bytes, and by the manifest {len(data):,}"):
        read.documents(corpus)
    shard.unlink()
    with pytest.raises(C4pipeError, match=f"{shard} is not there, and by the manifest"):
        read.documents(corpus)
    assert list(read.documents(corpus, languages=["de"]))


@pytest.mark.parametrize("name", FORMATS)
def test_a_shard_of_other_bytes_is_named(corpora: dict[str, Path], tmp_path: Path, name: str) -> None:
    corpus = Path(shutil.copytree(corpora[name], tmp_path / "corpus"))
    shard = largest(corpus)
    data = bytearray(shard.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 40] = bytes(40)
    shard.write_bytes(data)
    with pytest.raises(C4pipeError, match=f"{shard} can't be read: "):
        list(read.documents(corpus))
    with pytest.raises(C4pipeError, match=f"{shard} has not the SHA-256 that the manifest has"):
        list(read.documents(corpus, verify=True))


@pytest.mark.parametrize("seed", [None, 1])
def test_an_error_is_not_the_end(corpora: dict[str, Path], corpus: Path, seed: int | None) -> None:
    expected = list(read.documents(corpus, seed=seed, window=9))
    documents = read.documents(corpus, seed=seed, window=9)
    shard = largest(corpus)
    shard.unlink()
    found: list[Any] = []
    with pytest.raises(C4pipeError, match=f"{shard} can't be read: "):
        found.extend(documents)
    with pytest.raises(C4pipeError, match=f"{shard} can't be read: "):
        next(documents)
    shutil.copy(corpora["parquet"] / shard.relative_to(corpus), shard)
    assert 0 < len(found) < len(expected)
    assert found + list(documents) == expected


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("more", [-1, 1])
def test_other_rows_than_the_manifest_says(corpora: dict[str, Path], tmp_path: Path, name: str, more: int) -> None:
    corpus = Path(shutil.copytree(corpora[name], tmp_path / "corpus"))
    shard = largest(corpus)
    rows = next(each["rows"] for each in read_manifest(corpus)["shards"] if shard == corpus / each["path"])

    def change(made: dict[str, Any]) -> None:
        for each in made["shards"]:
            each["rows"] += more * (corpus / each["path"] == shard)

    edit(corpus, change)
    has = rows if more > 0 else f"more than {rows - 1}"
    with pytest.raises(C4pipeError, match=f"{shard} has {has} documents, and by the manifest {rows + more}"):
        list(read.documents(corpus))


def read_manifest(corpus: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((corpus / "manifest.json").read_text())
    return made


def test_a_tfrecord_whose_checksum_fails(corpora: dict[str, Path], tmp_path: Path) -> None:
    # damage that gzip does not see: it was there before the file was packed
    corpus = Path(shutil.copytree(corpora["tfrecord"], tmp_path / "corpus"))
    shard = largest(corpus)
    data = gzip.decompress(shard.read_bytes())
    packed = gzip.compress(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    shard.write_bytes(packed)

    def change(made: dict[str, Any]) -> None:
        for each in made["shards"]:
            if corpus / each["path"] == shard:
                each.update(bytes=len(packed), sha256=sha256(packed).hexdigest())

    edit(corpus, change)
    with pytest.raises(C4pipeError, match=f"{shard} can't be read: a record is damaged: its CRC-32C is another one"):
        list(read.documents(corpus, verify=True))


# Elsewhere than on this machine


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_path, "NETWORK", NetworkOptions(tries=3, first_pause=0.01, stall_seconds=5.0))


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("name", FORMATS)
def test_a_corpus_of_a_web_server(corpora: dict[str, Path], rows: list[dict[str, Any]], name: str) -> None:
    expected = list(read.documents(corpora[name], seed=4, part=1, parts=3))
    files = contents(corpora[name])

    def now_and_then(path: str, number: int) -> str | None:
        return ("cut", "503", None, None)[(number + len(path)) % 4] if path in files else None

    with serve(files, now_and_then) as server:
        documents = read.documents(f"{server.url}/", seed=4, part=1, parts=3, verify=True)
        assert list(documents) == expected
        assert server.faults["cut"]
        assert server.faults["503"]
        untouched = [path for path in files if not server.asked[path]]
        assert len(untouched) >= len(documents.source.shards) // 3  # of the other parts


@pytest.mark.usefixtures("patient")
def test_of_a_web_server_only_the_row_groups_that_are_read_are_sent(corpora: dict[str, Path]) -> None:
    expected = list(read.documents(corpora["parquet"], languages=["en"]))
    with serve(contents(corpora["parquet"])) as server:
        documents = read.documents(f"{server.url}/en")
        documents.skip(documents.source.rows[0])
        assert list(documents) == expected[documents.source.rows[0] :]
        assert server.asked["en/c4-train-00000-of-00005.parquet"] == 0


@pytest.mark.usefixtures("patient")
def test_what_a_web_server_lacks_is_named(corpora: dict[str, Path]) -> None:
    files = contents(corpora["parquet"])
    shard = "en/c4-train-00003-of-00005.parquet"
    with serve(files) as server:
        documents = read.documents(server.url)
        server.files[shard] = files[shard] + b"x"
        with pytest.raises(C4pipeError, match=rf"{shard} has {len(files[shard]) + 1:,} bytes, and by the manifest"):
            list(documents)
        del server.files[shard]
        with pytest.raises(C4pipeError, match=f"{shard} can't be read: .*HTTP status 404"):
            list(read.documents(server.url))
        with pytest.raises(UsageError, match=f"{server.url}/other is no complete corpus.*HTTP status 404"):
            read.documents(f"{server.url}/other")


def text_of(server: Web) -> list[str]:
    return [document["text"] for document in read.documents(f"{server.url}/my.txt")]


@pytest.mark.usefixtures("patient")
def test_text_of_a_web_server() -> None:
    with serve({"my.txt": b"One.\nTwo.\n"}) as server:
        assert text_of(server) == ["One.", "Two."]


@pytest.mark.parametrize("name", ["parquet", "json"])
def test_a_corpus_in_a_store(corpora: dict[str, Path], moto: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    expected = list(read.documents(corpora[name], seed=4))
    objects = contents(corpora[name], "bucket/some/corpus/")
    with store_of(moto, objects, monkeypatch) as store:
        documents = read.documents("s3://bucket/some/corpus", seed=4)
        state = documents.state()
        assert list(documents) == expected
        documents.restore({**state, "documents": 30})
        assert list(documents) == expected[30:]
        assert urls(read.documents("s3://bucket/some/corpus/de")) == urls(read.documents(corpora[name] / "de"))
        store.remove(next(path for path in objects if "/en/c4-train-" in path))
        with pytest.raises(C4pipeError, match=r"s3://bucket/some/corpus/en/c4-train-\S+ is not there"):
            read.documents("s3://bucket/some/corpus")


# By number


def test_documents_by_number(small_corpus: Path, rows: list[dict[str, Any]]) -> None:
    documents = read.random_access(small_corpus)
    assert len(documents) == len(rows)
    for order in (range(len(rows)), reversed(range(len(rows))), permutation(len(rows), 1)):
        assert all(documents[number] == rows[number] for number in order)
    for number in (-1, len(rows)):
        with pytest.raises(IndexError, match=f"document {number}: there are {len(rows)}"):
            documents[number]
    again = pickle.loads(pickle.dumps(documents))
    assert again[7] == rows[7]
    assert repr(again) == repr(documents)
    assert repr(again) != repr(read.random_access(small_corpus, languages=["de"]))


def test_documents_by_number_from_threads(small_corpus: Path, rows: list[dict[str, Any]]) -> None:
    documents = read.random_access(small_corpus)
    with ThreadPoolExecutor(8) as pool:
        numbers = permutation(len(rows), 2) * 3
        assert list(pool.map(documents.__getitem__, numbers)) == [rows[number] for number in numbers]


def test_a_row_group_is_read_once_for_documents_near_each_other(corpus: Path, rows: list[dict[str, Any]]) -> None:
    documents = read.random_access(corpus)
    last = documents[len(rows) - 1]
    assert rows[-1] == last
    for shard in corpus.rglob("c4-train-*.parquet"):
        shard.unlink()
    assert documents[len(rows) - 1] == last
    assert documents[len(rows) - 2] == rows[-2]
    with pytest.raises(C4pipeError, match=r"de/c4-train-\S+ can't be read: "):
        documents[0]


def test_by_number_there_must_be_parquet_of_the_manifest(corpora: dict[str, Path], corpus: Path) -> None:
    with pytest.raises(UsageError, match=r"c4-train-\S+\.json\.gz: documents are read by number from Parquet alone"):
        read.random_access(corpora["json"])
    shard = largest(corpus)

    def change(made: dict[str, Any]) -> None:
        for each in made["shards"]:
            each["rows"] += corpus / each["path"] == shard

    edit(corpus, change)
    documents = read.random_access(corpus)
    with pytest.raises(C4pipeError, match=rf"{shard} has \d+ documents, and by the manifest"):
        [documents[number] for number in range(len(documents))]
    shard.write_bytes(shard.read_bytes()[::-1])
    with pytest.raises(C4pipeError, match=f"{shard} has not the SHA-256"):
        [each["url"] for each in map(read.random_access(corpus, verify=True).__getitem__, range(len(documents)))]


# What is loaded


def test_nothing_large_is_loaded_before_it_is_needed(small_corpus: Path) -> None:
    script = f"""
import sys
import c4pipe.read
large = ("apache_beam", "pyarrow", "numpy", "rich", "urllib3", "tensorflow", "torch", "datasets", "grain")
print([name for name in large if name in sys.modules])
next(c4pipe.read.documents({str(small_corpus)!r}, seed=1))
print([name for name in large if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[]", "['pyarrow', 'numpy', 'urllib3']"]
