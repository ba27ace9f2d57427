"""The record reader on headers of every kind, and on lengths that are wrong."""

import io
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from c4pipe.io.gzip_members import is_version
from c4pipe.native import text_kernel
from c4pipe.wet import records
from c4pipe.wet.damage import HEADER_CAP, RECORD_CAP, Damage
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages, read_records
from tests.helpers.wet import head, record
from tests.helpers.wet_reading import ALL, FIRST, INFO, SECOND, THIRD, A, B, C, read, read_damage
from tests.helpers.wet_writer import gzip_member as member

_text: Any = text_kernel


def test_brackets_around_a_url_are_no_part_of_it() -> None:
    """As older writers of WARC 1.0 have it."""
    assert read(record(url="<http://br.example/a>"), B).urls == ["http://br.example/a", "http://second.example/"]


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


VERSIONS = [
    *(b"WARC/1.0", b"WARC/1.1", b"WARC/1.0 ", b"WARC/1.0\t"),
    *(b"warc/1.0", b"Warc/1.1", b"WARC/0.17", b"warc/0.18"),
]


@pytest.mark.parametrize("version", VERSIONS)
def test_version_lines(version: bytes) -> None:
    data = A + B.replace(b"WARC/1.0", version) + C
    read_damage({}, ALL, data)
    assert read(b"junk\n", data).texts == ALL
    assert read(data[10:]).texts == ALL[1:]
    whole = data.replace(b"WARC/1.0", version)
    read_damage({}, ALL, whole)
    for cut in (whole[: -len(C) + 4], member(whole[: -len(C) + 4])):
        assert read(cut).texts == ALL[:2]
    damaged = bytearray(b"".join(map(member, (whole[: len(A)], whole[len(A) :]))))
    damaged[-30] ^= 1
    assert read(bytes(damaged)).texts[:1] == FIRST


@pytest.mark.parametrize("version", [b"WARC/2.0", b"WARC/0.9", b"WARC/0.16", b"WARC/1.", b"WARD/1.0"])
def test_lines_that_are_no_version(version: bytes) -> None:
    read_damage({"junk": 1}, [ALL[0], ALL[2]], A + B.replace(b"WARC/1.0", version) + C)


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
    assert got.damage == {"bad_length": 1}
    assert got.urls == ["http://first.example/", "http://second.example/", "http://third.example/"]


@pytest.mark.parametrize("error", [-3, -2, -1, 0, 1, 2, 3, 4])
@pytest.mark.parametrize("text", ["second page.\n", "second page.", "a\n\nb\n\n"])
@pytest.mark.parametrize("line_end", [b"\r\n", b"\n"])
def test_a_body_has_no_part_of_the_newlines_behind_it(error: int, text: str, line_end: bytes) -> None:
    """A length that is wrong by a few bytes ends inside of these newlines, or leaves the text's own to them."""
    data = record(text, "http://second.example/", len(text) + error).replace(b"\r\n", line_end)
    for parts in ([A, data, C], [A, data], [data]):
        for got in (read(*parts), read(*map(member, parts))):
            assert text in got.texts
            assert "http://second.example/" in got.urls
            assert got.damage.pop("lf_header", 1) == 1
            assert got.damage == ({"bad_length": 1} if error else {})


@pytest.mark.parametrize("text", ["second page.\n", "second page."])
@pytest.mark.parametrize("between", [b"", b"\r\n", b"\r\n" * 3])
def test_writers_with_other_newlines_between_records(text: str, between: bytes) -> None:
    read_damage({}, [text, text, *FIRST], *[record(text).removesuffix(b"\r\n\r\n") + between] * 2, A)


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
    if length == 1:  # all of it is there, and more
        read_damage({"bad_length": 1}, [*FIRST, "last.\nlin"], A, whole[:-6])
    else:
        assert cut.texts == FIRST
        assert cut.damage in ({"record_cut": 1}, {"bad_length": 1, "record_cut": 1})


@pytest.mark.parametrize("length", [0, 1, 7, 20, 4000, 2**40, "x", None])
@pytest.mark.parametrize("text", ["The last page.", "The last page.\n", "Sie sagte: „Ende.”", "A title", "A title\n"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r\n\r"])
def test_the_last_record_without_its_blank_line(length: object, text: str, end: str) -> None:
    """Nothing of it is missing: its digest says so, the end of its sentence, or that it is longer than claimed."""
    last = record(text, "http://last.example/", length).removesuffix(b"\r\n\r\n")
    if length is None:
        last = last.replace(b"Content-Length: %d\r\n" % len(text.encode()), b"")
    for digest in (b"WARC-Block-Digest", b"X-Digest"):
        data = last.replace(b"WARC-Block-Digest", digest) + end.encode()
        if digest.startswith(b"X") and "title" in text and length not in (0, 1):
            continue
        kind = "missing_header" if length is None else "bad_length"
        for layout in (A + data, member(A + data), member(A) + member(data), member(A) + member(data) + b"junk"):
            got = read(layout)
            assert [page.lines for page in got.pages] == [["first page."], [text.strip()]]
            assert got.damage.pop(kind, 0) == 1 or length in range(
                len(text.strip().encode()), len(text.encode() + end.encode()) + 1
            )
            assert got.damage in ({}, {"gzip_junk": 1})


def test_the_pages_of_tensorflow_datasets_own_test_files() -> None:
    """As they are: Content-Length of other pages, and no newline behind the last record."""
    text = "This page is longer than 4 bytes.\nAnd one more sentence to make this long enough."
    header = ("WARC-Type: conversion", "WARC-Date: 2019-04-18T10:38:25Z", "WARC-Block-Digest: sha1:XFU7ISMKJHM3VU3B")
    for length in (4, 19621):
        data = head(*header, f"Content-Length: {length}") + text.encode()
        got = read(data.replace(b"\r\n", b"\n"))
        assert got.texts == [text]
        assert got.damage == {"lf_header": 1, "bad_length": 1}


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


PIECES = [
    *(b"WARC/1.0\r\n", b"WARC-Type", b"warc-type", b"Content-Length", b"X-Name", b": ", b":", b" : ", b"12"),
    *(b"conversion", b"\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b"\x1c", b"\x7f", "é\u2003".encode(), b"\xff"),
    *(b"x" * 70, b"9" * 19, b"\r\n" * 124, b"\n" * 249, b"x" * 130_000, A, B),
]
USUAL = b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length:  12 \r\nX-Name : a : b\r\n\r\ntwelve bytes\r\n\r\n"


@pytest.mark.needs("extensions")
@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join), st.integers(0, len(USUAL)), st.integers(1, 3))
@example(b"", 0, 1)
def test_records_that_are_split_at_once_are_what_the_reader_returns(pieces: bytes, place: int, behind: int) -> None:
    data = A + A + USUAL[:place] + pieces + USUAL[place:] + B * behind
    split, size = _text.plain_records(bytearray(data), 7, HEADER_CAP, RECORD_CAP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "text_kernel", None)
        items = list(read_records(io.BytesIO(data)))
    assert split
    assert [(fields, body, offset - 7) for fields, body, offset in split] == items[: len(split)]
    assert is_version(data[size : size + 7])
    if pieces:
        return
    assert len(split) == 2 + behind, "each but the last, whose end may be in the bytes behind it"
    for cut in range(0, len(A), 7):
        assert _text.plain_records(data[:cut], 0, HEADER_CAP, RECORD_CAP) == ([], 0)


@pytest.mark.needs("extensions")
def test_usual_records_are_split_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[int] = []
    read_record = records._RecordReader.read_record

    def counted(reader: records._RecordReader) -> Iterator[records.WarcRecord | Damage]:
        starts.append(reader.offset)
        return read_record(reader)

    monkeypatch.setattr(records._RecordReader, "read_record", counted)
    bodies = [b"x" * (997 * number % 50_000) for number in range(100)]
    data = b"".join(map(record, bodies))
    got = [page.encoded for page in read_pages(io.BytesIO(data)) if isinstance(page, Page)]
    assert got == bodies
    assert starts == [len(data) - len(record(bodies[-1]))], "only the last one, behind which the file ends"


@pytest.mark.needs("extensions")
def test_limits_of_records_that_are_split_at_once() -> None:
    header, body = A.index(b"\r\n\r\n") + 4, len(ALL[0])

    def count(data: bytes, most_header: int, most_body: int) -> int:
        return len(_text.plain_records(data + B, 0, most_header, most_body)[0])

    assert count(A, header, body) == 1
    assert count(A, header - 1, body) == count(A, header, body - 1) == 0
    for most in (-(2**63), -1, 0):
        assert count(A, 1000, most) == count(A, most, 1000) == 0
    for length in (2**63 - 1, 2**63, 2**64 + 12, "", "1_2", "+12"):
        assert count(A.replace(b"Length: 12", f"Length: {length}".encode()), 1000, 2**63 - 1) == 0
    assert count(A.replace(b"Length: 12", b"Length: " + b"12".zfill(19)), 1000, 2**63 - 1) == 1
    assert count(A.replace(b"Length: 12", b"Length: " + b"12".zfill(20)), 1000, 2**63 - 1) == 0
    assert [count(A[:-4] + end, 1000, 1000) for end in (b"", b"\r\n", b"\n\n", b"\r\n" * 3)] == [0, 0, 0, 0]
