"""Work folders and corpora in a store: a real S3 server (moto) behind a proxy that refuses, cuts and resets."""

import io
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA
from c4pipe.dedup import publish
from c4pipe.dedup.publishers import STAGING, publisher
from c4pipe.dedup.removals import MOVED_SPANS
from c4pipe.errors import LostDataError, UsageError
from c4pipe.io import object_store, paths
from c4pipe.io.atomic import AtomicFile, write_bytes, write_text
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.paths import RemotePath, StoragePath, file_sizes, list_names, remove_tree, storage_path
from c4pipe.recipes.presets import C4
from c4pipe.report import card, html_page
from c4pipe.report.data import DEDUP_DATA, REPORT_DATA
from c4pipe.report.profile import Profiler
from tests.helpers.commands import heed_interrupts
from tests.helpers.crawls import LISTS, SAMPLES, files_of
from tests.helpers.s3 import Store, store_of
from tests.helpers.web import Fault, Script

BIG = random.Random(0).randbytes(25_000_000)  # three parts of an upload
IDENTITY = {
    "recipe": json.loads(json.dumps(C4.to_json())),
    "fingerprint": "e0a900de172af7c0",
    "inputs": [{"name": "a.wet", "bytes": 3, "ends_sha256": ""}],
    "formats": ["parquet"],
    "train_shards": {"en": 1},
}
PAGE = pa.table(
    {
        "url": ["https://a.example/"],
        "text": ["A page."],
        "timestamp": ["2019-04-18T10:12:43Z"],
        "language": ["en"],
        "language_probability": pa.array([1.0], CORPUS_SCHEMA.field("language_probability").type),
    }
)
with io.BytesIO() as file:
    pq.write_table(PAGE, file)
    SHARD = file.getvalue()
TRAIN, VALIDATION = "en/c4-train-00000-of-00001.parquet", "en/c4-validation-00000-of-00001.parquet"


@pytest.fixture
def store(moto: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with store_of(moto, {"bucket/other": b"x"}, monkeypatch) as store:
        yield store


@pytest.fixture(params=["here", pytest.param("s3", marks=pytest.mark.stores)])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> StoragePath:
    """A folder that does not exist yet, on this machine and in a store."""
    if request.param == "here":
        (tmp_path / "folder").mkdir()
        return tmp_path / "folder"
    request.getfixturevalue("store")
    return storage_path("s3://bucket/some/folder")


def put(target: StoragePath, data: bytes) -> None:
    if isinstance(target, Path):
        target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, data)


def test_files_and_folders_are_the_same_everywhere(folder: StoragePath) -> None:
    names_used = ["a.parquet", "b c.json", "d+e=f,g@h.json.gz", "ü%41.jsonl"]
    for number, name in enumerate(names_used):
        put(folder / name, name.encode() * number)
    put(folder / "sub" / "x", b"1")
    assert list_names(folder) == {*names_used, "sub"}
    assert file_sizes(folder, "*.json*") == {"b c.json": 8, "d+e=f,g@h.json.gz": 34, "ü%41.jsonl": 33}
    assert [each.name for each in folder.glob("*.json")] == ["b c.json"]
    assert [(folder / name).read_bytes() for name in names_used] == [n.encode() * k for k, n in enumerate(names_used)]
    assert (folder.is_dir(), (folder / "sub").is_dir(), (folder / "a.parquet").is_dir()) == (True, True, False)
    assert ((folder / "a.parquet").exists(), (folder / "sub").exists(), (folder / "none").exists()) == (
        True,
        True,
        False,
    )
    write_text(folder / "a.parquet", "anew: ä\n")
    assert (folder / "a.parquet").read_bytes().decode() == "anew: ä\n"
    (folder / "a.parquet").unlink()
    (folder / "a.parquet").unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        (folder / "a.parquet").unlink()
    with pytest.raises(FileNotFoundError):
        (folder / "a.parquet").read_bytes()
    remove_tree(folder / "sub")
    remove_tree(folder / "sub")
    assert list_names(folder) == {*names_used[1:]}
    assert (list_names(folder / "none"), file_sizes(folder / "none", "*"), list((folder / "none").glob("*"))) == (
        set(),
        {},
        [],
    )


def test_urls_are_places() -> None:
    assert storage_path("some/folder") == Path("some/folder")
    assert str(storage_path("s3://bucket/folder/") / "a") == "s3://bucket/folder/a"
    assert storage_path("gs://bucket") == RemotePath("gs://bucket")
    assert storage_path("hdfs:///folder").name == "folder"
    for text in ("s4://bucket/x", "http://host/x", "s3://", "s3:///x", "gs:///", "file:///x", "hdfs://"):
        with pytest.raises(UsageError, match=f"^{text}: c4pipe writes to"):
            storage_path(text)


def on(start: str, *faults: Fault | None) -> Script:
    """A script: of the requests that begin so, the first of each kind go wrong, each in its way."""
    return lambda asked, number: faults[number] if asked.startswith(start) and number < len(faults) else None


PART = "PUT bucket/big?partNumber=2"
SCRIPTS = {
    "begin": on("POST bucket/big?uploads", "503", "500", "done 500"),
    "part": on(PART, "done 500", "503"),
    "reset": on(PART, "reset", "cut"),
    "end": on("POST bucket/big?uploadId", "503", "500"),
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_an_upload_is_tried_again(moto: str, monkeypatch: pytest.MonkeyPatch, script: Script) -> None:
    with store_of(moto, {"bucket/other": b"x"}, monkeypatch, script) as store:
        put(storage_path("s3://bucket/big"), BIG)
        assert store.get("bucket/big") == BIG
        assert store.faults.keys() > {"none"}


@pytest.mark.slow
@pytest.mark.parametrize("start", ["POST bucket/big?uploads", PART, "POST bucket/big?uploadId"])
def test_an_upload_that_fails_leaves_nothing(moto: str, monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.setattr(paths, "_NETWORK", NetworkOptions(tries=2, first_pause=0.01))
    with store_of(moto, {"bucket/other": b"x"}, monkeypatch, on(start, *["500"] * 9)) as store:
        whole = AtomicFile(storage_path("s3://bucket/big"))
        whole.path.write_bytes(BIG)
        with pytest.raises(OSError, match=r"^s3://bucket/big: .*INTERNAL_FAILURE"):
            whole.publish()
        assert whole.path.exists()
        whole.discard()
        assert not whole.path.exists()
        assert store.keys("bucket") == ["other"]


UPLOAD = """
import sys
from pathlib import Path
from c4pipe.io.paths import storage_path
storage_path("s3://bucket/big").upload(Path(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_upload_that_is_interrupted_leaves_nothing_or_all(
    moto: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sent: signal.Signals
) -> None:
    (tmp_path / "file").write_bytes(BIG)
    with store_of(moto, {"bucket/other": b"x"}, monkeypatch, on(PART, "stall")) as store:
        command = [sys.executable, "-c", UPLOAD, str(tmp_path / "file")]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=heed_interrupts)
        ends = time.monotonic() + 60
        while not any(asked.startswith(PART) for asked in store.asked) and time.monotonic() < ends:
            time.sleep(0.01)
        process.send_signal(sent)
        failed = process.wait(60) != 0  # a signal that comes at the very end changes nothing
        assert store.get("bucket/big") == BIG if "big" in store.keys("bucket") else failed


# --- how a corpus comes to be ----------------------------------------------------------------------------


def begin(output: StoragePath, *expected: str) -> str:
    return publish.begin(output, IDENTITY, expected, clean_counts={"pages.read": 2})


def write_shards(output: StoragePath, *paths: str) -> dict[str, Any]:
    """Writes shards of a row each, and returns the report of an engine that did."""
    for path in paths:
        language, _, name = path.partition("/")
        put(publisher(output).shards_folder / language / name, SHARD)
    shards = [{"path": path, "rows": 1, "bytes": len(SHARD), "sha256": "0" * 64} for path in paths]
    profiles = []
    for split in ("train", "validation"):
        profiler = Profiler("en", split)
        profiler.add(PAGE)
        profiles.append(profiler.result())
    counts = {"pages.kept": len(paths), "pages.kept.en": len(paths), "pages.validation": 1, "bytes.kept": 14}
    return {"shards": shards, "profiles": profiles, **counts}


def test_a_corpus_is_one_when_it_has_a_manifest(folder: StoragePath) -> None:
    paths = [TRAIN, VALIDATION]
    assert publish.find_complete(folder, IDENTITY) is None
    token = begin(folder, *paths)
    report = write_shards(folder, *paths)
    assert manifest.read_manifest(folder) is None
    publish.finish_corpus(folder, report, token, [])
    made = manifest.read_manifest(folder)
    assert made is not None
    assert made["shards"] == report["shards"]
    assert list_names(folder) == {
        "en",
        card.CARD,
        DEDUP_DATA,
        REPORT_DATA,
        html_page.REPORT_PAGE,
        manifest.MANIFEST,
        MOVED_SPANS,
    }
    assert list_names(folder / "en") == {TRAIN[3:], VALIDATION[3:]}
    publish.finish_corpus(folder, report, token, [])  # the engine tries its last step again
    assert manifest.read_manifest(folder) == made
    assert publish.find_complete(folder, IDENTITY) == made


@pytest.mark.parametrize("harm", ["gone", "short", "more", "taken over", "taken away"])
def test_a_corpus_that_is_not_what_was_written_is_none(folder: StoragePath, harm: str) -> None:
    paths = [TRAIN, VALIDATION]
    token = begin(folder, *paths)
    report = write_shards(folder, *paths)
    shards = publisher(folder).shards_folder / "en"
    if harm == "gone":
        (shards / TRAIN[3:]).unlink()
    elif harm == "short":
        put(shards / TRAIN[3:], b"en/c4")
    elif harm == "more":
        put(shards / "c4-train-00007-of-00008.parquet", b"en/c4")
    elif harm == "taken over":
        begin(folder, *paths, TRAIN.replace("en", "de", 1))
    else:
        remove_tree(folder / STAGING)
    with pytest.raises(LostDataError):
        publish.finish_corpus(folder, report, token, [])
    assert manifest.read_manifest(folder) is None


def test_shards_of_a_build_that_was_stopped_are_taken_away(folder: StoragePath) -> None:
    old = ["en/c4-train-00000-of-00002.parquet", "en/c4-train-00001-of-00002.parquet"]
    begin(folder, *old)
    write_shards(folder, *old[:1])
    new = [TRAIN, VALIDATION]
    for _ in range(2):  # stopped once more, before it wrote any
        assert publish.find_complete(folder, IDENTITY) is None
        token = begin(folder, *new)
    publish.finish_corpus(folder, write_shards(folder, *new), token)
    assert list_names(folder / "en") == {TRAIN[3:], VALIDATION[3:]}


def test_a_corpus_that_lacked_files_is_made_anew(folder: StoragePath) -> None:
    old = [TRAIN, VALIDATION]
    new = ["en/c4-train-00000-of-00002.parquet", "en/c4-train-00001-of-00002.parquet", VALIDATION]
    token = publish.begin(
        folder,
        IDENTITY,
        old,
        clean_counts={"pages.read": 2},
        missing=[{"name": "b.wet", "path": "b.wet", "error": "gone"}],
    )
    publish.finish_corpus(folder, write_shards(folder, *old), token)
    put(folder / "en" / "notes.txt", b"the user's")
    inputs = [{"name": "a.wet", "bytes": 3, "ends_sha256": ""}, {"name": "b.wet", "bytes": 5, "ends_sha256": ""}]
    more = {**IDENTITY, "inputs": inputs, "train_shards": {"en": 2}}
    assert publish.find_complete(folder, more) is None
    token = publish.begin(folder, more, new, clean_counts={"pages.read": 3})
    publish.finish_corpus(folder, write_shards(folder, *new), token)
    made = manifest.read_manifest(folder)
    assert made is not None
    assert made["inputs"] == more["inputs"]
    assert list_names(folder / "en") - {"notes.txt"} == {path.partition("/")[2] for path in new}


def test_a_folder_of_something_else_is_left_alone(folder: StoragePath) -> None:
    put(folder / "thesis.txt", b"years of work")
    with pytest.raises(UsageError, match=r"holds thesis\.txt but no manifest\.json"):
        publish.find_complete(folder, IDENTITY)


# --- from the command line -------------------------------------------------------------------------------

OPTIONS = [*map(str, SAMPLES), "--lists", str(LISTS), "--quiet", "--format", "parquet,tfrecord,json"]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The sample corpus, with its work files, as it is on this machine."""
    output = tmp_path_factory.mktemp("local") / "corpus"
    assert main.main(["build", *OPTIONS, "--workers", "1", "--output", str(output)]) == 0
    return {f"corpus/{name}": data for name, data in files_of(output).items()}


def of(store: Store) -> dict[str, bytes]:
    return {key: store.get(f"bucket/{key}") for key in store.keys("bucket") if not key.endswith("/") and key != "other"}


def now_and_then(asked: str, number: int) -> Fault | None:
    """Of some paths, the second request is refused, and the third answer to a question for bytes is cut."""
    if number == 1 and len(asked) % 4 == 0:
        return "503"
    return "cut" if number == 2 and asked.startswith("GET") else None


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_store_gets_the_bytes_of_this_machine(
    moto: str, monkeypatch: pytest.MonkeyPatch, local: dict[str, bytes], workers: int
) -> None:
    monkeypatch.setattr(paths, "_NETWORK", NetworkOptions(tries=6, first_pause=0.01))  # workers of other processes wait
    script = now_and_then if workers == 1 else lambda asked, number: None
    with store_of(moto, {"bucket/other": b"x"}, monkeypatch, script) as store:
        command = ["build", *OPTIONS, "--workers", str(workers), "--output", "s3://bucket/corpus"]
        assert main.main(command) == 0
        assert of(store) == local
        assert {*store.faults} == ({"none", "503", "cut"} if workers == 1 else {"none"})
        store.asked.clear()
        assert main.main(command) == 0
        assert [asked for asked in store.asked if asked.startswith(("PUT", "POST"))] == []


@pytest.mark.slow
def test_a_build_that_fails_goes_on(
    moto: str, monkeypatch: pytest.MonkeyPatch, local: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "_NETWORK", NetworkOptions(tries=1))
    monkeypatch.setattr(paths, "_TRIES", 1)
    command = ["build", *OPTIONS, "--workers", "1", "--output", "s3://bucket/corpus"]
    third = f"corpus/_work/{SAMPLES[2].name}"
    stops = ["corpus/_work/lists/", f"{third}.examples.json", f"{third}.parquet", "corpus/_building/", "corpus/en/"]
    stops += [
        f"corpus/{name}" for name in (card.CARD, DEDUP_DATA, REPORT_DATA, html_page.REPORT_PAGE, manifest.MANIFEST)
    ]
    failing: list[str] = []

    def script(asked: str, number: int) -> Fault | None:
        return "500" if failing and asked.startswith(f"POST bucket/{failing[0]}") else None

    with store_of(moto, {"bucket/other": b"x"}, monkeypatch, script) as store:
        for stop in stops:
            failing[:] = [stop]
            assert main.main(command) == 1
            error = capsys.readouterr().err
            assert error.startswith("c4pipe: ")
            assert "INTERNAL_FAILURE" in error
            assert "corpus/manifest.json" not in store.keys("bucket")
        failing.clear()
        object_store._store.cache_clear()
        assert main.main(command) == 0
        assert of(store) == local


def test_errors_tell_what_to_look_at(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["build", *OPTIONS, "--output", "s3://nowhere/corpus"]) == 1
    assert "s3://nowhere/corpus/_work/lists/" in (error := capsys.readouterr().err)
    assert "NO_SUCH_BUCKET" in error
    store.put("bucket/corpus/thesis.txt", b"years of work")
    assert main.main(["build", *OPTIONS, "--output", "s3://bucket/corpus"]) == 2
    assert "s3://bucket/corpus holds thesis.txt but no manifest.json" in capsys.readouterr().err
    assert main.main(["dedup", "s3://bucket/none", "--output", "s3://bucket/x", "--quiet"]) == 2
    assert "s3://bucket/none is not a work folder" in capsys.readouterr().err
    store.put("bucket/work/a.wet.parquet", b"PAR1 or not")
    assert main.main(["dedup", "s3://bucket/work", "--output", "s3://bucket/x", "--quiet"]) == 2
    assert "s3://bucket/work/a.wet.parquet can't be read as a work file" in capsys.readouterr().err


@pytest.mark.slow
def test_what_is_missing_is_noted_there(store: Store, local: dict[str, bytes]) -> None:
    for path in SAMPLES[:2]:
        store.put(f"bucket/in/{path.name}", path.read_bytes())
    inputs = [f"s3://bucket/in/{path.name}" for path in SAMPLES]
    command = ["build", *inputs, *OPTIONS[len(SAMPLES) :], "--workers", "1", "--output", "s3://bucket/corpus"]
    assert main.main(command) == 3
    note = f"corpus/_work/{SAMPLES[2].name}.missing.json"
    assert json.loads(store.get(f"bucket/{note}"))["path"] == inputs[2]
    store.put(f"bucket/in/{SAMPLES[2].name}", SAMPLES[2].read_bytes())
    assert main.main(command) == 0
    made, expected = {key: data for key, data in of(store).items() if not key.startswith("in/")}, {**local}
    for name in ("corpus/manifest.json", "corpus/_work/files.json"):  # they name the URLs
        there, here = (json.loads(each.pop(name)) for each in (made, expected))
        assert there["places"] == sorted(inputs)
        assert {**there, "places": [], "sha256": ""} == {**here, "places": [], "sha256": ""}
    assert made == expected
