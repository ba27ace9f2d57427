"""The folder that keeps what was read from the network: asked again, it gives the same bytes, or none of its own."""

import contextlib
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from c4pipe.cli import main
from c4pipe.errors import C4pipeError
from c4pipe.io.downloads import DownloadError, NetworkOptions
from c4pipe.io.streams import InputOpener, cached_file
from c4pipe.wet.inputs import Selection, find_inputs
from tests.helpers.crawls import CRAWL, LISTS, files_of, made_crawl
from tests.helpers.full_disk import files_of_at_most
from tests.helpers.web import Web, serve

DATA = random.Random(0).randbytes(100_000)
LARGE = random.Random(1).randbytes(4 << 20)


def fetch(url: str, folder: Path, tries: int = 4) -> bytes:
    network = NetworkOptions(tries=tries, first_pause=0.002, stall_seconds=0.3, cache=folder)
    with InputOpener(network).open(url) as stream:
        return b"".join(iter(lambda: stream.read(1 << 20), b""))


def kept(web: Web, folder: Path, path: str = "a.wet") -> Path:
    """Returns where the cache keeps a file of the web server."""
    return folder / "http" / web.url.removeprefix("http://").replace(":", "%3A") / path


def build(output: Path, url: str, *options: str | Path) -> int:
    command = ["build", CRAWL, "--source", url, "--lists", str(LISTS), "--workers", "1", "--quiet"]
    return main.main([*command, "--output", str(output), *map(str, options)])


def test_a_file_is_asked_for_once(tmp_path: Path) -> None:
    with serve({"x/a.wet": DATA, "empty.wet": b""}) as web:
        for _ in range(3):
            assert fetch(f"{web.url}/x/a.wet", tmp_path / "c") == DATA
            assert fetch(f"{web.url}/empty.wet", tmp_path / "c") == b""
        assert web.asked == {"x/a.wet": 1, "empty.wet": 1}
        path = kept(web, tmp_path / "c", "x/a.wet")
    assert path.read_bytes() == DATA
    assert sorted(each.name for each in path.parent.iterdir()) == ["a.wet", "a.wet.sha256"]


@pytest.mark.needs("sha256sum")
def test_the_digest_is_one_for_sha256sum(tmp_path: Path) -> None:
    with serve({"a.wet": DATA}) as web:
        fetch(f"{web.url}/a.wet", tmp_path)
        path = kept(web, tmp_path)
    subprocess.run(["sha256sum", "--check", "--strict", f"{path}.sha256"], cwd=path.parent, check=True)


def test_a_file_that_is_here_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "a.wet").write_bytes(DATA)
    assert fetch(str(tmp_path / "a.wet"), tmp_path / "c") == DATA
    assert not (tmp_path / "c").exists()


def test_the_second_build_needs_no_server(tmp_path: Path) -> None:
    files, cache = made_crawl(3), tmp_path / "cache"
    with serve(files) as web:
        assert build(tmp_path / "plain", web.url) == 0
        web.asked.clear()
        assert build(tmp_path / "first", web.url, "--cache", cache) == 0
        assert web.asked == dict.fromkeys(files, 1)
    before = files_of(cache)
    assert build(tmp_path / "second", web.url, "--cache", cache) == 0
    assert files_of(cache) == before
    assert files_of(tmp_path / "plain") == files_of(tmp_path / "first") == files_of(tmp_path / "second")


def test_a_list_of_a_crawl_that_was_cut_is_not_kept(tmp_path: Path) -> None:
    network = NetworkOptions(tries=2, first_pause=0.001, cache=tmp_path)
    with serve(made_crawl(2), lambda path, number: "cut" if number == 0 else "503" if number < 3 else None) as web:
        selection = Selection(source=web.url, network=network)
        with pytest.raises(C4pipeError, match=r"wet\.paths\.gz can't be downloaded: .*503, 2 times in a row"):
            find_inputs([CRAWL], selection)
        assert files_of(tmp_path) == {}
        assert len(find_inputs([CRAWL], selection)) == 2


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "one bit": lambda file, digest: flip(file),
    "cut": lambda file, digest: os.truncate(file, 50_000),
    "longer": lambda file, digest: file.write_bytes(DATA + b"\0"),
    "empty": lambda file, digest: os.truncate(file, 0),
    "gone": lambda file, digest: file.unlink(),
    "no digest": lambda file, digest: digest.unlink(),
    "empty digest": lambda file, digest: os.truncate(digest, 0),
    "cut digest": lambda file, digest: os.truncate(digest, 63),
    "digest of nothing": lambda file, digest: digest.write_text("\n"),
    "digest is no text": lambda file, digest: digest.write_bytes(b"\xff\xfe\0"),
    "both gone": lambda file, digest: shutil.rmtree(file.parent),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_was_damaged_is_fetched_again(tmp_path: Path, damage: str) -> None:
    with serve({"a.wet": DATA}) as web:
        url, path = f"{web.url}/a.wet", kept(web, tmp_path)
        assert fetch(url, tmp_path) == DATA
        before = files_of(tmp_path)
        DAMAGE[damage](path, path.with_name("a.wet.sha256"))
        assert fetch(url, tmp_path) == DATA
        assert web.asked["a.wet"] == 2
        assert files_of(tmp_path) == before
        assert fetch(url, tmp_path) == DATA
        assert web.asked["a.wet"] == 2


def test_a_download_that_broke_goes_on(tmp_path: Path) -> None:
    with serve({"a.wet": DATA}, lambda path, number: ("cut", "503", "reset")[number] if number < 3 else None) as web:
        assert fetch(f"{web.url}/a.wet", tmp_path) == DATA
        assert kept(web, tmp_path).read_bytes() == DATA


@pytest.mark.parametrize("fault", ["404", "503", "no progress"])
def test_a_download_that_fails_leaves_nothing(tmp_path: Path, fault: str) -> None:
    with serve({"a.wet": LARGE}) as web:
        faults = {"404": ["404"], "503": ["503"] * 9, "no progress": ["cut"] + ["503"] * 9}[fault]
        web.script = lambda path, number: faults[number] if number < len(faults) else None
        with pytest.raises(DownloadError, match=r"/a\.wet: HTTP status"):
            fetch(f"{web.url}/a.wet", tmp_path, tries=3)
        assert files_of(tmp_path) == {}
        web.script = lambda path, number: None
        assert fetch(f"{web.url}/a.wet", tmp_path) == LARGE


def test_a_damaged_file_is_no_substitute_for_one_that_is_gone(tmp_path: Path) -> None:
    with serve({"a.wet": DATA}) as web:
        fetch(f"{web.url}/a.wet", tmp_path)
        flip(kept(web, tmp_path))
        web.files.clear()
        with pytest.raises(DownloadError, match="HTTP status 404"):
            fetch(f"{web.url}/a.wet", tmp_path)
        with pytest.raises(DownloadError, match="HTTP status 404"):
            fetch(f"{web.url}/a.wet", tmp_path)


SCRIPT = """
import sys
from pathlib import Path
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.streams import InputOpener

url, folder = sys.argv[1:]
sources = InputOpener(NetworkOptions(first_pause=0.002, cache=Path(folder)))
print("ready", flush=True)
sys.stdin.readline()
with sources.open(url) as stream:
    sys.stdout.buffer.write(stream.read())
"""


@contextlib.contextmanager
def reader(url: str, folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", IO[bytes], IO[bytes]]]:
    """Starts a process that reads a file through the cache once it is told to."""
    command = [sys.executable, "-c", SCRIPT, url, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process, process.stdin, process.stdout
        finally:
            process.kill()


def tell(line: IO[bytes]) -> None:
    line.write(b"\n")
    line.flush()


def wait_for(seen: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not seen():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.005)


def test_a_run_that_was_killed_leaves_a_cache_that_serves(tmp_path: Path) -> None:
    with serve({"a.wet": LARGE}, lambda path, number: "stall") as web:
        url, path = f"{web.url}/a.wet", kept(web, tmp_path)
        with reader(url, tmp_path) as (process, line, _):
            tell(line)
            wait_for(lambda: any(file.stat().st_size > 0 for file in path.parent.glob(".*.tmp")))
            process.kill()
            process.wait()
        assert len(list(path.parent.glob(".*.tmp"))) == 1
        assert not path.exists()
        web.script = lambda path, number: None
        assert fetch(url, tmp_path) == LARGE
        web.asked.clear()
        assert fetch(url, tmp_path) == LARGE
        assert not web.asked
        assert sorted(each.name for each in path.parent.iterdir()) == ["a.wet", "a.wet.sha256"]


def slowly(path: str, number: int) -> None:
    """A script: the server thinks for a while, time enough for another process to come."""
    time.sleep(0.5)


def test_processes_that_want_one_file_ask_once(tmp_path: Path) -> None:
    with serve({"a.wet": DATA}, slowly) as web, contextlib.ExitStack() as stack:
        readers = [stack.enter_context(reader(f"{web.url}/a.wet", tmp_path)) for _ in range(3)]
        for _, line, _ in readers:
            tell(line)
        assert [out.read() for _, _, out in readers] == [DATA] * 3
        assert web.asked == {"a.wet": 1}


def test_who_waited_for_a_run_that_was_killed_goes_on(tmp_path: Path) -> None:
    asked, killed = threading.Event(), threading.Event()

    def script(path: str, number: int) -> None:
        asked.set()
        assert killed.wait(20)

    with serve({"a.wet": LARGE}, script) as web:
        url = f"{web.url}/a.wet"
        with reader(url, tmp_path) as (first, first_line, _), reader(url, tmp_path) as (_, line, out):
            tell(first_line)
            assert asked.wait(20)
            tell(line)
            time.sleep(0.2)  # until it waits
            first.kill()
            killed.set()
            assert out.read() == LARGE
        assert kept(web, tmp_path).read_bytes() == LARGE


def keep(folder: Path, url: str) -> Path:
    """Keeps a file whose bytes are its URL."""
    return cached_file(folder, url, lambda: contextlib.closing(io.BytesIO(url.encode())))


def never() -> contextlib.AbstractContextManager[io.BytesIO]:
    raise AssertionError("it is in the cache")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://h.example.com/x/a.wet.gz", "http/h.example.com/x/a.wet.gz"),
        ("https://h:8080/a b+c=d,@.wet", "https/h%3A8080/a b+c=d,@.wet"),
        ("http://h/../../x.wet", "http/h/%2E./%2E./x.wet"),
        ("http://h/./x.wet", "http/h/%2E/x.wet"),
        ("http://h/..%2f..%2Fx.wet", "http/h/%2E.%252f..%252Fx.wet"),
        ("http://../x.wet", "http/%2E./x.wet"),
        ("http:///x.wet", "http/%/x.wet"),
        ("http://h//x.wet", "http/h/%/x.wet"),
        ("http://h/x.wet?a=../b", "http/h/x.wet%3Fa=../b"),
        ("http://h/.x.wet.lock", "http/h/%2Ex.wet.lock"),
        ("http://h/x.sha256", "http/h/x%2Esha256"),
        ("http://h/\\..\\x\0.wet", "http/h/%5C..%5Cx%00.wet"),
        ("http://h/é~.wet", "http/h/%C3%A9~.wet"),
    ],
)
def test_no_url_leaves_the_folder(tmp_path: Path, url: str, name: str) -> None:
    path = keep(tmp_path / "c", url)
    assert path == tmp_path / "c" / name
    assert path.read_bytes() == url.encode()
    assert [each.name for each in tmp_path.iterdir()] == ["c"]


PIECES = ["/", ".", "..", "%", "%2e", "2", "?", ":", "://", "a", "b", ".sha256", ".lock", ".tmp", "~"]
URLS = st.lists(st.sampled_from(PIECES), max_size=7).map(lambda pieces: f"http://{''.join(pieces)}")


@given(URLS, URLS)
@example("http://a", "http://a.sha256")
@example("http://a", "http://.a.lock")
@example("http://a", "http://.a.tmp")
@example("http://a/b", "http://a//b")
@example("http://a:/b", "http://a://b")
@example("http://a/b", "http://a://b")
@example("http://a/..", "http://a/%2E.")
@example("http://a/?", "http://a/%3F")
def test_no_two_urls_share_a_file(one: str, other: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "c")
        first = keep(folder, one)
        if other.startswith(f"{one}/") or one.startswith(f"{other}/"):
            with pytest.raises(OSError, match="http"):  # a file is in the place of a folder, and is told
                keep(folder, other)
            return
        second = keep(folder, other)
        assert (first == second) is (one == other)
        for url, path in ((one, first), (other, second)):
            assert cached_file(folder, url, never).read_bytes() == url.encode()
            assert path.resolve().is_relative_to(folder.resolve())
        assert [each.name for each in Path(name).iterdir()] == ["c"]


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    with serve({"a.wet": DATA}) as web:
        with files_of_at_most(50_000), pytest.raises(OSError, match="File too large") as caught:
            fetch(f"{web.url}/a.wet", tmp_path)
        assert not isinstance(caught.value, DownloadError)
        assert caught.value.filename == str(kept(web, tmp_path))
        assert files_of(tmp_path) == {}
        assert fetch(f"{web.url}/a.wet", tmp_path) == DATA


def test_a_full_disk_ends_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(made_crawl(1)) as web:
        with files_of_at_most(20_000):
            assert build(tmp_path / "corpus", web.url, "--cache", tmp_path / "c") == 1
        said = capsys.readouterr().err
        assert "file too large" in said
        assert str(tmp_path / "c") in said
        assert build(tmp_path / "corpus", web.url, "--cache", tmp_path / "c") == 0


def test_a_file_in_the_way_ends_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "http").write_text("")
    with serve(made_crawl(1)) as web:
        assert build(tmp_path / "corpus", web.url, "--cache", tmp_path / "c") == 1
        assert not web.asked
    assert str(tmp_path / "c" / "http") in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with serve({"a.wet": DATA}) as web, pytest.raises(PermissionError) as caught:
        fetch(f"{web.url}/a.wet", tmp_path)
    tmp_path.chmod(0o700)
    assert str(caught.value.filename).startswith(str(tmp_path))


@pytest.mark.parametrize("given", ["http://127.0.0.1:1/a.wet.gz", CRAWL])
def test_a_cache_that_is_a_file_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str) -> None:
    (tmp_path / "c").write_text("")
    command = ["build", given, "--source", "http://127.0.0.1:1", "--lists", str(LISTS), "--output", str(tmp_path / "o")]
    assert main.main([*command, "--cache", str(tmp_path / "c")]) == 2
    assert f"--cache {tmp_path / 'c'} is a file: give a folder" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
