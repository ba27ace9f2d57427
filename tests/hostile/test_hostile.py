"""Hostile input is harmless: bounded memory, linear time, each mistake a sentence; and the next good record is read.

The reader's own bounds are in test_wet_records.py; here its worst inputs go through all of `c4pipe clean`.
"""

import gzip
import io
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
from isal import isal_zlib

from c4pipe.clean.cleaner import Cleaner
from c4pipe.clean.resources import RuleResources
from c4pipe.clean.work_file import read_header
from c4pipe.cli import main
from c4pipe.errors import UsageError
from c4pipe.filters import domains
from c4pipe.filters.bad_words import BadWords
from c4pipe.filters.body_lines import LINE_SEPARATORS, cut, resplit
from c4pipe.filters.language import LanguageDetector
from c4pipe.filters.sentences import SentenceSplitter
from c4pipe.filters.urls import normalise_url, url_key
from c4pipe.recipes import pinned_lists, recipe_lists
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe_file import read_recipe
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.wet.gzip_members import INFLATE, Gap, inflate
from c4pipe.wet.page import Page, microseconds
from c4pipe.wet.records import read_pages

ROOT = Path(__file__).resolve().parents[2]
CRAWL = str(ROOT / "samples" / "crawl")
LISTS = str(ROOT / "samples" / "lists")

TEXT = """The old ferry crosses the wide river every morning before the market opens.
Most of the people on board carry baskets of bread and fruit to the other side.
Nobody remembers who built the little wooden house on the far bank of the water.
"""


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """A test that waits for a pipe, or takes quadratic time, fails instead of holding up the others."""

    def late(number: int, frame: object) -> None:
        raise AssertionError("it takes minutes")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(180)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


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
    "..": Hostile(lambda: gzip.compress(record(url="../../../etc/passwd")), {}, 2),
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


# Lists


def write_list(folder: Path, data: bytes, name: str = "ldnoobw/en.25e679f0") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence that a wrong configuration is answered with."""
    assert main.main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (sentence,) = captured.err.splitlines()
    assert sentence.startswith("c4pipe: ")
    return sentence


def make_no_file(path: Path, kind: str) -> None:
    """Makes what is no regular file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize(
    ("recipe", "name"),
    [("c4", "ldnoobw/en.25e679f0"), ("realnewslike", pinned_lists.REALNEWS)],
    ids=["words", "domains"],
)
def test_a_list_that_is_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, recipe: str, name: str
) -> None:
    write_list(tmp_path, b"word\n")
    path = tmp_path / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    make_no_file(path, kind)
    sentence = told(
        capsys, "clean", CRAWL, "--recipe", recipe, "--lists", str(tmp_path), "--work", str(tmp_path / "work")
    )
    assert str(path) in sentence
    assert "--lists DIR" in sentence
    assert [status for pinned, status in pinned_lists.show(tmp_path) if pinned.path == name] == ["other content"]


def test_a_words_list_with_a_line_of_megabytes_and_nul(tmp_path: Path) -> None:
    write_list(tmp_path, b"gronkle\n" + b"a b" * 2**21 + b"\nfrizzle\0bum\n" + b"x" * 2**22 + b"\nold\rmac\n")
    words = pinned_lists.load_bad_words(tmp_path, "en")
    assert {"gronkle", "frizzle\0bum", "old", "mac"} < set(words)
    began = time.process_time()
    finder = BadWords(words, "en")
    assert finder.find("a bum, a frizzle\0bum and a b") == "frizzle\0bum"
    assert finder.find("a b of a x") is None
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a.com":' * 100_000,
        '{"a.com": ["\\ud800"]}',
        '{"\\udfff.com": true}',
        '{"a.com": "news"}',
        '{"a.com": [1]}',
        '{"a.com": false}',
        '{"a.com": {"news": 1}}',
        '["a.com"]',
        "null",
        "\0",
        "9" * 5000,
        '{"a.com": true}' + "\udcff",
    ],
    ids=lambda text: text[:16].encode("ascii", "backslashreplace").decode(),
)
def test_hostile_domains(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    write_list(tmp_path, b"word\n")
    path = write_list(tmp_path, text.encode("utf-8", "surrogateescape"), pinned_lists.REALNEWS)
    realnewslike = ["clean", CRAWL, "--recipe", "realnewslike", "--lists", str(tmp_path)]
    sentence = told(capsys, *realnewslike, "--work", str(tmp_path / "work"))
    assert str(path) in sentence
    assert len(sentence) < 1000


GOOD_LINK = "http://example.com/good"


@pytest.mark.parametrize(
    "data",
    [
        b"\0\n" + GOOD_LINK.encode() + b"\n\xff\xfe\n\xed\xa0\x80",
        b"a" * 5 * 2**20 + b"\n" + GOOD_LINK.encode(),
        GOOD_LINK.encode() + b"\n" + b"http://e.com/" * 2**20,
        gzip.compress(b"x" * 2**27) + gzip.compress(b"\n" + GOOD_LINK.encode()),
    ],
    ids=["not UTF-8", "a long line", "a long line at the end", "a bomb"],
)
def test_hostile_links(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / ("links.gz" if data.startswith(b"\x1f\x8b") else "links")
    path.write_bytes(data)
    found = recipe_lists.gather(RECIPES["webtextlike"], Path(LISTS), [path])
    assert found.has_link(url_key(normalise_url(GOOD_LINK)))
    assert len(found.links) < 5


def test_links_that_do_not_unpack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "links.gz"
    path.write_bytes(gzip.compress(b"http://example.com/\n")[:10] + b"\xff" * 50)
    arguments = ["clean", CRAWL, "--recipe", "webtextlike", "--lists", LISTS, "--work", str(tmp_path / "work")]
    assert str(path) in told(capsys, *arguments, "--links", str(path))


# Recipe files

RECIPE_FILES = {
    "nested lists": (b'base = "c4"\noff = ' + b"[" * 20_000 + b"]" * 20_000, "nested too deeply"),
    "nested tables": (b'base = "c4"\noff = ' + b"{a = " * 5000 + b"1" + b"}" * 5000, "nested too deeply"),
    "nested in an error": (b'base = "c4"\nfew_words.' + b"a." * 900 + b"a = 1", "no parameter 'a'"),
    "a long key": (b'base = "c4"\n' + b"a." * 1_000_000 + b"a = 1", "more than 65,536 bytes"),
    "10 MB of keys": (b'base = "c4"\n' + b"".join(b"key%d = 1\n" % n for n in range(800_000)), "more than 65,536"),
    "10 MB of text": (b'base = "c4"\nname = "' + b"x" * 10_000_000 + b'"', "more than 65,536"),
    "not UTF-8": (b'base = "c4"\nname = "\xff"', "can't decode byte 0xff"),
    "surrogate": (b'base = "c4"\nname = "\xed\xa0\x80"', "can't decode byte 0xed"),
    "half a pair": (b'base = "c4"\nname = "\\ud800"', "Unicode"),
    "NUL": (b'base = "c4"\nname = "\0"', "can't be read"),
    "escaped NUL": (b'base = "c4"\nname = "\\u0000"', "without control characters"),
    "escape sequence": (b'base = "c4"\ndescription = "\\u001b[2J"', "without control characters"),
    "two lines": (b'base = "c4"\nname = "a\\nb"', "of one line"),
    "list for a text": (b'base = "c4"\nname = ["a"]', "give a text"),
    "date for a base": (b"base = 1979-05-27", "unknown base"),
    "numbers for rules": (b'base = "c4"\noff = [1, [2], {a = 1}]', "1 is no rule"),
    "a number too large for C": (b'base = "c4"\nmin_words_per_line = 99999999999999999999', "at most 2147483647"),
    "a number of 5,000 digits": (b'base = "c4"\nmin_words_per_line = ' + b"9" * 5000, "can't be read"),
    "no number": (b'base = "c4"\nmin_probability = nan', "from 0 to 1"),
    "infinity": (b'base = "c4"\nmin_probability = inf', "from 0 to 1"),
}


@pytest.mark.parametrize(("data", "says"), RECIPE_FILES.values(), ids=RECIPE_FILES)
def test_hostile_recipe_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(data)
    began = time.process_time()
    sentence = told(capsys, "clean", CRAWL, "--recipe", str(path), "--lists", LISTS, "--work", str(tmp_path / "work"))
    assert time.process_time() - began < 10
    assert "mine.toml" in sentence
    assert says in sentence
    assert len(sentence) < 2000


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_recipe_that_is_no_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine.toml"
    make_no_file(path, kind)
    with pytest.raises(UsageError, match=r"mine\.toml can't be read"):
        read_recipe(path, RECIPES)


# Linear time


def assert_linear(function: Callable[[str], object], make: Callable[[int], str], size: int) -> None:
    """Fails where four times the size takes far more than four times as long; quadratic time is sixteen times."""
    quick, slow = (min(_seconds(function, make(n)) for _ in range(tries)) for n, tries in ((size, 2), (4 * size, 1)))
    assert slow < 10 * quick + 0.1, f"{quick:.3f} s and {slow:.3f} s"


def _seconds(function: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    function(text)
    return time.process_time() - began


def repeated(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * (size // len(unit) + 1))[:size].strip()


UNITS = (
    *("a", " a", "a\u2028", "1", "[", "[1", "[12]", "[edit", "[citation needed]", "javascrip", "terms of us"),
    *(". ", "...", "…", '"', "\u2003a", "\u0130", "WARC", "Content-"),
)


@pytest.mark.parametrize("recipe", ["c4", "tfds"])
def test_line_rules_take_linear_time(recipe: str) -> None:
    for step in RECIPES[recipe].lines:
        if step.definition.scope == "line":
            for unit in UNITS:
                assert_linear(
                    lambda text, step=step: step.definition.function([text], **step.arguments),  # type: ignore[misc]
                    repeated(unit),
                    2**18,
                )


@pytest.mark.parametrize("unit", ["\x1c", "a\x1c", "a\r", "\r\n", "\u2028 ", " ", "\n"])
@pytest.mark.parametrize("line_separators", LINE_SEPARATORS)
def test_cutting_a_body_takes_linear_time(unit: str, line_separators: str) -> None:
    assert_linear(
        lambda text: resplit(cut(Page("", "", text), line_separators), line_separators), lambda n: unit * n, 2**16
    )


@pytest.mark.parametrize("scheme", ["start", "anywhere"])
def test_normalising_a_url_takes_linear_time(scheme: str) -> None:
    for unit in ("a", "/", "?", "?re", "?ref", "?utm_\n", "?\n", "http://", "https://www.", "www.", "http", "\n"):
        assert_linear(lambda url: normalise_url(url, scheme), repeated(unit), 2**18)


def test_a_timestamp_takes_linear_time() -> None:
    assert_linear(microseconds, lambda n: "2030-01-01T00:00:00." + "1" * n, 2**18)
    assert_linear(microseconds, lambda n: "2030-01-01T00:00:00Z" * n, 2**14)


@pytest.mark.parametrize("unit", ["a.", "a", ".", "@", "a@", "a:", "a-b." * 9 + "/", "com."])
def test_looking_up_a_domain_takes_linear_time(unit: str) -> None:
    listed = {"a.com": ["news"], "com.com": [], "example.co.uk": []}
    assert_linear(lambda url: domains.is_listed(url, listed), repeated(unit), 2**17)


def test_a_domain_is_found_behind_any_number_of_subdomains() -> None:
    assert domains.is_listed("a." * 100_000 + "example.co.uk", {"example.co.uk": []})
    assert not domains.is_listed("a." * 100_000 + "example.co.uk", {"example.co.uk": ["a"]})


@pytest.mark.parametrize("unit", ["a ", "a b ", "aa ", "@", "@ ", "a@", "x y", "\u0130 ", "a b a b a b c "])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_looking_for_bad_words_takes_linear_time(unit: str, language: str) -> None:
    words = ["a" * 50 + " b", "a b " * 9 + "c", "x y z", "@@@@!", "@ @ @ x", "ab", "i\u0307 i\u0307 x"]
    finder = BadWords(words, language)
    assert_linear(finder.find, repeated(unit), 2**17)


# What marks, quotes and spaces can be put together to, so that every one may end a sentence, or none.
MARKS = (
    *("a. ", ". ", ". . . . a ", "! ", "!", "...", "a.b", ".\u00a0", ".\u00a0a", ". .\u00a0", ".\u3000a", "?\u2029"),
    *('"', '" ', '. "', '." ', ".'", "a.) ", "!)", ".--", "-", "--", "1.", "1,", "1-.", "A. B. ", "Dr. ", "i.e. "),
    *("a", "a, ", ",", ",.", "(", "*", "@", "\u0130. ", "\u2026 "),
)


@pytest.mark.parametrize("as_nltk", [False, True])
def test_cutting_sentences_takes_linear_time(as_nltk: bool) -> None:
    cutter = SentenceSplitter("en", as_nltk)
    for unit in MARKS:
        assert_linear(lambda text: cutter.starts([text]), repeated(unit), 2**11)
    for start, unit in (("a. ", "a"), (". ", "!"), ("a. ", '"'), ("a", "!"), ("a. ", "-"), ("a. ", "1"), ("a. ", ".a")):
        assert_linear(lambda text: cutter.starts([text]), lambda n, start=start, unit=unit: start + unit * n, 2**14)  # type: ignore[misc]


@pytest.mark.parametrize(
    "unit", ["a", "a ", "the ", "http://a ", "https://", "a@b.c ", "a@", "1 ", "\ud7a3", "あ", "\0"]
)
def test_telling_the_language_takes_linear_time(unit: str) -> None:
    assert_linear(LanguageDetector().guess, repeated(unit), 2**15)


def test_the_slowest_page_of_the_largest_size(sample_lists: Lists) -> None:
    """Rule 3 lets it pass, and its lines come to Punkt twice, with as many marks as words."""
    recipe = RECIPES["tfds"]
    body = "\n".join(["The. old. ferry. crosses. the. river. " + "a. " * 320 + "bread."] * 190)[:189_990] + " bread."
    began = time.process_time()
    Cleaner(recipe, RuleResources(recipe, sample_lists)).clean(Page("http://a.com/", "2030-01-01T00:00:00Z", body))
    assert time.process_time() - began < 30


# The fuzzer


@pytest.mark.parametrize("target", ["reader", "rules"])
def test_what_the_fuzzer_begins_with_is_well(target: str) -> None:
    command = [sys.executable, str(ROOT / "fuzz" / "targets.py"), target]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert "all well" in run.stdout
