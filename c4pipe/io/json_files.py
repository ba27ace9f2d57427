"""JSON files: read and written whole, checked by their digest and by the types of a record."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from itertools import zip_longest
from math import isfinite
from typing import Annotated, Any, Literal, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints, is_typeddict

from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.io.atomic import FileBatch, write_bytes
from c4pipe.io.paths import StoragePath, read_file
from c4pipe.io.words import error_reason, safe_json

_MOST_TEXT = 1 << 16  # characters of a text
_MOST_NUMBER = 2**63 - 1

Check = Callable[[Any, str], Any]
"""Takes a value of JSON and its place, and returns the value for the record, mostly the same one.

Raises ValueError, with the place, for a wrong value.
"""

_Record = TypeVar("_Record")


def parse_json(data: bytes | str) -> Any:
    """Returns the value of a JSON text. Raises ValueError, with the reason, for invalid JSON."""
    try:
        return json.loads(data if isinstance(data, str) else data.decode("utf-8"))
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def from_json(kind: type[_Record], value: Any, place: str = "") -> _Record:
    """Returns a record of a class, given a value of JSON and its place. Raises ValueError for any other value."""
    return cast(_Record, check_of(cast(Any, kind))(value, place))


def to_json(record: Any) -> dict[str, Any]:
    """Returns the members of a dataclass, in their order, as values of JSON."""
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    return {name: value.to_json() if hasattr(value, "to_json") else value for name, value in values.items()}


@cache
def check_of(hint: Any) -> Check:
    """Returns the check of a type hint: a class of records, or the type of a member."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return cast(Check, inside[1])
    if origin is Literal:
        return choice(*inside)
    if origin in (Mapping, dict):
        return mapping(check_of(inside[0]), check_of(inside[1]))
    if origin in (Sequence, list):
        return sequence(check_of(inside[0]))
    if is_typeddict(hint) or is_dataclass(hint):
        return _make_record_check(hint)
    return _PLAIN[hint]


def _make_record_check(kind: Any) -> Check:
    """Returns the check of an object with the members of a TypedDict or dataclass."""
    if is_typeddict(kind):
        needed = kind.__required_keys__
    else:
        needed = {each.name for each in fields(kind) if each.default is MISSING}
    checks = {name: check_of(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}

    def check(value: Any, place: str) -> Any:
        _expect(isinstance(value, dict), value, place, "an object")
        found = {}
        for name, each in checks.items():
            if name in value:
                found[name] = each(value[name], _join_place(place, name))
            elif name in needed:
                raise ValueError(f"it has no {_join_place(place, name)}")
        return value if is_typeddict(kind) else kind(**found)

    return check


def mapping(key: Check, each: Check) -> Check:
    """Returns the check of an object with any number of members, given the checks of a name and a value."""

    def check(value: Any, place: str) -> Any:
        _expect(isinstance(value, dict), value, place, "an object")
        for name, inner in value.items():
            key(name, f"a name in {place or 'it'}")
            each(inner, _join_place(place, name))
        return value

    return check


def sequence(each: Check) -> Check:
    """Returns the check of a list."""

    def check(value: Any, place: str) -> Any:
        _expect(isinstance(value, list), value, place, "a list")
        for number, inner in enumerate(value):
            each(inner, f"{place}[{number}]")
        return value

    return check


def whole(least: int = 0, most: int = _MOST_NUMBER) -> Check:
    """Returns the check of a whole number in a range."""
    wanted = f"a whole number from {least} to {most}"
    return _check_that(lambda value: _is_number(value, int) and least <= value <= most, wanted)


def text(pattern: str = "(?s).*", wanted: str = "a text") -> Check:
    """Returns the check of a text that matches a pattern, from its start to its end; `wanted` describes it."""
    compiled = re.compile(pattern)

    def holds(value: Any) -> bool:
        is_text = isinstance(value, str) and len(value) <= _MOST_TEXT and compiled.fullmatch(value) is not None
        # JSON can have half of a surrogate pair, but no file of c4pipe does
        return is_text and value == value.encode("utf-8", "replace").decode()

    return _check_that(holds, wanted)


def choice(*values: str | int) -> Check:
    """Returns the check of a value that must be one of the given values."""
    wanted = " or ".join(map(repr, values))
    return _check_that(lambda value: any(type(value) is type(each) and value == each for each in values), wanted)


def _check_that(holds: Callable[[Any], bool], wanted: str) -> Check:
    """Returns the check of a value for which a function is true."""
    return lambda value, place: _expect(holds(value), value, place, wanted)


def _is_number(value: Any, kinds: Any = (int, float)) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


_PLAIN: dict[Any, Check] = {
    Any: lambda value, place: value,
    bool: _check_that(lambda value: isinstance(value, bool), "true or false"),
    dict: _check_that(lambda value: isinstance(value, dict), "an object"),
    float: _check_that(lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    int: whole(),
    str: text(),
}


class Versioned(TypedDict):
    """The members that are read first: they tell the kind of a record."""

    format: Any
    version: Any


Digest = Annotated[str, text("[0-9a-f]{64}", "a SHA-256 in hex")]
FiniteNumber = Annotated[float, _check_that(lambda value: _is_number(value) and isfinite(value), "a number")]
FileName = Annotated[str, text(r"(?!\.\.?$)[^/\x00-\x1f\x7f]{1,255}", "the name of a file")]


def _expect(holds: bool, value: Any, place: str, wanted: str) -> Any:
    if not holds:
        raise ValueError(f"{place or 'it'} is {shown(value)} instead of {wanted}")
    return value


def _join_place(place: str, name: str) -> str:
    words = name if name.isidentifier() and name.isascii() and len(name) < 60 else shown(name)
    return f"{place}.{words}" if place else words


def shown(value: Any) -> str:
    """Returns any value of JSON in a few ASCII characters."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    words = ascii(value[:60] if isinstance(value, str) else value)
    return words if len(words) <= 80 else f"{words[:77]}..."


def read_json(path: StoragePath, kind: type[_Record]) -> _Record | None:
    """Returns the record in a JSON file, or None if the file does not exist. Raises UsageError for other content.

    The class `dict` takes an object with any members, also of another program.
    """
    try:
        values = parse_json(read_file(path))
        return from_json(kind, values) if kind is dict else unchanged(kind, values)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error_reason(error)}") from error


_DIGEST = "sha256"  # the member that has the digest of all others


def unchanged(kind: type[_Record], values: Any, check: Callable[[_Record], None] | None = None) -> _Record:
    """Returns the record that `write_json` wrote, given the values of its file.

    A file without a digest is accepted: an earlier version wrote it, or a person deleted the digest.

    Args:
        kind: the class of the record.
        values: the values of the file.
        check: raises ValueError if numbers of the record contradict each other (see `check_sum`).

    Raises ValueError for another record, or if the file was changed after it was written.
    """
    record = from_json(kind, values)
    if check:
        check(record)
    if _DIGEST in values and values[_DIGEST] != _compute_digest(values):
        raise ValueError(
            f"it was changed after c4pipe wrote it, as its {_DIGEST} shows "
            f'(delete the line "{_DIGEST}" there to accept the change)'
        )
    return record


def check_sum(name: str, number: int, right: int, source: str) -> None:
    """Raises ValueError if a number of a file differs from the right one, which the source gives."""
    if number != right:
        raise ValueError(f"{name} is {number:,}, but by {source} it is {right:,}")


def find_difference(first: Any, second: Any, place: str) -> tuple[str, Any, Any] | None:
    """Returns the place of the first difference between two values of JSON, and both values there; None without one."""
    pairs: Iterable[tuple[str, Any, Any]] = ()
    if isinstance(first, dict) and isinstance(second, dict):
        pairs = ((_join_place(place, each), first.get(each), second.get(each)) for each in {**first, **second})
    elif isinstance(first, list) and isinstance(second, list):
        both = enumerate(zip_longest(first, second))
        pairs = ((f"{place}[{number}]", one, other) for number, (one, other) in both)
    elif first != second:
        return place, first, second
    return next(filter(None, (find_difference(one, other, inner) for inner, one, other in pairs)), None)


def check_equal(first: Any, second: Any, source: str, place: str) -> None:
    """Raises ValueError, with the place of the difference, unless two values of JSON are equal."""
    if found := find_difference(first, second, place):
        raise ValueError(f"{found[0]} is {shown(found[1])}, but by {source} it is {shown(found[2])}")


def write_json(target: StoragePath, values: _Record) -> _Record:
    """Writes an object with its digest to a JSON file that people read, a value a line; returns the content.

    Raises OSError.
    """
    others = json.loads(json.dumps(values))  # names are texts
    others.pop(_DIGEST, None)  # of a record that was read
    stored = {_DIGEST: _compute_digest(others), **others}
    write_bytes(target, f"{safe_json(stored, indent=1)}\n".encode())
    return cast(_Record, stored)


def encode_checked_json(values: Mapping[str, Any]) -> bytes:
    """Returns an object with its digest as JSON in ASCII, a value a line, or an object of a list a line."""
    members = {_DIGEST: _compute_digest(values), **values}
    lines = ",\n".join(f"{json.dumps(name)}: {_dump(value)}" for name, value in members.items())
    return f"{{\n{lines}\n}}\n".encode()


def decode_checked_json(data: bytes, name: object, kind: type[_Record]) -> _Record:
    """Returns the record that `encode_checked_json` took. Raises DamagedFileError, with the name, for other content."""
    try:
        values = from_json(dict, parse_json(data))
        if values.get(_DIGEST) != _compute_digest(values):
            raise ValueError("its digest differs")
        del values[_DIGEST]
        return from_json(kind, values)
    except ValueError:
        raise DamagedFileError(
            f"{name} is damaged: its content is not what c4pipe wrote; delete it and run that job again"
        ) from None


def write_checked_json(target: StoragePath, values: Mapping[str, Any], batch: FileBatch | None = None) -> None:
    """Writes an object with its digest to a JSON file: at once, or with a batch. Raises OSError."""
    write_bytes(target, encode_checked_json(values), batch)


def read_checked_json(path: StoragePath, kind: type[_Record]) -> _Record | None:
    """Returns the record that `write_checked_json` wrote, or None if the file does not exist.

    Raises DamagedFileError if it was changed or is another record, OSError if it can't be read.
    """
    try:
        return decode_checked_json(read_file(path), path, kind)
    except FileNotFoundError:
        return None


def read_intact_json(path: StoragePath, kind: type[_Record]) -> _Record | None:
    """Works as `read_checked_json`, but returns None for a damaged file, which is made again."""
    try:
        return read_checked_json(path, kind)
    except DamagedFileError:
        return None


def _dump(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)


def _compute_digest(values: Mapping[str, Any]) -> str:
    others = {name: value for name, value in values.items() if name != _DIGEST}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()
