"""HTTP connections that keep to a deadline, however slowly a server sends.

The timeout of a socket begins anew with each byte. So a server that sends a byte a minute, or headers or trailers
without end, could hold a client for ever. Here each wait for bytes also ends at a deadline.
"""

import contextlib
import http.client
import io
import socket
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import urllib3

_DEADLINE: ContextVar[float] = ContextVar("_DEADLINE", default=float("inf"))


@contextlib.contextmanager
def deadline(moment: float) -> Iterator[None]:
    """Lets all reads of this thread from a pool's connections end at a moment of `time.monotonic`, by TimeoutError."""
    token = _DEADLINE.set(moment)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def make_pool() -> urllib3.PoolManager:
    """Returns a pool of a few connections, which one worker uses for all its downloads."""
    pool = urllib3.PoolManager(num_pools=4, maxsize=2)
    pool.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
    return pool


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
