"""How far `clean` is: the written work files, the counts in their headers, and the notes of workers.

A note says how far a file is, that a download waits for a server, or that a page or file takes long.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from c4pipe.clean.work_folder import read_headers_of
from c4pipe.errors import UsageError
from c4pipe.io.downloads import ByteStream, Wait
from c4pipe.io.paths import StoragePath, list_names
from c4pipe.io.streams import stream_length
from c4pipe.io.words import URL_SIZE, format_duration, format_size, short, visible
from c4pipe.runners.events import LOG, Gauge, Progress, Status, read_gauge, remove_messages, send_message, take_messages
from c4pipe.wet.page import Page

STEP = 256 * 1024
"""Stored bytes of a WET file between two notes: less than a second of work."""

_POSITION = ".position.tmp"  # `clear_abandoned` removes what a killed run leaves
_DROPPED = "pages.dropped."
_MOST_RULES = 3  # rules that are shown to people


class Position(NamedTuple):
    """How far a file is.

    Attributes:
        read: stored bytes that were read, plus the bytes that were downloaded into the cache before.
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
    In an object store, where each write is a request, there are no notes.
    """

    def __init__(self, target: StoragePath) -> None:
        """Takes the path of the work file."""
        self._is_local = isinstance(target, Path)
        self._gauge = Gauge(target.with_name(f".{target.name}{_POSITION}") if isinstance(target, Path) else None)
        self._fetched = 0
        self.next = STEP

    def fetched(self, size: int, length: int | None) -> None:
        """Takes the number of bytes that are in the cache so far, and the file's length if the server says it."""
        if size >= self._fetched + STEP or (size == length and size > self._fetched > 0):
            self._fetched = size
            self._gauge.set(size, 2 * (length or 0), 0)

    def note(self, stream: ByteStream, read: int, pages: int) -> None:
        """Writes the position in a stream. Call it when `read` has reached `next`; it increases `next`."""
        self.note_share(read, (stream_length(stream) if self._is_local else None) or 0, pages)

    def note_share(self, read: int, length: int, pages: int) -> None:
        """Writes the position in a file of a length, as `note` does; 0 for a length that is not known."""
        self.next = read + STEP
        self._gauge.set(self._fetched + read, self._fetched + length if length else 0, pages)

    def close(self) -> None:
        """Removes the note."""
        self._gauge.close(remove=True)


def read_positions(
    folder: StoragePath, names: Iterable[str], work_files: Iterable[str]
) -> Iterator[tuple[str, Position]]:
    """Yields the names of work files that are being written, each with the position in its WET file.

    Args:
        folder: the work folder.
        names: the names in it.
        work_files: the names of the work files to look for.
    """
    present = {name[1 : -len(_POSITION)] for name in names if name.endswith(_POSITION)}
    for name in present.intersection(work_files):
        if numbers := read_gauge(folder / f".{name}{_POSITION}", 3):
            yield name, Position(*numbers)


class NoteWriter:
    """Tells the run what happens to a WET file that a worker cleans."""

    def __init__(self, target: StoragePath, source: str) -> None:
        """Takes the path of the work file, and the name of its WET file."""
        self._folder = target.parent
        self._source = source

    def wait(self, wait: Wait) -> None:
        """Tells that the download of the WET file waits."""
        values = {"reason": wait.reason, "try": wait.failures, "tries": wait.tries, "seconds": wait.seconds}
        send_message(self._folder, {"file": self._source, "time": time.time(), "text": str(wait), **values})

    def slow(self, text: str) -> None:
        """Tells, in a sentence, that something takes long."""
        send_message(self._folder, {"slow": text})


class NoteReader:
    """Reads the notes of all workers.

    Attributes:
        waits: the waits, as JSON values, that began between the last two calls of `read`.
        slow: the sentences about slow pages and files that the last call of `read` found.
    """

    def __init__(self, folder: StoragePath) -> None:
        self._folder = folder
        self._latest: dict[str, dict[str, Any]] = {}  # the last wait of each file
        self.waits: list[dict[str, Any]] = []
        self.slow: list[str] = []

    def read(self, names: Iterable[str]) -> None:
        """Reads and removes the notes among the names in the folder, and logs each wait."""
        self.waits, self.slow = [], []
        for note in take_messages(self._folder, names):
            if "slow" in note:
                self.slow.append(note["slow"])
                continue
            self._latest[note["file"]] = note
            self.waits.append({key: note[key] for key in ("file", "reason", "try", "tries", "seconds")})
            LOG.info("waits: %s: %s", note["file"], note["text"])

    def words(self) -> str:
        """Returns the number of current waits, and the latest: `, 2 wait: HTTP status 503 from ...`."""
        now = time.time()
        self._latest = {file: note for file, note in self._latest.items() if now < note["time"] + note["seconds"]}
        if not self._latest:
            return ""
        note = max(self._latest.values(), key=lambda each: each["time"])
        left = max(1.0, note["time"] + note["seconds"] - now)
        text = f"{note['text'].rpartition(', ')[0]}, next in {left:.0f} s"
        return f", {len(self._latest)} wait: {text}" if len(self._latest) > 1 else f", waits: {text}"


@dataclass(frozen=True)
class SlowLimits:
    """When a page or file counts as slow: it takes more than a fixed time, and more than the slowest usual speed
    explains.

    The defaults are about ten times slower than an old machine in pure Python.

    Attributes:
        page_seconds: CPU seconds of any page.
        page_speed: bytes of a page's text that allow one further CPU second.
        file_seconds: seconds of any file.
        file_speed: stored bytes of a file that allow one further second.
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


class WatchedFile:
    """A file that is being cleaned. `look` tells of each page at most once, and of the file at most once.

    Attributes:
        page: set it to a page before it is cleaned, and to None after that.
    """

    def __init__(self, source: str, stream: _Counted, tell: Callable[[str], None]) -> None:
        """Takes the WET file's name, its stream, and the function that gets sentences for users."""
        self.page: Page | None = None
        self._source = source
        self._stream = stream
        self._tell = tell
        self._started, self._is_told = time.monotonic(), False
        self._seen: Page | None = None
        self._seen_at = 0.0

    def look(self, limits: SlowLimits) -> None:
        """Tells of the page or file if it has taken longer than the limits allow."""
        now, cpu, page = time.monotonic(), time.process_time(), self.page
        if page is not self._seen:
            self._seen, self._seen_at = page, cpu
        elif page is not None and cpu - self._seen_at > limits.page_seconds + page.size / limits.page_speed:
            url, took = visible(short(page.url, URL_SIZE)), format_duration(cpu - self._seen_at)
            size = format_size(page.size)
            self._tell(f"a page of {self._source} takes long: {url}, {took} of CPU for {size}, and it goes on")
            self._seen_at = float("inf")
        read = self._stream.size
        if not self._is_told and now - self._started > limits.file_seconds + read / limits.file_speed:
            took = format_duration(now - self._started)
            self._tell(f"{self._source} takes long: {took} for its first {format_size(read)}, and it goes on")
            self._is_told = True


class SlowWatch:
    """Looks, in a thread, at the file that is being cleaned. The thread serves many small files."""

    def __init__(self, limits: SlowLimits) -> None:
        self._limits = limits
        self._file: WatchedFile | None = None
        self._has_thread = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def over(self, file: WatchedFile) -> Iterator[WatchedFile]:
        """Watches a file while the `with` block cleans it."""
        with self._lock:
            self._file = file
            if not self._has_thread:
                threading.Thread(target=self._watch, name="slow pages", daemon=True).start()
                self._has_thread = True
        try:
            yield file
        finally:
            with self._lock:  # no look is under way
                self._file = None

    def _watch(self) -> None:
        """Looks again and again, until no file is being cleaned."""
        while True:
            time.sleep(self._limits.interval)
            with self._lock:
                if self._file is None:
                    self._has_thread = False
                    return
                self._file.look(self._limits)


@contextlib.contextmanager
def watch_clean(progress: Progress, folder: StoragePath, sizes: Mapping[str, int]) -> Iterator[None]:
    """Watches the job `clean`, which runs inside the `with` block.

    Args:
        progress: gets how far the job is.
        folder: the work folder.
        sizes: the bytes of each WET file (or 1 for each, where they are not known), by the name of its work file.
    """
    seen = set[str]()
    counts = Counter[str]()
    notes = NoteReader(folder)

    def count() -> tuple[float, int]:
        """Counts the finished work, and returns the bytes of WET files that were read, and the pages."""
        # One listing of the folder: asking for each file would take most of a core where there are 72,000.
        names = list_names(folder)
        new = sorted(names & sizes.keys() - seen)
        with contextlib.suppress(UsageError):  # a file was moved away: the job itself reports that
            for name, header in zip(new, read_headers_of(folder / each for each in new), strict=True):
                seen.add(name)
                counts.update(header.counts)
        positions = list(read_positions(folder, names, sizes.keys() - seen))
        notes.read(names)
        for text in notes.slow:
            progress.note(text)
        done = sum(sizes[name] for name in seen) + sum(each.share * sizes[name] for name, each in positions)
        return done, counts["pages.read"] + sum(each.pages for _, each in positions)

    before = count()[1]

    def look() -> Status:
        done, pages = count()
        speed = max(0, pages - before) / max(0.001, progress.seconds)
        files = f"{len(seen):,} of {len(sizes):,} files{notes.words()}"
        facts = {
            "files": len(seen),
            "files_total": len(sizes),
            "pages": pages,
            "pages_per_second": round(speed, 1),
            "drops": drops(counts),
            "waits": notes.waits,
        }
        words = f"{files}, {pages:,} pages, {speed:,.0f} pages/s{drop_words(counts)}"
        return Status(done / max(1, sum(sizes.values())), words, facts)

    with progress.show("clean", folder, look):
        yield
    remove_messages(folder)


def drops(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns how many pages each rule dropped, by rule, the largest number first."""
    dropped = {name.removeprefix(_DROPPED): n for name, n in counts.items() if name.startswith(_DROPPED) and n}
    return dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0])))


def drop_words(counts: Mapping[str, int]) -> str:
    """Returns the rules that dropped most pages, with their share of the pages read: `, dropped: language 61%`."""
    largest = list(drops(counts).items())[:_MOST_RULES]
    words = ", ".join(f"{rule} {number / counts['pages.read']:.0%}" for rule, number in largest)
    return f", dropped: {words}" if words else ""
