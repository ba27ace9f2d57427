"""What can be wrong with a corpus that is read, or with what is asked for: one clear sentence for each."""

import gzip
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from c4pipe import read
from c4pipe.corpus.formats.table import FORMAT_NAMES
from c4pipe.errors import C4pipeError, UsageError
from tests.helpers.corpora import change_rows, edit_manifest, largest_shard, read_manifest


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"shard_index": 2, "num_shards": 2}, "shard_index=2, num_shards=2: .*0 <= shard_index < num_shards"),
        ({"num_shards": 0}, "shard_index=0, num_shards=0"),
        ({"seed": -1}, "seed=-1: give 0 or more"),
        ({"epoch": -1}, "epoch=-1: epochs count from 0"),
        ({"window": 0}, "window=0: give 1 document or more"),
        ({"split": "test"}, "split='test': a corpus has train and validation"),
        ({"languages": "en"}, r"languages='en': give a list of str or None, such as \['en'\]"),
        ({"languages": ["en", "fr"]}, "has no language 'fr', but de, en"),
    ],
)
def test_what_can_not_be_asked_for(small_corpus: Path, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read.documents(small_corpus, **arguments)


def test_a_folder_that_is_no_corpus(small_corpus: Path, corpus: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "none", small_corpus / "_work"):
        with pytest.raises(UsageError, match=rf"{folder} has no manifest\.json, which build writes last"):
            read.documents(folder)
    file = small_corpus / "manifest.json"
    with pytest.raises(UsageError, match=f"{file} is a file: give the folder of a finished corpus"):
        read.documents(file)
    with pytest.raises(UsageError, match=f"{small_corpus} has no language 'fr', but de, en"):
        read.documents(small_corpus / "fr")
    for version in (2, 4):
        edit_manifest(corpus, lambda made, version=version: made.update(version=version))  # type: ignore[misc]
        with pytest.raises(
            UsageError, match=rf"manifest\.json has version {version}, and this c4pipe reads version 3: "
        ):
            read.documents(corpus)
    (corpus / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match=r"manifest\.json can't be read: "):
        read.documents(corpus)


def test_a_shard_that_is_missing_or_cut_is_named(corpus: Path) -> None:
    shard = largest_shard(corpus)
    data = shard.read_bytes()
    shard.write_bytes(data[:-1])
    with pytest.raises(C4pipeError, match=rf"{shard} has {len(data) - 1:,} bytes, and by the manifest {len(data):,}"):
        read.documents(corpus)
    shard.unlink()
    with pytest.raises(C4pipeError, match=f"{shard} does not exist, and by the manifest"):
        read.documents(corpus)
    assert list(read.documents(corpus, languages=["de"]))


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_a_shard_of_other_bytes_is_named(corpora: dict[str, Path], tmp_path: Path, name: str) -> None:
    corpus = Path(shutil.copytree(corpora[name], tmp_path / "corpus"))
    shard = largest_shard(corpus)
    data = bytearray(shard.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 40] = bytes(40)
    shard.write_bytes(data)
    with pytest.raises(C4pipeError, match=f"{shard} can't be read: "):
        list(read.documents(corpus))
    with pytest.raises(C4pipeError, match=f"{shard} has another SHA-256 than the manifest says"):
        list(read.documents(corpus, verify=True))


@pytest.mark.parametrize("seed", [None, 1])
def test_an_error_is_not_the_end(corpora: dict[str, Path], corpus: Path, seed: int | None) -> None:
    expected = list(read.documents(corpus, seed=seed, window=9))
    documents = read.documents(corpus, seed=seed, window=9)
    shard = largest_shard(corpus)
    shard.unlink()
    found: list[Any] = []
    with pytest.raises(C4pipeError, match=f"{shard} can't be read: "):
        found.extend(documents)
    with pytest.raises(C4pipeError, match=f"{shard} can't be read: "):
        next(documents)
    shutil.copy(corpora["parquet"] / shard.relative_to(corpus), shard)
    assert 0 < len(found) < len(expected)
    assert found + list(documents) == expected


@pytest.mark.parametrize("name", FORMAT_NAMES)
@pytest.mark.parametrize("more", [-1, 1])
def test_other_rows_than_the_manifest_says(corpora: dict[str, Path], tmp_path: Path, name: str, more: int) -> None:
    corpus = Path(shutil.copytree(corpora[name], tmp_path / "corpus"))
    shard = largest_shard(corpus)
    rows = next(each["rows"] for each in read_manifest(corpus)["shards"] if shard == corpus / each["path"])
    change_rows(corpus, shard, more)
    has = rows if more > 0 else f"more than {rows - 1}"
    with pytest.raises(C4pipeError, match=f"{shard} has {has} documents, and by the manifest {rows + more}"):
        list(read.documents(corpus))


def test_a_tfrecord_whose_checksum_fails(corpora: dict[str, Path], tmp_path: Path) -> None:
    # damage that gzip does not see: it was there before the file was packed
    corpus = Path(shutil.copytree(corpora["tfrecord"], tmp_path / "corpus"))
    shard = largest_shard(corpus)
    data = gzip.decompress(shard.read_bytes())
    packed = gzip.compress(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    shard.write_bytes(packed)

    def change(made: dict[str, Any]) -> None:
        for each in made["shards"]:
            if corpus / each["path"] == shard:
                each.update(bytes=len(packed), sha256=sha256(packed).hexdigest())

    edit_manifest(corpus, change)
    with pytest.raises(C4pipeError, match=f"{shard} can't be read: a record is damaged: its CRC-32C differs"):
        list(read.documents(corpus, verify=True))
