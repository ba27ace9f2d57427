"""Files of web servers (http://, https://), read as streams, with retries.

A broken download continues at the same byte, by a byte range. If the server is busy (429, 5xx, or 403, which Common
Crawl's front end sends to clients that ask too fast), the download waits: as long as Retry-After says, else twice as
long each time, with some jitter so that workers don't return together. A permanent error (404, 403 with a code of S3 or
Azure such as AccessDenied, a file that was replaced meanwhile) ends the download at once.

A file in a bucket of the Hub (hf://buckets/) is read at its web address, with the user's token if there is one.

Redirects are followed, five at most, but never from https:// to http://. The user and the password of a URL are sent
only to its own server (scheme, host and port), and a redirect's target gets nothing of the URL, such as its signature.

A server can send anything, as slowly as it likes. In every case the download ends in time, with the bytes of the file
or with a DownloadError.
"""

import contextlib
import http.client
import io
import re
import socket
import time
from collections.abc import Iterator
from contextvars import ContextVar
from importlib.metadata import version
from typing import Any
from urllib.parse import unquote, urljoin
from urllib.request import getproxies, proxy_bypass

import urllib3

from c4pipe.io.downloads import DownloadError, DownloadStream, NetworkOptions, OnWait, address_of_today
from c4pipe.io.object_store import BAD_TOKEN, BUCKETS, NO_BUCKET, bucket_address

_USER_AGENT = f"c4pipe/{version('c4pipe')}"
_BUSY = (403, 408, 425, 429, 500, 502, 503, 504)
# For some numbers in headers and chunks, urllib3 and http.client raise ValueError.
_BROKEN = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError, OverflowError)
# Codes of https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, which Google's store has, too, and of
# https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
_REFUSAL = re.compile(
    rb"<Code>(AccessDenied|AccountProblem|AllAccessDisabled|AuthenticationFailed|AuthorizationFailure|ExpiredToken"
    rb"|InvalidAccessKeyId|InvalidToken|SignatureDoesNotMatch)</Code>"
)
_REFUSAL_BYTES, _REFUSAL_SECONDS = 4096, 5.0  # of the answer in which a code is searched
_CONNECT_SECONDS = 30.0
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}


class Download(DownloadStream):
    """The bytes of the file at a URL, over one connection as long as it lasts."""

    def __init__(
        self,
        url: str,
        pool: "Pool",
        network: NetworkOptions,
        first: int = 0,
        size: int | None = None,
        on_wait: OnWait | None = None,
    ) -> None:
        """Takes the arguments of `DownloadStream`, and a pool. Raises DownloadError for a URL that can't be parsed."""
        super().__init__(url, network, first, size, on_wait)
        try:
            if url.startswith(BUCKETS):
                self._address, self._credentials = bucket_address(url)
            else:
                self._address, self._credentials = url, urllib3.util.make_headers(basic_auth=_find_credentials(url))
            self._server = server_of(self._address)
        except ValueError:
            raise DownloadError(f"{url}: it is no address") from None
        self._pool = pool
        self._skip = 0  # bytes that a server without ranges sends again
        self._version: str | None = None

    def read(self, size: int) -> bytes:
        """Returns at most `size` bytes; none at the end. Raises DownloadError if the file can't be read."""
        while self._end is None or self._offset < self._end:
            try:
                if self._source is None and not self._connect():
                    continue
                with deadline(self._retry.deadline):
                    data = self._read(size if self._end is None else min(size, self._end - self._offset))
            except _BROKEN as error:
                if isinstance(error, DownloadError):
                    raise
                self._pause(_find_cause(error))
                continue
            if data or self.length is None or self._offset >= self.length:
                self._retry.progress(len(data))
                return data
            self._pause(f"it ended after {self._offset:,} of {self.length:,} bytes")
        return b""

    def _read(self, size: int) -> bytes:
        while self._skip:
            skipped = self._source.read(min(self._skip, 1 << 20))
            if not skipped:
                return b""
            self._skip -= len(skipped)
        data: bytes = self._source.read(size)
        self._offset += len(data)
        return data

    def _connect(self) -> bool:
        """Requests the bytes that are not read yet. Returns False, after a pause, if the server is busy."""
        headers = {"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"}
        if self._offset or self._end:
            headers["Range"] = f"bytes={self._offset}-{self._end - 1 if self._end else ''}"
        response = self._request(headers)
        if response.status in _BUSY:
            code = self._refusal(response) if response.status == 403 else ""
            response.close()
            if code:
                raise DownloadError(f"{self._url}: HTTP status 403 {code}{address_of_today(self._url)}")
            self._pause(f"HTTP status {response.status}", response.headers)
            return False
        try:
            self._accept(response)
        except DownloadError:
            response.close()
            raise
        self._source = response
        return True

    def _refusal(self, response: Any) -> str:
        """Returns the code of a permanent refusal by a store; "" for a refusal that may end."""
        moment = min(self._retry.deadline, time.monotonic() + _REFUSAL_SECONDS)
        with contextlib.suppress(*_BROKEN), deadline(moment):
            if code := _REFUSAL.search(response.read(_REFUSAL_BYTES)):
                return code[1].decode()
        return ""

    def _accept(self, response: Any) -> None:
        """Checks an answer and finds its place in the file. Raises DownloadError if it is not the rest of the file."""
        if response.status not in (200, 206):
            reason = f"HTTP status {response.status} {response.reason or ''}".rstrip()
            if self._url.startswith(BUCKETS):
                is_hidden = response.headers.get("X-Error-Code") == "RepoNotFound"  # 404, or 401 without a token
                reason = NO_BUCKET if is_hidden else f"{reason}; {BAD_TOKEN}" if response.status == 401 else reason
            raise DownloadError(f"{self._url}: {reason}")
        version = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
        start, length = _parse_span(response, self._url)
        if self._version is not None and (version != self._version or self.length not in (None, length)):
            raise DownloadError(f"{self._url}: the file changed while it was read")
        if start > self._offset:
            raise DownloadError(f"{self._url}: the server sent bytes from {start:,}, not from {self._offset:,}")
        self._version, self.length, self.has_ranges = version, length, response.status == 206
        self._retry.check_size(length if self._end is None else 0)
        self._skip = self._offset - start

    def _request(self, headers: dict[str, str]) -> Any:
        """Returns the server's answer, after redirects. Its headers must arrive within the longest wait for a byte.

        A content encoding is not undone: offsets count stored bytes, and the bytes after a damaged gzip member would be
        lost.
        """
        url = self._address
        with deadline(self._retry.deadline):
            for _ in range(1 + _MOST_REDIRECTS):
                secret = self._credentials if server_of(url) == self._server else {}
                response = self._pool.get(url, {**headers, **secret}, self._network.stall_seconds)
                target = response.headers.get("Location")
                if response.status not in _REDIRECTS or target is None:
                    return response
                response.close()
                url = self._redirected(url, target)
        raise DownloadError(f"{self._url}: the server redirects more than {_MOST_REDIRECTS} times")

    def _redirected(self, url: str, target: str) -> str:
        """Returns the URL to which a server redirects. Raises DownloadError if it may not be followed."""
        try:
            new = urljoin(url, target.encode("latin-1", "replace").decode("utf-8", "replace"))
            is_less = server_of(new)[0] == "http" and server_of(url)[0] == "https"
        except ValueError:
            raise DownloadError(f"{self._url}: the server redirects to {target[:200]!r}, which is no address") from None
        if is_less:
            raise DownloadError(f"{self._url}: the server redirects from https:// to http://, which is not encrypted")
        return new


def server_of(url: str) -> tuple[str, str, int]:
    """Returns the scheme, the host and the port of a URL. Raises ValueError for anything but http:// and https://."""
    parts = urllib3.util.parse_url(url)
    if parts.scheme not in _PORTS or not parts.host:
        raise ValueError(f"{url[:200]!r} is no address that begins with http:// or https://")
    return parts.scheme, parts.host, parts.port or _PORTS[parts.scheme]


def _find_credentials(url: str) -> str | None:
    """Returns the user and the password of a URL, with a colon between them; None for a URL without them."""
    user = urllib3.util.parse_url(url).auth
    return unquote(user) if user else None


def _parse_span(response: Any, url: str) -> tuple[int, int | None]:
    """Returns the offset of a response in its file, and the length of the file (None if the server does not say it)."""
    if response.status == 206:
        unit, _, rest = response.headers.get("Content-Range", "").partition(" ")
        span, _, length = rest.partition("/")
        first = span.partition("-")[0]
        start = _parse_number(first)
        if unit == "bytes" and start is not None:
            return start, _parse_number(length)
        raise DownloadError(f"{url}: the server sent a part of the file and did not say which")
    return 0, _parse_number(response.headers.get("Content-Length", ""))


def _parse_number(text: str) -> int | None:
    """Returns the number in a header; None for anything else, such as `\u00b2` or 5,000 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _find_cause(error: BaseException) -> str:
    """Returns the innermost cause of an error: urllib3 wraps one error in another."""
    while isinstance(error, urllib3.exceptions.HTTPError) and (error.__cause__ or error.__context__):
        error = error.__cause__ or error.__context__ or error
    return f"{type(error).__name__} {error}".strip()


_DEADLINE: ContextVar[float] = ContextVar("_DEADLINE", default=float("inf"))


@contextlib.contextmanager
def deadline(moment: float) -> Iterator[None]:
    """Ends all reads of this thread from a pool's connections with TimeoutError at a moment of `time.monotonic`."""
    token = _DEADLINE.set(moment)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


class Pool:
    """A few connections, which one worker uses for all its downloads, through the proxies of the environment."""

    def __init__(self) -> None:
        self._managers: dict[str, urllib3.PoolManager] = {}

    def get(self, url: str, headers: dict[str, str], stall_seconds: float) -> Any:
        """Returns a server's answer to one request, without redirects and decoding.

        Raises HTTPError of urllib3, OSError or ValueError if no answer comes.
        """
        scheme, host, _ = server_of(url)
        proxy = "" if proxy_bypass(host) else getproxies().get(scheme, "")
        return self._manager(proxy).request(
            "GET",
            url,
            headers=headers,
            preload_content=False,
            decode_content=False,
            timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=stall_seconds),
            retries=False,
            redirect=False,
        )

    def _manager(self, proxy: str) -> urllib3.PoolManager:
        if proxy not in self._managers:
            if proxy:
                secret = urllib3.util.make_headers(proxy_basic_auth=_find_credentials(proxy))
                manager: urllib3.PoolManager = urllib3.ProxyManager(proxy, num_pools=4, proxy_headers=secret, maxsize=2)
            else:
                manager = urllib3.PoolManager(num_pools=4, maxsize=2)
            manager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
            self._managers[proxy] = manager
        return self._managers[proxy]


class _SocketReader(io.RawIOBase):
    """The bytes that a socket receives, until the deadline."""

    def __init__(self, connection: socket.socket, raw: Any) -> None:
        super().__init__()
        self._connection = connection
        self._raw = raw
        self._timeout = connection.gettimeout() or float("inf")  # for the next byte

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = _DEADLINE.get() - time.monotonic()
        if left <= 0:
            raise TimeoutError("the server sends too slowly")
        seconds = min(self._timeout, left)
        self._connection.settimeout(seconds if seconds < float("inf") else None)
        size: int | None = self._raw.readinto(buffer)
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **keywords: Any) -> None:
        super().__init__(sock, *arguments, **keywords)
        buffered: Any = self.fp
        self.fp = io.BufferedReader(_SocketReader(sock, buffered.detach()))
        self._timeout = sock.gettimeout() or float("inf")

    def begin(self) -> None:
        """Reads the status and the headers, all of them within the timeout."""
        with deadline(min(_DEADLINE.get(), time.monotonic() + self._timeout)):
            super().begin()


class _HTTPConnection(urllib3.connection.HTTPConnection):
    response_class = _Response


class _HTTPSConnection(urllib3.connection.HTTPSConnection):
    response_class = _Response


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HTTPConnection


class _HTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HTTPSConnection
