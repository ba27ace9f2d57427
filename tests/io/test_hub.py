"""Inputs of the Hugging Face Hub, from a server that answers what huggingface_hub asks, and of other fsspec stores."""

import gzip
import io
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe.cli import main
from c4pipe.io.downloads import DownloadError, RetryPolicy
from c4pipe.io.object_store import ObjectDownload, pinned
from c4pipe.io.paths import storage_path
from c4pipe.io.streams import InputOpener
from c4pipe.lists.robots_list import RobotsList, read_robots_list
from c4pipe.read import documents
from c4pipe.wet.inputs import find_inputs
from tests.helpers.crawls import LISTS, QUICK, SAMPLES, files_of
from tests.helpers.hub_datasets import Hub, hub_of
from tests.helpers.robots import response

pytestmark = pytest.mark.slow
DATA = "hf://datasets/org/name"
BUCKET = "hf://buckets/org/crawls"
REAL_PAUSE = RetryPolicy.pause


def parquet(name: str, rows: int = 20) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"text": [f"Text {row} of {name}." for row in range(rows)]}), stream)
    return stream.getvalue()


FILES = {f"data/{name}.parquet": parquet(name) for name in "abcd"}
FILES |= {"README.md": b"# A data set", ".gitattributes": b"", "data/more/e.parquet": parquet("e")}


def robots_file(host: str) -> bytes:
    return response(f"https://{host}.example/robots.txt", "User-agent: *\nDisallow: /\n")


FOLDERS = [f"crawl-data/CC-MAIN-2026-{week}/segments/1" for week in (17, 21)]
WET = [f"{FOLDERS[0]}/wet/{path.name}" for path in SAMPLES]
CRAWLS = {path: sample.read_bytes() for path, sample in zip(WET, SAMPLES, strict=True)}
CRAWLS |= {f"{folder}/robotstxt/{week}.warc.gz": robots_file(f"week{week}") for week, folder in enumerate(FOLDERS)}
CRAWLS |= {f"{FOLDERS[0][:26]}/wet.paths.gz": gzip.compress("\n".join(WET).encode())}
CRAWLS |= {
    f"{folder[:26]}/robotstxt.paths.gz": gzip.compress(f"{folder}/robotstxt/{week}.warc.gz".encode())
    for week, folder in enumerate(FOLDERS)
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("c4pipe.io.downloads.RetryPolicy.pause", _pause)
    with hub_of({"org/name": FILES, "buckets/org/crawls": CRAWLS}, monkeypatch) as hub:
        yield hub


def _pause(retry: object, reason: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
    retry._failures += 1  # type: ignore[attr-defined]
    if retry._failures > 3:  # type: ignore[attr-defined]
        raise DownloadError(f"{retry._url}: {reason}, 4 times in a row")  # type: ignore[attr-defined]


def import_text(output: Path, *inputs: str, workers: int = 1) -> int:
    options = ["--workers", str(workers), "--quiet", "--output", str(output)]
    return main.main(["import", *inputs, *options])


def texts(corpus: Path) -> set[str]:
    return {document["text"] for document in documents(corpus / "und")}


def expected(names: str, rows: int = 20) -> set[str]:
    return {f"Text {row} of {name}." for name in names for row in range(rows)}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/data/*.parquet", "abcd"),
        ("/data/**/*.parquet", "abcde"),
        ("/data/[ab]*.parquet", "ab"),
        ("/data/a.parquet", "a"),
        ("/*/more/*", "e"),
        ("@v1/data/*.parquet", "abcd"),
        ("", "abcde"),
        ("/data/", "abcde"),
        ("/data/more", "e"),
    ],
)
def test_files_that_a_url_names(path: str, names: str, hub: Hub) -> None:
    commit = hub.commits["org/name"][0][0]
    found = find_inputs([DATA + path], kind="text")
    paths = {f"{DATA}@{commit}/data/{'more/' if name == 'e' else ''}{name}.parquet" for name in names}
    assert {file.path for file in found} == paths
    assert {file.size for file in found} <= {len(data) for data in FILES.values()}


def test_an_import_is_that_of_the_same_files_here(hub: Hub, tmp_path: Path) -> None:
    """Two worker processes, which get nothing but URLs."""
    for path in ("data/a.parquet", "data/b.parquet"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(FILES[path])
    assert import_text(tmp_path / "near", str(tmp_path / "data")) == 0
    assert import_text(tmp_path / "far", f"{DATA}/data/[ab]*.parquet", workers=2) == 0
    near, far = files_of(tmp_path / "near"), files_of(tmp_path / "far")
    assert {name: near[name] for name in near if "und/" in name} == {name: far[name] for name in far if "und/" in name}
    assert not any("c.parquet" in asked for asked in hub.asked)


def test_the_branch_may_go_on_meanwhile(hub: Hub, tmp_path: Path) -> None:
    def commit(asked: str, number: int) -> None:
        if asked == "resolve data/b.parquet" and not number:
            hub.commits["org/name"].append(("f" * 40, {f"data/{name}.parquet": parquet("other") for name in "abcd"}))

    hub.script = commit
    assert import_text(tmp_path / "c", f"{DATA}/data/*.parquet") == 0
    assert texts(tmp_path / "c") == expected("abcd")
    assert len(hub.commits["org/name"]) == 2


@pytest.mark.parametrize("fault", ["cdn cut", "resolve 503", "info 429", "tree data 503"])
def test_faults_are_survived(fault: str, hub: Hub, tmp_path: Path) -> None:
    start, _, what = fault.rpartition(" ")
    hub.script = lambda asked, number: what if asked.startswith(start) and not number else None
    assert import_text(tmp_path / "c", f"{DATA}/data/[ab]*.parquet") == 0
    assert texts(tmp_path / "c") == expected("ab")


def test_a_file_that_goes_away_is_missing_and_read_later(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.script = lambda asked, number: "404" if asked == "resolve data/b.parquet" and number > 1 else None
    assert import_text(tmp_path / "c", f"{DATA}/data/[ab]*.parquet") == 3
    assert "data/b.parquet: there is no such" in capsys.readouterr().err
    assert texts(tmp_path / "c") == expected("a")
    hub.script = lambda asked, number: None
    hub.asked.clear()
    assert import_text(tmp_path / "c", f"{DATA}/data/[ab]*.parquet") == 0
    assert texts(tmp_path / "c") == expected("ab")


def test_a_killed_import_continues(hub: Hub, tmp_path: Path) -> None:
    files, output = f"{DATA}/data/*.parquet", tmp_path / "c"
    command = [sys.executable, "-m", "c4pipe", "import", files, "--workers", "1", "--quiet", "--output", str(output)]
    with subprocess.Popen(command) as process:

        def kill(asked: str, number: int) -> None:
            if asked == "resolve data/d.parquet" and number == 3:
                process.kill()

        hub.script = kill
        assert process.wait(60) == -9
    assert len(list((output / "_work").glob("*.parquet"))) == 3
    hub.asked.clear()
    assert import_text(output, files) == 0
    assert texts(output) == expected("abcd")
    assert hub.asked["resolve data/a.parquet"] < hub.asked["resolve data/d.parquet"]


def test_another_version_than_before_is_an_error(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [f"{DATA}/data/[ab]*.parquet", "--workers", "1", "--quiet", "--work", str(tmp_path / "w"), "--output"]
    assert main.main(["import", *options, str(tmp_path / "c")]) == 0
    hub.commit("org/name", FILES | {"data/a.parquet": parquet("other", 30)})
    assert main.main(["import", *options, str(tmp_path / "d")]) == 2
    assert "a.parquet" in capsys.readouterr().err


def test_damage_on_the_hub(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = FILES["data/a.parquet"]
    hub.commit("org/name", {"a.parquet": whole[:-9], "b.parquet": whole, "h.parquet": b"<html>" * 99})
    for name in "ah":
        assert import_text(tmp_path / "c", f"{DATA}/{name}.parquet") == 2
        assert f"/{name}.parquet can't be read: it is " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("case", "path", "said"),
    [
        ("private", "/data/*.parquet", "or it is private: check the name, and log in with `hf auth login` if it"),
        (
            "gated",
            "/data/*.parquet",
            "accept them at https://huggingface.co/datasets/org/name, and log in with `hf auth",
        ),
        ("wrong token", "/data/*.parquet", "401 Unauthorized' for url"),
        ("", "@none/data/*.parquet", "the repository has no such revision: check the name after the @"),
        ("", "/none/*.parquet", "there is no such object or folder"),
        ("", "/data/none.parquet", "there is no such file: check the path"),
        ("429", "/data/*.parquet", "429"),
    ],
)
def test_what_is_refused(
    case: str,
    path: str,
    said: str,
    hub: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hub.private |= {"org/name"} if case == "private" else set()
    hub.gated |= {"org/name"} if case == "gated" else set()
    if case == "wrong token":
        monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    hub.script = lambda asked, number: "429" if case == "429" and asked == "info" else None
    assert import_text(tmp_path / "c", DATA + path) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert "hf_wrong" not in error


def test_a_token_is_found_as_hf_auth_login_leaves_it(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.private.add("org/name")
    (tmp_path / "token").write_text(hub.token)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    options = ["--log", str(tmp_path / "log")]
    assert (
        main.main(["import", f"{DATA}/data/*.parquet", "--workers", "1", "--output", str(tmp_path / "c"), *options])
        == 0
    )
    printed = capsys.readouterr()
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "token"]
    for secret in (hub.token, "verysecret"):  # the token, and the signature of the server behind the redirect
        assert secret not in printed.out + printed.err
        assert [path for path in written if secret.encode() in path.read_bytes()] == []


def test_wet_files_and_a_corpus_on_the_hub(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub.commit("org/name", {f"wet/{path.name}": path.read_bytes() for path in SAMPLES})
    build = ["build", f"{DATA}/wet/", "--lists", str(LISTS), "--workers", "1", "--quiet", "--output"]
    assert main.main([*build, str(tmp_path / "c"), "--cache", str(tmp_path / "cache")]) == 0
    hub.commit(
        "org/name", {str(path.relative_to(tmp_path)): path.read_bytes() for path in (tmp_path / "c").rglob("*.*")}
    )
    corpus = f"{DATA}/c"
    assert c4pipe.open_corpus(corpus).digest == c4pipe.open_corpus(tmp_path / "c").digest
    near = list(documents(tmp_path / "c" / "en", verify=True))
    assert list(documents(f"{corpus}/en", verify=True)) == near
    (tmp_path / "examples.txt").write_text(near[0]["text"].replace("\n", " "))
    capsys.readouterr()
    assert main.main(["diff", str(tmp_path / "c"), corpus]) == 0
    assert main.main(["explain", corpus, "--url", near[0]["url"]]) == 0
    assert main.main(["overlap", f"{corpus}/en", "--against", str(tmp_path / "examples.txt"), "--workers", "1"]) == 0
    assert near[0]["url"] in capsys.readouterr().out
    vocab = ["vocab", f"{corpus}/en", "--size", "200", "--workers", "1", "--quiet", "--output"]
    assert main.main([*vocab, str(tmp_path / "far")]) == 0
    assert main.main([vocab[0], str(tmp_path / "c" / "en"), *vocab[2:], str(tmp_path / "near")]) == 0
    assert (tmp_path / "far" / "spm.model").read_bytes() == (tmp_path / "near" / "spm.model").read_bytes()
    page = ["--lists", str(LISTS), "--url", near[0]["url"]]
    assert 0 in [main.main(["explain", f"{DATA}@v2/wet/{sample.name}", *page]) for sample in SAMPLES]
    assert main.main(["build", str(SAMPLES[0]), "--output", f"{DATA}/new"]) == 2
    assert "c4pipe writes to folders of this machine" in capsys.readouterr().err


def test_a_vocabulary_of_files_on_the_hub(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for path in ("data/a.parquet", "data/b.parquet"):
        (tmp_path / path).write_bytes(FILES[path])
    options = ["--size", "40", "--sentinels", "0", "--workers", "2", "--quiet", "--output"]
    assert main.main(["vocab", str(tmp_path / "data"), *options, str(tmp_path / "near")]) == 0
    assert main.main(["vocab", f"{DATA}/data/[ab]*.parquet", *options, str(tmp_path / "far")]) == 0
    assert (tmp_path / "far" / "spm.model").read_bytes() == (tmp_path / "near" / "spm.model").read_bytes()


def test_any_file_system_of_fsspec(tmp_path: Path) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    for path, data in FILES.items():
        MemoryFileSystem().pipe(f"/bucket/{path}", data)
    assert [file.name for file in find_inputs(["memory://bucket/data/*.parquet"], kind="text")] == [
        f"{name}.parquet" for name in "abcd"
    ]
    assert import_text(tmp_path / "memory", "memory://bucket/data/") == 0
    assert texts(tmp_path / "memory") == expected("abcde")
    for sample in SAMPLES:
        (tmp_path / "wet").mkdir(exist_ok=True)
        (tmp_path / "wet" / sample.name).write_bytes(sample.read_bytes())
    build = ["--lists", str(LISTS), "--workers", "2", "--quiet", "--output"]
    assert main.main(["build", f"file://{tmp_path}/wet/*.gz", *build, str(tmp_path / "far")]) == 0
    assert main.main(["build", str(tmp_path / "wet"), *build, str(tmp_path / "near")]) == 0
    near, far = files_of(tmp_path / "near"), files_of(tmp_path / "far")
    assert {name: near[name] for name in near if "en/" in name} == {name: far[name] for name in far if "en/" in name}


def command_on(source: str, *command: str) -> int:
    """Runs `build`, `clean` or `plan` on a crawl or on other inputs, with the lists of the samples."""
    return main.main([*command, "--source", source, "--lists", str(LISTS)])


def test_a_crawl_in_a_bucket_is_that_of_its_files(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One request to the Hub reads a file: it counts requests. The server behind it gets no token."""
    monkeypatch.setenv("HF_TOKEN", hub.token)
    hub.private.add("buckets/org/crawls")
    assert (
        main.main(["build", *map(str, SAMPLES), "--lists", str(LISTS), "--quiet", "--output", str(tmp_path / "n")]) == 0
    )
    assert command_on(BUCKET, "build", "CC-MAIN-2026-17", "--workers", "2", "--output", str(tmp_path / "c")) == 0
    near, far = files_of(tmp_path / "n"), files_of(tmp_path / "c")
    assert {name: near[name] for name in near if "en/" in name} == {name: far[name] for name in far if "en/" in name}
    read = [f"{FOLDERS[0][:26]}/wet.paths.gz", *WET]
    assert hub.asked == dict.fromkeys([f"{what} {path}" for path in read for what in ("resolve", "cdn")], 1)
    assert [hub.token in request for request in hub.received] == ["/cdn/" not in request for request in hub.received]
    assert command_on(f"{BUCKET}/", "clean", "CC-MAIN-2026-17", "--sample", "1", "--work", str(tmp_path / "w")) == 0
    assert command_on(BUCKET, "plan", "CC-MAIN-2026-17", "--cores", "1") == 0
    assert hub.token not in (tmp_path / "c" / "manifest.json").read_text() + capsys.readouterr().err


def test_folders_and_patterns_of_crawls_in_a_bucket(hub: Hub, tmp_path: Path) -> None:
    assert {file.path for file in find_inputs([f"{BUCKET}/{FOLDERS[0]}/wet"])} == {f"{BUCKET}/{path}" for path in WET}
    assert len(find_inputs([f"{BUCKET}/crawl-data/*/segments/*/wet/*-00001.warc.wet.gz"])) == 1
    robots = ["lists", "robots", "CC-MAIN-2026-*", "--source", BUCKET, "--lists", str(tmp_path), "--workers", "1"]
    assert main.main(robots) == 0
    made = RobotsList(read_robots_list(tmp_path / "blocked" / "robots.npy"))
    assert made.size == len(FOLDERS)


@pytest.mark.parametrize("fault", ["cdn cut", "resolve 503", "resolve 429", "resolve 429 7"])
def test_faults_of_a_bucket_are_survived(fault: str, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(RetryPolicy, "pause", REAL_PAUSE)
    monkeypatch.setattr("c4pipe.io.downloads.sleep", slept.append)
    start, _, what = fault.partition(" ")
    hub.script = lambda asked, number: what if asked.startswith(start) and not number else None
    assert InputOpener(QUICK).read(f"{BUCKET}/{WET[0]}") == CRAWLS[WET[0]]
    assert hub.asked[f"{start} {WET[0]}"] == 2
    assert ("429" in fault) == (max(slept) >= 7)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "CC-MAIN-2019-18",
            "does not exist; the Hub has crawls of 2026 and later: read others with --source https",
        ),
        (
            "CC-MAIN-2019-*",
            "the newest of 2 is CC-MAIN-2026-21; the Hub has crawls of 2026 and later: read others",
        ),
        ("CC-MAIN-2026-17 hf://buckets/org/none", "the Hub has no such bucket, or a private one: check"),
        ("CC-MAIN-2026-* hf://buckets/org/none", "the Hub has no such bucket, or a private one: check"),
        (
            "CC-MAIN-2026-18",
            "does not exist; the Hub has crawls of 2026 and later: read others with --source https",
        ),
        ("CC-MAIN-2026-17 private", "or a private one: check the name, or log in with `hf auth login`"),
        ("CC-MAIN-2026-17 hf_wrong", "HTTP status 401 Unauthorized; check the token, or log in again"),
        (f"{BUCKET}/none/", "there is no such object or folder"),
    ],
)
def test_what_a_bucket_refuses(
    given: str, said: str, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl, case = [*given.split(), ""][:2]
    source = case if case.startswith("hf://") else BUCKET
    hub.private |= {"buckets/org/crawls"} if case == "private" else set()
    if case == "hf_wrong":
        monkeypatch.setenv("HF_TOKEN", case)
    assert command_on(source, "clean", crawl, "--work", str(tmp_path / "w")) in (1, 2)
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert "hf_wrong" not in error


def test_a_part_of_a_file_and_a_file_that_changes() -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    store = MemoryFileSystem()
    store.pipe("/bucket/a", bytes(range(256)) * 100)
    download = ObjectDownload("memory://bucket/a", QUICK, 250, 10)
    assert download.read(100) == bytes([*range(250, 256), *range(4)])
    store.pipe("/bucket/a", b"other")
    with pytest.raises(DownloadError, match="the file changed while it was read"):
        download.read(100)
    assert storage_path("memory://bucket/a", reads=True).read_bytes() == b"other"
    assert not storage_path("memory://bucket/none", reads=True).exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftpx://h/a.parquet", "Protocol not known: ftpx; c4pipe reads http"),
        ("abfs://b/a.parquet", "Install adlfs to access Azure"),
        ("abfs://b@account.dfs.core.windows.net/a.jsonl", "Install adlfs to access Azure"),  # Azure's own form
        ("abfss://b:secret@a.example/a.jsonl", "the address of a store has no user and password"),
        ("hf://a.parquet", "Access to buckets and repositories lists is not implemented"),
    ],
)
def test_urls_that_nothing_reads(url: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_text(tmp_path / "c", url) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("package", ["fsspec", "huggingface_hub"])
def test_a_missing_package(package: str, tmp_path: Path) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None; from c4pipe.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "import", f"{DATA}/*.parquet", "--output", str(tmp_path / "c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the Hub needs huggingface_hub: run pip install 'c4pipe[hub]'" in done.stderr


def test_a_commit_stays_as_it_is() -> None:
    """No request is sent: workers get URLs with a commit."""
    url = f"{DATA}@{'a' * 40}/data"
    assert pinned(url) == url
    assert pinned("s3://bucket/a@b") == "s3://bucket/a@b"
