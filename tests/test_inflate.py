"""Gzip members, whole and damaged: what is inflated, which gaps are told, what is found again."""

import gzip
import io
import random
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import Trickle

from c4pipe.inflate import INFLATE, READ, Gap, inflate


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
BROKEN_CRC = B[:-8] + bytes([B[-8] ^ 1]) + B[-7:]
BROKEN_SIZE = B[:-1] + bytes([B[-1] ^ 1])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", [], id="empty"),
        pytest.param(b"plain text\n", [b"plain text\n"], id="plain"),
        pytest.param(A, [a], id="one"),
        pytest.param(A + B + C, [a + b + c], id="three"),
        pytest.param(member(b""), [], id="member of nothing"),
        pytest.param(A + b"\0" * 1000 + B + b"\0" * READ, [a + b], id="zero padding"),
        pytest.param(A + b"junk" + B, [a, Gap.GZIP_JUNK, b], id="junk between members"),
        pytest.param(A + b"junk", [a, Gap.GZIP_JUNK], id="junk at the end"),
        pytest.param(A + b"\x1f", [a, Gap.GZIP_JUNK], id="a byte of a member at the end"),
        pytest.param(A + b"x" * READ * 3 + B, [a, Gap.GZIP_JUNK, b], id="much junk between members"),
        pytest.param(b"junk" + A + B, [Gap.GZIP_JUNK, a + b], id="junk before the first member"),
        pytest.param(b"\0" + A[1:] + B, [Gap.GZIP_JUNK, b], id="first byte damaged"),
        pytest.param(A[:2] + b"\0" + A[3:] + B, [Gap.GZIP_JUNK, b], id="third byte damaged"),
        pytest.param(A[20:] + B + C, [Gap.GZIP_JUNK, b + c], id="first member without its head"),
        pytest.param(A + BROKEN_CRC + C, [a, Gap.GZIP_CORRUPT, c], id="checksum"),
        pytest.param(A + BROKEN_SIZE + C, [a, Gap.GZIP_CORRUPT, c], id="size"),
        pytest.param(A + BROKEN_CRC, [a, Gap.GZIP_CORRUPT], id="checksum of the last"),
        pytest.param(A + BROKEN_CRC + b"junk" + C, [a, Gap.GZIP_CORRUPT, c], id="damage and junk are one gap"),
        pytest.param(A + B[:-9] + C, [a, Gap.GZIP_CORRUPT, c], id="cut before its checksum"),
        pytest.param(A + B[:12] + C, [a, Gap.GZIP_CORRUPT, c], id="cut behind its head"),
        pytest.param(A + B[:-4], [a + b, Gap.GZIP_CUT], id="file ends in a checksum"),
        pytest.param(A + B[:5], [a, Gap.GZIP_CUT], id="file ends in a member's head"),
        pytest.param(A + B[:3] + b"\xff" + B[4:] + C, [a, Gap.GZIP_JUNK, c], id="reserved flags"),
        pytest.param(A + B[:3] + b"\x08" + B[4:] + C, [a, Gap.GZIP_CORRUPT, c], id="flag of a name that isn't there"),
    ],
)
def test_pieces(data: bytes, expected: list[bytes | Gap]) -> None:
    assert pieces(data) == expected


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
    assert Gap.GZIP_CORRUPT in got
    assert isinstance(got[0], bytes)
    assert got[0].startswith(a)


def test_bytes_of_a_false_start_do_not_run_into_the_next_member() -> None:
    """What a cut member's rest and the bytes behind it inflate to lies between two gaps."""
    stored = zlib.compressobj(0, zlib.DEFLATED, 31)  # stored blocks: a cut one swallows what comes behind it
    cut = (stored.compress(b"stored " * 20) + stored.flush())[:60]
    got = pieces(A + cut + B + C)
    assert got[0] == a or (isinstance(got[0], bytes) and got[0].startswith(a + b"stored"))
    assert got[-2:] == [Gap.GZIP_CORRUPT, b + c]


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_short_reads(most: int) -> None:
    data = A + member(noise(2 * READ)) + BROKEN_CRC + C
    assert list(inflate(Trickle(data, most))) == list(inflate(io.BytesIO(data)))
    plain = noise(2 * READ + 5)
    assert b"".join(piece for piece in inflate(Trickle(plain, most)) if isinstance(piece, bytes)) == plain


def test_an_error_of_the_stream_is_passed_on() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            if not data:
                raise OSError(5, "Input/output error")
            return data

    def drain(items: Iterator[bytes | Gap]) -> None:
        for _ in items:
            pass

    with pytest.raises(OSError, match="Input/output"):
        drain(inflate(Failing(A)))


@settings(derandomize=True, deadline=None, max_examples=300)
@given(parts=st.lists(st.one_of(st.binary(max_size=40), st.binary(max_size=300).map(member)), max_size=8))
def test_any_bytes_end_without_an_error(parts: list[bytes]) -> None:
    for item in inflate(io.BytesIO(b"".join(parts))):
        assert isinstance(item, Gap) or 0 < len(item) <= INFLATE


@settings(derandomize=True, deadline=None)
@given(texts=st.lists(st.binary(max_size=2000), min_size=1, max_size=6), level=st.integers(0, 9))
def test_whole_members_are_inflated_exactly(texts: list[bytes], level: int) -> None:
    got = list(inflate(io.BytesIO(b"".join(member(text, level) for text in texts))))
    assert b"".join(item for item in got if isinstance(item, bytes)) == b"".join(texts)
    assert not any(isinstance(item, Gap) for item in got)
