"""Files that appear whole or not at all."""

import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath


class AtomicFile:
    """A file that appears whole or not at all.

    Attributes:
        path: where to write it, on this machine.
    """

    def __init__(self, target: StoragePath) -> None:
        self._target = target
        # the token because machines that share a drive can have a process of the same number
        name = f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        self.path = target.with_name(name) if isinstance(target, Path) else Path(tempfile.gettempdir(), name)

    def publish(self) -> None:
        """Puts the file in its place, over one that is there."""
        if isinstance(self._target, Path):
            self.path.replace(self._target)
        else:
            self._target.upload(self.path)
            self.path.unlink()

    def discard(self) -> None:
        """Removes what was written, unless it was published."""
        self.path.unlink(missing_ok=True)


def read_json(path: StoragePath) -> dict[str, Any] | None:
    """Returns the object in a file of JSON, or None where there is no such file. Raises UsageError for another one."""
    try:
        values: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error}") from error
    return values


def write_text(target: StoragePath, text: str) -> None:
    """Writes a file, UTF-8, whole or not at all. Raises OSError."""
    write_bytes(target, text.encode())


def write_bytes(target: StoragePath, data: bytes) -> None:
    """Writes a file, whole or not at all. Raises OSError."""
    whole = AtomicFile(target)
    try:
        whole.path.write_bytes(data)
        whole.publish()
    finally:
        whole.discard()
