"""A finished corpus as training code reads it: each document once, however it is divided, stopped and resumed."""

import json
import shutil
import subprocess
import sys
from itertools import islice, product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe import read
from c4pipe.corpus.formats.table import FORMAT_NAMES
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.read.order import Order, after, permutation
from c4pipe.read.reader import Reader
from c4pipe.read.source import find
from tests.helpers.corpora import urls

orders = st.builds(
    lambda seed, epoch, num_shards, window: Order(seed, epoch, 0, num_shards, window),
    st.none() | st.integers(0, 2**70),
    st.integers(0, 3),
    st.integers(1, 70),
    st.sampled_from([1, 3, 7, 1000]),
)


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
    documents = read.documents(tmp_path / "my.txt", seed=1, shard_index=1, num_shards=2)
    assert [set(document) for document in documents] == [set(next(read.documents(tmp_path / "my.txt")))] * 2
    for more in ({"split": "validation"}, {"languages": ["en"]}):
        with pytest.raises(UsageError, match=r"my\.txt is a file of text: it has neither splits nor languages"):
            read.documents(tmp_path / "my.txt", **more)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(C4pipeError, match=r"latin\.txt can't be read: it is not UTF-8 \(byte 3\)"):
        list(read.documents(tmp_path / "latin.txt"))
    (tmp_path / "mark.txt").write_bytes("\ufeffOne.\nTwo.".encode())
    assert [document["text"] for document in read.documents(tmp_path / "mark.txt")] == ["One.", "Two."]
    (tmp_path / "mark.txt").write_bytes("\ufeff\r\nOne.".encode())
    assert [document["text"] for document in read.documents(tmp_path / "mark.txt", verify=True)] == ["One."]
    (tmp_path / "wide.txt").write_bytes("One.\nTwo.".encode("utf-16-le"))
    with pytest.raises(C4pipeError, match=r"wide\.txt can't be read: it is a binary file, or text in UTF-16"):
        list(read.documents(tmp_path / "wide.txt"))
    with pytest.raises(UsageError, match=r"none\.txt can't be read"):
        read.documents(tmp_path / "none.txt")


# Order


@given(orders, st.lists(st.integers(0, 50), max_size=12))
def test_parts_have_each_row_once(order: Order, sizes: list[int]) -> None:
    parts = [Order(order.seed, order.epoch, index, order.num_shards, order.window) for index in range(order.num_shards)]
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
@given(order=orders, name=st.sampled_from(list(FORMAT_NAMES)))
def test_each_document_is_read_once_an_epoch(
    corpora: dict[str, Path], rows: list[dict[str, Any]], order: Order, name: str
) -> None:
    source = find(corpora[name])
    readers = [
        Reader(source, Order(order.seed, order.epoch, p, order.num_shards, order.window))
        for p in range(order.num_shards)
    ]
    found = [url for reader in readers for url in urls(reader)]
    assert sorted(found) == sorted(urls(rows))
    assert [reader.position for reader in readers] == list(map(len, readers))
    if order.seed is None:
        assert found == urls(rows)


@settings(max_examples=30)
@given(
    order=orders,
    part=st.integers(0, 2),
    name=st.sampled_from(list(FORMAT_NAMES)),
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
    shards = [[span.file for span in Order(seed, epoch).spans([5] * 20)] for seed in (1, 2) for epoch in (0, 1)]
    assert all(sorted(each) == list(range(20)) for each in shards)
    turns = [
        list(Order(seed, epoch, part, parts).window_order(window, 20))
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
        ({"seed": 2}, "its seed is 1, and here it is 2"),
        ({"epoch": 1}, "its epoch is 0, and here it is 1"),
        ({"num_shards": 3}, "its num_shards is 2, and here it is 3"),
        ({"shard_index": 0}, "its shard_index is 1, and here it is 0"),
        ({"window": 5}, "its window is 10000, and here it is 5"),
        ({"languages": ["en"]}, r"'languages': \['de', 'en'\]\}, and here it is .*'languages': \['en'\]\};"),
        ({"split": "validation"}, "'split': 'train'.*, and here it is .*'split': 'validation'"),
    ],
)
def test_a_state_of_another_order_is_refused(small_corpus: Path, changed: dict[str, Any], says: str) -> None:
    arguments: dict[str, Any] = {"seed": 1, "shard_index": 1, "num_shards": 2}
    state = read.documents(small_corpus, **arguments).state()
    with pytest.raises(UsageError, match=says):
        read.documents(small_corpus, **{**arguments, **changed}).restore(state)


def test_a_state_of_another_corpus_is_refused(small_corpus: Path, corpora: dict[str, Path]) -> None:
    documents = read.documents(small_corpus)
    with pytest.raises(UsageError, match=r"its source is \{'digest': '[0-9a-f]{64}'.*, and here it is "):
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
    assert done.stdout.splitlines() == ["[]", "['pyarrow', 'numpy']"]


# Epochs and equal parts


@pytest.mark.parametrize("how", ["drop", "repeat"])
@pytest.mark.parametrize("count", [1, 2, 5, 9, 16])
def test_equal_parts(small_corpus: Path, how: str, count: int) -> None:
    whole = urls(read.documents(small_corpus, seed=1))
    equal = [read.documents(small_corpus, seed=1, shard_index=n, num_shards=count).equal(how) for n in range(count)]
    states = [each.state() for each in equal]
    parts = [urls(each) for each in equal]
    size = len(whole) // count + (how == "repeat" and len(whole) % count > 0)
    assert [len(part) for part in parts] == [len(each) for each in equal] == [size] * count
    read_once = {url for part in parts for url in part}
    assert len(read_once) == (len(whole) if how == "repeat" else size * count)
    again = read.documents(small_corpus, seed=1, shard_index=0, num_shards=count)
    again.restore(json.loads(json.dumps(states[0])))
    assert urls(again) == parts[0]


def test_parts_that_can_not_be_equal(small_corpus: Path) -> None:
    total = len(read.documents(small_corpus))
    with pytest.raises(UsageError, match="equal_steps='same': give 'drop' or 'repeat', or None"):
        read.documents(small_corpus).equal("same")
    with pytest.raises(UsageError, match=f"{total} documents are fewer than the {total + 1} processes"):
        read.documents(small_corpus, num_shards=total + 1).equal("repeat")
    begun = read.documents(small_corpus)
    begun.skip(1)
    with pytest.raises(UsageError, match="equal_steps needs a reader of a whole epoch"):
        begun.equal("drop")


def test_other_epochs(small_corpus: Path) -> None:
    documents = read.documents(small_corpus, seed=1, shard_index=1, num_shards=3)
    documents.skip(4)
    assert documents.at_epoch(0).state() == documents.state()
    later = read.documents(small_corpus, seed=1, epoch=2, shard_index=1, num_shards=3)
    assert documents.at_epoch(2).state() == later.state()
    mixture = read.mix([small_corpus], seed=1)
    assert (
        urls(islice(mixture.at_epoch(1), 9)) != urls(islice(mixture.copy(), 9)) == urls(islice(mixture.at_epoch(0), 9))
    )
