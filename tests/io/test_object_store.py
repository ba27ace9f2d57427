"""Inputs from object stores, from a real S3 server (moto) behind a proxy that refuses, cuts, resets and stalls."""

import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from c4pipe.clean import work_folder
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.errors import UsageError
from c4pipe.io import object_store
from c4pipe.io.downloads import DownloadError, NetworkOptions
from c4pipe.io.object_store import ObjectDownload, list_objects
from c4pipe.io.streams import InputOpener
from c4pipe.wet.inputs import Selection, find_inputs
from tests.helpers.crawls import CRAWL, FOLDER, LISTS, SAMPLES, build, files_of, made_crawl
from tests.helpers.hostile_web import serve_hostile
from tests.helpers.s3 import Store, environment, store_of
from tests.helpers.web import Script, serve

QUICK = NetworkOptions(tries=12, first_pause=0.002, stall_seconds=10.0)
HASTY = QUICK._replace(stall_seconds=0.5)
DATA = random.Random(0).randbytes(100_000)
LISTING = "GET crawl?list-type=2&max-keys=1000&prefix=folder%2F"


@pytest.fixture
def store(moto: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with store_of(moto, {"crawl/a": DATA, "crawl/empty": b""}, monkeypatch) as store:
        yield store


def fetch(url: str, network: NetworkOptions = QUICK, first: int = 0, size: int | None = None) -> bytes:
    download = ObjectDownload(url, network, first, size)
    data = b"".join(iter(lambda: download.read(7000), b""))
    assert download.read(7000) == b""
    download.close()
    return data


def fail(asked: str, *faults: str) -> Script:
    """A script: the first requests that start so go wrong, each in its way."""
    return lambda each, number: faults[number] if each.startswith(asked) and number < len(faults) else None


def test_an_object_is_read_as_it_is(store: Store) -> None:
    assert fetch("s3://crawl/a") == DATA
    assert store.asked == {"HEAD crawl/a": 2, "GET crawl/a": 1}  # and whether it is still the same in the end
    assert fetch("s3://crawl/empty") == b""


def test_the_length_is_known_once_some_was_read(store: Store) -> None:
    for path, length in (("a", len(DATA)), ("empty", 0)):
        download = ObjectDownload(f"s3://crawl/{path}", QUICK)
        assert download.length is None
        download.read(1)
        assert download.length == length
        assert InputOpener(QUICK).size(f"s3://crawl/{path}") == length


@pytest.mark.parametrize("first", [0, 1, 99_999, 100_000, 100_001, 1 << 40])
@pytest.mark.parametrize("size", [None, 0, 1, 99_999, 100_000, 1 << 40])
def test_a_part_is_what_a_slice_is(store: Store, first: int, size: int | None) -> None:
    expected = DATA[first:] if size is None else DATA[first : first + size]
    assert fetch("s3://crawl/a", first=first, size=size) == expected


def test_parts_across_blocks(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    block = object_store._BLOCK
    data = random.Random(1).randbytes(2 * block + 1)
    with store_of(moto, {"crawl/a": data}, monkeypatch) as store:
        assert fetch("s3://crawl/a") == data
        assert store.asked == {"HEAD crawl/a": 2, "GET crawl/a": 3}
        for first, size in ((block - 1, 2), (block, block), (1, block), (2 * block, 5), (2 * block - 1, block)):
            assert InputOpener(QUICK).read("s3://crawl/a", first, size) == data[first : first + size]


@pytest.mark.parametrize("fault", ["503", "500", "cut", "reset", "stall"])
def test_each_fault_is_survived(store: Store, fault: str) -> None:
    store.script = fail("GET", fault, fault)
    assert fetch("s3://crawl/a", HASTY if fault == "stall" else QUICK) == DATA
    assert store.faults[fault] == 2


@pytest.mark.parametrize("fault", ["503", "500"])
def test_a_refusal_to_tell_the_length_is_survived(store: Store, fault: str) -> None:
    store.script = fail("HEAD", fault, fault, fault)
    assert fetch("s3://crawl/a") == DATA
    assert store.faults[fault] == 3


def test_what_was_read_is_not_asked_for_again(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random.Random(1).randbytes(object_store._BLOCK + 1)
    script = fail("GET", "", "503", "cut")  # the second block fails
    with store_of(moto, {"crawl/a": data}, monkeypatch, script) as store:
        assert fetch("s3://crawl/a") == data
        assert store.sent < len(data) + 2000


def test_tries_without_progress_are_limited_and_counted(store: Store) -> None:
    store.script = fail("HEAD", *["503"] * 99)
    with pytest.raises(DownloadError, match=r"^s3://crawl/a: .*HTTP status 503.*, 4 times in a row$"):
        fetch("s3://crawl/a", NetworkOptions(tries=4, first_pause=0.001))
    assert store.asked == {"HEAD crawl/a": 4}


@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_waits_for_the_place_of_an_option_are_told(
    options: list[str], store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a store that can't be reached would be tried for minutes without a word."""
    monkeypatch.setattr("c4pipe.io.downloads.sleep", lambda seconds: None)
    monkeypatch.setattr("c4pipe.io.paths._TRIES", 1)  # those of the library, with waits of its own
    store.script = lambda asked, number: "503"
    assert main.main(["build", str(SAMPLES[0]), "--lists", str(LISTS), "--output", "s3://crawl/c", *options]) == 1
    *waits, error = capsys.readouterr().err.splitlines()
    tries = [
        re.search(r"^c4pipe: waits: .*HTTP status 503.* from crawl, try (\d) of 6, next in", each) for each in waits
    ]
    assert [match and match[1] for match in tries] == ([] if options else ["1", "2", "3", "4", "5"])
    assert "6 times in a row" in error


def test_the_time_for_an_object_is_limited(store: Store) -> None:
    store.script = fail("HEAD", *["503"] * 99)
    with pytest.raises(DownloadError, match=r"\d s of 0 s are used up"):
        fetch("s3://crawl/a", NetworkOptions(tries=100, first_pause=0.05, file_seconds=0.2))


def test_bandwidth_is_kept_to(store: Store) -> None:
    started = time.monotonic()
    assert fetch("s3://crawl/a", NetworkOptions(bytes_per_second=200_000)) == DATA
    assert time.monotonic() - started > 0.45


@pytest.mark.parametrize(
    ("url", "told", "requests"),
    [
        ("s3://crawl/none", "there is no such object", 1),
        ("s3://nowhere/a", "there is no such object", 1),
        ("s3://crawl/folder", "there is no such object", 1),
        ("s3://crawl/", "Not a regular file", 0),
        ("s3://crawl", "Not a regular file", 0),
        ("s3://crawl//a", "Empty path component", 0),
        ("s3:///a", "Path cannot start with a separator", 0),
    ],
)
def test_what_will_not_change_ends_at_once(store: Store, url: str, told: str, requests: int) -> None:
    with pytest.raises(DownloadError, match=f"^{url}: {told}") as caught:
        fetch(url)
    assert "in a row" not in str(caught.value)
    assert store.asked.total() == requests


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_who_may_not_read_is_told_at_once(store: Store, method: str) -> None:
    store.script = fail(method, "403")
    with pytest.raises(DownloadError, match=r"^s3://crawl/a: .*ACCESS_DENIED"):
        fetch("s3://crawl/a")
    assert store.faults["403"] == 1


@pytest.mark.parametrize("faults", [(), ("", "503")])  # without one, the store tells nothing of the change
@pytest.mark.parametrize("other", [DATA[:-1], DATA + b"x", DATA[::-1], b""])
def test_another_object_than_before_is_no_rest_of_it(
    moto: str, monkeypatch: pytest.MonkeyPatch, other: bytes, faults: tuple[str, ...]
) -> None:
    monkeypatch.setattr(object_store, "_BLOCK", 20_000)
    with store_of(moto, {"crawl/a": DATA}, monkeypatch) as store:
        download = ObjectDownload("s3://crawl/a", QUICK)
        assert download.read(20_000) == DATA[:20_000]
        store.put("crawl/a", other)
        store.script = fail("GET", *faults)
        with pytest.raises(DownloadError, match=r"^s3://crawl/a: the file changed while it was read$"):
            list(iter(lambda: download.read(20_000), b""))


def test_an_object_that_went_away(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_BLOCK", 1000)
    with store_of(moto, {"crawl/a": DATA}, monkeypatch) as store:
        download = ObjectDownload("s3://crawl/a", QUICK)
        assert download.read(1000) == DATA[:1000]
        store.remove("crawl/a")
        with pytest.raises(DownloadError, match=r"^s3://crawl/a: there is no such object"):
            download.read(1000)


def test_the_cache_keeps_objects(store: Store, tmp_path: Path) -> None:
    for _ in range(2):
        with InputOpener(NetworkOptions(cache=tmp_path)).open("s3://crawl/a") as stream:
            assert stream.read(1 << 20) == DATA
    assert store.asked["GET crawl/a"] == 1
    assert (tmp_path / "s3" / "crawl" / "a").read_bytes() == DATA


FOLDER_OBJECTS = {
    "crawl/folder/b.wet": b"2",
    "crawl/folder/deep/er/a.warc.wet.gz": b"333",
    "crawl/folder/": b"",  # what the console makes for a folder
    "crawl/folder/notes.txt": b"4444",
    "crawl/folder/odd +%3F?#é.wet.gz": b"55555",
    "crawl/folder2/c.wet.gz": b"666666",
    "crawl/texts/notes.txt": b"7",
}


def test_a_folder_is_listed_with_sizes(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with store_of(moto, FOLDER_OBJECTS, monkeypatch):
        listed = dict(list_objects("s3://crawl/folder/", QUICK))
        assert listed == {
            f"s3://{path}": len(data)
            for path, data in FOLDER_OBJECTS.items()
            if path.startswith("crawl/folder/") and data
        }
        assert all(fetch(url) == FOLDER_OBJECTS[url[5:]] for url in listed)
        whole = {url for url, _ in list_objects("s3://crawl/", QUICK)}
        assert whole == {f"s3://{path}" for path, data in FOLDER_OBJECTS.items() if data}


def test_a_folder_of_many_objects_is_listed_whole(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"crawl/folder/{number}.wet": b"" for number in range(7)}
    with store_of(moto, many, monkeypatch) as store:
        store.page = 3
        assert [url for url, _ in list_objects("s3://crawl/folder/", QUICK)] == [f"s3://{path}" for path in many]
        assert store.asked.total() == 3


def test_a_folder_names_its_wet_files(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put = {path: data for path, data in FOLDER_OBJECTS.items() if "?" not in path}
    with store_of(moto, put, monkeypatch):
        found = find_inputs(["s3://crawl/folder/", "s3://crawl/folder2/c.wet.gz"], Selection(network=QUICK))
    assert [file[:3] for file in found] == [
        ("s3://crawl/folder/deep/er/a.warc.wet.gz", "a.warc.wet.gz", 3),
        ("s3://crawl/folder/b.wet", "b.wet", 1),
        ("s3://crawl/folder2/c.wet.gz", "c.wet.gz", None),
    ]


@pytest.mark.parametrize(
    ("folder", "told"),
    [
        ("s3://crawl/texts/", "has no file whose name ends in .wet, also with .gz"),
        ("s3://crawl/none/", "can't be listed: .*there is no such object or folder"),
        ("s3://nowhere/", "can't be listed: .*(NO_SUCH_BUCKET|no such)"),
        ("s3:///", "can't be listed: .*the URL names no bucket"),
        ("s3://", "can't be listed: .*the URL names no bucket"),
        ("s3://crawl/a//b/", "can't be listed: .*Empty path component"),
    ],
)
def test_folders_that_are_none(moto: str, monkeypatch: pytest.MonkeyPatch, folder: str, told: str) -> None:
    with store_of(moto, FOLDER_OBJECTS, monkeypatch) as store:
        with pytest.raises(UsageError, match=f"{folder}.*{told}"):
            find_inputs([folder], Selection(network=QUICK))
        assert store.asked.total() <= 1


@pytest.mark.parametrize("fault", ["503", "500", "cut", "reset", "stall"])
def test_a_listing_survives_faults(moto: str, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    with store_of(moto, FOLDER_OBJECTS, monkeypatch, fail("GET", fault)) as store:
        assert len(list(list_objects("s3://crawl/folder/", HASTY if fault == "stall" else QUICK))) == 4
        assert store.asked[LISTING] == 2


def test_a_listing_is_not_tried_for_ever(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with store_of(moto, FOLDER_OBJECTS, monkeypatch, lambda asked, number: "503") as store:
        with pytest.raises(UsageError, match=r"s3://crawl/folder/.*SLOW_DOWN.*, 5 times in a row"):
            find_inputs(["s3://crawl/folder/"], Selection(network=QUICK))
        assert store.asked[LISTING] == 5
        store.script = lambda asked, number: "403"
        with pytest.raises(UsageError, match="ACCESS_DENIED"):
            find_inputs(["s3://crawl/folder/"], Selection(network=QUICK))
        assert store.faults["403"] == 1


def test_an_endpoint_of_s3_alone_goes_first(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", store.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert fetch("s3://crawl/a") == DATA


@pytest.mark.parametrize(
    "config",
    [
        "[profile minio]\nendpoint_url = URL",
        "[default]\nendpoint_url = http://127.0.0.1:1\n[profile minio]\nendpoint_url: URL",
        "[profile minio]\nendpoint_url = http://127.0.0.1:1\nservices = own\n"
        "[services own]\nec2 =\n  endpoint_url = http://127.0.0.1:2\ns3 =\n  endpoint_url = URL",
    ],
)
def test_the_endpoint_of_the_profile(
    config: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys are the profile's, too; worker processes find the server by themselves."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(config.replace("URL", store.url))
    (tmp_path / ".aws" / "credentials").write_text("[minio]\naws_access_key_id = k\naws_secret_access_key = s\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_PROFILE", "minio")
    object_store._store.cache_clear()
    for sample in SAMPLES[:2]:
        store.put(f"crawl/wet/{sample.name[:-12]} (1).wet.gz", sample.read_bytes())
    build = ["build", "s3://crawl/wet/", "--lists", str(LISTS), "--workers", "2", "--quiet"]
    assert main.main([*build, "--output", str(tmp_path / "corpus")]) == 0, capsys.readouterr().err
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert object_store._s3_endpoint() == ""


def test_a_damaged_configuration_of_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("endpoint_url = x\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    object_store._store.cache_clear()
    with pytest.raises(UsageError, match=f"{tmp_path}/config can't be read: File contains no section headers"):
        fetch("s3://crawl/a")


def test_the_region_is_the_buckets(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(bucket: str) -> str:
        if bucket == "crawl":
            return "eu-west-1"
        raise OSError(f"Bucket '{bucket}' not found")  # as Arrow says it

    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setattr(fs, "resolve_s3_region", resolve)
    assert object_store.file_system("s3://crawl/a", 1.0).region == "eu-west-1"
    with pytest.raises(DownloadError, match=r"^s3://nowhere/a: Bucket 'nowhere' not found$"):
        fetch("s3://nowhere/a")


def test_other_stores_are_known_by_their_urls() -> None:
    urls = ["gs://bucket/x/a.wet.gz", "hdfs://node:8020/y/b.wet", "hdfs:///y/c.wet"]
    assert [file[:3] for file in find_inputs(urls)] == [
        (urls[0], "a.wet.gz", None),
        (urls[1], "b.wet", None),
        (urls[2], "c.wet", None),
    ]


def told(corpus: Path) -> dict[str, Any]:
    """What the manifest tells of a corpus, but for where its inputs were."""
    made: dict[str, Any] = json.loads((corpus / manifest.MANIFEST).read_text())
    return {name: value for name, value in made.items() if name != "inputs"}


def test_a_crawl_gives_the_corpus_of_its_mirror(moto: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = made_crawl(4)
    for path, data in files.items():
        target = tmp_path / "mirror" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    build(tmp_path / "work1", tmp_path / "local", (CRAWL,), str(tmp_path / "mirror"))
    script = fail("GET commoncrawl/crawl-data/", "cut", "503")
    put = {f"commoncrawl/{path}": data for path, data in files.items()}
    with store_of(moto, put, monkeypatch, script) as store:
        build(tmp_path / "work2", tmp_path / "store", (CRAWL,), "s3://commoncrawl")
        assert store.faults == {"cut": 5, "503": 5, "none": store.faults["none"]}
    local, ours = files_of(tmp_path / "local"), files_of(tmp_path / "store")
    assert {*local} == {*ours}
    assert [name for name in local if local[name] != ours[name]] in ([], [manifest.MANIFEST])
    assert told(tmp_path / "local") == told(tmp_path / "store")


def test_missing_objects_are_noted_and_tried_again(
    moto: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {f"commoncrawl/{path}": data for path, data in made_crawl(3).items()}
    listing, gone = f"commoncrawl/crawl-data/{CRAWL}/wet.paths.gz", f"commoncrawl/{FOLDER}/00001.warc.wet.gz"
    options = [CRAWL, "--source", "s3://commoncrawl", "--lists", str(LISTS), "--quiet", "--workers"]
    corpus = tmp_path / "corpus"
    put = {path: data for path, data in files.items() if path != gone}
    with store_of(moto, put, monkeypatch) as store:
        assert main.main(["build", *options, "1", "--output", str(corpus)]) == 3
        assert f"missing: s3://{gone}: there is no such object" in capsys.readouterr().err
        made = manifest.read_manifest(corpus)
        assert made is not None
        assert [each["path"] for each in made["missing"]] == [f"s3://{gone}"]
        assert len(made["inputs"]) == 2
        store.put(gone, files[gone])
        store.asked.clear()
        # Worker processes have the environment of the run, and so its endpoint and keys.
        assert main.main(["clean", *options, "2", "--work", str(corpus / work_folder.WORK_FOLDER)]) == 0
        assert {path for path in store.asked if path.startswith("GET")} == {f"GET {listing}", f"GET {gone}"}
        assert main.main(["build", *options, "1", "--output", str(corpus)]) == 0
    made = manifest.read_manifest(corpus)
    assert made is not None
    assert (made["missing"], len(made["inputs"])) == ([], 3)


def test_a_redirect_gets_no_session_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """S3's own library would follow it, and send the token to whatever host the server names."""
    with serve({"crawl/a": DATA}) as other:
        redirect = f"HTTP/1.1 307 Go\r\nLocation: {other.url}/crawl/a\r\nContent-Length: 0\r\n\r\n".encode()
        with serve_hostile() as web:
            web.answers["crawl/a"] = lambda: [redirect]
            for name, value in environment(web.url).items():
                monkeypatch.setenv(name, value)
            monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
            object_store._store.cache_clear()
            try:
                with pytest.raises(DownloadError, match=r"s3://crawl/a: .*HTTP status 307"):
                    fetch("s3://crawl/a")
            finally:
                object_store._store.cache_clear()
        assert other.connections == 0
