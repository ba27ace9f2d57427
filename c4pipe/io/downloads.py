"""The common parts of all downloads: options, errors, tries and the pauses between them, time limits."""

import io
import logging
import random
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any, NamedTuple, Protocol

from c4pipe.errors import hide_secrets
from c4pipe.io.words import short, visible

_LOG = logging.getLogger("c4pipe")

_MAX_PAUSE = 60.0  # seconds, unless the server asks for more
# Buckets of Common Crawl, also its first one. They refuse everyone without an AWS account since 2022:
# https://commoncrawl.org/blog/introducing-cloudfront-access-to-common-crawl-data
_COMMON_CRAWL_BUCKETS = re.compile(
    r"(?://(?:commoncrawl|aws-publicdatasets)\.s3[\w.-]*\.amazonaws\.com(?::\d+)?|"
    r"//s3[\w.-]*\.amazonaws\.com(?::\d+)?/(?:commoncrawl|aws-publicdatasets)|s3://(?:commoncrawl|aws-publicdatasets))/"
)


class DownloadError(OSError):
    """A file could not be downloaded. The message has the reason and is safe to show."""

    def __init__(self, message: str) -> None:
        super().__init__(visible(hide_secrets(message)))


def address_of_today(url: str) -> str:
    """Returns the end of an error about a refused bucket of Common Crawl: today's address; "" for any other URL."""
    is_old = _COMMON_CRAWL_BUCKETS.search(url)
    return "; everyone can read Common Crawl's files at https://data.commoncrawl.org/" if is_old else ""


class NetworkOptions(NamedTuple):
    """How files are read from the network, and where they are kept.

    Attributes:
        tries: a file is given up after this number of tries in a row without a new byte.
        file_seconds: the longest time for a file, with its pauses.
        file_bytes: the largest file, in bytes.
        stall_seconds: the longest wait for the next byte.
        first_pause: seconds before the second try; each further pause is twice as long.
        bytes_per_second: the limit for one download; None for no limit.
        cache: a folder that keeps the downloaded files, or None.
    """

    tries: int = 8
    file_seconds: float = 3600.0
    file_bytes: int = 64 << 30  # far more than a server sends in an hour
    stall_seconds: float = 60.0
    first_pause: float = 1.0
    bytes_per_second: float | None = None
    cache: Path | None = None


class Wait(NamedTuple):
    """A pause after a failed try. As text: `HTTP status 503 from data.commoncrawl.org, try 3 of 8, next in 16 s`.

    `reason` is safe to show; the file is given up if `failures` in a row reach `tries`.
    """

    url: str
    reason: str
    failures: int
    tries: int
    seconds: float

    def __str__(self) -> str:
        server = self.url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        where = "the Hub" if self.url.startswith("hf://") else server
        next_try = f"next in {max(1.0, self.seconds):.0f} s"
        return visible(f"{short(self.reason, 200)} from {where}, try {self.failures} of {self.tries}, {next_try}")


OnWait = Callable[[Wait], None]
"""Gets each wait of a download when it begins."""


SHOW_WAIT: ContextVar[OnWait | None] = ContextVar("SHOW_WAIT", default=None)
"""Gets the waits of downloads and stores for which they are given no function, after these are logged."""


def _log_wait(wait: Wait) -> None:
    _LOG.info("waits: %s: %s", hide_secrets(wait.url), wait)
    if show := SHOW_WAIT.get():
        show(wait)


def _find_pause(headers: Mapping[str, str]) -> float:
    """Returns the seconds that a server asks to wait: `Retry-After` has a number or a date, the Hub's `RateLimit`
    (https://huggingface.co/docs/hub/rate-limits) the seconds to the next window; 0 for other headers.
    """
    from email.utils import parsedate_to_datetime  # only for a busy server: it takes as long as a tenth of a start

    reset = re.search(r";r=0;t=([0-9]+)", headers.get("RateLimit", ""))
    asked = headers.get("Retry-After") or (reset[1] if reset else "")
    if asked.isascii() and asked.isdigit():
        return float(asked[:9])
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time())
    except (ValueError, TypeError, IndexError, OverflowError, OSError):  # the parser's errors for a wrong date vary
        return 0.0


class RetryPolicy:
    """Counts tries and time of one download, waits between tries, and ends the download at a limit."""

    def __init__(self, url: str, network: NetworkOptions, on_wait: OnWait | None = None) -> None:
        """Takes the URL, the options, and a function that gets each wait (default: the log and `SHOW_WAIT`)."""
        self._url = url
        self._network = network
        self._on_wait = on_wait or _log_wait
        self._failures = 0
        self._size = 0  # bytes read
        self._started = monotonic()

    @property
    def deadline(self) -> float:
        """The end of the time for the file, as `time.monotonic` counts."""
        return self._started + self._network.file_seconds

    def progress(self, size: int) -> None:
        """Takes the number of new bytes, and waits to keep the rate.

        Raises DownloadError if the time is used up, or the file is too large.
        """
        self._failures = 0
        self._size += size
        self.check_size(self._size)
        if self._network.bytes_per_second:
            due = self._size / self._network.bytes_per_second
            sleep(max(0.0, due - (monotonic() - self._started)))
        if monotonic() - self._started > self._network.file_seconds:
            raise DownloadError(f"{self._url}: took longer than {self._network.file_seconds:,.0f} s")

    def check_size(self, size: int | None) -> None:
        """Raises DownloadError for a file over the limit; None is an unknown size."""
        if size is not None and size > self._network.file_bytes:
            raise DownloadError(f"{self._url}: it is larger than {self._network.file_bytes:,} bytes")

    def pause(self, reason: str, headers: Mapping[str, str] | None = None) -> None:
        """Waits before the next try, at least as long as headers of the server ask.

        Raises DownloadError, with the reason, if the tries or the time are used up.
        """
        self._failures += 1
        spent = monotonic() - self._started
        if self._failures >= self._network.tries:
            raise DownloadError(f"{self._url}: {reason}, {self._failures} times in a row")
        seconds = min(_MAX_PAUSE, self._network.first_pause * 2 ** (self._failures - 1))
        seconds = max(seconds * random.uniform(0.5, 1.0), _find_pause(headers or {}))
        limit = self._network.file_seconds
        if spent + seconds > limit:
            raise DownloadError(f"{self._url}: {reason}; {spent:,.0f} s of {limit:,.0f} s are used up")
        self._on_wait(Wait(self._url, visible(reason), self._failures, self._network.tries, seconds))
        sleep(seconds)


class ByteStream(Protocol):
    """A stream of bytes, read from the beginning to the end."""

    def read(self, size: int, /) -> bytes:
        """Returns at most `size` bytes; none at the end. Raises OSError if the stream can't be read further."""


class DownloadStream:
    """The bytes of a file on a server or in an object store, or of a part of it, in order.

    Attributes:
        length: the bytes of the whole file; None before the first read, or if the server does not tell it.
        has_ranges: after the first read, whether the server sends parts of files.
    """

    has_ranges = True

    def __init__(
        self,
        url: str,
        network: NetworkOptions,
        first: int = 0,
        size: int | None = None,
        on_wait: OnWait | None = None,
    ) -> None:
        """Takes a URL, and for a part of the file its offset and its size in bytes."""
        self.length: int | None = None
        self._url = url
        self._network = network
        self._retry = RetryPolicy(url, network, on_wait)
        self._source: Any = None  # the response or file that is open
        self._offset = first  # of the next byte to request
        self._end = None if size is None else first + size

    def read(self, size: int) -> bytes:
        """Returns at most `size` bytes; none at the end. Raises DownloadError if the file can't be read."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the connection or the file; another read opens it again."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def _pause(self, reason: str, headers: Mapping[str, str] | None = None) -> None:
        self.close()
        self._retry.pause(reason, headers)


class RangedFile(io.RawIOBase):
    """A file that is open for reading at any offset."""

    def __init__(self, size: int) -> None:
        """Takes the size of the file in bytes."""
        super().__init__()
        self.size = size
        self._offset = 0

    def range(self, first: int, size: int) -> bytes:
        """Returns exactly `size` bytes from offset `first` on. Raises OSError."""
        raise NotImplementedError

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Returns the offset of the next byte to read."""
        return self._offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets and returns the offset of the next byte, counted from the start, the current offset or the end."""
        self._offset = offset + (0, self._offset, self.size)[whence]
        return self._offset

    def read(self, size: int | None = -1) -> bytes:
        """Returns `size` bytes, fewer only at the end of the file; all the rest for None or -1."""
        left = max(0, self.size - self._offset)
        size = left if size is None or size < 0 else min(size, left)
        if not size:
            return b""
        data = self.range(self._offset, size)
        self._offset += size
        return data

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer, or its beginning at the end of the file, and returns the number of bytes."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)
