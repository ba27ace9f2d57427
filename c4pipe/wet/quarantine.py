"""Quarantine files: list the damage in a WET file, one line of JSON for each, beside its work file."""

import json
from typing import Any, TextIO

from c4pipe.io.atomic import AtomicFile, name_os_errors
from c4pipe.io.paths import StoragePath
from c4pipe.wet.damage import Damage

MOST = 10_000
"""Lines of a quarantine file, at most. Its last line counts the rest, so a hostile file can't fill the disk."""


_ENDING = ".quarantine.jsonl"


def quarantine_file(work_file: StoragePath) -> StoragePath:
    """Returns the path of the quarantine file that belongs to a work file."""
    return work_file.with_name(work_file.name.removesuffix(".parquet") + _ENDING)


def read_quarantine(folder: StoragePath, most: int) -> list[dict[str, Any]]:
    """Returns the first lines of the quarantine files in a work folder, `most` at most, in the order of the files."""
    lines: list[dict[str, Any]] = []
    paths: list[Any] = sorted(folder.glob(f"*{_ENDING}"), key=str)
    for path in paths:
        for line in path.read_bytes().splitlines():
            if len(lines) == most:
                return lines
            lines.append(json.loads(line))
    return lines


class QuarantineWriter:
    """Writes a quarantine file, which appears when it is finished. Without damage no file is written.

    A context manager: on leaving it, a file that is not finished is removed.
    """

    def __init__(self, work_file: StoragePath, source: str, place: str = "offset") -> None:
        """Prepares the file; nothing is written yet.

        Args:
            work_file: the path of the work file that it belongs to.
            source: the WET file's name, without folders.
            place: what the offset of a damage is called: `row` for files of text.
        """
        self._path = quarantine_file(work_file)
        self._atomic = AtomicFile(self._path)
        self._source, self._place = source, place
        self._file: TextIO | None = None
        self._count = 0

    def __enter__(self) -> "QuarantineWriter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            try:
                self._file.close()
            finally:
                self._atomic.discard()

    def add(self, damage: Damage) -> None:
        """Adds a line for a damage, or only counts it if the file has MOST lines."""
        self._count += 1
        if self._count > MOST:
            return
        first = damage.first.decode("utf-8", "backslashreplace")
        values = {"file": self._source, "kind": damage.kind, self._place: damage.offset, "length": damage.length}
        self._write({**values, "first": first})

    def finish(self) -> None:
        """Publishes the file. Without damage, removes the file of an earlier run."""
        if self._count > MOST:
            self._write({"kind": "more", "count": self._count - MOST})
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
