"""The character encoding of a page: golden cases, and a law."""

import json
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.wet.html import decode_html

TABLES = json.loads(Path(__file__).with_name("encoding_tables.json").read_text("utf-8"))["rows"]
CASES = json.loads(Path(__file__).with_name("html_charsets.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_cases(case: dict[str, Any]) -> None:
    start = case.get("ascii", "")
    data = start.encode() + bytes.fromhex(case["hex"])
    assert decode_html(data, case.get("charset", "")) == (start + case["text"], case.get("valid", True))


def bytes_of_row(label: str, first: bytes) -> bytes:
    """Returns the bytes of a row of a table: all bytes that can follow some, with a blank behind each character."""
    if not first:
        return bytes(range(0x20, 256))
    if first[:1] == b"\x1b":  # ISO-2022-JP
        last = {b"B": 0x7F, b"I": 0x60, b"J": 0x7F}[first[2:3]]
        return first[:3] + b"".join(first[3:] + bytes([each]) for each in range(0x21, last)) + b"\x1b(B"
    if label == "gb18030" and len(first) == 2:
        return b"".join(first + bytes(each) + b" " for each in product(range(0x81, 0xFF), range(0x30, 0x3A)))
    return b"".join(first + bytes([each]) + b" " for each in range(256))


@pytest.mark.parametrize("label", TABLES)
def test_whole_tables_are_those_of_the_encoding_standard(label: str) -> None:
    """Also the bytes that are no characters: a decoder goes on where that of a browser does."""
    rows = {first: decode_html(bytes_of_row(label, bytes.fromhex(first)), label)[0] for first in TABLES[label]}
    assert {first: sha256(text.encode()).hexdigest()[:12] for first, text in rows.items()} == TABLES[label]


@given(st.binary(max_size=300), st.text(max_size=20))
def test_any_bytes_with_any_label_are_text(data: bytes, charset: str) -> None:
    text, _ = decode_html(data, charset)
    assert text.encode("utf-8", "replace").decode() == text


@given(st.text(st.characters(codec="utf-8")))
def test_what_was_encoded_is_decoded(text: str) -> None:
    assert decode_html(b"<html>" + text.encode(), "UTF-8") == (f"<html>{text}", True)
