"""The record reader on generated files: whatever is written is read, and damage stays where it is."""

import time
import zlib
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from c4pipe.wet import records
from c4pipe.wet.records import read_pages
from tests.helpers.streams import Trickle
from tests.helpers.wet import record
from tests.helpers.wet_reading import FIRST, A, B, C, Outcome, outcome, read, read_damage, same
from tests.helpers.wet_writer import gzip_member as member

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
            *(A, B, C, B[:-4], member(A), member(B)[:-8], member(C)[10:], b"\0" * 300),
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_RECORD_BYTES", 300)
        assert same(read(data), got)
        patch.setattr(records, "text_kernel", None)
        assert same(read(data), got)


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


@pytest.mark.slow
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
