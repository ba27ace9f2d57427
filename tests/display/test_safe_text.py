"""Text on a terminal: nothing in it is a command, whatever a page, a URL or a file name holds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.display.safe_text import JOINERS, safe_json, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, naïve, 日本語 🙂", "plain text, naïve, 日本語 🙂"),
        ("red: \x1b[31m", "red: \ufffd[31m"),
        ("a\tb\nc\rd", "a b c d"),
        ("no\u00a0break", "no break"),
        ("\u202eturned\u202c", "\ufffdturned\ufffd"),
        ("isolate \u2066x\u2069", "isolate \ufffdx\ufffd"),
        ("lone \udcff surrogate", "lone \ufffd surrogate"),
        ("bell\x07 null\x00 c1\x9b", "bell\ufffd null\ufffd c1\ufffd"),
        ("joiner \u200d", "joiner \ufffd"),
    ],
)
def test_what_a_terminal_would_obey_is_replaced(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_characters_to_keep() -> None:
    assert visible("a\nb\u200dc\x1b", keep=f"\n{JOINERS}") == "a\nb\u200dc\ufffd"


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_printed(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)
    assert shown.isprintable()
    assert shown.encode().decode() == shown
    assert visible(shown) == shown


@given(
    st.recursive(
        st.text(st.characters(exclude_categories=())), lambda each: st.lists(each) | st.dictionaries(st.text(), each)
    )
)
def test_any_values_are_json_that_can_be_shown(values: object) -> None:
    for indent in (None, 1):
        text = safe_json(values, indent)
        assert json.loads(text) == values
        assert text.replace("\n", "").isprintable()
        assert text.encode().decode() == text


def test_json_stays_readable() -> None:
    assert (
        safe_json(["naïve 日本語 🙂", "\u202e\x9b\x7f\U000e0001"])
        == '["naïve 日本語 🙂", "\\u202e\\u009b\\u007f\\udb40\\udc01"]'
    )
