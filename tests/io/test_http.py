"""Inputs from the network, from a real server that refuses, cuts, resets and stalls: nothing is lost."""

import gzip
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from c4pipe.clean import work_folder
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.downloads import DownloadError, NetworkOptions
from c4pipe.io.http import Download, Pool
from c4pipe.io.lock import only_run
from c4pipe.io.streams import InputOpener
from c4pipe.wet.inputs import Selection, find_inputs, parse_slice
from tests.helpers.crawls import CRAWL, FOLDER, LISTS, QUICK, SAMPLES, files_of, made_crawl
from tests.helpers.hostile_web import serve_hostile
from tests.helpers.web import Web, serve


def fetch(web: Web, path: str, network: NetworkOptions = QUICK, size: int = 7000) -> bytes:
    download = Download(f"{web.url}/{path}", Pool(), network)
    data = b"".join(iter(lambda: download.read(size), b""))
    assert download.read(size) == b""
    return data


DATA = random.Random(0).randbytes(100_000)


def test_a_file_is_read_as_it_is() -> None:
    with serve({"a": DATA, "empty": b""}) as web:
        assert fetch(web, "a") == DATA
        assert fetch(web, "empty") == b""
        assert web.asked == {"a": 1, "empty": 1}


@pytest.mark.parametrize("fault", ["503", "403", "429", "cut", "reset", "stall", "no ranges"])
def test_each_fault_is_survived(fault: str) -> None:
    first = fault if fault != "no ranges" else "cut"
    with serve({"a": DATA}, lambda path, number: (first, fault)[number] if number < 2 else None) as web:
        assert fetch(web, "a") == DATA
        assert web.faults[fault] >= 1


def test_a_connection_is_used_again() -> None:
    with serve({str(number): DATA for number in range(20)}) as web:
        pool = Pool()
        for number in range(20):
            download = Download(f"{web.url}/{number}", pool, QUICK)
            while download.read(1 << 16):
                pass
        assert web.connections == 1


def test_a_content_encoding_is_not_undone() -> None:
    """Offsets count stored bytes, and of a damaged member nothing behind it would be read."""
    members = [gzip.compress(DATA[start : start + 10_000]) for start in range(0, 100_000, 10_000)]
    members[3] = members[3][:500] + b"damaged" + members[3][507:]
    stored = b"".join(members)
    with serve({"a.gz": stored}, lambda path, number: "cut" if number < 2 else None) as web:
        web.headers["Content-Encoding"] = "gzip"
        assert fetch(web, "a.gz") == stored
        assert web.asked["a.gz"] == 3


def test_what_will_not_change_ends_at_once() -> None:
    with serve({}) as web, pytest.raises(DownloadError, match="/none: HTTP status 404 Not Found"):
        fetch(web, "none")
    assert web.asked["none"] == 1


@pytest.mark.parametrize(
    ("url", "asked", "name"),
    [
        ("a%20(1).warc.wet.gz", "a%20(1).warc.wet.gz", "a%20(1).warc.wet.gz"),
        ("a (1).warc.wet.gz", "a%20(1).warc.wet.gz", "a (1).warc.wet.gz"),
        ("x~1.warc.wet.gz", "x~1.warc.wet.gz", "x~1.warc.wet.gz"),
        ("a%231.warc.wet.gz", "a%231.warc.wet.gz", "a%231.warc.wet.gz"),
        ("a.warc.wet.gz#part", "a.warc.wet.gz", "a.warc.wet.gz"),
        ("a.warc.wet.gz?X-Amz-Signature=ab%2Fc", "a.warc.wet.gz?X-Amz-Signature=ab%2Fc", "a.warc.wet.gz"),
        ("a.warc.wet.gz?path=x/y.gz", "a.warc.wet.gz?path=x/y.gz", "a.warc.wet.gz"),
    ],
)
def test_names_of_files_behind_urls(url: str, asked: str, name: str, tmp_path: Path) -> None:
    """Only GET is sent: a server may refuse HEAD, as this one does."""
    with serve({asked: SAMPLES[0].read_bytes()}) as web:
        build = ["build", f"{web.url}/{url}", "--lists", str(LISTS), "--workers", "1", "--quiet", "--output"]
        assert main.main([*build, str(tmp_path / "c")]) == 0
        assert set(web.asked) == {asked}
    assert (tmp_path / "c" / "_work" / f"{name}.parquet").is_file()


@pytest.mark.parametrize("code", ["AccessDenied", "SignatureDoesNotMatch", "AuthenticationFailed"])
def test_a_refusal_for_ever_ends_at_once(code: str) -> None:
    with serve({"a": b""}, lambda path, number: f"403 {code}") as web:
        with pytest.raises(DownloadError, match=f"/a: HTTP status 403 {code}$"):
            fetch(web, "a")
        assert web.asked["a"] == 1


@pytest.mark.slow
def test_a_refusal_that_never_ends_is_tried_again() -> None:
    answer = b"HTTP/1.1 403 No\r\nContent-Length: 9000\r\n\r\n<Error>"
    with serve_hostile() as web:
        web.answers["a"] = lambda: [answer]
        with pytest.raises(DownloadError, match="/a: HTTP status 403, 3 times in a row"):
            InputOpener(NetworkOptions(tries=3, first_pause=0.001, stall_seconds=1)).read(f"{web.url}/a")


@pytest.mark.parametrize(
    "start",
    ["commoncrawl.s3.amazonaws.com", "s3.us-east-1.amazonaws.com/commoncrawl", "aws-publicdatasets.s3.amazonaws.com"],
)
def test_files_that_a_bucket_of_common_crawl_refuses(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    urls = [f"http://{start}/{number}.warc.wet.gz" for number in range(20)]
    with serve(dict.fromkeys(urls, b""), lambda path, number: "403 AccessDenied") as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        started = time.monotonic()
        build = ["build", *urls, "--lists", str(LISTS), "--workers", "1", "--quiet", "--output", str(tmp_path / "c")]
        assert main.main(build) == 1
        assert time.monotonic() - started < 60
        assert set(proxy.asked.values()) == {1}
    said = capsys.readouterr().err
    assert "20 of 20 files could not be downloaded" in said
    assert (
        "0.warc.wet.gz: HTTP status 403 AccessDenied; everyone can read Common Crawl's files at https://data." in said
    )


def test_another_file_than_before_is_no_rest_of_it() -> None:
    with serve({"a": DATA}, lambda path, number: "cut" if number == 0 else None) as web:
        download = Download(f"{web.url}/a", Pool(), QUICK)
        assert download.read(1000)
        web.files["a"] = DATA[::-1]
        with pytest.raises(DownloadError, match="the file changed while it was read"):
            list(iter(lambda: download.read(1 << 16), b""))


def test_tries_without_progress_are_limited() -> None:
    with serve({"a": DATA}, lambda path, number: "503") as web:
        with pytest.raises(DownloadError, match="HTTP status 503, 4 times in a row"):
            fetch(web, "a", NetworkOptions(tries=4, first_pause=0.001))
        assert web.asked["a"] == 4


def test_the_time_for_a_file_is_limited() -> None:
    network = NetworkOptions(tries=100, first_pause=0.05, file_seconds=0.2)
    with (
        serve({"a": DATA}, lambda path, number: "503") as web,
        pytest.raises(DownloadError, match=r"\d s of 0 s are used up"),
    ):
        fetch(web, "a", network)


def test_retry_after_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    soon = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 30))
    refusals = ["429 17", f"429 {soon}", "429 soon"]
    with serve({"a": DATA}, lambda path, number: refusals[number] if number < 3 else None) as web:
        monkeypatch.setattr("c4pipe.io.downloads.sleep", slept.append)
        assert fetch(web, "a", NetworkOptions(first_pause=0.001)) == DATA
    assert slept[0] == 17.0
    assert 25 < slept[1] <= 30
    assert slept[2] < 0.01


def test_bandwidth_is_kept_to() -> None:
    with serve({"a": DATA}) as web:
        started = time.monotonic()
        assert fetch(web, "a", NetworkOptions(bytes_per_second=200_000)) == DATA
        assert time.monotonic() - started > 0.4


def test_missing_files_are_noted_and_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = made_crawl(5)
    gone = f"{FOLDER}/00003.warc.wet.gz"
    with serve({path: data for path, data in files.items() if path != gone}) as web:
        command = ["build", CRAWL, "--source", web.url, "--lists", str(LISTS), "--workers", "1", "--quiet"]
        command += ["--output", str(tmp_path / "corpus")]
        assert main.main(command) == 3
        said = capsys.readouterr().err
        assert "complete except for 1 file; the same command tries again to read it" in said
        assert "00003.warc.wet.gz: HTTP status 404 Not Found" in said
        made = manifest.read_manifest(tmp_path / "corpus")
        assert made is not None
        assert [(each["name"], each["path"]) for each in made["missing"]] == [
            ("00003.warc.wet.gz", f"{web.url}/{gone}")
        ]
        assert len(made["inputs"]) == 4
        web.asked.clear()
        assert main.main([*command, "--max-missing", "1"]) == 0  # still missing, and that is allowed
        assert main.main([*command, "--max-missing", "0"]) == 1
        assert "1 of 5 files could not be downloaded" in capsys.readouterr().err
        web.files[gone] = files[gone]
        web.asked.clear()
        assert main.main(command) == 0
        assert web.asked == {f"crawl-data/{CRAWL}/wet.paths.gz": 1, gone: 1}
        web.asked.clear()
        assert main.main(command) == 0
        assert set(web.asked) == {f"crawl-data/{CRAWL}/wet.paths.gz"}
        whole = ["build", CRAWL, "--source", web.url, "--lists", str(LISTS), "--workers", "1", "--quiet"]
        assert main.main([*whole, "--output", str(tmp_path / "whole")]) == 0
    assert work_folder.missing_files([tmp_path / "corpus" / work_folder.WORK_FOLDER]) == []
    ours, other = files_of(tmp_path / "corpus"), files_of(tmp_path / "whole")
    assert ours == other


def test_where_all_is_missing_there_is_no_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve({}) as web:
        command = ["build", f"{web.url}/a.warc.wet.gz", "--lists", str(LISTS), "--output", str(tmp_path / "c")]
        assert main.main([*command, "--workers", "1", "--quiet"]) == 1
    assert "1 of 1 files could not be downloaded" in capsys.readouterr().err


LISTING = [f"crawl-data/{CRAWL}/wet/{number:03}.warc.wet.gz" for number in range(10)]


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ({}, range(10)),
        ({"files": (0, 3)}, [0, 1, 2]),
        ({"files": (8, None)}, [8, 9]),
        ({"sample": 3}, [0, 3, 6]),
        ({"sample": 20}, range(10)),
        ({"files": (5, None), "sample": 2}, [5, 7]),
    ],
)
def test_files_of_a_crawl(selection: dict[str, object], chosen: list[int]) -> None:
    listing = gzip.compress("\n".join(LISTING).encode())
    with serve({f"crawl-data/{CRAWL}/wet.paths.gz": listing}) as web:
        found = find_inputs([CRAWL], Selection(source=f"{web.url}/", **selection))  # type: ignore[arg-type]
        assert [file.path for file in found] == [f"{web.url}/{LISTING[number]}" for number in chosen]
        assert [file.name for file in found] == [f"{number:03}.warc.wet.gz" for number in chosen]


def test_a_crawl_list_of_several_gzip_members_is_read_to_its_end() -> None:
    listing = b"".join(gzip.compress(f"{path}\n".encode()) for path in LISTING)
    with serve({f"crawl-data/{CRAWL}/wet.paths.gz": listing}) as web:
        assert len(find_inputs([CRAWL], Selection(source=web.url))) == len(LISTING)
    with (
        serve({f"crawl-data/{CRAWL}/wet.paths.gz": listing + b"junk"}) as web,
        pytest.raises(C4pipeError, match=r"wet\.paths\.gz .*bytes that are not compressed follow"),
    ):
        find_inputs([CRAWL], Selection(source=web.url))


def test_several_crawls_at_once() -> None:
    other = "CC-MAIN-2099-05"
    lists = {CRAWL: LISTING, other: [path.replace("/wet/", "/wet/b").replace(CRAWL, other) for path in LISTING]}
    files = {
        f"crawl-data/{crawl}/wet.paths.gz": gzip.compress("\n".join(paths).encode()) for crawl, paths in lists.items()
    }
    with serve(files) as web:
        found = find_inputs([CRAWL, other], Selection(source=web.url, files=(2, 4)))
    assert [file.name for file in found] == [
        "002.warc.wet.gz",
        "003.warc.wet.gz",
        "b002.warc.wet.gz",
        "b003.warc.wet.gz",
    ]
    assert [file.path.split("/")[-3] for file in found] == [CRAWL, CRAWL, other, other]


def test_a_list_names_paths_and_urls(tmp_path: Path) -> None:
    (tmp_path / "b.wet").write_bytes(b"")
    (tmp_path / "list.txt").write_text(
        f"\ufeff# two\r\nhttp://h.example.com/x/a.wet.gz  # first\r\n\r\n  # more\r\n{tmp_path}/b.wet", "utf-8"
    )
    found = find_inputs([f"@{tmp_path}/list.txt"])
    assert [(file.name, file.size) for file in found] == [("a.wet.gz", None), ("b.wet", 0)]


@pytest.mark.parametrize(
    ("patterns", "told"),
    [
        (["ftpx://host/a.wet.gz"], "c4pipe reads http"),
        (["bad\udcff.wet.gz"], "there is no such file"),
        (["http://h.example.com/"], "its last part is no file name"),
        (["http://h.example.com/?a=b/c.wet"], "its last part is no file name"),
        (["http://h.example.com/a\nb"], "has a control character"),
        (["http://h.example.com/x/.."], "its name begins with a dot"),
        (["http://h.example.com/" + "a" * 300], "its name has 300 bytes"),
        (["http://h.example.com/1/a.wet", "http://h.example.com/2/a.wet"], "have the same name"),
        (["@nowhere.txt"], "@nowhere.txt can't be read"),
    ],
)
def test_what_is_no_input_is_told(patterns: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        find_inputs(patterns)


@pytest.mark.parametrize("path", ["../../etc/passwd.wet.gz", "/etc/a.wet.gz", "a/b.txt", "a/\u0000.wet.gz"])
def test_a_list_of_a_crawl_that_is_none(path: str) -> None:
    listing = gzip.compress(path.encode())
    with serve({f"crawl-data/{CRAWL}/wet.paths.gz": listing}) as web, pytest.raises(C4pipeError):
        find_inputs([CRAWL], Selection(source=web.url))


def test_files_and_sample_need_a_crawl() -> None:
    with pytest.raises(UsageError, match="name one, such as CC-MAIN-2019-18"):
        find_inputs([str(SAMPLES[0])], Selection(sample=3))


@pytest.mark.parametrize("text", ["", "5", "a:b", "1:2:3", "-1:"])
def test_a_slice_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="such as 0:100"):
        parse_slice(text)


def test_the_second_run_in_a_folder_stops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "clean",
        str(SAMPLES[0]),
        "--lists",
        str(LISTS),
        "--work",
        str(tmp_path / "w"),
        "--workers",
        "1",
        "--quiet",
    ]
    with only_run(tmp_path / "w"):
        assert main.main(command) == 2
        assert "is at work in" in capsys.readouterr().err
    assert main.main(command) == 0
    assert sorted(path.name for path in (tmp_path / "w").glob(".*")) == []


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    script = """
import sys, time
from pathlib import Path
from c4pipe.io.lock import only_run
from c4pipe.io.streams import InputOpener

with only_run(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match=f"process {process.pid} on"), only_run(tmp_path):
            pass
        os.kill(process.pid, 9)
        process.wait()
        with only_run(tmp_path):
            pass
