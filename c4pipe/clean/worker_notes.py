"""What the workers of `clean` tell the process that shows how far the job is, in small files of the work folder.

A worker may run on another machine. It tells of waits for a server, of a page or file that takes long, and how far its
file is. That process reads and removes the notes.
"""

import contextlib
import json
import logging
import os
import secrets
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from c4pipe.display.excerpts import URL_SIZE, short
from c4pipe.display.safe_text import visible
from c4pipe.display.units import format_duration, format_size
from c4pipe.io.atomic import write_text
from c4pipe.io.byte_stream import ByteStream
from c4pipe.io.paths import StoragePath
from c4pipe.io.retry import Wait
from c4pipe.io.streams import stream_length
from c4pipe.wet.page import Page

LOG = logging.getLogger("c4pipe")

STEP = 256 * 1024
"""Stored bytes of a WET file between two notes: less than a second of work."""

_RECORD = struct.Struct("<QQQ")
_ENDING = ".note.tmp"  # the names begin with a dot: what a killed run leaves is removed like its other temporary files
_POSITION_ENDING = ".position.tmp"  # `clear_abandoned` removes what a killed run leaves


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
        self._path = target.with_name(f".{target.name}{_POSITION_ENDING}") if isinstance(target, Path) else None
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
    present = {name[1 : -len(_POSITION_ENDING)] for name in names if name.endswith(_POSITION_ENDING)}
    for name in present.intersection(work_files):
        with contextlib.suppress(FileNotFoundError, struct.error):  # it was finished, or begins just now
            yield name, Position(*_RECORD.unpack((folder / f".{name}{_POSITION_ENDING}").read_bytes()))


@dataclass(frozen=True)
class SlowLimits:
    """What takes long: more than a time, and more than the slowest usual speed explains.

    The defaults are about ten times slower than an old machine in pure Python.

    Attributes:
        page_seconds: CPU seconds of any page.
        page_speed: bytes of text that a page has for each further CPU second.
        file_seconds: seconds of any file.
        file_speed: bytes, as stored, that are read of a file for each further second.
        interval: seconds between two looks.
    """

    page_seconds: float = 10.0
    page_speed: float = 100_000.0
    file_seconds: float = 300.0
    file_speed: float = 20_000.0
    interval: float = 1.0


class _Counted(Protocol):
    @property
    def size(self) -> int: ...  # bytes that were read so far


class SlowWatch:
    """Looks, in a thread, at the page that is being cleaned and at how much of the file is read.

    A context manager. Each page, and the file, is told of at most once.

    Attributes:
        page: set it to a page before it is cleaned, and to None after that.
    """

    def __init__(self, source: str, stream: _Counted, tell: Callable[[str], None], limits: SlowLimits) -> None:
        """Takes the name of the WET file, its stream, what gets a sentence for the user, and the limits."""
        self.page: Page | None = None
        self._source = source
        self._stream = stream
        self._tell = tell
        self._limits = limits
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="slow pages", daemon=True)

    def __enter__(self) -> "SlowWatch":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        limits, started, is_told = self._limits, time.monotonic(), False
        page, page_started = None, time.process_time()
        while not self._stop.wait(limits.interval):
            now, cpu = time.monotonic(), time.process_time()
            if self.page is not page:
                page, page_started = self.page, cpu
            elif page is not None and cpu - page_started > limits.page_seconds + page.size / limits.page_speed:
                self._tell_page(page, cpu - page_started)
                page_started = float("inf")
            read = self._stream.size
            if not is_told and now - started > limits.file_seconds + read / limits.file_speed:
                took = format_duration(now - started)
                self._tell(f"{self._source} takes long: {took} for its first {format_size(read)}, and it goes on")
                is_told = True

    def _tell_page(self, page: Page, seconds: float) -> None:
        url = visible(short(page.url, URL_SIZE))
        took = format_duration(seconds)
        self._tell(
            f"a page of {self._source} takes long: {url}, {took} of CPU for {format_size(page.size)}, and it goes on"
        )
