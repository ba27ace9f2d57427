"""JSON files between two runs, with a digest of their content: what was damaged or edited is not used."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from c4pipe.errors import DamagedFileError
from c4pipe.io.atomic import write_bytes
from c4pipe.io.json_file import read_bytes
from c4pipe.io.paths import StoragePath
from c4pipe.io.records import Record, from_json, parse_json

_DIGEST = "sha256"  # the member that has the digest of all others


def encode_checked_json(values: Mapping[str, Any]) -> bytes:
    """Returns an object with its digest as JSON, in ASCII, so that it is safe to show on a terminal.

    Each value is on a line of its own; of a list of objects, each object.
    """
    members = {_DIGEST: _digest(values), **values}
    lines = ",\n".join(f"{json.dumps(name)}: {_dump(value)}" for name, value in members.items())
    return f"{{\n{lines}\n}}\n".encode()


def decode_checked_json(data: bytes, name: object, kind: type[Record]) -> Record:
    """Returns the record that `encode_checked_json` took; of the class `dict`, any object.

    Raises DamagedFileError, with the name, for other content.
    """
    try:
        values = from_json(dict, parse_json(data))
        if values.pop(_DIGEST, None) != _digest(values):
            raise ValueError("its digest differs")
        return from_json(kind, values)
    except ValueError:
        raise DamagedFileError(
            f"{name} is damaged: its content is not what c4pipe wrote; delete it and run that job again"
        ) from None


def write_checked_json(target: StoragePath, values: Mapping[str, Any]) -> None:
    """Writes an object with its digest to a JSON file. Raises OSError."""
    write_bytes(target, encode_checked_json(values))


def read_checked_json(path: StoragePath, kind: type[Record]) -> Record | None:
    """Returns the record that `write_checked_json` wrote, or None where the file does not exist.

    Raises DamagedFileError where it was changed since or is another record, OSError where it can't be read.
    """
    try:
        return decode_checked_json(read_bytes(path), path, kind)
    except FileNotFoundError:
        return None


def read_intact_json(path: StoragePath, kind: type[Record]) -> Record | None:
    """Returns what `read_checked_json` returns, and None also for a damaged file: one that will be made anew."""
    try:
        return read_checked_json(path, kind)
    except DamagedFileError:
        return None


def _dump(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
