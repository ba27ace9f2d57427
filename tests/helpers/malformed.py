"""Malformed copies of JSON files, made systematically: each field missing, of a wrong type, out of range, hostile."""

import copy
import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

Path = tuple[str | int, ...]

HOSTILE = (
    "../../../evil",
    "/etc/passwd",
    "..",
    "",
    "a/../../b",
    "x" * 300,
    "a\x00b",
    "\x1b[2J",
    "\ud800",
    "x" * 100_000,
)
"""Names that lead elsewhere, or that no file of c4pipe has."""

RAW = {
    "empty": b"",
    "no JSON": b"neither JSON nor anything else",
    "cut": b'{"format": "c4pipe corpus", "vers',
    "a list": b"[]",
    "null": b"null",
    "a text": b'"c4pipe corpus"',
    "a number": b"3",
    "an empty object": b"{}",
    "not UTF-8": b'{"format": "\xff\xfe"}',
    "UTF-16": '{"format": 1}'.encode("utf-16"),
    "NUL": b"\0" * 1000,
    "nested lists": b"[" * 100_000,
    "nested objects": b'{"version":' * 100_000,
    "5,000 digits": b'{"version": ' + b"9" * 5000 + b"}",
    "10 MB of a number": b'{"version": ' + b"9" * 10_000_000 + b"}",
    "infinity": b'{"version": Infinity}',
}
"""Bytes that are no such file, whatever it is."""


def malformed(
    values: dict[str, Any], names: Collection[str], unread: Collection[str], counters: Collection[str]
) -> Iterator[tuple[str, bytes]]:
    """Yields (description, bytes) for each malformed copy of a JSON object.

    Args:
        values: the object as c4pipe writes it.
        names: the fields that are names or paths of files: hostile ones are put there.
        unread: the fields that c4pipe does not read, or takes with any value: these are left as they are.
        counters: the fields that are objects with any names: of each, only the first name gets other values.
    """
    for path, value in _places(values, counters):
        name = next((str(each) for each in reversed(path) if isinstance(each, str)), "")
        if _shown(path) in unread or any(str(each) in unread for each in path):
            continue
        if not isinstance(path[-1], int) and (path[-2:-1] or [""])[0] not in counters:
            yield f"without {_shown(path)}", _dumped(_without(values, path))
        for other in (*_wrong(value), *(HOSTILE if name in names and isinstance(value, str) else ())):
            yield f"{_shown(path)} = {ascii(other)[:20]}", _dumped(_with(values, path, other))


def _places(value: Any, counters: Collection[str], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yields each place of a value with what is there; of a list and of counters only the first."""
    if path:
        yield path, value
    if isinstance(value, dict):
        one = 1 if path and path[-1] in counters else len(value)
        for name in list(value)[:one]:
            yield from _places(value[name], counters, (*path, name))
    elif isinstance(value, list) and value:
        yield from _places(value[0], counters, (*path, 0))


def _wrong(value: Any) -> Sequence[Any]:
    """Returns values of another type than a value, or far out of its range."""
    if isinstance(value, bool):
        return (None, 1, "true")
    if isinstance(value, int):
        return (None, -1, 2**70, 0.5, "1", True, [1])
    if isinstance(value, float):
        return (None, -0.5, 1e300, "0.5", [0.5])
    if isinstance(value, str):
        return (7, ["x"], {"a": "b"})
    return (None, 7, "x", {} if isinstance(value, list) else [], _nested(300))


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def _with(values: Any, path: Path, other: Any) -> Any:
    changed = copy.deepcopy(values)
    inside = changed
    for each in path[:-1]:
        inside = inside[each]
    inside[path[-1]] = other
    return changed


def _without(values: Any, path: Path) -> Any:
    changed = copy.deepcopy(values)
    inside = changed
    for each in path[:-1]:
        inside = inside[each]
    del inside[path[-1]]
    return changed


def _shown(path: Path) -> str:
    return ".".join(map(str, path))


def _dumped(values: Any) -> bytes:
    return json.dumps(values).encode()
