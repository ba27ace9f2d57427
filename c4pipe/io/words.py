"""Words for people: text that is safe to show, excerpts, sizes and times, the reasons of errors, and suggestions.

Text of web pages, URLs and file names can hold anything. A control character can move the cursor or change colours, a
direction mark can turn a line around, a lone surrogate can't be written at all.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from c4pipe.errors import UsageError, hide_secrets

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Stands for a character that can't be shown."""

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""A control character, or half of a surrogate pair: no name and no line of text has one."""

_MOST_LANGUAGES = 8  # that are named

JOINERS = "\u200c\u200d"
"""The zero-width joiners, which the spelling of some scripts needs."""


def visible(text: str, keep: str = "") -> str:
    """Returns a text that keeps every printable character, and has no character that a terminal would obey.

    White space other than the space becomes a space. Any other character that Python does not call printable (control
    and format characters, surrogates, unassigned code points) becomes U+FFFD. The length stays the same.

    Args:
        text: any text.
        keep: characters that stay as they are, such as a newline or `JOINERS`.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _stand_in(each) for each in text)


def safe_json(values: Any, indent: int | None = None) -> str:
    """Returns values as JSON that a terminal can show: unprintable characters are escapes such as `\\u202e`."""
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    return "\n".join(line if line.isprintable() else _escape_unprintable(line) for line in text.split("\n"))


def _escape_unprintable(line: str) -> str:
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def _stand_in(character: str) -> str:
    return " " if character.isspace() else REPLACEMENT


SIZE = 400
"""About the number of characters of an excerpt."""

URL_SIZE = 200
"""The largest number of characters of a URL that are shown."""

_BEFORE = 120  # characters before the marked part, at most
_MARKED = 200  # characters of the marked part, at most

Excerpt = list[str]
"""Pieces of text; those at odd indexes are marked."""


def excerpt(text: str, start: int = 0, end: int = 0) -> Excerpt:
    """Returns the part of a text around the characters from `start` to `end`, which are marked; `…` shows a cut.

    Without characters to mark (`start >= end`), it returns the beginning of the text.
    """
    if start >= end:
        return [short(text, SIZE)]
    first = max(0, start - _BEFORE)
    before = ("…" if first else "") + text[first:start]
    marked = short(text[start:end], _MARKED)
    return [before, marked, short(text[end : end + SIZE], SIZE - len(before) - len(marked))]


def short(text: str, size: int) -> str:
    """Returns at most `size` characters of a text; the last one is `…` if the text was cut."""
    return text if len(text) <= size else text[: size - 1] + "…"


def short_repr(value: object, *facts: object) -> str:
    """Returns the `repr` of an object in one line: `<Reader: corpus, 32 documents>`."""
    return visible(hide_secrets(f"<{type(value).__name__}: {', '.join(map(str, facts))}>"))


def format_languages(codes: Sequence[str]) -> str:
    """Returns languages in a few words: `languages de,en`, or `101 languages`."""
    return f"languages {','.join(codes)}" if len(codes) <= _MOST_LANGUAGES else f"{len(codes)} languages"


def format_number(value: float) -> str:
    """Returns a number of things with three digits: `2.63 billion`."""
    return _format_rounded(value, ("", " thousand", " million", " billion", " trillion"))


def format_size(value: float) -> str:
    """Returns a number of bytes with three digits, in powers of 1000: `7.91 TB`."""
    return _format_rounded(value, (" B", " kB", " MB", " GB", " TB", " PB"))


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Returns an exact number of things: `1 file`, `72,000 files`. The plural is the noun with an s, unless given."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def left_out(paths: Sequence[str], reason: str) -> str:
    """Returns a sentence about files that are left out: the first of them, how many there are, and why."""
    return f"{paths[0]} is left out{f' (one of {len(paths):,} such files)' * (len(paths) > 1)}: {reason}"


def format_duration(seconds: float) -> str:
    """Returns a time in its two largest units: `3 d 4 h`, `5 h 12 min`, `40 s`."""
    units = {"d": 86400, "h": 3600, "min": 60, "s": 1}
    left = round(seconds)
    words: list[str] = []
    for name, length in units.items():
        amount, left = divmod(left, length)
        if amount or words:
            words.append(f"{amount} {name}")
        if len(words) == 2:
            break
    return " ".join(words) or "less than a second"


def format_clock(seconds: float) -> str:
    """Returns a time in hours, minutes and seconds: `0:12:34`."""
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{left:02}"


def format_core_time(seconds: float) -> str:
    """Returns CPU seconds: `1,950 core-hours`, or as a duration below ten hours."""
    return f"{seconds / 3600:,.0f} core-hours" if seconds >= 36000 else format_duration(seconds)


def format_cost(seconds: float, text_bytes: int) -> str:
    """Returns CPU seconds for some bytes of text as CPU-hours for a terabyte (10^12 bytes): `10.6 CPU-hours a TB`."""
    hours = seconds / 3600 / (text_bytes / 1e12)
    digits = 0 if hours >= 100 else 1
    return f"{hours:,.{digits}f} CPU-hours a TB"


def _format_rounded(value: float, units: tuple[str, ...]) -> str:
    """Returns a value in the largest unit that keeps it at 1 or more; each unit is 1000 times the one before."""
    index = 0
    while value >= 1000 and index < len(units) - 1:
        value, index = value / 1000, index + 1
    digits = 0 if index == 0 or value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}{units[index]}"


_ERRNO = re.compile(r"^\[Errno -?\d+\] (?P<reason>[^:]+)(?:: '(?P<path>.*)')?$")
_SIMILAR = 3  # names in a suggestion, at most


def error_reason(error: BaseException, with_path: bool = False, of: object = "") -> str:
    """Returns why something failed, in a few words: `no such file or directory`, `it is not UTF-8 (byte 12)`.

    Args:
        error: an error of the system, of Arrow, or of a decoder; of any other error, its words without secrets of URLs.
        with_path: whether to show the file of a system error, because the sentence names another file.
        of: the file or URL that the sentence names already, and that is removed from the start of the error.
    """
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 (byte {error.start:,})"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON (line {error.lineno:,}, column {error.colno:,})"
    if isinstance(error, OSError) and error.strerror:
        path = error.filename2 or error.filename
        reason = _lower_first(error.strerror)
        return hide_secrets(f"{path}: {reason}") if with_path and path else reason
    message = hide_secrets(str(error).partition("\n")[0]).removeprefix(f"{hide_secrets(str(of))}: ")
    if re.search("magic bytes|Parquet file size is", message):
        return "it is no Parquet file, or it is cut off"
    if re.search("(?i)thrift|Unexpected end of stream|corrupt|Couldn't deserialize|ZSTD", message):
        return "its data are damaged"
    return plain_reason(message)


FILE_ERRORS = (OSError, ValueError)
"""What reading a file of text, JSON or a model raises if the file is missing, or has other content."""


@contextlib.contextmanager
def explain_errors(
    what: str,
    advice: str = "",
    kind: Callable[[str], Exception] = UsageError,
    errors: type[Exception] | tuple[type[Exception], ...] = OSError,
    **reason: Any,
) -> Iterator[None]:
    """Turns errors into one sentence for the user: `WHAT: REASON; ADVICE`.

    Args:
        what: what failed, such as `list.txt can't be read`.
        advice: what the user can do, if the reason does not say it.
        kind: the class of the error that is raised.
        errors: the classes of the errors that are caught.
        reason: the other arguments of `error_reason`.
    """
    try:
        yield
    except errors as error:
        raise kind(f"{what}: {error_reason(error, **reason)}{advice and f'; {advice}'}") from error


@contextlib.contextmanager
def locate_errors(place: object) -> Iterator[None]:
    """Puts a place, such as a file or an option, before the sentence of a UsageError."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def plain_reason(message: str) -> str:
    """Returns the message of an error of the system as `PATH: reason`; the message of any other error unchanged."""
    match = _ERRNO.match(message)
    if match is None:
        return message
    return ": ".join(filter(None, (match["path"], _lower_first(match["reason"]))))


def _lower_first(words: str) -> str:
    return words[:1].lower() + words[1:]


def suggestion(given: object, known: Iterable[str]) -> str:
    """Returns `; did you mean 'c4'?` if a name is similar to a known name, else ""."""
    by_lower = {name.lower(): name for name in known}
    lower = str(given).strip().lower()
    near = [name for name in by_lower if name == lower] or [name for name in by_lower if name.startswith(f"{lower}-")]
    near = near or get_close_matches(lower, by_lower, n=_SIMILAR)
    near = near or [name for name in by_lower if len(name) > 2 and lower.startswith(name)]  # jsonl, parquets
    names = " or ".join(repr(by_lower[name]) for name in near[:_SIMILAR])
    return f"; did you mean {names}?" if names else ""


def first_of(words: Sequence[str], most: int = 5) -> list[str]:
    """Returns the first of some words or sentences, and the number of the others."""
    more = len(words) - most
    return [*words[:most], *([f"and {more:,} more"] if more > 0 else [])]


def key_values(values: Mapping[str, object]) -> str:
    """Returns values as one line: `name=value other=value`."""
    return " ".join(f"{name}={value}" for name, value in values.items())
