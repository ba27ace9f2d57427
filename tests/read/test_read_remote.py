"""A corpus that is read from a web server or an object store."""

from pathlib import Path
from typing import Any

import pytest

from c4pipe import read
from c4pipe.corpus.formats.table import FORMAT_NAMES
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io import streams
from c4pipe.io.downloads import NetworkOptions
from tests.helpers.corpora import contents, urls
from tests.helpers.s3 import store_of
from tests.helpers.web import Web, serve


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "NETWORK", NetworkOptions(tries=3, first_pause=0.01, stall_seconds=5.0))


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_a_corpus_of_a_web_server(corpora: dict[str, Path], rows: list[dict[str, Any]], name: str) -> None:
    expected = list(read.documents(corpora[name], seed=4, shard_index=1, num_shards=3))
    files = contents(corpora[name])

    def now_and_then(path: str, number: int) -> str | None:
        return ("cut", "503", None, None)[(number + len(path)) % 4] if path in files else None

    with serve(files, now_and_then) as server:
        documents = read.documents(f"{server.url}/", seed=4, shard_index=1, num_shards=3, verify=True)
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
        with pytest.raises(UsageError, match=f"{server.url}/other can't be opened as a corpus.*HTTP status 404"):
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
        with pytest.raises(C4pipeError, match=r"s3://bucket/some/corpus/en/c4-train-\S+ does not exist"):
            read.documents("s3://bucket/some/corpus")
