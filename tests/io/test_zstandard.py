"""WET and WARC files in Zstandard: the same records as in gzip, with and without a dictionary, whole and damaged."""

import bz2
import io
import lzma
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock, patch

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.clean.sources import CountedStream
from c4pipe.io import gzip_members
from c4pipe.io.gzip_members import INFLATE, Gap, inflate, start_size
from c4pipe.io.text import read_text
from c4pipe.wet.damage import Damage, describe_content
from c4pipe.wet.page import Page
from c4pipe.wet.records import crawl_name, has_record, read_pages
from tests.helpers.streams import Trickle
from tests.helpers.wet import record

DICTIONARY = 0x184D2A5D
RECORDS: list[bytes | bytearray | memoryview] = [
    f"WARC/1.0\r\nWARC-Type: conversion {n * 7919}\r\n".encode() * 9 for n in range(2000)
]
WORDS = zstandard.train_dictionary(4096, RECORDS)


def skippable(content: bytes, magic: int = DICTIONARY) -> bytes:
    return struct.pack("<II", magic, len(content)) + content


def frame(content: bytes, words: zstandard.ZstdCompressionDict | None = None) -> bytes:
    return zstandard.ZstdCompressor(dict_data=words, write_checksum=True).compress(content)


def members(path: Path) -> list[bytes]:
    """The content of each gzip member of a file."""
    data, contents = path.read_bytes(), []
    while data:
        inflater = zlib.decompressobj(31)
        contents.append(inflater.decompress(data))
        data = inflater.unused_data
    return contents


def start(form: str) -> bytes:
    plain = WORDS.as_bytes()
    return {"none": b"", "plain": skippable(plain), "compressed": skippable(frame(plain))}[form]


def pages(data: bytes, size: int = 1 << 20) -> list[tuple[object, ...]]:
    found = []
    for item in read_pages(Trickle(data, size)):
        assert isinstance(item, Page | Damage)
        found.append((item.url, item.timestamp, item.body, item.position) if isinstance(item, Page) else tuple(item))
    return found


@pytest.mark.parametrize("form", ["none", "plain", "compressed"])
@pytest.mark.parametrize("one_frame", [False, True])
def test_real_files_have_the_same_pages_as_in_gzip(form: str, one_frame: bool, web_data: Path) -> None:
    files = sorted((web_data / "wet").glob("*.warc.wet.gz"))
    assert files
    words = None if form == "none" else WORDS
    for path in files:
        contents = members(path)
        if one_frame:
            contents = [b"".join(contents)]
        data = start(form) + b"".join(frame(each, words) for each in contents)
        assert pages(data) == pages(path.read_bytes())
        assert crawl_name(data[: 64 * 1024 + start_size(data)]) == crawl_name(path.read_bytes()[: 64 * 1024])


A, B, C = (b"alpha " * 50, b"beta " * 50, b"gamma " * 50)
FA, FB, FC = map(frame, (A, B, C))
PAGES = record("A page.\n") + record("Another page.\n", "https://example.com/2")


def joined(data: bytes, size: int = 1 << 20) -> list[bytes | Gap]:
    found: list[bytes | Gap] = []
    for item in inflate(Trickle(data, size)):
        if isinstance(item, bytes) and found and isinstance(last := found[-1], bytes):
            found[-1] = last + item
        elif item:
            found.append(item)
    return found


BROKEN = FB[:12] + bytes([FB[12] ^ 0x55]) + FB[13:]
BROKEN_SUM = FB[:-1] + bytes([FB[-1] ^ 1])
CORRUPT, CUT = Gap("zstd_corrupt"), Gap("zstd_cut")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (FA + FB + FC, [A + B + C]),
        (FA + skippable(b"note", 0x184D2A50) + FB, [A + B]),
        (FA + skippable(bytes(100_000), 0x184D2A5F) + FB, [A + B]),
        (frame(b"") + FA, [A]),
        (FA + BROKEN + FC, [A, CORRUPT, C]),
        (FA + BROKEN_SUM + FC, [A, CORRUPT, C]),
        (FA + FB[:-9] + FC, [A, CORRUPT, C]),
        (FA + FB[:-9], [A, CUT]),
        (FA + FB[:3], [A, Gap("zstd_junk", 3, FB[:3])]),
        (FA + skippable(b"note", 0x184D2A50)[:-1], [A, CUT]),
        (FA + b"junk" + FC, [A, Gap("zstd_junk", 4, b"junk"), C]),
        (FA + bytes(1000) + FB, [A + B]),
        (b"junk" + FA, [Gap("zstd_junk", 4, b"junk"), A]),
        (skippable(b"\x37\xa4\x30\xec no dictionary") + FA, [CORRUPT, A]),
        (skippable(frame(b"x" * 100)[:-3]) + FA, [CORRUPT, A]),
        (struct.pack("<II", DICTIONARY, 1 << 31) + FA, [CORRUPT, A]),
        (frame(A, WORDS) + FB, [CORRUPT, B]),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_damage_costs_its_frame_alone(data: bytes, expected: list[bytes | Gap], size: int) -> None:
    assert joined(data, size) == expected


def test_damage_in_a_long_frame_costs_what_follows_in_it() -> None:
    text = b"".join(b"%d " % (n * 7919 % 100_003) for n in range(300_000))
    data = bytearray(frame(text))
    data[len(data) // 2] ^= 0xFF
    first, *rest = joined(bytes(data) + FC)
    assert isinstance(first, bytes)
    assert first[: 1 << 18] == text[: 1 << 18]
    assert rest == [CORRUPT, C]


@pytest.mark.parametrize("content", [bytes(1 << 28), b"WARC/1.0\r\n" * (1 << 24)])
def test_a_bomb_is_read_a_block_at_a_time(content: bytes) -> None:
    bomb = frame(content)
    sizes = [len(piece) for piece in inflate(io.BytesIO(bomb)) if isinstance(piece, bytes)]
    assert (sum(sizes), max(sizes) <= INFLATE) == (len(content), True)


def test_a_frame_with_a_window_that_is_too_large_is_told(tmp_path: Path) -> None:
    huge = FA[:4] + bytes([0, 0xF8]) + bytes(100)  # a window of 2**41 bytes
    assert joined(huge + FB)[-2:] == [Gap("large_window"), B]
    long = zstandard.ZstdCompressionParameters.from_level(1, window_log=28)  # as of `zstd --long=28`
    compressor = zstandard.ZstdCompressor(compression_params=long).compressobj()
    (tmp_path / "a.zst").write_bytes(compressor.compress(A) + compressor.flush())
    with pytest.raises(ValueError, match=r"^its window is larger than 128 MB: unpack it first, with zstd -d --long=31"):
        read_text(tmp_path / "a.zst", 1000)
    first = (tmp_path / "a.zst").read_bytes()
    assert describe_content(first, {"large_window": 1}).startswith("its window is larger than 128 MB: unpack it")


def test_a_stream_of_xz_that_needs_much_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_members, "_WINDOW", 1 << 20)
    assert joined(lzma.compress(A, preset=6)) == [Gap("large_window")]


@pytest.mark.parametrize("compress", [bz2.compress, lzma.compress])
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_streams_of_bzip2_and_xz(compress: Callable[[bytes], bytes], size: int) -> None:
    first, second, third = map(compress, (A, B, C))
    assert joined(first + second + compress(b"") + third, size) == [A + B + C]
    assert joined(first + bytes(8) + third, size) == [A + C]
    assert joined(first + second[:-9], size)[-1] == Gap("stream_cut")
    assert joined(first + b"junk" + third, size) == [A, Gap("stream_junk", 4, b"junk"), C]
    broken = bytearray(second)
    broken[len(broken) // 2] ^= 0x55
    assert joined(first + bytes(broken) + third, size) == [A, Gap("stream_corrupt"), C]
    text = random.Random(1).randbytes(3 * INFLATE)
    assert joined(compress(text)) == [text]
    bomb = [len(piece) for piece in inflate(io.BytesIO(compress(bytes(1 << 26)))) if isinstance(piece, bytes)]
    assert (sum(bomb), max(bomb) <= INFLATE) == (1 << 26, True)
    assert pages(compress(PAGES)) == pages(PAGES)


@settings(deadline=None)
@given(st.lists(st.sampled_from([FA, FB, FC, BROKEN, b"junk", skippable(b"x", 0x184D2A51)]), max_size=6), st.data())
def test_any_cut_and_any_size_of_reads_give_the_same(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(parts)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    assert joined(cut, 1) == joined(cut) == joined(cut, 7)


def test_starts_that_fail_are_not_tried_for_ever() -> None:
    data = (FA[:9] + b"\xff" * 3) * 20_000
    tried = Mock(wraps=gzip_members._Frame)
    with patch.object(gzip_members, "_Frame", tried):
        assert joined(data + bytes(300_000) + FB) == [CORRUPT, B]
    assert tried.call_count < 10_000


@pytest.mark.parametrize("size", [5, 1 << 15])
def test_the_first_bytes_of_a_file_have_a_record_behind_a_long_dictionary(size: int) -> None:
    data = skippable(frame(random.Random(1).randbytes(100_000))) + frame(record("A page.\n"))
    stream = CountedStream(Trickle(data, size))
    while stream.read(1 << 15):
        pass
    assert len(stream.first) > 100_000
    assert has_record(stream.first)
