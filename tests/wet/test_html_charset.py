"""The character encoding of a page: golden cases, and a law."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.wet.html import decode_html

CASES = json.loads(Path(__file__).with_name("html_charsets.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_cases(case: dict[str, Any]) -> None:
    start = case.get("ascii", "")
    data = start.encode() + bytes.fromhex(case["hex"])
    assert decode_html(data, case.get("charset", "")) == (start + case["text"], case.get("valid", True))


@given(st.binary(max_size=300), st.text(max_size=20))
def test_any_bytes_with_any_label_are_text(data: bytes, charset: str) -> None:
    text, _ = decode_html(data, charset)
    assert text.encode("utf-8", "replace").decode() == text


@given(st.text(st.characters(codec="utf-8")))
def test_what_was_encoded_is_decoded(text: str) -> None:
    assert decode_html(b"<html>" + text.encode(), "UTF-8") == (f"<html>{text}", True)
