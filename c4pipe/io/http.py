"""Files behind http:// and https://, read as streams: politely, and stubbornly.

A download that breaks goes on where it broke, by a byte range, so that a cut connection costs a pause. What a
busy server answers (429, 5xx, and 403, with which Common Crawl's front end turns away who asks too fast) is
waited out: as long as Retry-After says, else twice as long each time, with some jitter so that workers don't
come back together. What will not change (404, another file than before) ends the download at once.
"""

import email.utils
import time
from importlib.metadata import version
from typing import Any

import urllib3

from c4pipe.io.retry import DownloadError, NetworkOptions, RetryPolicy

_USER_AGENT = f"c4pipe/{version('c4pipe')}"
_BUSY = (403, 408, 425, 429, 500, 502, 503, 504)
_BROKEN = (urllib3.exceptions.HTTPError, OSError)


class Download:
    """The bytes behind a URL, in their order. One connection, kept while it lasts.

    `length`: bytes of the whole file, once some were read; None where the server does not tell.
    """

    def __init__(
        self, url: str, pool: urllib3.PoolManager, network: NetworkOptions, first: int = 0, size: int | None = None
    ) -> None:
        """Takes a URL and, for a part of the file, its first byte and how many there are."""
        self._url = url
        self._pool = pool
        self._stall_seconds = network.stall_seconds
        self._patience = RetryPolicy(url, network)
        self._response: Any = None
        self._offset = first  # of the next byte to give out
        self._end = None if size is None else first + size
        self._skip = 0  # bytes that a server without ranges sends again
        self.length: int | None = None
        self._version: str | None = None

    def read(self, size: int) -> bytes:
        """Returns at most `size` bytes; none at the end. Raises DownloadError where the file can't be had."""
        while self._end is None or self._offset < self._end:
            try:
                if self._response is None and not self._connect():
                    continue
                data = self._read(size if self._end is None else min(size, self._end - self._offset))
            except _BROKEN as error:
                if isinstance(error, DownloadError):
                    raise
                self._pause(_reason(error))
                continue
            if data or self.length is None or self._offset >= self.length:
                self._patience.progress(len(data))
                return data
            self._pause(f"it ended after {self._offset:,} of {self.length:,} bytes")
        return b""

    def close(self) -> None:
        """Gives the connection back."""
        if self._response is not None:
            self._response.close()
            self._response = None

    def _read(self, size: int) -> bytes:
        while self._skip:
            passed = self._response.read(min(self._skip, 1 << 20))
            if not passed:
                return b""
            self._skip -= len(passed)
        data: bytes = self._response.read(size)
        self._offset += len(data)
        return data

    def _connect(self) -> bool:
        """Asks for what is not read yet; returns False where the server was busy, after a pause."""
        headers = {"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"}
        if self._offset or self._end:
            headers["Range"] = f"bytes={self._offset}-{self._end - 1 if self._end else ''}"
        timeout = urllib3.Timeout(connect=30.0, read=self._stall_seconds)
        response = self._pool.request(
            "GET", self._url, headers=headers, preload_content=False, timeout=timeout, retries=False, redirect=True
        )
        if response.status in _BUSY:
            retry_after = response.headers.get("Retry-After")
            response.close()
            self._pause(f"HTTP status {response.status}", _seconds(retry_after))
            return False
        if response.status == 416 or response.status not in (200, 206):
            response.close()
            raise DownloadError(f"{self._url}: HTTP status {response.status} {response.reason or ''}".rstrip())
        version = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
        start, length = _span(response)
        if self._version is not None and (version != self._version or self.length not in (None, length)):
            response.close()
            raise DownloadError(f"{self._url}: the file was changed while it was read")
        if start > self._offset:
            response.close()
            raise DownloadError(f"{self._url}: the server sent bytes from {start:,}, not from {self._offset:,}")
        self._version, self.length = version, length
        self._skip = self._offset - start
        self._response = response
        return True

    def _pause(self, why: str, least: float = 0.0) -> None:
        self.close()
        self._patience.pause(why, least)


def make_pool() -> urllib3.PoolManager:
    """Returns the connections of a worker: a few, used again and again."""
    return urllib3.PoolManager(num_pools=4, maxsize=2)


def _span(response: Any) -> tuple[int, int | None]:
    """Returns where a response starts in its file, and the file's length where it is told."""
    if response.status == 206:
        unit, _, rest = response.headers.get("Content-Range", "").partition(" ")
        span, _, length = rest.partition("/")
        first = span.partition("-")[0]
        if unit == "bytes" and first.isdigit():
            return int(first), int(length) if length.isdigit() else None
        raise DownloadError(f"{response.geturl()}: the server sent a range and did not say which")
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def _seconds(retry_after: str | None) -> float:
    """Returns the seconds that a Retry-After header asks for: a number of them, or a date."""
    if not retry_after:
        return 0.0
    if retry_after.isdigit():
        return float(retry_after[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return 0.0


def _reason(error: BaseException) -> str:
    """Returns the innermost cause of an error of urllib3's, which wraps several."""
    while isinstance(error, urllib3.exceptions.HTTPError) and (error.__cause__ or error.__context__):
        error = error.__cause__ or error.__context__ or error
    return f"{type(error).__name__} {error}".strip()
