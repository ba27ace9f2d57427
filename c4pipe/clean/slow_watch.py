"""Notices, while a WET file is cleaned, that the file or a page of it takes far longer than its size explains."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from c4pipe.io.words import URL_SIZE, format_duration, format_size, short, visible
from c4pipe.wet.page import Page


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
