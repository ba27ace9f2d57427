"""Rules in C, on all lines of a page at once (see `native`). The functions in `lines` and `pages` are the reference.

A rule that is not here, or whose arguments the C extension does not support, runs in Python with the same outcome.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

from c4pipe.filters import body_lines, lines, pages
from c4pipe.native import text_kernel
from c4pipe.wet.page import Page

if TYPE_CHECKING:
    from c4pipe.native import _text

PackedStep = tuple[object, ...]
"""A step of a program in C: its name and its arguments."""

PackedProgram = Callable[["_text.Lines"], tuple[int, int, tuple[int, ...], bool]]
"""Applies steps to packed lines, up to the first that drops the page.

Returns the place of that step, or -1; the number of lines that came to the step `count`, or -1 where that was not
applied; how many lines each line rule that was applied dropped or edited; and whether the lines are others now.
"""


class PackedText(NamedTuple):
    """The text that a page rule sees.

    Attributes:
        crawled: whether it is the body as crawled instead of the lines joined by newlines.
        lower: whether it is in lower case.
    """

    crawled: bool
    lower: bool


RESPLIT: PackedStep = ("resplit",)
COUNT: PackedStep = ("count",)
TRIM_START: PackedStep = ("trim_start",)
IS_EMPTY: PackedStep = ("is_empty",)

MOST_STEPS = 64
"""The steps that a program in C can have."""

_MOST_TEXTS = 64  # phrases or endings that the C extension supports
_MOST = 2**31 - 1  # the greatest number that it is given


def pack(page: Page, line_separators: str) -> "_text.Lines | None":
    """Returns the lines of a page as `body_lines.cut` cuts them, or None where the C extension can't hold them."""
    if text_kernel is None or not is_packed(line_separators):
        return None
    try:
        body = page.body if page.encoded is None else page.encoded
        packed: _text.Lines = text_kernel.Lines(body, line_separators == "unicode")
    except UnicodeEncodeError:  # half of a surrogate pair, which no decoded page has
        return None
    return packed


def is_packed(line_separators: str) -> bool:
    """Tells whether the C extension is there and cuts lines in this way."""
    return text_kernel is not None and line_separators not in (body_lines.AS_CRAWLED, body_lines.CRAWLED_TWICE)


def packed_program(steps: Sequence[PackedStep]) -> PackedProgram:
    """Returns the function that applies steps, at most MOST_STEPS, one after the other."""
    assert text_kernel is not None
    return methodcaller("run", text_kernel.program(tuple(steps)))


def line_step(rule: str, arguments: Mapping[str, Any]) -> PackedStep | None:
    """Returns the step that applies a line rule; None where the rule must run in Python."""
    make = _LINE_RULES.get(rule)
    return make(**arguments) if make and _are_supported(arguments) else None


def page_step(function: Callable[..., bool], arguments: Mapping[str, Any], text: PackedText) -> PackedStep | None:
    """Returns the step that tells whether a function of `pages` drops a page; None where Python must apply it.

    Args:
        function: the function. It is given the length of the lines, or a text.
        arguments: its parameters.
        text: which text that is.
    """
    if function is pages.exceeds and _are_supported(arguments):
        return "exceeds", arguments["max_characters"]
    if function is not pages.contains or not _are_supported(arguments):
        return None
    phrases = tuple(arguments["phrases"])
    if not _are_lower(phrases) or (not text.lower and phrases != tuple(map(str.upper, phrases))):
        return None
    return "body_has_phrase" if text.crawled else "has_phrase", phrases


def _are_supported(arguments: Mapping[str, Any]) -> bool:
    """Tells whether the C extension supports the parameters of a rule."""
    for value in arguments.values():
        if isinstance(value, (tuple, list)):
            if len(value) > _MOST_TEXTS or not all(text and text.isprintable() for text in value):
                return False
        elif not (isinstance(value, int) and 0 <= value <= _MOST):
            return False
    return True


def _are_lower(phrases: Sequence[str]) -> bool:
    joined = "".join(phrases)
    return joined.isascii() and joined == joined.lower()


def _metadata_line(starts: Any) -> PackedStep:
    return "drop_starts", tuple(starts)


def _long_word(max_word_length: int) -> PackedStep:
    return "drop_long_words", max_word_length


def _citation(strip: bool) -> PackedStep:
    return "edit_brackets", partial(lines.remove_citation, strip=strip)


def _no_terminal_punctuation(endings: Any, excluded_endings: Any) -> PackedStep:
    return "keep_endings", tuple(endings), tuple(excluded_endings)


def _few_words(min_words_per_line: int) -> PackedStep:
    return "drop_few_words", min_words_per_line


def _phrases(phrases: Any) -> PackedStep | None:
    return ("drop_phrases", tuple(phrases)) if _are_lower(phrases) else None


_LINE_RULES: Mapping[str, Callable[..., PackedStep | None]] = {
    "metadata_line": _metadata_line,
    "long_word": _long_word,
    "citation": _citation,
    "no_terminal_punctuation": _no_terminal_punctuation,
    "few_words": _few_words,
    "javascript": _phrases,
    "policy": _phrases,
}
