"""The record reader on damaged files: what is read, which damage is reported, and what it cost."""

import io
import zlib

import pytest

from c4pipe.io.gzip_members import FIRST_BYTES, inflate
from c4pipe.wet import records
from c4pipe.wet.damage import Damage
from c4pipe.wet.records import read_pages
from tests.helpers.streams import Trickle
from tests.helpers.wet import head, record
from tests.helpers.wet_reading import (
    ALL,
    FIRST,
    INFO,
    LONG,
    SECOND,
    THIRD,
    A,
    B,
    C,
    flipped,
    outcome,
    read,
    read_damage,
    same,
)
from tests.helpers.wet_writer import gzip_member as member


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


def test_a_member_cut_in_the_middle_of_the_file() -> None:
    cut = member(LONG)
    for size in (30, 500, len(cut) // 2, len(cut) - 12):
        got = read(member(A), cut[:size], member(B), member(C))
        assert got.texts == ALL
        assert got.damage.pop("gzip_corrupt") == 1
        assert got.damage.keys() <= {"record_cut", "header_cut"}, "how far isal gets is its own affair"


def test_a_member_cut_in_its_last_bytes_gives_its_record_whole_or_not_at_all() -> None:
    cut, long = member(LONG), read(LONG).texts
    for lacks in range(1, 20):
        got = read(member(A), cut[:-lacks], member(B), member(C))
        assert got.texts in (ALL, [ALL[0], *long, *ALL[1:]])
        assert got.damage["gzip_corrupt"] == 1


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
