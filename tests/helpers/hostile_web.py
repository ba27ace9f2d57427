"""A server on loopback that breaks the rules of HTTP, in one way for each path."""

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

PAUSE = 0.02  # seconds between two pieces of a slow answer
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: "
CODES = b"\x1b[2J\x9b31m\xe2\x80\xae"

Answer = Callable[[], Iterable[bytes]]
"""Gives the pieces of an answer, one by one; the connection stays open for a while after the last one."""


def _slow(start: bytes, piece: bytes) -> Answer:
    """An answer without end: a start, and then small pieces with a pause after each."""

    def answer() -> Iterator[bytes]:
        yield start
        for _ in itertools.repeat(0):
            time.sleep(PAUSE)
            yield piece

    return answer


def _fast(start: bytes, piece: bytes) -> Answer:
    """An answer without end, as fast as it goes."""
    return lambda: itertools.chain([start], itertools.repeat(piece))


def _whole(answer: bytes) -> Answer:
    return lambda: [answer]


def _changing() -> Iterator[bytes]:
    """A file that is another one at each try, and always cut."""
    yield OK + b'ETag: "%d"\r\nContent-Length: 100\r\n\r\nabc' % time.monotonic_ns()
    yield b""


HOSTILE: dict[str, Answer] = {
    "headers that dribble": _slow(OK + b"X-Slow: ", b"x"),
    "a body that dribbles": _slow(OK + b"Content-Length: 1000000\r\n\r\n", b"\n"),
    "chunks that dribble": _slow(CHUNKED, b"1\r\n\n\r\n"),
    "a chunk's size that dribbles": _slow(CHUNKED, b"0"),
    "100 Continue without end": _fast(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "trailers without end": _fast(CHUNKED + b"1\r\n\n\r\n0\r\n", b"X-Trailer: x\r\n"),
    "a body without end": _fast(OK + b"\r\n", b"\n" * 4096),
    "Content-Length: \u00b2": _whole(OK + b"Content-Length: \xb2\r\n\r\n"),
    "Content-Length of 5,000 digits": _whole(OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n"),
    "two values of Content-Length": _whole(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde"),
    "Content-Length: -1": _whole(OK + b"Content-Length: -1\r\n\r\n"),
    "Retry-After: \u00b2": _whole(BUSY + b"\xb2\r\n\r\n"),
    "Retry-After in the year 9999999999": _whole(BUSY + b"Fri, 31 Dec 9999999999 23:59:59 GMT\r\n\r\n"),
    "Retry-After of 30 years": _whole(BUSY + b"999999999\r\n\r\n"),
    "Content-Range of 5,000 digits": _whole(
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %s-%s/%s\r\nContent-Length: 0\r\n\r\n"
        % ((b"9" * 5000,) * 3)
    ),
    "Content-Range: \u00b2": _whole(
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes \xb2-5/\xb2\r\nContent-Length: 0\r\n\r\n"
    ),
    "chunk size -5": _whole(CHUNKED + b"-5\r\nabcde\r\n0\r\n\r\n"),
    "chunk size zz": _whole(CHUNKED + b"zz\r\nabcde\r\n0\r\n\r\n"),
    "a line of 1 MB in the headers": _whole(OK + b"X-Long: " + b"x" * 1_000_000 + b"\r\n\r\n"),
    "10,000 headers": _whole(OK + b"X-Many: x\r\n" * 10_000 + b"\r\n"),
    "a redirect to itself": _whole(b"HTTP/1.1 302 Found\r\nLocation: ?\r\nContent-Length: 0\r\n\r\n"),
    "a redirect to a broken address": _whole(b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n"),
    "escape codes in the reason": _whole(b"HTTP/1.1 404 " + CODES + b"\r\nContent-Length: 0\r\n\r\n"),
    "a status that is no number": _whole(b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n"),
    "no HTTP": _whole(b"\x16\x03\x01" + CODES + b"\r\n\r\n"),
    "a file that changes": _changing,
    "silence": _whole(b""),
}
"""The answers, by what is wrong with them."""


class HostileWeb:
    """What is served.

    Attributes:
        url: the address of the server.
        files: paths whose answers are without fault.
        answers: the answers of the other paths.
    """

    def __init__(self) -> None:
        self.url = ""
        self.files: dict[str, bytes] = {}
        self.answers: dict[str, Answer] = {}

    def answer(self, connection: socket.socket) -> None:
        """Answers one request. Does nothing more when the client has gone."""
        with connection, connection.makefile("rb") as file:
            try:
                path = file.readline().split(b" ")[1].decode().lstrip("/")
                while file.readline().strip():
                    pass
                if path in self.files:
                    data = self.files[path]
                    head = OK + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(data)
                    connection.sendall(head + data)
                    return
                for piece in self.answers[path]():
                    connection.sendall(piece)
                connection.settimeout(5.0)
                connection.recv(1)  # until the client closes
            except OSError:
                return


@contextmanager
def serve_hostile() -> Iterator[HostileWeb]:
    """Runs the server, with a thread for each connection."""
    web = HostileWeb()
    with socket.create_server(("127.0.0.1", 0)) as server:
        web.url = f"http://127.0.0.1:{server.getsockname()[1]}"

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=web.answer, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield web
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
