"""Limits chosen by looking: the page of `c4pipe tune`, on marimo's server."""

import io
import logging
import os
import runpy
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

from c4pipe.clean.annotated_folder import open_annotated
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.inspect.limits import Tuner
from c4pipe.inspect.options import TuneOptions
from c4pipe.io.atomic import check_output
from c4pipe.io.paths import storage_path

_HOST = "127.0.0.1"


@cache
def open_tuner(folder: str) -> Tuner:
    """Returns the tuner of an annotated folder, once for all tabs. Raises UsageError, DamagedFileError."""
    tuner = Tuner(open_annotated(storage_path(folder, reads=True)))
    if not tuner.limits:
        raise UsageError(f"no page rule of {folder} has a limit: annotate with a recipe that has such rules")
    return tuner


def serve(options: TuneOptions) -> None:
    """Serves the page of an annotated folder on 127.0.0.1, until the process is stopped.

    The server is marimo's own command, which runs in this process. It prints the address, with a secret: neither other
    users of the machine nor other pages in the browser can open the page. A browser sends a cookie to all ports of a
    machine, so the cookie is for a path that nobody can guess.

    Raises UsageError if the extra is missing, the folder is no annotated folder, has no pages or no limits, the
    recipe file exists or can't be written, or the port is taken; DamagedFileError; C4pipeError if the server ends
    with an error.
    """
    folder, output = os.fspath(options.annotated), os.fspath(options.output)
    check_output(storage_path(output))
    open_tuner(folder)
    try:
        from marimo._server.registry import MIDDLEWARE_REGISTRY
        from starlette.middleware import Middleware

        from c4pipe.inspect import tune_page as tune_page
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise UsageError(f"tune needs the package {package}: run pip install 'c4pipe[tune]'") from None
    path = f"/{secrets.token_urlsafe()}"
    where = f"--headless --host {_HOST} --port {_find_port(options.port)} --base-url {path}"
    server = f"{where} --token --token-password-file -".split()
    app = [str(Path(__file__).with_name("tune_app.py")), "--", "--annotated", folder, "--output", output]
    sys.argv = ["marimo", "--yes", "run", *server, *app]
    sys.stdin = io.StringIO(secrets.token_urlsafe())  # marimo's own secret is a hash of the app
    MIDDLEWARE_REGISTRY.register("same_origin", Middleware(_SameOrigin))
    # Ctrl-C ends the server well; it reports a part of its own that it cancels.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "CancelledError" not in record.getMessage())
    try:
        runpy.run_module("marimo", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise C4pipeError(f"marimo's server ended with status {end.code}") from None


class _SameOrigin:
    """An application of ASGI that refuses the WebSocket to the page of any other server."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        headers = dict(scope.get("headers", ()))
        origin = headers.get(b"origin", b"").partition(b"://")[2]
        if scope["type"] == "websocket" and origin != headers.get(b"host"):
            await send({"type": "websocket.close", "code": 1008})  # against the policy of the server (RFC 6455, 7.4.1)
        else:
            await self._app(scope, receive, send)


def _find_port(port: int | None) -> int:
    try:
        with socket.create_server((_HOST, port or 0)) as tried:
            return int(tried.getsockname()[1])
    except (OSError, OverflowError):
        raise UsageError(f"--port {port} can't be used: give another, or none for a free one") from None
