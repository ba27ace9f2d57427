"""Missing WET files, which could not be read: a note in the work folder for each. The next run tries them again."""

import json
from collections.abc import Sequence

from c4pipe.display import safe_json
from c4pipe.io import StoragePath, write_text

_ENDING = ".missing.json"

Missing = dict[str, str]
"""The `name` and `path` (or URL) of a WET file, and the `error` that explains why it is missing."""


def note_missing(target: StoragePath, path: str, error: str) -> None:
    """Writes the note that the WET file of the work file `target` is missing, given its path or URL and the error."""
    values = {"name": target.name.removesuffix(".parquet"), "path": path, "error": error}
    write_text(missing_note(target), safe_json(values) + "\n")


def missing_note(target: StoragePath) -> StoragePath:
    """Returns the path of the note about the WET file of the work file `target`."""
    return target.with_name(target.name.removesuffix(".parquet") + _ENDING)


def missing_files(folders: Sequence[StoragePath]) -> list[Missing]:
    """Returns the missing WET files of some work folders, in the order of their names."""
    notes = [json.loads(path.read_text(encoding="utf-8")) for each in folders for path in each.glob(f"*{_ENDING}")]
    return sorted(notes, key=lambda values: str(values["name"]))
