"""Notes from the workers of `clean` to the process that shows how far the job is.

A worker tells of waits for a server, and of a page or file that takes long. It may run on another machine, so a note is
a small file in the work folder, which that process reads and removes.
"""

import contextlib
import json
import logging
import secrets
import time
from collections.abc import Iterable
from typing import Any

from c4pipe.io.atomic import write_text
from c4pipe.io.downloads import Wait
from c4pipe.io.paths import StoragePath

LOG = logging.getLogger("c4pipe")

_ENDING = ".note.tmp"  # the names begin with a dot: what a killed run leaves is removed like its other temporary files


class NoteWriter:
    """Writes notes into the folder of a work file. A note that can't be written is left out: the file itself counts."""

    def __init__(self, target: StoragePath, source: str) -> None:
        """Takes the path of the work file, and the name of its WET file."""
        self._target = target
        self._source = source

    def wait(self, wait: Wait) -> None:
        """Notes that the download of the WET file waits."""
        self._write(
            {
                "text": str(wait),
                "reason": wait.reason,
                "try": wait.failures,
                "tries": wait.tries,
                "seconds": wait.seconds,
            }
        )

    def slow(self, text: str) -> None:
        """Notes, in a sentence, that something takes long."""
        self._write({"slow": text})

    def _write(self, values: dict[str, Any]) -> None:
        path = self._target.with_name(f".{time.time_ns()}-{secrets.token_hex(4)}{_ENDING}")
        with contextlib.suppress(OSError):
            write_text(path, json.dumps({"file": self._source, "time": time.time(), **values}))


class NoteReader:
    """Reads the notes of all workers.

    Attributes:
        waits: what the last call of `read` found: the waits that began since the one before, as JSON values.
        slow: the sentences that it found.
    """

    def __init__(self, folder: StoragePath) -> None:
        self._folder = folder
        self._latest: dict[str, dict[str, Any]] = {}  # the last wait of each file
        self.waits: list[dict[str, Any]] = []
        self.slow: list[str] = []

    def read(self, names: Iterable[str]) -> None:
        """Reads and removes the notes among the names in the folder, and logs each wait."""
        self.waits, self.slow = [], []
        for name in sorted(name for name in names if name.endswith(_ENDING)):
            path = self._folder / name
            note = json.loads(path.read_text("utf-8"))
            path.unlink(missing_ok=True)
            if "slow" in note:
                self.slow.append(note["slow"])
                continue
            self._latest[note["file"]] = note
            self.waits.append({key: note[key] for key in ("file", "reason", "try", "tries", "seconds")})
            LOG.info("waits: %s: %s", note["file"], note["text"])

    def words(self) -> str:
        """Returns the latest of the waits that last, and how many there are: `, 2 wait: HTTP status 503 from ...`."""
        now = time.time()
        self._latest = {file: note for file, note in self._latest.items() if now < note["time"] + note["seconds"]}
        if not self._latest:
            return ""
        note = max(self._latest.values(), key=lambda each: each["time"])
        left = max(1.0, note["time"] + note["seconds"] - now)
        text = f"{note['text'].rpartition(', ')[0]}, next in {left:.0f} s"
        return f", {len(self._latest)} wait: {text}" if len(self._latest) > 1 else f", waits: {text}"


def remove_notes(folder: StoragePath) -> None:
    """Removes the notes that nobody has read: without progress and log, there is no reader."""
    for path in folder.glob(f".*{_ENDING}"):
        path.unlink(missing_ok=True)
