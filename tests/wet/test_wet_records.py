"""The WET reader on records of every kind, damage at any place, and memory."""

import gzip
import hashlib
import io
import random
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from c4pipe.wet import records
from c4pipe.wet.gzip_members import FIRST_BYTES, inflate
from c4pipe.wet.page import Page
from c4pipe.wet.records import DAMAGE, Damage, read_pages
from tests.helpers.streams import Trickle


class Outcome(NamedTuple):
    pages: list[Page]
    damage: dict[str, int]
    losses: list[Damage]

    @property
    def texts(self) -> list[str]:
        return [page.body for page in self.pages]

    @property
    def urls(self) -> list[str]:
        return [page.url for page in self.pages]


def outcome(items: Iterable[Page | Damage]) -> Outcome:
    pages: list[Page] = []
    damage: Counter[str] = Counter()
    last = 0
    losses: list[Damage] = []
    for item in items:
        if isinstance(item, Page):
            assert item.position == len(pages)
            pages.append(item)
        else:
            assert item.offset >= last, "damage is told in the order of the file"
            last = item.offset
            damage[item.kind] += 1
            losses.append(item)
    assert damage.keys() <= DAMAGE.keys()
    return Outcome(pages, dict(damage), losses)


def read(*parts: bytes) -> Outcome:
    data = b"".join(parts)
    got = outcome(read_pages(io.BytesIO(data)))
    check_losses(got.losses, data)
    return got


def check_losses(losses: list[Damage], data: bytes) -> None:
    """Losses are bytes of the file, each told once. What gaps drop, and single header lines, are checked elsewhere."""
    plain = b"".join(piece for piece in inflate(io.BytesIO(data)) if isinstance(piece, bytes))
    end = 0
    for kind, offset, length, first in losses:
        assert len(first) == min(length, FIRST_BYTES) or kind in LINES
        if not kind.startswith("gzip_") and kind not in LINES and length:
            assert end <= offset
            end = offset + length
            assert end <= len(plain)
            assert plain[offset:end][:FIRST_BYTES] == first
        elif kind in LINES:
            assert first in plain[offset:]


def head(*lines: str | bytes) -> bytes:
    """A header block with its version line and its blank line."""
    raw = [b"WARC/1.0", *(line.encode() if isinstance(line, str) else line for line in lines), b""]
    return b"".join(line + b"\r\n" for line in raw)


def record(text: str | bytes = "A page.\n", url: str = "http://example.com/", length: object = None) -> bytes:
    """A `conversion` record as Common Crawl writes it; `length` is claimed instead of the body's."""
    body = text.encode() if isinstance(text, str) else text
    lines = [
        "WARC-Type: conversion",
        f"WARC-Target-URI: {url}",
        "WARC-Date: 2019-04-18T10:12:43Z",
        "WARC-Record-ID: <urn:uuid:" + hashlib.md5(url.encode()).hexdigest() + ">",
        "Content-Type: text/plain",
        f"Content-Length: {len(body) if length is None else length}",
    ]
    return head(*lines) + body + b"\r\n\r\n"


def member(data: bytes) -> bytes:
    return gzip.compress(data, 6, mtime=0)


LINES = ("bad_header", "doubled_header")
INFO = head("WARC-Type: warcinfo", "Content-Length: 14") + b"robots: none\r\n" + b"\r\n\r\n"
A, B, C = (record(f"{name} page.\n", f"http://{name}.example/") for name in ("first", "second", "third"))
ALL = ["first page.\n", "second page.\n", "third page.\n"]
FIRST, SECOND, THIRD = ([text] for text in ALL)


# Headers


def test_a_page_has_what_its_record_says() -> None:
    got = read(INFO, record("Zwei Zeilen,\nfür alle.\n", "http://example.com/ü"), B)
    assert got.damage == {}
    assert got.urls == ["http://example.com/ü", "http://second.example/"]
    page = got.pages[0]
    assert (page.timestamp, page.body, page.size, page.position) == (
        "2019-04-18T10:12:43Z",
        "Zwei Zeilen,\nfür alle.\n",
        24,
        0,
    )


@pytest.mark.parametrize("seed", range(8))
def test_headers_in_any_order_and_case(seed: int) -> None:
    lines = [
        "WARC-Type: conversion",
        "WARC-Target-URI: http://example.com/",
        "WARC-Date: 2019-04-18T10:12:43Z",
        "X-Unknown: value: with: colons",
        "Content-Length: 5",
    ]
    chance = random.Random(seed)
    chance.shuffle(lines)
    change = (str.lower, str.upper, str.title)[seed % 3]
    blanks = ("", " ", "\t ", "   ")[seed % 4]
    lines = [f"{change(name)}:{blanks}{value}{blanks}" for name, value in (line.split(": ", 1) for line in lines)]
    got = read(A, head(*lines), b"hello\r\n\r\n", B)
    assert got.damage == {}
    assert got.texts == ["first page.\n", "hello", "second page.\n"]
    assert (got.pages[1].url, got.pages[1].timestamp) == ("http://example.com/", "2019-04-18T10:12:43Z")


@pytest.mark.parametrize("version", [b"WARC/1.0", b"WARC/1.1", b"WARC/1.0 ", b"WARC/1.0\t"])
def test_version_lines(version: bytes) -> None:
    data = A + B.replace(b"WARC/1.0", version) + C
    read_damage({}, ALL, data)
    assert read(b"junk\n", data).texts == ALL


@pytest.mark.parametrize("kind", ["response", "request", "metadata", "revisit", "warcinfo", "resource", "", "x"])
def test_other_types_are_passed_over(kind: str) -> None:
    other = head(f"WARC-Type: {kind}", "Content-Length: 4") + b"\xff\xfe\0\0" + b"\r\n\r\n"
    read_damage({}, FIRST + SECOND, A, other, B)


def test_the_type_in_any_case() -> None:
    assert read(A.replace(b"conversion", b"Conversion")).texts == FIRST


def test_folded_headers() -> None:
    lines = ["WARC-Type:", " conversion", "WARC-Target-URI: http://example.com/", "\tpath", "Content-Length: 2"]
    got = read(head(*lines), b"hi\r\n\r\n", A)
    assert got.damage == {}
    assert got.texts == ["hi", *FIRST]
    assert got.urls[0] == "http://example.com/ path"


def test_folded_headers_that_occur_twice() -> None:
    same = ["X: a", " b", "X: a", " b"]
    other = ["X: a", " b", "X: a", " c"]
    rest = ["WARC-Type: conversion", "Content-Length: 2"]
    assert read(head(*rest, *same), b"hi\r\n\r\n").damage == {}
    assert read(head(*rest, *other), b"hi\r\n\r\n").damage == {"doubled_header": 1}


def test_doubled_headers() -> None:
    equal = A.replace(b"Content-Type: text/plain\r\n", b"Content-Type: text/plain\r\n" * 2)
    read_damage({}, FIRST + SECOND, equal, B)
    other = A.replace(b"Content-Type: text/plain\r\n", b"WARC-Target-URI: http://other.example/\r\n" * 3)
    got = read_damage({"doubled_header": 1}, FIRST + SECOND, other, B)
    assert got.urls == ["http://first.example/", "http://second.example/"], "the first counts"


@pytest.mark.parametrize(("first", "second"), [(12, 3), (3, 12), (12, "x"), ("x", 12)])
def test_doubled_lengths(first: object, second: object) -> None:
    length = b"Content-Length: 12\r\n"
    assert length in A
    twice = A.replace(length, f"Content-Length: {first}\r\nContent-Length: {second}\r\n".encode())
    got = read(twice, B)
    assert [page.lines for page in got.pages] == [["first page."], ["second page."]]
    assert got.damage == {"doubled_header": 1} | ({} if first == 12 else {"bad_length": 1})


def test_bare_line_feeds() -> None:
    lf = A.replace(b"\r\n", b"\n")
    read_damage({"lf_header": 2}, FIRST * 2, lf, lf)
    assert read(lf, B, lf).damage == {"lf_header": 2}
    mixed = A.replace(b"WARC-Date: 2019-04-18T10:12:43Z\r\n", b"WARC-Date: 2019-04-18T10:12:43Z\n")
    read_damage({"lf_header": 1}, FIRST + SECOND, mixed, B)


def test_a_single_header_with_crlf_is_not_taken_for_bare_line_feeds() -> None:
    read_damage({"missing_header": 1}, FIRST, head("Content-Length: 2"), b"hi\r\n\r\n", A)


@pytest.mark.parametrize(
    ("gone", "damage", "texts"),
    [
        (b"Content-Length: 13\r\n", {"missing_header": 1}, [["first page."], ["second page."], ["third page."]]),
        (b"WARC-Type: conversion\r\n", {"missing_header": 1}, [["first page."], ["third page."]]),
        (b"WARC-Target-URI: http://second.example/\r\n", {}, [["first page."], ["second page."], ["third page."]]),
        (b"WARC-Date: 2019-04-18T10:12:43Z\r\n", {}, [["first page."], ["second page."], ["third page."]]),
    ],
)
def test_missing_headers(gone: bytes, damage: dict[str, int], texts: list[list[str]]) -> None:
    assert gone in B
    got = read(A, B.replace(gone, b""), C)
    assert got.damage == damage
    assert [page.lines for page in got.pages] == texts
    last = read(A, C, B.replace(gone, b""))
    assert last.damage == damage


def test_a_record_without_any_header() -> None:
    read_damage({"missing_header": 1}, FIRST + SECOND, A, b"WARC/1.0\r\n\r\nsome text\r\n\r\n", B)


def test_no_type_and_no_length_that_counts_are_both_told() -> None:
    read_damage({"missing_header": 1, "bad_length": 1}, FIRST, head("Content-Length: x"), b"hi\r\n\r\n", A)


def test_header_lines_without_a_colon() -> None:
    lines = B.replace(b"WARC-Date", b"no colon here\r\nnor here\r\nWARC-Date")
    read_damage({"bad_header": 1}, ALL, A, lines, C)


def test_headers_that_are_not_utf8() -> None:
    got = read_damage({"not_utf8": 1}, ALL, A, B.replace(b"http://second", b"http://\xff"), C)
    assert got.urls[1] == "http://\ufffd.example/"


def test_a_header_block_that_is_cut() -> None:
    at = B.index(b"WARC-Date")
    read_damage({"header_cut": 1}, FIRST + THIRD, A, B[:at], C)
    got = read_damage({"header_cut": 1}, FIRST + THIRD, A, B[: at + 7], C)
    assert got.urls == ["http://first.example/", "http://third.example/"], "no URL with another page's text"
    read_damage({"header_cut": 1}, FIRST, A, B[:at])
    read_damage({"header_cut": 1}, FIRST, A, B[:4] + b"/1.0\r\n")


def test_a_url_that_ends_like_a_version_line() -> None:
    url = "http://example.com/WARC/1.0"
    got = read(A, record("text\n", url), B)
    assert got.damage == {}
    assert got.urls[1] == url


def test_a_header_block_without_its_blank_line() -> None:
    blank = B.index(b"\r\n\r\n") + 2
    got = read(A, B[:blank] + B[blank + 2 :], C)
    assert got.texts[0] == ALL[0]
    assert got.texts[-1] == ALL[2]
    assert got.urls == ["http://first.example/", "http://second.example/", "http://third.example/"]
    assert got.texts[1] == ""
    assert got.damage == {"bad_header": 1, "bad_length": 1}


# Lengths


@pytest.mark.parametrize("length", [14, 18, 19, 30, 200, 12_345, 2**24 + 1, 2**31, 2**63, 2**64, 10**30, "9" * 5000])
def test_lengths_that_are_too_large(length: object) -> None:
    got = read(A, record("second page.\n", "http://second.example/", length), C)
    assert [page.lines for page in got.pages] == [["first page."], ["second page."], ["third page."]]
    # Up to the end of the separator a length is as good as right.
    assert got.damage == ({} if length in (14,) else {"bad_length": 1})
    assert got.urls == ["http://first.example/", "http://second.example/", "http://third.example/"]


@pytest.mark.parametrize("length", [0, 1, 5, 11])
@pytest.mark.parametrize("newline", ["\n", ""])
def test_lengths_that_are_too_small(length: int, newline: str) -> None:
    got = read(A, record("second page." + newline, length=length), C)
    assert got.damage == {"bad_length": 1}
    assert [page.lines for page in got.pages] == [["first page."], ["second page."], ["third page."]]


@pytest.mark.parametrize("length", ["-1", "-0", "+13", "13.0", "1e1", "0x0d", "13 13", "13, 13", "²", "١٣", "", "\0"])
def test_lengths_that_are_no_number(length: str) -> None:
    got = read(A, record("second page.\n", length=length), C)
    assert got.damage == {"bad_length": 1}
    assert [page.lines for page in got.pages] == [["first page."], ["second page."], ["third page."]]


@pytest.mark.parametrize("length", ["013", "0000000013", "13 ", "\t13"])
def test_lengths_in_another_spelling(length: str) -> None:
    read_damage({}, ALL, A, record("second page.\n", "http://second.example/", length), C)


@pytest.mark.parametrize("length", [1, 13, 17, 2**40, "x"])
def test_a_wrong_length_in_the_last_record(length: object) -> None:
    """At the end of the file a body counts as whole if the newlines that end a record are there."""
    whole = record("last.\nline\n", length=length)
    got = read(A, whole)
    assert [page.lines for page in got.pages] == [["first page."], ["last.", "line"]]
    assert got.damage in ({"bad_length": 1}, {})
    cut = read(A, whole[:-6])
    assert cut.texts == FIRST
    assert cut.damage in ({"record_cut": 1}, {"bad_length": 1, "record_cut": 1})


def test_a_length_that_leads_to_a_blank_line_of_a_later_record() -> None:
    """A wrong length may end where a separator stands by chance: the records before it are not swallowed."""
    later = record("one paragraph\r\n\r\nanother\n", "http://later.example/")
    wrong = len(b"first page.\n\r\n\r\n") + later.index(b"paragraph") + len(b"paragraph")
    got = read(record(ALL[0], "http://first.example/", wrong), later, C)
    assert got.damage == {"bad_length": 1}
    assert got.urls == ["http://first.example/", "http://later.example/", "http://third.example/"]
    assert got.pages[1].body == "one paragraph\r\n\r\nanother\n"


def test_a_length_that_leads_to_many_blank_lines_of_a_later_record() -> None:
    """They tell no more than one does, however many there are, and wherever what is held of them ends."""
    for count in (2, 100, 127, 128, 129, 200, 20_000):
        later = record("one paragraph" + "\r\n" * count + "another\n", "http://later.example/")
        wrong = len(b"first page.\n\r\n\r\n") + later.index(b"paragraph") + len(b"paragraph")
        got = read(record(ALL[0], "http://first.example/", wrong), later, C)
        assert got.damage == {"bad_length": 1}
        assert got.urls == ["http://first.example/", "http://later.example/", "http://third.example/"]


def test_a_page_about_this_format_is_not_cut() -> None:
    text = "How a record looks:\n\n" + A.decode() + "and so on.\r\n\r\n" + B.decode()
    for layout in (b"".join, lambda parts: b"".join(map(member, parts)), lambda parts: member(b"".join(parts))):
        got = read(layout([A, record(text, "http://format.example/"), C]))
        assert got.damage == {}
        assert got.texts == [ALL[0], text, ALL[2]]


def test_a_wrong_length_and_a_cut_in_mid_line() -> None:
    """A record that was cut off in mid-line: what follows begins in that line, and is found."""
    at = B.index(b"page")
    got = read(A, B[:at], C)
    assert got.damage == {"bad_length": 1}
    assert got.texts == [ALL[0], "second ", ALL[2]]


# Bytes


@pytest.mark.parametrize(
    "end", [b"", b"\r\n", b"\r\n\r", b"\r\n\r\n", b"\n", b"\n\n", b"\r\n" * 1000, b"\r\r", b"\r" * 999]
)
def test_newlines_at_the_end_of_the_file_and_between_records(end: bytes) -> None:
    read_damage({}, FIRST + SECOND, A, B[:-4] + end)
    read_damage({}, FIRST + SECOND, A[:-4] + end, B)
    read_damage({}, FIRST + SECOND, end + A, B)


@pytest.mark.parametrize(
    "junk",
    [
        b"junk",
        b"junk\r\n\r\n",
        b"WARC\n",
        b"WARC/0.9\r\nWARC-Type: conversion\r\n\r\n",
        b"\0" * 70_000,
        b"\xff\xfe\n",
        b"WARC/1.0",
        b"a\n" * 40_000,
    ],
)
def test_junk(junk: bytes) -> None:
    read_damage({"junk": 1}, FIRST + SECOND, junk, A, B)
    read_damage({"junk": 1}, FIRST + SECOND, A, junk, B)
    read_damage({"junk": 1}, FIRST + SECOND, A, B, junk)
    read_damage({"junk": 2}, FIRST, junk, A, junk)
    read_damage({"junk": 1}, [], junk)


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n" * 500, member(b""), member(b"") * 3, member(b"\n")])
def test_files_without_a_record(data: bytes) -> None:
    read_damage({"empty_file": 1}, [], data)


def test_a_file_of_other_records_is_not_empty() -> None:
    read_damage({}, [], INFO)


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"caf\xe9"])
def test_bodies_that_are_not_utf8(bad: bytes) -> None:
    body = b"before " + bad + b" behind\n"
    got = read(A, record(body), B)
    assert got.damage == {"not_utf8": 1}
    assert got.texts == [ALL[0], body.decode("utf-8", "replace"), ALL[1]]
    assert got.pages[1].size == len(body)


def test_nul_bytes() -> None:
    read_damage({}, ["\0a\0\n\0", *FIRST], record("\0a\0\n\0"), A)


@pytest.mark.parametrize("text", ["", "\n", "\r\n\r\n", "\n\n\n", "x", " ", "\ufeff", "\r", "a\r\n\r\n\r\n\r\n"])
def test_bodies_of_little(text: str) -> None:
    read_damage({}, [text, *FIRST, text], record(text), A, record(text))


# Caps


@pytest.fixture
def small_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "HEADER_CAP", 1000)
    monkeypatch.setattr(records, "RECORD_CAP", 2000)


@pytest.mark.usefixtures("small_caps")
@pytest.mark.parametrize("size", [1001, 40_000, 400_000])
def test_a_header_block_that_is_too_large(size: int) -> None:
    large = B.replace(b"WARC-Date", b"X-Large: " + b"x" * size + b"\r\nWARC-Date")
    read_damage({"header_too_large": 1}, FIRST + THIRD, A, large, C)
    read_damage({"header_too_large": 1}, FIRST + THIRD, member(A), member(large), member(C))
    read_damage({"header_too_large": 1}, FIRST, A, large)
    read_damage({"header_too_large": 1}, FIRST, A, b"WARC/1.0\r\n" + b"x" * size)


@pytest.mark.usefixtures("small_caps")
def test_a_header_block_of_the_largest_size() -> None:
    large = B.replace(b"WARC-Date", b"X-Large: " + b"x" * 600 + b"\r\nWARC-Date")
    read_damage({}, ALL, A, large, C)


@pytest.mark.usefixtures("small_caps")
@pytest.mark.parametrize("size", [2001, 2300, 40_000, 1_000_000])
@pytest.mark.parametrize("length", [None, "x", 2**63])
def test_a_body_that_is_too_large(size: int, length: object) -> None:
    large = record("x" * size, length=length)
    lost = {"record_too_large": 1} | ({"bad_length": 1} if length == "x" else {})
    read_damage(lost, FIRST + THIRD, A, large, C)
    read_damage(lost, FIRST + THIRD, member(A), member(large), member(C))
    read_damage(lost, FIRST, A, large)


@pytest.mark.usefixtures("small_caps")
def test_a_body_of_the_largest_size() -> None:
    text = "x" * 2000
    read_damage({}, [ALL[0], text, ALL[2]], A, record(text), C)


# What damage costs


def lost(kind: str, before: bytes, data: bytes) -> Damage:
    """All of `data`, which is behind `before`."""
    return Damage(kind, len(before), len(data), data[:FIRST_BYTES])


def kept(kind: str, before: bytes) -> Damage:
    """Nothing."""
    return Damage(kind, len(before))


NO_TYPE = B.replace(b"WARC-Type: conversion\r\n", b"")
NO_LENGTH_LINE = B.replace(b"Content-Length: 13\r\n", b"")
CUT_HEADER = B[: B.index(b"WARC-Date") + 7]
TWICE = B.replace(b"Content-Type: text/plain\r\n", b"Content-Type: a\r\n b\r\nContent-Type: c\r\n")
ODD = b"no colon here\r\nWARC-Date: 2019-04-18T10:12:43Z\r\nnor\xff\r\n\there\r\n"
LARGE_HEADER = B.replace(b"WARC-Date", b"X-Large: " + b"x" * 40_000 + b"\r\nWARC-Date")
LARGE = record("x" * 40_000, length="x")
GARBAGE = "Ein Stück Müll: ".encode() * 5000


@pytest.mark.usefixtures("small_caps")
@pytest.mark.parametrize(
    ("parts", "losses"),
    [
        pytest.param([A, GARBAGE, B], [lost("junk", A, GARBAGE)], id="junk"),
        pytest.param([A, b"j"], [lost("junk", A, b"j")], id="junk at the end"),
        pytest.param([A, b"\r\nj\r\n", B], [lost("junk", A + b"\r\n", b"j\r\n")], id="newlines about junk"),
        pytest.param([A, B[:90]], [lost("header_cut", A, B[:90])], id="header_cut at the end"),
        pytest.param([A, b"WARC/1.0\r\n", C], [lost("header_cut", A, b"WARC/1.0\r\n")], id="header_cut before a line"),
        pytest.param([A, CUT_HEADER, C], [lost("header_cut", A, CUT_HEADER)], id="header_cut in a line"),
        pytest.param([A, LARGE_HEADER, C], [lost("header_too_large", A, LARGE_HEADER)], id="header_too_large"),
        pytest.param([A, B.replace(b"\r\n", b"\n"), C], [kept("lf_header", A)], id="lf_header"),
        pytest.param(
            [A, B.replace(b"WARC-Date: 2019-04-18T10:12:43Z\r\n", ODD)],
            [kept("not_utf8", A), Damage("bad_header", len(A), 24, b"no colon here")],
            id="bad_header",
        ),
        pytest.param([A, TWICE], [Damage("doubled_header", len(A), 15, b"Content-Type: c")], id="doubled_header"),
        pytest.param([A, NO_TYPE, C], [lost("missing_header", A, NO_TYPE[:-4])], id="no type"),
        pytest.param([A, NO_LENGTH_LINE, C], [kept("missing_header", A)], id="no length"),
        pytest.param(
            [A, NO_TYPE.replace(b"WARC-Date", b"\r\nWARC-Date")[:-9]],
            [kept("missing_header", A), lost("record_cut", A, NO_TYPE.replace(b"WARC-Date", b"\r\nWARC-Date")[:-9])],
            id="no type, and cut",
        ),
        pytest.param([A, record(length=2), C], [kept("bad_length", A)], id="bad_length"),
        pytest.param([A, B[:-9]], [lost("record_cut", A, B[:-9])], id="record_cut"),
        pytest.param([A, LARGE, C], [kept("bad_length", A), lost("record_too_large", A, LARGE)], id="record_too_large"),
        pytest.param([A, record(b"caf\xe9"), C], [kept("not_utf8", A)], id="not_utf8"),
        pytest.param([b"\r\n"], [kept("empty_file", b"\r\n")], id="empty_file"),
    ],
)
def test_what_damage_costs(parts: list[bytes], losses: list[Damage]) -> None:
    data = b"".join(parts)
    for layout in (data, member(data), b"".join(map(member, parts))):
        assert read(layout).losses == losses


@pytest.mark.parametrize("second", [C, C.replace(b"Content-Type: text/plain", b"no colon")])
def test_damage_behind_a_header_that_is_cut_in_mid_line_is_told_where_it_is(second: bytes) -> None:
    got = read(A, CUT_HEADER, second.replace(b"\r\n", b"\n"), B)
    before = A + CUT_HEADER
    odd = [Damage("bad_header", len(before), 8, b"no colon")] if b"no colon" in second else []
    assert got.losses == [lost("header_cut", A, CUT_HEADER), kept("lf_header", before), *odd]


def test_what_gaps_cost() -> None:
    """A gap has the plain bytes that it dropped, or stored ones that are no member's. They are in no offset."""
    a, c = member(A), member(C)
    data = member(B)
    assert read(a, flipped(data, len(data) - 1), c).losses == [lost("gzip_corrupt", A, B)]
    assert read(a, data[:20], c).losses[0]._replace(length=0, first=b"") == kept("gzip_corrupt", A)
    assert read(a, data[:-1]).losses == [kept("gzip_cut", A + B)]
    assert read(a, GARBAGE, c, b"end").losses == [lost("gzip_junk", A, GARBAGE), lost("gzip_junk", A + C, b"end")]
    cut = a + member(LONG)[:4000]
    plain = b"".join(piece for piece in inflate(io.BytesIO(cut)) if isinstance(piece, bytes))
    assert read(cut).losses == [lost("record_cut", A, plain[len(A) :]), kept("gzip_cut", plain)]


# Gzip


def test_one_member_each_or_all_in_one_or_plain() -> None:
    parts = [INFO, A, B, C]
    expected = read(*parts)
    assert expected.texts == ALL
    for data in (b"".join(map(member, parts)), member(b"".join(parts)), member(INFO + A) + member(B + C)):
        assert same(read(data), expected)


def test_a_record_over_two_members() -> None:
    read_damage({}, ALL, member(A + B[:100]), member(B[100:] + C))


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


LONG = record("".join(f"line {number * 7919 % 10007}\n" for number in range(3000)), "http://long.example/")


def test_a_member_cut_in_the_middle_of_the_file() -> None:
    cut = member(LONG)
    for size in (30, 500, len(cut) // 2, len(cut) - 9):
        got = read(member(A), cut[:size], member(B), member(C))
        assert got.texts == ALL
        assert got.damage.pop("gzip_corrupt") == 1
        assert got.damage.keys() <= {"record_cut", "header_cut"}, "how far isal gets is its own affair"


def test_a_member_cut_at_the_end_of_the_file() -> None:
    cut = member(LONG)
    read_damage({"gzip_cut": 1, "record_cut": 1}, FIRST, member(A), cut[: len(cut) // 2])
    whole = read(member(A), cut[:-1])
    assert whole.urls == ["http://first.example/", "http://long.example/"], "only its checksum is cut"
    assert whole.damage == {"gzip_cut": 1}


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_flipped_bytes_in_a_member(share: float) -> None:
    damaged = member(LONG)
    damaged = flipped(damaged, int(len(damaged) * share))
    read_damage({"gzip_corrupt": 1}, ALL, member(A), damaged, member(B), member(C))


def test_a_checksum_that_fails() -> None:
    for at in (-8, -1):
        damaged = member(B)
        damaged = flipped(damaged, len(damaged) + at)
        read_damage({"gzip_corrupt": 1}, FIRST + THIRD, member(A), damaged, member(C))


def test_damage_late_in_a_member_of_many_records_keeps_those_before_it() -> None:
    texts = [f"{zlib.crc32(b'%d' % number)} is the text of page {number}\n" for number in range(200)]
    data = member(b"".join(record(text, f"http://{number}.example/") for number, text in enumerate(texts)))
    for share in (0.5, 0.8, 0.95):
        got = read(flipped(data, int(len(data) * share)), member(A))
        kept = int(200 * share) - 20
        assert got.texts[:kept] == texts[:kept]
        assert got.texts[-1] == ALL[0]
        assert got.damage.pop("gzip_corrupt") == 1


def test_zeros_and_junk_between_members() -> None:
    a, b, c = member(A), member(B), member(C)
    read_damage({}, ALL, a, b"\0" * 512, b, b"\0" * 100_000, c, b"\0" * 10)
    read_damage({"gzip_junk": 1}, ALL, a, b"junk", b, c)
    read_damage({"gzip_junk": 2}, ALL, a, b"junk", b, b"j" * 100_000, c)
    read_damage({"gzip_junk": 1}, ALL, a, b, c, b"junk")
    read_damage({"gzip_junk": 1}, ALL, b"junk", a, b, c)
    read_damage({"gzip_junk": 1}, SECOND + THIRD, a[10:], b, c)


def test_a_plain_file_with_a_gzip_member_as_a_body() -> None:
    inner = member(b"inner")
    got = read(A, head("WARC-Type: response", f"Content-Length: {len(inner)}"), inner, b"\r\n\r\n", B)
    assert got.texts == FIRST + SECOND
    assert got.damage == {}


@pytest.mark.parametrize("most", [1, 2, 3, 100, 5000])
def test_short_reads(most: int) -> None:
    a, b, c = member(A), member(B), member(LONG)
    for data in (A + LONG + b"junk" + B[:60] + C, a + c + b"junk" + b[:-20] + flipped(c, 500) + b):
        short, full = outcome(read_pages(Trickle(data, most))), read(data)
        assert same(short, full)
        assert short.damage


def read_damage(damage: dict[str, int], texts: list[str], *parts: bytes) -> Outcome:
    """Reads the parts, and checks damage and texts."""
    got = read(*parts)
    assert got.damage == damage
    assert got.texts == texts
    return got


def same(one: Outcome, other: Outcome) -> bool:
    return one.losses == other.losses and list(map(vars, one.pages)) == list(map(vars, other.pages))


# Anything

WARC_LIKE = st.sampled_from(
    ["WARC/1.0\r\n", "WARC-Type: conversion\r\n", "Content-Length: 3\r\n", "\r\n", "\r\n\r\n", "\n", A.decode()]
)
TEXTS = st.lists(
    st.one_of(st.text(max_size=60), st.lists(st.one_of(WARC_LIKE, st.text(max_size=8)), max_size=8).map("".join)),
    max_size=6,
)
LAYOUTS: dict[str, Callable[[list[bytes]], bytes]] = {
    "plain": b"".join,
    "members": lambda parts: b"".join(map(member, parts)),
    "member": lambda parts: member(b"".join(parts)),
}
MODERATE = settings(derandomize=True, deadline=None, max_examples=300)
THOROUGH = settings(derandomize=True, deadline=None, max_examples=600)


def joined_records(texts: list[str]) -> list[bytes]:
    return [record(text, f"http://{number}.example/") for number, text in enumerate(texts)]


def pairs(got: Outcome) -> list[tuple[str, str]]:
    return [(page.url, page.body) for page in got.pages]


def expected(texts: list[str]) -> list[tuple[str, str]]:
    return [(f"http://{number}.example/", text) for number, text in enumerate(texts)]


@MODERATE
@given(texts=TEXTS, layout=st.sampled_from(sorted(LAYOUTS)), most=st.sampled_from([1, 3, 50, 10**6]))
@example(texts=["x" * 300_000, "", "y" * 70_000], layout="member", most=100_000)
def test_whatever_is_written_is_read_exactly(texts: list[str], layout: str, most: int) -> None:
    got = outcome(read_pages(Trickle(LAYOUTS[layout](joined_records(texts)), most)))
    assert got.damage == ({} if texts else {"empty_file": 1})
    assert pairs(got) == expected(texts)


SCRAPS = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(
        [
            *(b"WARC/1.0\r\n", b"WARC-Type: conversion\r\n", b"Content-Length: 5\r\n", b"content-length: 99\r\n"),
            *(b"\r\n", b"\n", b"\r\n\r\n", b"\n ", b":", b"hello", b"WARC-", b"\x1f\x8b\x08", b"\x1f\x8b\x08\0"),
            *(A, B[:-4], member(A), member(B)[:-8], member(C)[10:], b"\0" * 300),
        ]
    ),
)


@THOROUGH
@given(scraps=st.lists(SCRAPS, max_size=20), zipped=st.booleans())
def test_any_bytes_end_without_an_error(scraps: list[bytes], zipped: bool) -> None:
    data = b"".join(scraps)
    data = member(data) if zipped else data
    got = read(data)
    assert got.pages or got.damage or b"WARC" in data or zipped
    assert same(outcome(read_pages(Trickle(data, 7))), got)


class Hit(NamedTuple):
    """Damage: the bytes from `start` to `end` become `new`."""

    kind: str
    share: float
    size: int
    new: bytes

    def place(self, data: bytes) -> tuple[int, int]:
        start = min(int(self.share * len(data)), len(data) - 1)
        if self.kind == "truncation":
            return start, len(data)
        return start, start if self.kind == "insertion" else min(len(data), start + self.size)

    def strike(self, data: bytes) -> bytes:
        start, end = self.place(data)
        new = b"" if self.kind in ("truncation", "deletion") else self.new
        if self.kind == "overwriting":
            new = (new * self.size)[: end - start]
        return data[:start] + new + data[end:]


HITS = st.builds(
    Hit,
    st.sampled_from(["deletion", "insertion", "overwriting", "truncation"]),
    st.floats(0, 1, exclude_max=True),
    st.one_of(st.integers(1, 12), st.integers(1, 700)),
    st.binary(min_size=1, max_size=30),
)


def offsets(parts: list[bytes]) -> list[int]:
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part))
    return ends


def untouched(parts: list[bytes], hit: Hit) -> tuple[int, int]:
    """How many parts end before the damage, and how many begin behind it."""
    start, end = hit.place(b"".join(parts))
    ends = offsets(parts)
    return sum(at <= start for at in ends[1:]), sum(at >= end for at in ends[:-1])


def is_about_warc(text: str) -> bool:
    return "WARC/1." in text


@pytest.mark.slow
@THOROUGH
@given(texts=TEXTS.filter(bool), hit=HITS)
def test_damage_in_a_plain_file_stays_where_it_is(texts: list[str], hit: Hit) -> None:
    """All records before the damage and all behind it come out exactly.

    But for two things that no reader could tell: the last before it, if it has a record in its text and the
    version line behind it is damaged; and the first behind it, if the damage took all that lay between it
    and another one's header.
    """
    parts = joined_records(texts)
    before, behind = untouched(parts, hit)
    got = pairs(read(hit.strike(b"".join(parts))))
    if before and is_about_warc(texts[before - 1]):
        before -= 1
    assert got[:before] == expected(texts)[:before]
    behind = max(0, behind - 1)
    assert behind == 0 or got[-behind:] == expected(texts)[-behind:]


@pytest.mark.slow
@THOROUGH
@given(texts=TEXTS.filter(bool), hit=HITS)
def test_damage_in_a_file_of_a_member_each_costs_only_what_it_touches(texts: list[str], hit: Hit) -> None:
    """All members before the damage and all behind it come out exactly, and no page comes out changed.

    But for a damaged record with another one in its text: it may be cut there, and what follows taken for one.
    """
    members = [member(part) for part in joined_records(texts)]
    before, behind = untouched(members, hit)
    got = pairs(read(hit.strike(b"".join(members))))
    intact = expected(texts)
    assert got[:before] == intact[:before]
    touched = intact[before : len(texts) - behind]
    if not any(is_about_warc(text) for _, text in touched):
        assert got[before : len(got) - behind] in ([], *([page] for page in touched))
    assert behind == 0 or got[-behind:] == intact[-behind:]


@THOROUGH
@given(texts=TEXTS.filter(bool), hit=HITS)
def test_damage_in_a_file_of_one_member_spares_what_was_inflated_before_it(texts: list[str], hit: Hit) -> None:
    """All records in the plain bytes before the damage but the last come out exactly."""
    parts = joined_records(texts)
    data = member(b"".join(parts))
    start, _ = hit.place(data)
    plain = zlib.decompressobj(31).decompress(data[:start])
    before = max(0, sum(at <= len(plain) for at in offsets(parts)[1:]) - 1)
    got = read(hit.strike(data))
    assert pairs(got)[:before] == expected(texts)[:before]


@pytest.mark.parametrize(
    "starts",
    [b"\x1f\x8b\x08\0" * 2**16, b"\x1f\x8b\x08\x08" * 2**16, b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\xff\xff" * 2**14],
    ids=["bare", "with a name", "with an extra field"],
)
def test_a_file_of_false_starts_takes_no_quadratic_time(starts: bytes) -> None:
    began = time.process_time()
    read_damage({"gzip_corrupt": 1}, FIRST, member(A), starts)
    assert time.process_time() - began < 20
    print(time.process_time() - began)


# Memory

BOMB = """
import io, re, sys, time, zlib
from pathlib import Path
from c4pipe.wet.records import Damage, read_pages

def peak():  # in kB; getrusage's would be the parent's
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def bomb(head, filler, size):
    chunk = filler * (2**20 // len(filler))
    flushed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = flushed.compress(chunk) + flushed.flush(zlib.Z_FULL_FLUSH)
    first = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = first.compress(head) + first.flush(zlib.Z_FULL_FLUSH)
    crc, count = zlib.crc32(head), size // len(chunk)
    for _ in range(count):
        crc = zlib.crc32(chunk, crc)
    length = len(head) + count * len(chunk)
    tail = crc.to_bytes(4, "little") + (length % 2**32).to_bytes(4, "little")
    return b"\\x1f\\x8b\\x08" + b"\\0" * 6 + b"\\xff" + start + body * count + b"\\x03\\0" + tail

head, filler, good = (bytes.fromhex(word) for word in sys.argv[2:])
data = bomb(head, filler, int(sys.argv[1]) * 2**20)
stream = io.BytesIO(data + good)
before, began = peak(), time.process_time()
items = [(item.kind if isinstance(item, Damage) else item.body) for item in read_pages(stream)]
growth = peak() - before
print(len(data), growth // 1024, round(time.process_time() - began, 2), items)
"""
CLAIM = head("WARC-Type: conversion", f"Content-Length: {2**63}")
NO_LENGTH = head("WARC-Type: conversion", "Content-Length: ?")


@pytest.mark.parametrize(
    ("start", "filler", "megabytes", "damage"),
    [
        pytest.param(b"", b"\0", 1024, ["junk"], id="zeros"),
        pytest.param(b"", b"\r\n", 128, [], id="newlines"),
        pytest.param(CLAIM, b"\0", 1024, ["record_too_large"], id="record of 2^63 bytes"),
        pytest.param(CLAIM, b"\n", 256, ["record_too_large"], id="record of newlines"),
        pytest.param(NO_LENGTH, b"x\n", 256, ["bad_length", "record_too_large"], id="record without a length"),
        pytest.param(CLAIM[:-2], b"X: y\n", 256, ["header_too_large"], id="header block"),
        pytest.param(CLAIM[:-2] + b"X:", b" ", 256, ["header_too_large"], id="header line"),
        pytest.param(b"", b"WARC/1.0\r\n", 128, ["header_too_large"], id="version lines"),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_a_gzip_bomb_fills_no_memory(start: bytes, filler: bytes, megabytes: int, damage: list[str]) -> None:
    words = [str(megabytes), *(word.hex() for word in (start, filler, member(A)))]
    run = subprocess.run([sys.executable, "-c", BOMB, *words], capture_output=True, text=True, check=True)
    size, growth, seconds, items = run.stdout.split(maxsplit=3)
    assert int(size) < 6_000_000
    assert int(growth) < 150, "MB"
    assert float(seconds) < 20, "CPU; a few on a fast machine"
    assert items.strip() == str([*damage, ALL[0]])
    print(growth, seconds)
