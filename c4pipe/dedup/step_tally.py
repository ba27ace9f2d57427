"""How many pages each step of job 2 has handled: small files beside the shuffle's, written by workers, read by the run.

They are in the spill folder, so only workers on this machine have them.
"""

import contextlib
import os
import struct
import uuid
from collections import Counter
from pathlib import Path

_COUNT = struct.Struct("<Q")
_ENDING = ".tally"


class StepTally:
    """Counts pages for one step in one worker."""

    def __init__(self, folder: str, step: str) -> None:
        """Takes the spill folder, empty if there is none, and the name of the step."""
        self._path = Path(folder) / f"{step}-{uuid.uuid4().hex}{_ENDING}" if folder else None
        self._file: int | None = None
        self._pages = 0

    def add(self, pages: int) -> None:
        """Adds a number of pages. A count that can't be written is left out: it is for the eye alone."""
        self._pages += pages
        if self._path is None:
            return
        with contextlib.suppress(OSError):  # a full disk: the step itself reports it
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            os.pwrite(self._file, _COUNT.pack(self._pages), 0)

    def close(self) -> None:
        """Closes the file, which stays."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_tallies(folder: str) -> Counter[str]:
    """Returns the pages that all workers have handled, by step."""
    pages = Counter[str]()
    for path in Path(folder).glob(f"*{_ENDING}") if folder else ():
        with contextlib.suppress(FileNotFoundError, struct.error):  # it begins just now, or the job has ended
            pages[path.name.partition("-")[0]] += _COUNT.unpack(path.read_bytes())[0]
    return pages
