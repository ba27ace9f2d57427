"""Inputs that are no WET, WARC or text files: they are named, and a later run finds nothing of them."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import c4pipe
from c4pipe.errors import C4pipeError
from c4pipe.wet.damage import describe_content
from tests.conftest import ROOT
from tests.helpers.wet import record

LISTS = ROOT / "samples" / "lists"
GOOD = min((ROOT / "samples" / "crawl").iterdir())
PLAIN = gzip.decompress(GOOD.read_bytes())
S3_ERROR = b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'
NOT_FOUND = b"<!DOCTYPE html>\n<html><head><title>404 Not\nFound</title></head></html>"


def archive(kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("a.wet", PLAIN)
    else:
        with tarfile.open(fileobj=file, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    return file.getvalue()


BAD = {
    "xml": (S3_ERROR, "an XML document (AccessDenied)"),
    "html": (NOT_FOUND, "an HTML page (404 Not Found)"),
    "gzipped": (gzip.compress(NOT_FOUND), "an HTML page (404 Not Found), in gzip"),
    "json": (b'{"message": "no"}', 'JSON ({"message": "no"})'),
    "text": (b"hello\n", "plain text (hello)"),
    "colour": (b"\x1b[31mred", "plain text (\N{REPLACEMENT CHARACTER}[31mred)"),
    "empty": (b"", "empty"),
    "gzipped nothing": (gzip.compress(b""), "empty"),
    "zeros": (bytes(1000), "a file of zeros"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS"),
    "zstd": (pa.Codec("zstd").compress(PLAIN, asbytes=True), "compressed by Zstandard: unpack it first"),
    "bzip2": (bz2.compress(PLAIN), "compressed by bzip2"),
    "xz": (lzma.compress(PLAIN), "compressed by xz"),
    "zip": (archive("zip"), "a zip archive"),
    "tar": (archive("tar"), "a tar archive"),
    "binary": (bytes(range(128, 256)), "binary data"),
}


@pytest.mark.parametrize("kind", BAD)
def test_content_is_described(kind: str) -> None:
    content, words = BAD[kind]
    assert describe_content(content, {"empty_file": 1}).startswith(f"it is {words}")


def test_damaged_content_is_described() -> None:
    assert describe_content(gzip.compress(PLAIN)[:9], {"gzip_cut": 1}) == (
        "its data are damaged (gzip_cut 1): copy it again"
    )
    assert describe_content(PLAIN[:40], {"header_cut": 1}).startswith("its data are damaged (header_cut 1)")


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_files_beside_a_good_one_are_named(workers: int, tmp_path: Path) -> None:
    crawl, output = tmp_path / "crawl", tmp_path / "corpus"
    crawl.mkdir()
    (crawl / "good.wet.gz").write_bytes(GOOD.read_bytes())
    (crawl / "xml.wet.gz").write_bytes(S3_ERROR)
    (crawl / "empty.wet.gz").write_bytes(b"")
    arguments = {"output": output, "lists": LISTS, "workers": workers}
    made = c4pipe.build_corpus(crawl, **arguments).manifest  # type: ignore[arg-type]
    assert [each["error"] for each in made["missing"]] == [
        f"{crawl}/empty.wet.gz has no record: it is empty",
        f"{crawl}/xml.wet.gz has no record: it is an XML document (AccessDenied)",
    ]
    with pytest.raises(C4pipeError, match=r"2 of 3 files have no record or could not be downloaded: .*empty.*; .*xml"):
        c4pipe.build_corpus(crawl, **arguments, max_missing=1)  # type: ignore[arg-type]
    (crawl / "xml.wet.gz").write_bytes(GOOD.read_bytes())  # copied again
    (crawl / "empty.wet.gz").unlink()
    made = c4pipe.build_corpus(crawl, **arguments).manifest  # type: ignore[arg-type]
    assert ([each["name"] for each in made["inputs"]], made["missing"]) == (["good.wet.gz", "xml.wet.gz"], [])


def test_a_file_of_other_records_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "requests.wet.gz").write_bytes(gzip.compress(record("GET /").replace(b"conversion", b"request")))
    c4pipe.clean_files([GOOD, tmp_path / "requests.wet.gz"], work=tmp_path / "work", lists=LISTS, workers=1)
    assert "no page is in requests.wet.gz: none of its records has text (conversion)" in caplog.text


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("content", [b"hello\n", record("GET /").replace(b"conversion", b"request")])
def test_a_later_run_finds_nothing_of_a_wrong_input(content: bytes, workers: int, tmp_path: Path) -> None:
    (tmp_path / "typo.txt").write_bytes(content)
    arguments = {"output": tmp_path / "corpus", "lists": LISTS, "workers": workers, "keep_dropped": "all"}
    with pytest.raises(C4pipeError, match=r"no page was found in the input file: .*typo\.txt"):
        c4pipe.build_corpus(tmp_path / "typo.txt", **arguments)  # type: ignore[arg-type]
    corpus = c4pipe.build_corpus(GOOD, **arguments)  # type: ignore[arg-type]
    assert ([each["name"] for each in corpus.manifest["inputs"]], corpus.manifest["missing"]) == ([GOOD.name], [])


@pytest.mark.parametrize("left", ["typo.wet.examples.json", "typo.wet.parquet.damaged", "typo.wet.quarantine.jsonl"])
def test_a_stopped_run_with_other_inputs_is_no_obstacle(left: str, tmp_path: Path) -> None:
    work = tmp_path / "corpus" / "_work"
    work.mkdir(parents=True)
    (work / left).write_text("{}")
    c4pipe.build_corpus(GOOD, output=tmp_path / "corpus", lists=LISTS, workers=1)
