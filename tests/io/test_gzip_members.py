"""Gzip members, whole and damaged: what is inflated, which gaps are told, what is found again."""

import gzip
import io
import random
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.io.gzip_members import FIRST_BYTES, INFLATE, READ, Gap, inflate
from tests.helpers.streams import Failing, Trickle


def member(text: bytes, level: int = 9) -> bytes:
    return gzip.compress(text, level, mtime=0)


def noise(size: int, seed: int = 1) -> bytes:
    """Bytes that don't compress: a member of them is about as long as they are."""
    return random.Random(seed).randbytes(size)


def pieces(data: bytes) -> list[bytes | Gap]:
    """What inflate yields, neighbouring pieces joined."""
    joined: list[bytes | Gap] = []
    for item in inflate(io.BytesIO(data)):
        if isinstance(item, bytes) and joined and isinstance(last := joined[-1], bytes):
            joined[-1] = last + item
        else:
            joined.append(item)
    return joined


A, B, C = (member(text) for text in (b"alpha " * 50, b"beta " * 50, b"gamma " * 50))
a, b, c = (gzip.decompress(part) for part in (A, B, C))
FAILED, CUT = Gap("gzip_corrupt"), Gap("gzip_cut")  # nothing that could be inflated was left out
BROKEN_CRC = B[:-8] + bytes([B[-8] ^ 1]) + B[-7:]
BROKEN_SIZE = B[:-1] + bytes([B[-1] ^ 1])
ALL_OF_B = Gap("gzip_corrupt", len(b), b[:FIRST_BYTES])


def junk(data: bytes) -> Gap:
    return Gap("gzip_junk", len(data), data[:FIRST_BYTES])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", [], id="empty"),
        pytest.param(b"plain text\n", [b"plain text\n"], id="plain"),
        pytest.param(A, [a], id="one"),
        pytest.param(A + B + C, [a + b + c], id="three"),
        pytest.param(member(b""), [], id="member of nothing"),
        pytest.param(A + b"\0" * 1000 + B + b"\0" * READ, [a + b], id="zero padding"),
        pytest.param(A + b"junk" + B, [a, junk(b"junk"), b], id="junk between members"),
        pytest.param(A + b"junk", [a, junk(b"junk")], id="junk at the end"),
        pytest.param(A + b"\x1f", [a, junk(b"\x1f")], id="a byte of a member at the end"),
        pytest.param(
            A + b"\0\x1f\0" + b"\0" * READ + B, [a, junk(b"\x1f\0" + b"\0" * READ), b], id="a byte in padding"
        ),
        pytest.param(A + b"x" * READ * 3 + B, [a, junk(b"x" * READ * 3), b], id="much junk between members"),
        pytest.param(A + b"\0" * READ + b"xyz\0" + B, [a, junk(b"xyz\0"), b], id="junk behind padding"),
        pytest.param(b"junk" + A + B, [junk(b"junk"), a + b], id="junk before the first member"),
        pytest.param(b"\0" + A[1:] + B, [junk(A[1:]), b], id="first byte damaged"),
        pytest.param(A[:2] + b"\0" + A[3:] + B, [junk(A[:2] + b"\0" + A[3:]), b], id="third byte damaged"),
        pytest.param(A[20:] + B + C, [junk(A[20:]), b + c], id="first member without its head"),
        pytest.param(A + BROKEN_CRC + C, [a, ALL_OF_B, c], id="checksum"),
        pytest.param(A + BROKEN_SIZE + C, [a, ALL_OF_B, c], id="size"),
        pytest.param(A + BROKEN_CRC, [a, ALL_OF_B], id="checksum of the last"),
        pytest.param(A + BROKEN_CRC + b"junk" + C, [a, ALL_OF_B, c], id="damage and junk are one gap"),
        pytest.param(A + B[:-4], [a + b, CUT], id="file ends in a checksum"),
        pytest.param(A + B[:5], [a, CUT], id="file ends in a member's head"),
        pytest.param(A + B[:3] + b"\xff" + B[4:] + C, [a, junk(B[:3] + b"\xff" + B[4:]), c], id="reserved flags"),
        pytest.param(A + B[:3] + b"\x08" + B[4:] + C, [a, FAILED, c], id="flag of a name that isn't there"),
    ],
)
def test_pieces(data: bytes, expected: list[bytes | Gap]) -> None:
    assert pieces(data) == expected


@pytest.mark.parametrize(("end", "text"), [(-9, b), (12, b[:1])], ids=["before its checksum", "behind its head"])
def test_a_member_cut_before_the_next_one(end: int, text: bytes) -> None:
    """The gap has what the member inflates to, and what the first bytes of the next one do in its place."""
    before, gap, behind = pieces(A + B[:end] + C)
    assert (before, behind) == (a, c)
    assert isinstance(gap, Gap)
    assert gap.kind == "gzip_corrupt"
    assert len(text) <= gap.length < len(text) + 20
    assert gap.first.startswith(text[:FIRST_BYTES])


def test_optional_parts_of_a_members_head() -> None:
    head = b"\x1f\x8b\x08\x1c" + b"\0" * 6 + b"\x08\0sl\x04\0\x01\x02\x03\x04" + b"name\0" + b"comment\0"
    assert pieces(head + A[10:] + B) == [a + b]


def test_a_member_larger_than_all_buffers() -> None:
    text = noise(3 * INFLATE)
    got = list(inflate(io.BytesIO(member(text) + A)))
    assert b"".join(item for item in got if isinstance(item, bytes)) == text + a
    assert max(map(len, (item for item in got if isinstance(item, bytes)))) <= INFLATE


def test_members_behind_a_large_damaged_one_are_found() -> None:
    large = bytearray(member(noise(3 * INFLATE)))
    del large[-100:]
    got = pieces(A + bytes(large) + B)
    assert got[-1] == b
    assert FAILED in got, "its start is not held any more: what isal dropped can't be told"
    assert isinstance(got[0], bytes)
    assert got[0].startswith(a)


def test_the_last_record_before_damage_goes_into_the_gap() -> None:
    """A reader can't tell whether it is whole. Those before it are given."""
    records = [b"WARC/1.0\r\n%d " % number + noise(300, number).hex().encode() + b"\r\n\r\n" for number in range(9)]
    data = bytearray(member(b"".join(records)))
    data[-6] ^= 1  # the checksum: all of it can be inflated
    before, gap = pieces(bytes(data))
    assert before == b"".join(records[:-1])
    assert gap == Gap("gzip_corrupt", len(records[-1]), records[-1][:FIRST_BYTES])


def test_bytes_of_a_false_start_do_not_run_into_the_next_member() -> None:
    """What a cut member's rest and the bytes behind it inflate to lies between two gaps."""
    stored = zlib.compressobj(0, zlib.DEFLATED, 31)  # stored blocks: a cut one swallows what comes behind it
    cut = (stored.compress(b"stored " * 20) + stored.flush())[:60]
    got = pieces(A + cut + B + C)
    assert got[0] == a or (isinstance(got[0], bytes) and got[0].startswith(a + b"stored"))
    assert got[-2:] == [FAILED, b + c]


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_short_reads(most: int) -> None:
    data = A + member(noise(2 * READ)) + BROKEN_CRC + C
    assert list(inflate(Trickle(data, most))) == list(inflate(io.BytesIO(data)))
    plain = noise(2 * READ + 5)
    assert b"".join(piece for piece in inflate(Trickle(plain, most)) if isinstance(piece, bytes)) == plain


def test_an_error_of_the_stream_is_passed_on() -> None:
    def drain(items: Iterator[bytes | Gap]) -> None:
        for _ in items:
            pass

    with pytest.raises(OSError, match="Input/output"):
        drain(inflate(Failing(A)))


@settings(derandomize=True, deadline=None, max_examples=300)
@given(parts=st.lists(st.one_of(st.binary(max_size=40), st.binary(max_size=300).map(member)), max_size=8))
def test_any_bytes_end_without_an_error(parts: list[bytes]) -> None:
    for item in inflate(io.BytesIO(b"".join(parts))):
        if isinstance(item, Gap):
            assert len(item.first) == min(item.length, FIRST_BYTES)
        else:
            assert 0 < len(item) <= INFLATE


@settings(derandomize=True, deadline=None)
@given(texts=st.lists(st.binary(max_size=2000), min_size=1, max_size=6), level=st.integers(0, 9))
def test_whole_members_are_inflated_exactly(texts: list[bytes], level: int) -> None:
    got = list(inflate(io.BytesIO(b"".join(member(text, level) for text in texts))))
    assert b"".join(item for item in got if isinstance(item, bytes)) == b"".join(texts)
    assert not any(isinstance(item, Gap) for item in got)
