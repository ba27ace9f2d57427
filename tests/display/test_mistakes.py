"""Words for mistakes: reasons without numbers and jargon, and suggestions."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c4pipe.display.mistakes import error_reason, plain_reason, suggestion


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
