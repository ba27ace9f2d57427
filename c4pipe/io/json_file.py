"""Reads JSON files, which can come from anyone: not more bytes than such a file has, and only of regular files."""

import errno
import stat
from pathlib import Path

from c4pipe.errors import UsageError
from c4pipe.io.paths import RemotePath, StoragePath
from c4pipe.io.records import Record, from_json, parse_json
from c4pipe.io.streams import WebPath
from c4pipe.io.words import error_reason

MOST_BYTES = 1 << 28
"""The size of the largest JSON file that is read: the manifest of 100,000 inputs and a million shards is smaller."""


def read_bytes(path: Path | RemotePath | WebPath) -> bytes:
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


def read_json(path: StoragePath, kind: type[Record]) -> Record | None:
    """Returns the record in a JSON file, or None where the file does not exist.

    Args:
        path: the file.
        kind: the class of the record; `dict` for an object with any members.

    Raises UsageError for other content.
    """
    try:
        return from_json(kind, parse_json(read_bytes(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error_reason(error)}") from error
