"""Words for mistakes: the reason of an error without numbers and jargon, and the name that a user may have meant."""

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches

_ERRNO = re.compile(r"^\[Errno -?\d+\] (?P<reason>[^:]+)(?:: '(?P<path>.*)')?$")
_SIMILAR = 3  # names in a suggestion, at most


def error_reason(error: BaseException, with_path: bool = False) -> str:
    """Returns why something failed, in a few words: `no such file or directory`, `it is not UTF-8 (byte 12)`.

    Args:
        error: an error of the system, of Arrow, or of a decoder; of any other, its own words are returned.
        with_path: whether the file that an error of the system names is shown: where the sentence has another one.
    """
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 (byte {error.start:,})"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON (line {error.lineno:,}, column {error.colno:,})"
    if isinstance(error, OSError) and error.strerror:
        path = error.filename2 or error.filename
        return f"{path}: {_lower(error.strerror)}" if with_path and path else _lower(error.strerror)
    message = str(error).partition("\n")[0]
    if re.search("magic bytes|Parquet file size is", message):
        return "it is no Parquet file, or it is cut off"
    if re.search("(?i)thrift|Unexpected end of stream|corrupt|Couldn't deserialize|ZSTD", message):
        return "its data are damaged"
    return plain_reason(message)


def plain_reason(message: str) -> str:
    """Returns the message of an error of the system as `PATH: reason`; any other as it is."""
    match = _ERRNO.match(message)
    if match is None:
        return message
    return ": ".join(filter(None, (match["path"], _lower(match["reason"]))))


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]


def suggestion(given: object, known: Iterable[str]) -> str:
    """Returns `; did you mean 'c4'?` where a name is like a known one, else ""."""
    by_lower = {name.lower(): name for name in known}
    lower = str(given).strip().lower()
    near = [name for name in by_lower if name == lower] or [name for name in by_lower if name.startswith(f"{lower}-")]
    near = near or get_close_matches(lower, by_lower, n=_SIMILAR)
    near = near or [name for name in by_lower if len(name) > 2 and lower.startswith(name)]  # jsonl, parquets
    names = " or ".join(repr(by_lower[name]) for name in near[:_SIMILAR])
    return f"; did you mean {names}?" if names else ""
