"""A web server on loopback that serves files, and fails as a script tells it to."""

import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import md5

from tests.helpers.loopback import Handler, listen

Fault = str
"""What goes wrong.

`503`, `403`, `429`: refused (`429 X`: with X as Retry-After; `403 X`: with X as the code of S3's XML).
`cut`, `reset`, `stall`: in the middle of the body. `no ranges`: all of the file, whatever part was asked for.
"""

Script = Callable[[str, int], Fault | None]
"""Given a path and how often it was asked for before, what goes wrong this time."""


class Web:
    """What is served, and what was asked for."""

    def __init__(self, files: Mapping[str, bytes], script: Script) -> None:
        self.files = dict(files)
        self.script = script
        self.asked: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.connections = 0
        self.url = ""
        self.headers: dict[str, str] = {}  # more headers, of each answer with a file
        self.redirects: dict[str, str] = {}  # paths, and the Location of the answer
        self.received: list[str] = []  # the first line and the headers of each request
        self.lock = threading.Lock()


class _Handler(Handler):
    web: Web

    def setup(self) -> None:
        super().setup()
        with self.web.lock:
            self.web.connections += 1

    def do_GET(self) -> None:
        path = self.path.lstrip("/")
        with self.web.lock:
            fault = self.web.script(path, self.web.asked[path])
            self.web.asked[path] += 1
            self.web.faults[fault or "none"] += 1
            self.web.received.append(f"{self.requestline}\n{self.headers}")
        data = self.web.files.get(path)
        if path in self.web.redirects:
            self.send_response(302)
            self.send_header("Location", self.web.redirects[path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif data is None:
            self._refuse(404)
        elif fault and fault[:3].isdigit():
            self._refuse(int(fault[:3]), fault[4:] or "0")
        else:
            self._send(data, fault)

    def _refuse(self, status: int, more: str = "0") -> None:
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", more)
        body = f"<?xml version='1.0'?>\n<Error><Code>{more}</Code></Error>".encode() if status == 403 else b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send(self, data: bytes, fault: Fault | None) -> None:
        first, end = 0, len(data)
        asked = self.headers.get("Range", "")
        part = asked.startswith("bytes=") and fault != "no ranges"
        if part:
            begin, _, last = asked[6:].partition("-")
            first, end = int(begin), min(end, int(last) + 1) if last else end
        self.send_response(206 if part else 200)
        if part:
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(data)}")
        self.send_header("ETag", f'"{md5(data).hexdigest()}"')
        self.send_header("Content-Length", str(end - first))
        for name, value in self.web.headers.items():
            self.send_header(name, value)
        self.end_headers()
        rest = data[first:end]
        broken = fault in ("cut", "reset", "stall")
        self.wfile.write(rest[: len(rest) // 2] if broken else rest)
        self.wfile.flush()
        if fault == "stall":
            time.sleep(1.0)
        if fault == "reset":
            self.reset_connection()
        elif broken:
            self.close_connection = True


@contextmanager
def serve(
    files: Mapping[str, bytes], script: Script = lambda path, number: None, tls: ssl.SSLContext | None = None
) -> Iterator[Web]:
    """Serves files on a free port of this machine, with TLS if a context is given."""
    web = Web(files, script)
    with listen(type("Handler", (_Handler,), {"web": web}), tls) as web.url:
        yield web
