"""Documents by index, as samplers ask for them."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from c4pipe import read
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.read.order import permutation
from tests.helpers.corpora import change_rows, largest_shard


def test_documents_by_index(small_corpus: Path, rows: list[dict[str, Any]]) -> None:
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


def test_documents_by_index_from_threads(small_corpus: Path, rows: list[dict[str, Any]]) -> None:
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


def test_there_must_be_parquet_of_the_manifest(corpora: dict[str, Path], corpus: Path) -> None:
    with pytest.raises(UsageError, match=r"c4-train-\S+\.json\.gz: random access needs shards of Parquet"):
        read.random_access(corpora["json"])
    shard = largest_shard(corpus)
    change_rows(corpus, shard, 1)
    documents = read.random_access(corpus)
    with pytest.raises(C4pipeError, match=rf"{shard} has \d+ documents, and by the manifest"):
        [documents[number] for number in range(len(documents))]
    shard.write_bytes(shard.read_bytes()[::-1])
    with pytest.raises(C4pipeError, match=f"{shard} has another SHA-256"):
        [each["url"] for each in map(read.random_access(corpus, verify=True).__getitem__, range(len(documents)))]
