"""Hostile WET files are harmless: bounded memory, linear time; and the next good record is read.

The reader's own bounds are tested in tests/wet. Here its worst inputs go through all of `c4pipe clean`.
"""

import gzip
import io
import random
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
from isal import isal_zlib

from c4pipe.clean.work_file import read_header
from c4pipe.io.gzip_members import INFLATE, Gap, inflate
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages

ROOT = Path(__file__).resolve().parents[2]
LISTS = str(ROOT / "samples" / "lists")

TEXT = """The old ferry crosses the wide river every morning before the market opens.
Most of the people on board carry baskets of bread and fruit to the other side.
Nobody remembers who built the little wooden house on the far bank of the water.
"""


# WET files, through all of `c4pipe clean`


def record(text: str | bytes = TEXT, url: str | bytes = "http://example.com/good", length: object = None) -> bytes:
    body = text.encode() if isinstance(text, str) else text
    raw = url.encode() if isinstance(url, str) else url
    size = str(len(body) if length is None else length).encode()
    head = b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: %b\r\nWARC-Date: 2030-01-01T00:00:00Z\r\n" % raw
    return head + b"Content-Length: %b\r\n\r\n%b\r\n\r\n" % (size, body)


def bomb(head: bytes, line: bytes, size: int) -> bytes:
    """A gzip member of `head` and `size` bytes of lines, a thousandth as long and quickly made."""
    chunk = line * (2**20 // len(line))
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = deflate.compress(head) + deflate.flush(zlib.Z_FULL_FLUSH)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = deflate.compress(chunk) + deflate.flush(zlib.Z_FULL_FLUSH)
    crc = zlib.crc32(head)
    for _ in range(size // 2**20):
        crc = zlib.crc32(chunk, crc)
    length = len(head) + size // 2**20 * len(chunk)
    tail = crc.to_bytes(4, "little") + (length % 2**32).to_bytes(4, "little")
    return b"\x1f\x8b\x08" + b"\0" * 6 + b"\xff" + start + body * (size // 2**20) + b"\x03\0" + tail


def head(*, url: bytes = b"http://example.com/bad", length: int = 2**63) -> bytes:
    return record("", url, length).removesuffix(b"\r\n\r\n")


GOOD = gzip.compress(record())
LINE = b"A line that goes on and on, "
MIB = 2**20


class Hostile(NamedTuple):
    """A file, what the work file counts of it, and how many of its pages are kept (the last is the good one)."""

    make: Callable[[], bytes]
    counts: dict[str, int]
    kept: int = 1


FILES = {
    "bomb": Hostile(lambda: bomb(head(), b"A line of a page of a gigabyte.\n", 1024 * MIB), {"record_too_large": 1}),
    "length": Hostile(lambda: gzip.compress(record(TEXT, length=2**63)), {"bad_length": 1}, 2),
    "header": Hostile(lambda: bomb(head()[:-2] + b"X: ", LINE, 100 * MIB), {"header_too_large": 1}),
    "long line": Hostile(lambda: bomb(head(), LINE, 64 * MIB), {"record_too_large": 1}),
    "line at the cap": Hostile(lambda: gzip.compress(record(LINE * (15 * MIB // len(LINE)) + b".")), {"too_long": 1}),
    "folded URL": Hostile(lambda: gzip.compress(record(url="http://example.com/\r\n a\rb\r\n\tc")), {}, 2),
    "URL of 1 MB": Hostile(lambda: gzip.compress(record(url="http://e.com/" + "a." * MIB)), {"header_too_large": 1}),
    "URL of 200 kB": Hostile(lambda: gzip.compress(record(url="http://e.com/" + "a." * 100_000)), {}, 2),
    "NUL": Hostile(lambda: gzip.compress(record("\0" + TEXT + "\0", "http://example.com/\0")), {}, 2),
    "surrogates": Hostile(
        lambda: gzip.compress(record(b"\xed\xa0\x80" + TEXT.encode(), b"http://e.com/\xed\xa0\x80")), {"not_utf8": 2}, 2
    ),
    "x..": Hostile(lambda: gzip.compress(record(url="../../../etc/passwd")), {}, 2),
}

CLEAN = """
import re, resource, sys
from pathlib import Path
from c4pipe.cli import main

status = main.main(["clean", "--workers", "1", "--quiet", *sys.argv[1:]])
# getrusage would have the peak of the process that started this one, if that is larger
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(max(peak, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) // 1024)
sys.exit(status)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_hostile_files_are_counted_and_the_next_record_of_each_is_read(tmp_path: Path) -> None:
    (tmp_path / "crawl").mkdir()
    for name, file in FILES.items():
        (tmp_path / "crawl" / f"{name}.wet.gz").write_bytes(file.make() + GOOD)
    # A path that leads out of the folder and back: work files have its last part alone.
    crawl = tmp_path / "crawl" / ".." / "crawl"
    arguments = [sys.executable, "-c", CLEAN, str(crawl), "--lists", LISTS, "--work", str(tmp_path / "work")]
    run = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    print(run.stdout, "MB")
    assert int(run.stdout) < 1000, "MB"
    assert {path.name for path in tmp_path.iterdir()} == {"crawl", "work"}
    for name, file in FILES.items():
        check_work_file(tmp_path / "work" / f"{name}.wet.gz.parquet", file)


def check_work_file(path: Path, file: Hostile) -> None:
    counts = read_header(path).counts
    said = ("damage.", "pages.dropped.")
    bad = {key.removeprefix(each): n for key, n in counts.items() for each in said if key.startswith(each)}
    assert bad == file.counts, path.name
    assert counts["pages.cleaned"] == file.kept, path.name
    pages = [page for page in pq.read_table(path).to_pylist() if page["text"]]
    assert len(pages) == file.kept
    assert pages[-1]["text"] == TEXT.strip()
    assert pages[-1]["url"] == "http://example.com/good"
    assert not any("\n" in page["url"] for page in pages)


# The reader takes linear time


def pages_of(data: bytes) -> list[str]:
    return [item.body for item in read_pages(io.BytesIO(data)) if isinstance(item, Page)]


def starts_in_mid_line(size: int) -> bytes:
    """One header line of records' starts: the header blocks of all of them end where it does."""
    line = b"WARC/1.0\r\nContent-A: x"
    return line * (size // len(line)) + b"\r\n\r\nA text.\r\n\r\n"


def lengths_into_newlines(size: int) -> bytes:
    """Records whose lengths all lead into the same newlines; that of the first has all of it held in memory."""
    first, other = (b"WARC/1.0\r\nContent-Length: %d\r\n\r\nx" % length for length in (size - 1000, size // 2))
    records = first + other * (size // 2 // len(other))
    return records + b"\n" * (size - len(records) - 2000) + b"y" * 2000 + b"\r\n\r\n"


@pytest.mark.parametrize("make", [starts_in_mid_line, lengths_into_newlines])
def test_reading_a_megabyte_takes_seconds_at_most(make: Callable[[int], bytes]) -> None:
    data = make(MIB) + record()
    began = time.process_time()
    pages = pages_of(data)
    assert time.process_time() - began < 5
    assert pages[-1] == TEXT


MEMBER = b"\x1f\x8b\x08" + b"\0" * 6 + b"\xff"
MEBIBYTE = bomb(b"", b"\0", MIB)[len(MEMBER) : -10]
DAMAGED = b"\x07"  # a block of no known kind


def nested(starts: int, inner: bytes, behind: bytes) -> bytes:
    """Starts of members, each of which has the others, with `inner` behind each, in a block that is stored."""
    data = b""
    for _ in range(starts):
        stored = inner + data
        size = len(stored)
        data = MEMBER + b"\0" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + stored
    return data + behind + DAMAGED


class Work(NamedTuple):
    inflaters: int
    inflated: int
    pages: list[str]


def work_of(data: bytes, monkeypatch: pytest.MonkeyPatch) -> Work:
    """How many members were tried, and how many bytes they gave."""
    made = Mock(wraps=isal_zlib.decompressobj)
    with monkeypatch.context() as patch:
        patch.setattr(isal_zlib, "decompressobj", made)
        inflated = sum(len(piece) for piece in inflate(io.BytesIO(data)) if isinstance(piece, bytes))
    return Work(made.call_count, inflated, pages_of(data))


EMPTY = b"\0\0\0\xff\xff"  # a stored block of nothing
FALSE_STARTS = {
    "bomb": nested(300, b"", MEBIBYTE * 16),
    "bomb, and whole members between": nested(300, gzip.compress(b"A line.\n", mtime=0), MEBIBYTE * 16),
    "blocks of nothing": nested(3000, b"", EMPTY * 20_000),
    "names without an end": MEMBER + DAMAGED + b"\x1f\x8b\x08\x08" * 2**15,
    "a long text": nested(3000, b"", zlib.compress(random.Random(1).randbytes(50_000).hex().encode(), 9)[2:-4] * 2),
}


@pytest.mark.parametrize("data", FALSE_STARTS.values(), ids=FALSE_STARTS)
def test_not_all_false_starts_before_the_same_damage_are_tried(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies behind the bytes that they share is read all the same."""
    work = work_of(data + b"\0" * 2**16 + GOOD, monkeypatch)
    assert work.inflated < 2**27
    assert work.inflaters < 1000
    assert work.pages[-1] == TEXT


def test_a_damaged_bomb_costs_nothing_behind_it() -> None:
    assert pages_of(nested(1, b"", MEBIBYTE * 100) + GOOD) == [TEXT]


def test_a_rescue_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What isal can't inflate zlib may: a bomb."""

    class Failing:
        eof = False

        def decompress(self, data: bytes, size: int) -> bytes:
            raise isal_zlib.error

    monkeypatch.setattr(isal_zlib, "decompressobj", lambda wbits: Failing())
    (gap,) = inflate(io.BytesIO(bomb(b"", b"\0", 30 * MIB)))
    assert isinstance(gap, Gap)
    assert INFLATE < gap.length < 8 * MIB


# The fuzzer


@pytest.mark.parametrize("target", ["reader", "rules"])
def test_what_the_fuzzer_begins_with_is_well(target: str) -> None:
    command = [sys.executable, str(ROOT / "fuzz" / "targets.py"), target]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert "all well" in run.stdout
