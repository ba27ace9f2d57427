"""Quarantine files: what was damaged in a WET file, a line of JSON for each, beside its work file. No Beam."""

import json
from typing import TextIO

from c4pipe.io.atomic import AtomicFile
from c4pipe.io.paths import StoragePath
from c4pipe.wet.records import Damage

MOST = 10_000
"""Damages that a quarantine file lists; the rest is counted in its last line. A hostile file can't fill the disk."""


def quarantine_file(work_file: StoragePath) -> StoragePath:
    """Returns where the quarantine file of a work file is."""
    return work_file.with_name(work_file.name.removesuffix(".parquet") + ".quarantine.jsonl")


class QuarantineWriter:
    """Writes a quarantine file, which appears when it is finished. Without damage there is none.

    A context manager: what is not finished when it is left is removed.
    """

    def __init__(self, work_file: StoragePath, source: str) -> None:
        """Takes the work file that it will lie beside, and the WET file's name, without folders."""
        self._path = quarantine_file(work_file)
        self._whole = AtomicFile(self._path)
        self._source = source
        self._file: TextIO | None = None
        self._count = 0

    def __enter__(self) -> "QuarantineWriter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            try:
                self._file.close()
            finally:
                self._whole.discard()

    def add(self, damage: Damage) -> None:
        """Adds a line, or counts where there are MOST of them."""
        self._count += 1
        if self._count > MOST:
            return
        first = damage.first.decode("utf-8", "backslashreplace")
        values = {"file": self._source, "kind": damage.kind, "offset": damage.offset, "length": damage.length}
        self._write({**values, "first": first})

    def finish(self) -> None:
        """Puts the file in its place; without damage, removes one that an earlier run left."""
        if self._count > MOST:
            self._write({"kind": "more", "count": self._count - MOST})
        if self._file is None:
            self._path.unlink(missing_ok=True)
            return
        self._file.close()
        self._whole.publish()
        self._file = None

    def _write(self, values: dict[str, object]) -> None:
        if self._file is None:
            self._file = self._whole.path.open("w", encoding="ascii", newline="\n")
        # Escaped: the bytes are anyone's. So no terminal obeys them, and any reader of lines finds the same ones.
        self._file.write(json.dumps(values) + "\n")
