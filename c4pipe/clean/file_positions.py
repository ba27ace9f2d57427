"""How far the files are that are being cleaned: small files in the work folder, written by workers, read by the run.

They work on each runner whose workers share a folder with the run. In an object store, where each write is a request,
there are none.
"""

import contextlib
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from c4pipe.io.downloads import ByteStream
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import stream_length

STEP = 256 * 1024
"""Stored bytes of a WET file between two notes: less than a second of work."""

_RECORD = struct.Struct("<QQQ")
_ENDING = ".position.tmp"  # `clear_abandoned` removes what a killed run leaves


class Position(NamedTuple):
    """How far a file is.

    Attributes:
        read: stored bytes that were read, and before that downloaded into the cache.
        length: all the bytes that are to be read and downloaded; 0 where it is not known.
        pages: pages that were cleaned.
    """

    read: int
    length: int
    pages: int

    @property
    def share(self) -> float:
        """The share of the file that was read; 0 where its length is not known."""
        return min(1.0, self.read / self.length) if self.length else 0.0


class PositionWriter:
    """Notes how far a file is, each STEP bytes. A smaller file has no note.

    The bytes of a file that is downloaded into the cache first count twice: when they arrive, and when they are read.
    """

    def __init__(self, target: StoragePath) -> None:
        """Takes the path of the work file."""
        self._path = target.with_name(f".{target.name}{_ENDING}") if isinstance(target, Path) else None
        self._fetched = 0
        self._file: int | None = None
        self.next = STEP

    def fetched(self, size: int, length: int | None) -> None:
        """Takes how many bytes of the file are in the cache so far, and its length where the server says it."""
        if size >= self._fetched + STEP or (size == length and size > self._fetched > 0):
            self._fetched = size
            self._write(size, 2 * (length or 0), 0)

    def note(self, stream: ByteStream, read: int, pages: int) -> None:
        """Writes the position in a stream. To be called where `read` has come to `next`, which this moves on."""
        self.note_share(read, (stream_length(stream) if self._path else None) or 0, pages)

    def note_share(self, read: int, length: int, pages: int) -> None:
        """Writes the position in a file of a length, as `note` does; 0 for a length that is not known."""
        self.next = read + STEP
        self._write(self._fetched + read, self._fetched + length if length else 0, pages)

    def _write(self, read: int, length: int, pages: int) -> None:
        if self._path is None:
            return
        with contextlib.suppress(OSError):  # a full disk: the work file reports it
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o666)
            os.pwrite(self._file, _RECORD.pack(read, length, pages), 0)

    def close(self) -> None:
        """Removes the note."""
        if self._file is not None and self._path is not None:
            os.close(self._file)
            self._path.unlink(missing_ok=True)
            self._file = None


def read_positions(
    folder: StoragePath, names: Iterable[str], work_files: Iterable[str]
) -> Iterator[tuple[str, Position]]:
    """Yields the names of work files that are being written, each with the position in its WET file.

    Args:
        folder: the work folder.
        names: the names in it.
        work_files: the names of the work files to look for.
    """
    present = {name[1 : -len(_ENDING)] for name in names if name.endswith(_ENDING)}
    for name in present.intersection(work_files):
        with contextlib.suppress(FileNotFoundError, struct.error):  # it was finished, or begins just now
            yield name, Position(*_RECORD.unpack((folder / f".{name}{_ENDING}").read_bytes()))
