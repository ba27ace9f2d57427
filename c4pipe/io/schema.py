"""The shape of the JSON files that c4pipe reads: each value of a foreign file is checked before it is used.

A check is a function of a value and its place. It returns nothing, and raises ValueError, with the place, for a value
of another type or out of range. Fields that a check does not name are let pass, and nobody reads them.
"""

import errno
import json
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

MOST_BYTES = 1 << 28
"""The size of the largest JSON file that is read: the manifest of 100,000 inputs and a million shards is smaller."""

_MOST_TEXT = 1 << 16  # characters of a text
_MOST_NUMBER = 2**63 - 1

Check = Callable[[Any, str], None]


class RemoteFile(Protocol):
    """A file in a store or on a web server: `RemotePath`, `WebPath`, whose modules import this one."""

    def read_bytes(self, most: int) -> bytes:
        """Returns the bytes of a file. Raises OSError where it has more than `most`."""


def parse_json(data: bytes, check: Check) -> Any:
    """Returns the value of a JSON file, given its bytes. Raises ValueError, with the reason, where a check fails."""
    try:
        value = json.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    check(value, "")
    return value


def read_bytes(path: Path | RemoteFile) -> bytes:
    """Returns the bytes of a file of at most MOST_BYTES. Raises OSError for a larger one, a pipe or a device."""
    if not isinstance(path, Path):
        return path.read_bytes(MOST_BYTES)
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # reading could block, or never end
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES:,} bytes", str(path))
    return data


def anything(value: Any, place: str) -> None:
    """Lets any value pass."""


def record(fields: Mapping[str, Check]) -> Check:
    """Returns the check of an object with these fields."""

    def check(value: Any, place: str) -> None:
        _expect(isinstance(value, dict), value, place, "an object")
        for name, each in fields.items():
            if name not in value:
                raise ValueError(f"it has no {_inside(place, name)}")
            each(value[name], _inside(place, name))

    return check


def mapping(key: Check, each: Check) -> Check:
    """Returns the check of an object with any number of fields, given the checks of a name and a value."""

    def check(value: Any, place: str) -> None:
        _expect(isinstance(value, dict), value, place, "an object")
        for name, inner in value.items():
            key(name, f"a name in {place or 'it'}")
            each(inner, _inside(place, name))

    return check


def sequence(each: Check) -> Check:
    """Returns the check of a list."""

    def check(value: Any, place: str) -> None:
        _expect(isinstance(value, list), value, place, "a list")
        for number, inner in enumerate(value):
            each(inner, f"{place}[{number}]")

    return check


def whole(least: int = 0, most: int = _MOST_NUMBER) -> Check:
    """Returns the check of a whole number in a range."""

    def check(value: Any, place: str) -> None:
        holds = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        _expect(holds, value, place, f"a whole number from {least} to {most}")

    return check


def number(value: Any, place: str) -> None:
    """Checks a number from 0 to 1."""
    holds = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    _expect(holds, value, place, "a number from 0 to 1")


def flag(value: Any, place: str) -> None:
    """Checks true or false."""
    _expect(isinstance(value, bool), value, place, "true or false")


def text(pattern: str = "(?s).*", wanted: str = "a text") -> Check:
    """Returns the check of a text that matches a pattern, from its start to its end; `wanted` describes it."""
    compiled = re.compile(pattern)

    def check(value: Any, place: str) -> None:
        holds = isinstance(value, str) and len(value) <= _MOST_TEXT and compiled.fullmatch(value) is not None
        # half of a surrogate pair, which JSON can have, is in no file that c4pipe writes
        _expect(holds and value == value.encode("utf-8", "replace").decode(), value, place, wanted)

    return check


def choice(*values: str | int) -> Check:
    """Returns the check of a value that is one of some."""

    def check(value: Any, place: str) -> None:
        holds = any(type(value) is type(each) and value == each for each in values)
        _expect(holds, value, place, " or ".join(map(repr, values)))

    return check


DIGEST = text("[0-9a-f]{64}", "a SHA-256 in hex")
FILE_NAME = text(r"(?!\.\.?$)[^/\x00-\x1f\x7f]{1,255}", "the name of a file")


def _expect(holds: bool, value: Any, place: str, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{place or 'it'} is {shown(value)} instead of {wanted}")


def _inside(place: str, name: str) -> str:
    words = name if name.isidentifier() and name.isascii() and len(name) < 60 else shown(name)
    return f"{place}.{words}" if place else words


def shown(value: Any) -> str:
    """Returns a few characters of ASCII for any value of JSON."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    words = ascii(value[:60] if isinstance(value, str) else value)
    return words if len(words) <= 80 else f"{words[:77]}..."
