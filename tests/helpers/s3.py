"""An S3 server on loopback (moto), behind a proxy that fails as a script tells it to.

`moto` is a fixture:

    with store_of(moto, {"bucket/key": b"data"}, monkeypatch) as store: ...
"""

import http.client
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from urllib.parse import quote

import pytest

from c4pipe.io import object_store
from tests.helpers.loopback import Handler, listen
from tests.helpers.web import Fault, Script

_CODES = {403: "AccessDenied", 500: "InternalError", 503: "SlowDown"}
"""S3's word for a status, in its XML. Other faults: `cut` and `reset` in the middle of a body, `stall` before it.
`done 500`: what was asked for is done, and the answer says it was not."""
_STALL_SECONDS = 10.0
_HOP_BY_HOP = ("connection", "content-length", "expect", "transfer-encoding")
_SIGNED = "AWS4-HMAC-SHA256 Credential=key/20990101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


class Store:
    """An object store. `asked` counts requests as `GET bucket/key`, `PUT bucket/key?...`; `sent` bytes of bodies."""

    def __init__(self, moto: str, script: Script) -> None:
        self.moto = moto
        self.script = script
        self.asked: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.sent = 0
        self.page = 1000  # objects in an answer to who lists them
        self.url = ""
        self.lock = threading.Lock()

    def put(self, path: str, data: bytes = b"") -> None:
        """Makes an object, or the bucket where the path has no slash."""
        assert self._send("PUT", f"/{path}", data)[0] == 200

    def get(self, path: str) -> bytes:
        status, data = self._send("GET", f"/{path}")
        assert status == 200
        return data

    def keys(self, bucket: str) -> list[str]:
        """Returns the keys of a bucket with fewer than 1,000 of them."""
        xml = self._send("GET", f"/{bucket}")[1].decode()
        return sorted(unescape(key) for key in re.findall("<Key>(.*?)</Key>", xml))

    def remove(self, path: str) -> None:
        assert self._send("DELETE", f"/{path}")[0] == 204

    def reset(self) -> None:
        assert self._send("POST", "/moto-api/reset")[0] == 200

    def _send(self, method: str, path: str, data: bytes = b"") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.moto)
        connection.request(method, quote(path), data, {"Authorization": _SIGNED})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body


class _Handler(Handler):
    store: Store

    def do_GET(self) -> None:
        size = self.headers["Content-Length"]
        body = self.rfile.read(int(size)) if size else self._chunks()
        asked = f"{self.command} {self.path.lstrip('/')}"
        with self.store.lock:
            fault = self.store.script(asked, self.store.asked[asked])
            self.store.asked[asked] += 1
            self.store.faults[fault or "none"] += 1
        if fault and fault.isdigit():
            self._refuse(int(fault))
        else:
            self._forward(fault, body)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def _chunks(self) -> bytes:
        """Returns the body of a request of unknown length; none of one that has no body."""
        if self.headers["Transfer-Encoding"] != "chunked":
            return b""
        pieces = []
        while length := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(length))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def _refuse(self, status: int) -> None:
        code = _CODES[status]
        xml = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{code}</Message></Error>'
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self._end(xml.encode(), None)

    def _forward(self, fault: Fault | None, body: bytes) -> None:
        connection = http.client.HTTPConnection(self.store.moto)
        path = self.path.replace("max-keys=1000", f"max-keys={self.store.page}")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        if self.command in ("PUT", "POST"):
            headers["Content-Length"] = str(len(body))
        connection.request(self.command, path, body or None, headers)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        if fault and fault.startswith("done "):
            self._refuse(int(fault[5:]))
            return
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self._end(data, fault, response.headers["Content-Length"])

    def _end(self, data: bytes, fault: Fault | None, length: str | None = None) -> None:
        self.send_header("Content-Length", length if length and self.command == "HEAD" else str(len(data)))
        self.end_headers()
        if self.command != "HEAD" and fault != "stall":
            self.store.sent += self.wfile.write(data[: len(data) // 2] if fault in ("cut", "reset") else data)
        if fault == "stall":
            time.sleep(_STALL_SECONDS)
        self.close_connection = bool(fault)
        if fault == "reset":
            self.reset_connection()


@contextmanager
def moto_server() -> Iterator[str]:
    """Runs moto; gives its host and port."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"{host}:{port}"
    finally:
        server.stop()


@contextmanager
def store_of(
    moto: str,
    objects: Mapping[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    script: Script = lambda asked, number: None,
) -> Iterator[Store]:
    """Empties moto, puts objects (`bucket/key`) there, and lets c4pipe find it behind the proxy."""
    store = Store(moto, script)
    store.reset()
    for bucket in sorted({path.partition("/")[0] for path in objects}):
        store.put(bucket)
    for path, data in objects.items():
        store.put(path, data)
    with listen(type("Handler", (_Handler,), {"store": store})) as store.url:
        for name, value in environment(store.url).items():
            monkeypatch.setenv(name, value)
        object_store._store.cache_clear()
        try:
            yield store
        finally:
            object_store._store.cache_clear()


def environment(url: str) -> dict[str, str]:
    """Returns the variables by which c4pipe finds an S3 server."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": "us-east-1",
    }
