"""How downloads are tried again, and how long they may take."""

import random
import time
from dataclasses import dataclass
from pathlib import Path

_LONGEST_PAUSE = 60.0  # seconds, unless the server asks for more


class DownloadError(OSError):
    """A file could not be had, for the reason that the message gives."""


@dataclass(frozen=True)
class NetworkOptions:
    """How to behave on the network, and where to keep what was read.

    Attributes:
        tries: how often a file is asked for in a row without a byte of progress.
        file_seconds: the longest that a file may take, pauses included.
        stall_seconds: the longest wait for the next byte.
        first_pause: seconds before the second try; twice as many before each further one.
        bytes_per_second: the most that one download reads; None for no limit.
        cache: a folder that keeps whole files (`cache`); None to keep nothing.
    """

    tries: int = 8
    file_seconds: float = 3600.0
    stall_seconds: float = 60.0
    first_pause: float = 1.0
    bytes_per_second: float | None = None
    cache: Path | None = None


class RetryPolicy:
    """The tries and the time that one file may take: what every kind of download waits by."""

    def __init__(self, url: str, network: NetworkOptions) -> None:
        self._url = url
        self._network = network
        self._fails = 0
        self._size = 0  # bytes read
        self._started = time.monotonic()

    def progress(self, size: int) -> None:
        """Notes that bytes came, and keeps to the rate. Raises DownloadError where the time is spent."""
        self._fails = 0
        self._size += size
        if self._network.bytes_per_second:
            due = self._size / self._network.bytes_per_second
            time.sleep(max(0.0, due - (time.monotonic() - self._started)))
        if time.monotonic() - self._started > self._network.file_seconds:
            raise DownloadError(f"{self._url}: took longer than {self._network.file_seconds:,.0f} s")

    def pause(self, why: str, least: float = 0.0) -> None:
        """Waits `least` seconds or more before the next try. Raises DownloadError where tries or time are spent."""
        self._fails += 1
        spent = time.monotonic() - self._started
        if self._fails >= self._network.tries:
            raise DownloadError(f"{self._url}: {why}, {self._fails} times in a row")
        seconds = min(_LONGEST_PAUSE, self._network.first_pause * 2 ** (self._fails - 1))
        seconds = max(seconds * random.uniform(0.5, 1.0), least)
        if spent + seconds > self._network.file_seconds:
            raise DownloadError(f"{self._url}: {why}; {spent:,.0f} s of {self._network.file_seconds:,.0f} s are spent")
        time.sleep(seconds)
