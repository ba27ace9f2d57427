"""The provenance of pages: offset and length lead back to the record, in any file and whatever reads it."""

import gzip
import io
from typing import Any

import pytest
import zstandard

from c4pipe.io.gzip_members import Members, inflate
from c4pipe.wet import records
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.streams import Trickle

INFO = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 28\r\n\r\nisPartOf: CC-MAIN-2024-10\r\n \r\n\r\n"


def record(number: int, size: int = 200) -> bytes:
    body = (f"Page {number}. " * size).encode()
    return (
        (
            f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: https://example.com/{number}\r\n"
            f"WARC-Date: 2024-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:own-{number}>\r\n"
            f"WARC-Refers-To: <urn:uuid:{number}>\r\nWARC-Block-Digest: sha1:{number}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode()
        + body
        + b"\r\n\r\n"
    )


SIZES = (3, 200, 1, 60_000, 2)  # the fourth has several pieces
ALL = [INFO, *(record(number, size) for number, size in enumerate(SIZES))]


def extras(data: bytes, most: int = 1 << 20) -> list[Any]:
    return [item.extra for item in read_pages(Trickle(data, most), "a.wet") if isinstance(item, Page)]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
@pytest.mark.parametrize("most", [7, 1000, 1 << 20])
@pytest.mark.parametrize("in_c", [True, False])
def test_each_member_is_the_record_of_its_page(
    monkeypatch: pytest.MonkeyPatch, compress: Any, most: int, in_c: bool
) -> None:
    if not in_c:
        monkeypatch.setattr(records, "text_kernel", None)
    members = [compress(each) for each in ALL]
    data = b"".join(members)
    found = extras(data, most)
    assert len(found) == len(SIZES)
    for number, extra in enumerate(found):
        start, length = extra.pop("record_offset"), extra.pop("record_length")
        assert data[start : start + length] == members[number + 1]
        assert extra == {
            "crawl": "CC-MAIN-2024-10",
            "warc_file": "a.wet",
            "warc_record_id": f"<urn:uuid:{number}>",
            "digest": f"sha1:{number}",
        }


def test_a_record_that_no_whole_member_begins_with_has_no_place() -> None:
    one = extras(gzip.compress(b"".join(ALL)))
    assert [(each["record_offset"], each["record_length"]) for each in one] == [(None, None)] * len(SIZES)
    members = [gzip.compress(each) for each in ALL]
    members[2] = gzip.compress(ALL[2])[:-8] + bytes(8)  # a false checksum
    places = {each["warc_record_id"]: each["record_offset"] for each in extras(b"".join(members))}
    before = [sum(map(len, members[: number + 1])) for number in range(len(SIZES))]
    for number in (0, 2, 3, 4):
        assert places[f"<urn:uuid:{number}>"] == before[number]
    assert places.get("<urn:uuid:1>") is None


def test_junk_and_empty_members_move_no_offset() -> None:
    parts = [gzip.compress(INFO), gzip.compress(b""), gzip.compress(record(0)), b"junk" * 9, gzip.compress(record(1))]
    data = b"".join(parts)
    for number, extra in zip((0, 1), extras(data), strict=True):
        start = extra["record_offset"]
        assert gzip.decompress(data[start : start + extra["record_length"]]) == record(number)


def test_a_plain_file_has_offsets_alone() -> None:
    data = b"".join(ALL)
    found = extras(data)
    assert [each["record_length"] for each in found] == [None] * len(SIZES)
    for number, extra in enumerate(found):
        assert data[extra["record_offset"] :].startswith(record(number, SIZES[number]))


def test_what_a_record_does_not_say_is_none() -> None:
    bare = b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 2\r\n\r\nA.\r\n\r\n"
    (extra,) = extras(gzip.compress(bare))
    assert {name for name, value in extra.items() if value is None} == {"crawl", "warc_record_id", "digest"}


def test_pages_without_provenance_have_no_columns() -> None:
    assert [item.extra for item in read_pages(io.BytesIO(b"".join(ALL))) if isinstance(item, Page)] == [{}] * len(SIZES)


def test_members_that_wait_are_few_in_a_file_of_tiny_members() -> None:
    members = Members()
    tiny = gzip.compress(b"x")
    assert sum(len(each) for each in inflate(io.BytesIO(tiny * 20_000), members=members)) == 20_000
    assert len(members._found) == 4096
