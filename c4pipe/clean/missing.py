"""Missing WET files could not be read. A note in the work folder names each; the next run tries again."""

from collections.abc import Sequence
from typing import TypedDict

from c4pipe.io.json_files import FileName, read_checked_json, write_checked_json
from c4pipe.io.paths import StoragePath

MISSING_ENDING = ".missing.json"
"""The end of the name of a note; the name of its WET file is before it."""


class Missing(TypedDict):
    """A WET file that could not be read: its name, its path or URL, and the error that explains why."""

    name: FileName
    path: str
    error: str


def note_missing(target: StoragePath, path: str, error: str) -> None:
    """Writes the note that the WET file of the work file `target` is missing, given its path or URL and the error."""
    values: Missing = {"name": target.name.removesuffix(".parquet"), "path": path, "error": error}
    write_checked_json(missing_note(target), values)


def missing_note(target: StoragePath) -> StoragePath:
    """Returns the path of the note about the WET file of the work file `target`."""
    return target.with_name(target.name.removesuffix(".parquet") + MISSING_ENDING)


def missing_files(folders: Sequence[StoragePath]) -> list[Missing]:
    """Returns the missing WET files of some work folders, in the order of their names. Raises DamagedFileError."""
    notes = [read_checked_json(path, Missing) for each in folders for path in each.glob(f"*{MISSING_ENDING}")]
    return sorted(filter(None, notes), key=lambda values: values["name"])
