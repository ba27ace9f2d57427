"""A web server on loopback that serves files, and fails as a script tells it to."""

import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = str
"""What goes wrong.

`503`, `403`, `429`: refused (`429 X`: with X as Retry-After). `cut`, `reset`, `stall`: in the middle of the body.
`no ranges`: all of the file, whatever part was asked for.
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
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
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
        data = self.web.files.get(path)
        if data is None:
            self._refuse(404)
        elif fault and fault[:3].isdigit():
            self._refuse(int(fault[:3]), fault[4:] or "0")
        else:
            self._send(data, fault)

    def _refuse(self, status: int, retry_after: str = "0") -> None:
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", "0")
        self.end_headers()

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
        self.end_headers()
        rest = data[first:end]
        broken = fault in ("cut", "reset", "stall")
        self.wfile.write(rest[: len(rest) // 2] if broken else rest)
        self.wfile.flush()
        if fault == "stall":
            time.sleep(1.0)
        if fault == "reset":  # closed at once, without a word
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if broken:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no error here."""


@contextmanager
def serve(files: Mapping[str, bytes], script: Script = lambda path, number: None) -> Iterator[Web]:
    """Serves files on a free port of this machine."""
    web = Web(files, script)
    handler = type("Handler", (_Handler,), {"web": web})
    with _Server(("127.0.0.1", 0), handler) as server:
        web.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield web
        finally:
            server.shutdown()
            thread.join()
