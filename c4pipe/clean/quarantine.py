"""Quarantine files: a line of JSON for each damage of a WET file, beside its work file."""

import json
from typing import Any, TextIO, TypedDict

from c4pipe.clean.side_files import CleanedFile, SideFile
from c4pipe.errors import DamagedFileError
from c4pipe.io.atomic import AtomicFile, name_os_errors
from c4pipe.io.json_files import from_json, parse_json
from c4pipe.io.paths import StoragePath, read_file
from c4pipe.io.words import URL_SIZE, explain_errors, short
from c4pipe.wet.damage import Damage

MOST_LINES = 10_000
"""Lines of a quarantine file, at most. Its last line counts the rest, so a hostile file can't fill the disk."""

_ENDING = ".quarantine.jsonl"


def quarantine_file(work_file: StoragePath) -> StoragePath:
    """Returns the path of the quarantine file that belongs to a work file."""
    return work_file.with_name(work_file.name.removesuffix(".parquet") + _ENDING)


class _Row(TypedDict, total=False):
    row: int


class Quarantined(_Row):
    """The shown keys of a line of a quarantine file; only text files have the row, from 1."""

    file: str
    kind: str


def read_quarantine(folder: StoragePath, most: int) -> list[Quarantined]:
    """Returns the first lines of the quarantine files in a work folder, `most` at most, in the order of the files.

    Raises DamagedFileError for a file with other lines.
    """
    lines: list[Quarantined] = []
    paths: list[Any] = sorted(folder.glob(f"*{_ENDING}"), key=str)
    for path in paths:
        for line in read_file(path).splitlines():
            if len(lines) == most:
                return lines
            with explain_errors(f"{path} is damaged", "delete it", DamagedFileError, ValueError):
                lines.append(from_json(Quarantined, parse_json(line)))
    return lines


class QuarantineFile(SideFile):
    """The damage of the WET file. Without damage, no file is written."""

    def __init__(self, work_file: StoragePath, source: str, place: str = "offset") -> None:
        """Takes the path of the work file, the WET file's name, and the key of offsets: `row` for files of text."""
        self._path = quarantine_file(work_file)
        self._atomic = AtomicFile(self._path)
        self._source, self._place = source, place
        self._file: TextIO | None = None
        self._count = 0

    def discard(self) -> None:
        """Removes the unfinished file."""
        if self._file is not None:
            try:
                self._file.close()
            finally:
                self._atomic.discard()

    def add_damage(self, damage: Damage) -> None:
        """Adds a line for a damage, or only counts it if the file has MOST_LINES lines."""
        self._count += 1
        if self._count > MOST_LINES:
            return
        first = damage.first.decode("utf-8", "backslashreplace")
        values = {"file": self._source, "kind": damage.kind, self._place: damage.offset, "length": damage.length}
        self._write({**values, "first": first, **({"url": short(damage.url, URL_SIZE)} if damage.url else {})})

    def finish(self, file: CleanedFile | None = None) -> None:
        """Publishes the file. Without damage, removes the file of an earlier run."""
        if self._count > MOST_LINES:
            self._write({"kind": "more", "count": self._count - MOST_LINES})
        if self._file is None:
            self._path.unlink(missing_ok=True)
            return
        with name_os_errors(self._path):
            self._file.close()
        self._atomic.publish()
        self._file = None

    def _write(self, values: dict[str, object]) -> None:
        if self._file is None:
            self._file = self._atomic.path.open("w", encoding="ascii", newline="\n")
        # Escaped, because anybody may have written these bytes: no terminal obeys them, and each stays one line.
        with name_os_errors(self._path):
            self._file.write(json.dumps(values) + "\n")
