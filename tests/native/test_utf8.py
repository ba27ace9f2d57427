"""The C extension takes for UTF-8 what Python does."""

import sys
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.native import text_kernel

pytestmark = pytest.mark.needs("extensions")


def is_utf8(data: Any) -> bool:
    assert text_kernel
    return bool(text_kernel.is_utf8(data))


# The first and the last bytes in the table of well-formed UTF-8 (Unicode, table 3-7), and their neighbours.
EDGES = bytes.fromhex("00 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")


def is_decoded(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_bytes_at_the_edges_of_the_table() -> None:
    ends = (b"\x7f", b"\x80", b"\xbf", b"\xc0")
    for start in (bytes(each) for size in range(4) for each in product(EDGES, repeat=size)):
        for data in (start, *(start + end for end in ends)):
            assert is_utf8(data) == is_decoded(data), data


def test_all_pairs_of_bytes() -> None:
    for data in map(bytes, product(range(256), repeat=2)):
        assert is_utf8(data) == is_decoded(data), data


def test_all_characters() -> None:
    text = "".join(chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    assert is_utf8(text.encode())
    assert is_utf8(bytearray(text.encode()))
    for code in range(0xD800, 0xE000):
        assert not is_utf8(chr(code).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    "scrap", [b"\xff", b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", "é€😀".encode()]
)
def test_a_scrap_at_any_place_among_blocks_of_ascii(scrap: bytes) -> None:
    for place in range(70):
        for behind in (0, 1, 31, 32, 64):
            data = b"a" * place + scrap + b"a" * behind
            assert is_utf8(data) == is_decoded(data), (place, behind)


@settings(derandomize=True, deadline=None)
@given(st.text(max_size=80).map(str.encode), st.integers(0, 400), st.binary(max_size=3), st.integers(0, 3))
def test_bytes_that_are_changed(data: bytes, place: int, new: bytes, size: int) -> None:
    data = data[:place] + new + data[place + size :]
    assert is_utf8(data) == is_decoded(data)
    assert is_utf8(memoryview(data * 3)[1:-1]) == is_decoded((data * 3)[1:-1])
