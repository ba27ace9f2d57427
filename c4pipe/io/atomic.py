"""Files that appear complete or not at all, and small files of JSON and text."""

import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

from c4pipe.display import error_reason
from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath


class AtomicFile:
    """A file that appears complete or not at all: write it at `path`, then publish it.

    Attributes:
        path: a temporary file on this machine.
    """

    def __init__(self, target: StoragePath) -> None:
        self._target = target
        # the token, because two machines that share a drive can have processes with the same id
        name = f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        self.path = target.with_name(name) if isinstance(target, Path) else Path(tempfile.gettempdir(), name)

    def publish(self) -> None:
        """Moves the file to its target and replaces an existing one. Raises OSError."""
        if isinstance(self._target, Path):
            self.path.replace(self._target)
        else:
            self._target.upload(self.path)
            self.path.unlink()

    def discard(self) -> None:
        """Removes the temporary file, if it was not published."""
        self.path.unlink(missing_ok=True)


def read_json(path: StoragePath) -> dict[str, Any] | None:
    """Returns the object in a JSON file, or None where the file does not exist. Raises UsageError for other content."""
    try:
        values: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error_reason(error)}") from error
    return values


def write_text(target: StoragePath, text: str) -> None:
    """Writes a text file in UTF-8 that appears complete or not at all. Raises OSError."""
    write_bytes(target, text.encode())


def write_bytes(target: StoragePath, data: bytes) -> None:
    """Writes a file that appears complete or not at all. Raises OSError."""
    file = AtomicFile(target)
    try:
        file.path.write_bytes(data)
        file.publish()
    finally:
        file.discard()
