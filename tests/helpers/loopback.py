"""What the web servers of the tests have in common: they listen on a free port of this machine."""

import random
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def free_port() -> int:
    """Returns a port for a server that starts later: below the ports that Linux gives to other sockets, from 32768 on.
    So no socket of another test takes it meanwhile.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Handler(BaseHTTPRequestHandler):
    """A handler that writes no log."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the client to acknowledge the headers

    def reset_connection(self) -> None:
        """Lets the connection end by a reset: the client gets an error in place of the rest."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Writes nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that closed their connection."""


@contextmanager
def listen(handler: type[Handler], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Runs a server in a thread, with TLS if a context is given; yields its URL."""
    with _Server(("127.0.0.1", 0), handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
