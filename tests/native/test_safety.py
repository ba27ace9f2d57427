"""The C extensions with hostile callers: a function that changes the lines that call it, numbers at their limits, bytes
that are not UTF-8, and a test build with sanitizers."""

import datetime
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from c4pipe.native import langdetect_kernel, text_kernel
from tests.helpers.machine import NEEDS, Need, lack, library, require

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.needs("extensions")
_text: Any = text_kernel
LINES = "One [edit] line.\nTwo [edit] lines.\x85Three \u212a [1].\nFour."


def edit_brackets(edit: Callable[[str], str]) -> Any:
    """A program that puts lines with a bracket through a function."""
    return _text.program((("edit_brackets", edit),))


STEPS: list[tuple[object, ...]] = [
    ("resplit",),
    ("trim_start",),
    ("drop_few_words", 100),
    ("drop_starts", ("One",)),
    ("edit_brackets", str.upper),
    ("drop_phrases", ("line",)),
]


@pytest.mark.parametrize("step", STEPS)
def test_a_function_cannot_change_the_lines_that_call_it(step: tuple[object, ...]) -> None:
    lines = _text.Lines(LINES, False)
    before = lines.unpacked()

    def edit(line: str) -> str:
        lines.run(_text.program((step,)))
        return line

    with pytest.raises(RuntimeError, match="can't be changed by a function that they call"):
        lines.run(edit_brackets(edit))
    assert lines.unpacked() == before
    look = edit_brackets(lambda line: f"{len(lines)}{line[0]}")  # it may look at them
    assert lines.run(look) == (-1, -1, (2,), True)
    assert lines.unpacked() == ["3O", "3T", "Four."]


def test_lines_can_be_changed_after_an_error() -> None:
    lines = _text.Lines(LINES, False)
    with pytest.raises(ZeroDivisionError):
        lines.run(_text.program((("drop_starts", ("One",)), ("edit_brackets", lambda line: str(1 // 0)))))
    assert [line[:3] for line in lines.unpacked()] == ["Two", "Fou"]  # those from the error on are kept
    assert lines.run(edit_brackets(str.upper))[2] == (1,)
    assert lines.run(_text.program((("resplit",),)))[3]


@pytest.mark.parametrize(
    "steps",
    [
        (("no_such_step",),),
        (("resplit", 1),),
        (("drop_few_words",),),
        (("drop_few_words", "1"),),
        (("drop_few_words", 2**63),),
        (("drop_starts", ["a"]),),
        (("drop_starts", ("",)),),
        (("drop_starts", (1,)),),
        (("drop_starts", ("a",) * 65),),
        (("drop_phrases", ("A",)),),
        (("drop_phrases", ("é",)),),
        (("keep_endings", (".",), None),),
        (("resplit",),) * 65,
        (("resplit",), ()),
        (("resplit",), ("x\ud800",)),
        ("resplit",),
        [("resplit",)],
    ],
)
def test_programs_of_other_steps_are_errors(steps: Any) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        _text.program(steps)


def test_lines_run_nothing_but_programs() -> None:
    lines = _text.Lines(LINES, False)
    others: list[Any] = [None, (("resplit",),), datetime.datetime_CAPI]
    for other in others:
        with pytest.raises(ValueError, match="PyCapsule"):
            lines.run(other)
    assert lines.run(_text.program(())) == (-1, -1, (), False)


@pytest.mark.parametrize("size", [-(2**63), -1, 0, 3, 2**63 - 1])
def test_spans_of_no_possible_size(size: int) -> None:
    assert _text.span_hashes(bytes(16), size) == b""


@pytest.mark.parametrize(
    "data", [b"a \xe2\x84", b"\xe2\x84", b"\xc4", b"a\n\xe2", b"\xe2\x84\xaa", b"", b"\r", b"\n\r"]
)
def test_bytes_that_are_cut_in_a_character(data: bytes) -> None:
    for everywhere in (False, True):
        lines = _text.Lines(data, everywhere)
        phrases = ("javascript", "a k", "i")
        lines.run(_text.program((("body_has_phrase", phrases), ("has_phrase", phrases), ("drop_phrases", phrases))))
        lines.run(_text.program((("resplit",), ("drop_phrases", phrases))))
        assert len(lines) <= 2


@pytest.mark.parametrize("starts", [[0, 2**62, 5], [0, -(2**63), 2**63 - 1], [7, 3, 1], [0] * 9])
def test_units_that_start_anywhere(starts: list[int]) -> None:
    hashes = _text.unit_hashes("Aé日😀 so it is.".encode(), starts, True)
    assert hashes is not None
    assert len(hashes) == 8 * len(starts)
    with pytest.raises((OverflowError, TypeError)):
        _text.unit_hashes(b"a", [0, cast(int, "1" if starts[0] else 2**63)], True)


@given(st.binary(max_size=24), st.booleans())
@example(b"A" * 8 + b"\xf0", False)
@example(b"\xe6\x97", True)
def test_units_of_bytes_that_are_no_utf8(data: bytes, folded: bool) -> None:
    hashes = _text.unit_hashes(data, [0, 1, 3], folded)
    assert hashes is None or len(hashes) == 24


def test_functions_of_sentences_may_fail_and_change_the_lines() -> None:
    def fail(text: str) -> Any:
        raise ZeroDivisionError(text)

    def clear(text: str) -> list[int]:
        lines.clear()
        return [0]

    none = frozenset[str]()
    with pytest.raises(ZeroDivisionError, match=r"^1\. A$"):
        _text.sentence_starts(["So 1. A"], none, fail, fail)
    with pytest.raises(ZeroDivisionError, match=r"^So\) 1\.\), A$"):
        _text.sentence_starts(["So) 1.), A"], none, fail, fail)
    with pytest.raises(TypeError, match="a list is needed"):
        _text.sentence_starts([""], none, fail, cast(Any, lambda text: (0,)))
    with pytest.raises(TypeError, match="integer"):
        _text.sentence_starts([""], none, fail, cast(Any, lambda text: ["0"]))
    with pytest.raises(TypeError, match="a str is needed"):
        _text.sentence_starts(cast(Any, ["So. A", b"so"]), none, fail, fail)
    lines = ["So.), A", "so"]
    assert _text.sentence_starts(lines, none, fail, clear) == [0]
    assert _text.sentence_starts(["\ud800 so. A", "."], none, fail, fail) == [0, 6, 8]
    assert _text.sure_sentences("so. So! A", none, -(2**63)) == 0


def test_an_error_other_than_of_the_text_is_raised() -> None:
    _testcapi = library("_testcapi", "a Python that can simulate that memory is full")
    for thread in threading.enumerate():
        if thread.name == "slow pages":  # of a test before: it ends by itself, and must not get the simulated failure
            thread.join()
    failed = 0
    for allocation in range(8):  # one of them is for the text in lower case
        arguments = (b"x" * 100_000, [0], True)
        _testcapi.set_nomemory(allocation, allocation + 1)
        try:
            answer: Any = _text.unit_hashes(*arguments)
        except MemoryError:
            answer, failed = [], failed + 1
        finally:
            _testcapi.remove_mem_hooks()
        assert answer is not None
    assert failed


def test_the_modules_can_be_loaded_again() -> None:
    """Initialisation in several phases: each module object has types of its own."""
    for kernel, name in ((text_kernel, "Lines"), (langdetect_kernel, "Detector")):
        assert kernel is not None
        assert kernel.__spec__ is not None
        loader = kernel.__spec__.loader
        assert loader is not None
        again = loader.create_module(kernel.__spec__)
        assert again is not None
        loader.exec_module(again)
        assert getattr(again, name) is not getattr(kernel, name)
        with pytest.raises(TypeError, match="immutable type"):
            getattr(again, name).evil = 1


@pytest.fixture
def compiler() -> str:
    """A C compiler with the libraries of its sanitizers."""
    if not sys.platform.startswith("linux"):
        pytest.skip("this is not Linux")
    require(NEEDS["compiler"], NEEDS["headers"])
    compiler = shutil.which(os.environ.get("CC", "cc"))
    assert compiler
    library = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    if not Path(library.stdout.strip()).is_absolute():
        lack(Need(bool, "AddressSanitizer", f"{compiler} is another compiler than GCC or clang"))
    return compiler


def sanitized(compiler: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CC": compiler, "PYTHON": sys.executable}
    command = [str(ROOT / "scripts" / "sanitize"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
def test_the_sanitizers_find_nothing_here_and_would_find_something(compiler: str) -> None:
    """They would: the test build must notice a read behind the end of an object of Python."""
    read = "import ctypes; text = b'x' * 100; ctypes.string_at(id(text) + text.__sizeof__() + 8, 16)"
    done = sanitized(compiler, "-c", read)
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr
    tests = ["tests/native/test_native.py", "tests/native/test_safety.py"]
    more = ["-m", "not slow", "-k", "not only_two_other_characters"]  # that one calls nothing in C
    done = sanitized(compiler, "-m", "pytest", "-n", "0", "-q", *more, "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    for target in ("native", "rules", "reader"):
        done = sanitized(compiler, "fuzz/mutate.py", target, "3")
        assert done.returncode == 0, done.stderr[-4000:]


def test_random_lines_agree_however_they_are_cut() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        data = bytes(rng.choices(b"a [.\n\r\x1c\xc2\x85\xe2\x80\xa8", k=rng.randrange(12)))
        text = data.decode("utf-8", "ignore")
        expected = [line.strip() for line in text.splitlines() if line.strip()]
        assert _text.Lines(text, True).unpacked() == expected
