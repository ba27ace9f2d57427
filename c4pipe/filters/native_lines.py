"""Line and page rules in C, on all lines of a page at once (see `native`). The rules in Python are the reference.

A rule without a native step, or with parameters that the C extension does not support, runs in Python with the same
outcome.
"""

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING

from c4pipe.native import text_kernel

if TYPE_CHECKING:
    from c4pipe.native import _text
    from c4pipe.wet.page import Page

NativeStep = tuple[object, ...]
"""A step of a program in C: its name and its arguments."""

NativeProgram = Callable[["_text.Lines"], tuple[int, int, tuple[int, ...], bool]]
"""Applies steps to lines in C, up to the first that drops the page.

Returns the index of the step that drops the page, or -1; the number of lines at the step `count`, or -1 if that step
was not applied; the number of lines that each applied line rule dropped or edited; and whether the lines have changed.
"""

RESPLIT: NativeStep = ("resplit",)
COUNT: NativeStep = ("count",)
TRIM_START: NativeStep = ("trim_start",)
IS_EMPTY: NativeStep = ("is_empty",)

MOST_STEPS = 64
"""The steps that a program in C can have."""

_MOST_TEXTS = 64  # phrases or endings that the C extension supports
_MOST = 2**31 - 1  # the greatest number that it is given
_CUT_IN_C = ("unicode", "newlines", "newlines, then unicode")  # line separators


def lines_in_c(page: "Page", line_separators: str) -> "_text.Lines | None":
    """Returns the lines of a page as `body_lines.cut` cuts them, or None where the C extension can't hold them."""
    if text_kernel is None or line_separators not in _CUT_IN_C:
        return None
    try:
        body = page.body if page.encoded is None else page.encoded
        lines: _text.Lines = text_kernel.Lines(body, line_separators == "unicode")
    except UnicodeEncodeError:  # half of a surrogate pair, which no decoded page has
        return None
    return lines


def cuts_in_c(line_separators: str) -> bool:
    """Tells whether the C extension is there and cuts lines in this way."""
    return text_kernel is not None and line_separators in _CUT_IN_C


def native_program(steps: Sequence[NativeStep]) -> NativeProgram:
    """Returns the function that applies steps, at most MOST_STEPS, one after the other."""
    assert text_kernel is not None
    return methodcaller("run", text_kernel.program(tuple(steps)))


def native_step(name: str, *arguments: int | tuple[str, ...]) -> NativeStep | None:
    """Returns a step with the parameters of a rule; None where the C extension does not support them."""
    return (name, *arguments) if all(map(_is_supported, arguments)) else None


def _is_supported(value: int | tuple[str, ...]) -> bool:
    if isinstance(value, tuple):
        return len(value) <= _MOST_TEXTS and all(text and text.isprintable() for text in value)
    return 0 <= value <= _MOST
