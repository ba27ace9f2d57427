"""Words for people: text that is safe to show, reasons of errors, suggestions, sizes and times."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.io.words import (
    JOINERS,
    error_reason,
    format_clock,
    format_core_time,
    format_cost,
    format_count,
    format_duration,
    format_number,
    format_size,
    plain_reason,
    safe_json,
    suggestion,
    visible,
)


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


def reason_of(error_type: type[BaseException], work: object, with_path: bool = False) -> str:
    with pytest.raises(error_type) as caught:
        work()  # type: ignore[operator]
    return error_reason(caught.value, with_path)


def test_reasons(tmp_path: Path) -> None:
    assert reason_of(OSError, (tmp_path / "none").read_bytes) == "no such file or directory"
    assert reason_of(OSError, (tmp_path / "none").read_bytes, True) == f"{tmp_path}/none: no such file or directory"
    assert reason_of(ValueError, lambda: b"ab\xff".decode()) == "it is not UTF-8 (byte 2)"
    assert reason_of(ValueError, lambda: json.loads('{"a"')) == "it is no JSON (line 1, column 5)"
    (tmp_path / "x.parquet").write_bytes(b"no Parquet file at all")
    assert reason_of(pa.ArrowInvalid, lambda: pq.read_table(tmp_path / "x.parquet")) == (
        "it is no Parquet file, or it is cut off"
    )
    assert error_reason(ValueError("in its own words\nand more")) == "in its own words"


def test_messages_of_the_system_that_other_programs_pass_on() -> None:
    assert plain_reason("[Errno 28] No space left on device: '/c/en'") == "/c/en: no space left on device"
    assert plain_reason("[Errno 13] Permission denied") == "permission denied"
    assert plain_reason("anything else: x") == "anything else: x"


@pytest.mark.parametrize(
    ("given", "known", "words"),
    [
        ("bulid", ("build", "clean"), "; did you mean 'build'?"),
        ("EN", ("en", "de"), "; did you mean 'en'?"),
        ("zh", ("de", "zh-cn", "zh-tw"), "; did you mean 'zh-cn' or 'zh-tw'?"),
        ("jsonl", ("parquet", "json"), "; did you mean 'json'?"),
        ("xyz", ("parquet", "json"), ""),
        (1, ("parquet",), ""),
        ("", ("parquet",), ""),
    ],
)
def test_suggestions(given: object, known: tuple[str, ...], words: str) -> None:
    assert suggestion(given, known) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (999, "999"), (1000, "1.00 thousand"), (12345, "12.3 thousand"), (2.634e9, "2.63 billion")],
)
def test_numbers(value: float, text: str) -> None:
    assert format_number(value) == text


def test_sizes() -> None:
    assert [format_size(each) for each in (5, 7.91e12, 2e18)] == ["5 B", "7.91 TB", "2,000 PB"]


def test_times() -> None:
    assert [format_duration(each) for each in (0.2, 40, 3600, 18720, 90000)] == [
        "less than a second", "40 s", "1 h 0 min", "5 h 12 min", "1 d 1 h"
    ]  # fmt: skip
    assert [format_core_time(each) for each in (7200, 7.02e6)] == ["2 h 0 min", "1,950 core-hours"]


def test_costs() -> None:
    assert format_cost(48.8, 1_230_000_000) == "11.0 CPU-hours a TB"
    assert format_cost(335 * 86400, 7 * 10**12) == "1,149 CPU-hours a TB"


def test_one_thing_is_no_plural() -> None:
    assert [format_count(number, "file") for number in (0, 1, 2, 72_000)] == [
        "0 files",
        "1 file",
        "2 files",
        "72,000 files",
    ]
    assert format_count(2, "copy", "copies") == "2 copies"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0:00:00"), (59.6, "0:01:00"), (754, "0:12:34"), (360000, "100:00:00")]
)
def test_a_time_on_a_clock(seconds: float, shown: str) -> None:
    assert format_clock(seconds) == shown
