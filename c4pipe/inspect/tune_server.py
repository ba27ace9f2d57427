"""Limits chosen by looking: the page of `c4pipe tune`, on marimo's server, and a chart for notebooks."""

import io
import logging
import os
import runpy
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from c4pipe.clean.annotated_folder import open_annotated
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.inspect.limits import Changes, Tuner
from c4pipe.inspect.options import TuneOptions
from c4pipe.io.atomic import check_output
from c4pipe.io.options import PathArgument
from c4pipe.io.paths import storage_path
from c4pipe.io.words import suggestion

_APP = Path(__file__).with_name("tune_app.py")
_HOST = "127.0.0.1"


@cache
def open_tuner(folder: str) -> Tuner:
    """Returns the tuner of an annotated folder, once for all tabs. Raises UsageError, DamagedFileError."""
    tuner = Tuner(open_annotated(storage_path(folder, reads=True)))
    if not tuner.limits:
        raise UsageError(f"no page rule of {folder} has a limit: annotate with a recipe that has such rules")
    return tuner


def serve(options: TuneOptions, say: Callable[[str], None]) -> None:
    """Serves the page of an annotated folder on 127.0.0.1, until the process is stopped.

    The address has a secret, so that neither other users of the machine nor other pages in the browser open the page.
    The server is marimo's own command, which runs in this process.

    Args:
        options: the folder, the port, and the recipe file that the page can write.
        say: is given the address, when the server answers.

    Raises UsageError where the extra is missing, the folder is no annotated folder, has no pages or no limits, the
    recipe file exists or can't be written, or the port is taken; DamagedFileError; C4pipeError where the server ends
    with an error.
    """
    if os.path.lexists(options.output):
        raise UsageError(f"{options.output} exists: give another --output, or delete it")
    check_output(storage_path(os.fspath(options.output)))
    open_tuner(os.fspath(options.annotated))
    _page()
    port, secret = _free_port(options.port), secrets.token_urlsafe()
    threading.Thread(target=_say_when_open, args=(port, secret, say), daemon=True).start()
    server = ["--headless", "--host", _HOST, "--port", str(port), "--token", "--token-password-file", "-"]
    given = ["--annotated", os.fspath(options.annotated), "--output", os.fspath(options.output)]
    sys.argv = ["marimo", "--quiet", "--yes", "run", *server, str(_APP), "--", *given]
    sys.stdin = io.StringIO(secret)
    # Ctrl-C ends the server well; it reports a part of its own that it cancels.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "CancelledError" not in record.getMessage())
    try:
        runpy.run_module("marimo", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise C4pipeError(f"marimo's server ended with status {end.code}") from None


def tune(annotated: PathArgument, limit: str = "", changes: Changes | None = None) -> Any:
    """Returns a chart for a notebook: what a recipe keeps with each value of one limit, and the rule's histogram.

    The chart follows the pointer without the kernel, in Jupyter, marimo and whatever shows Altair's charts. All other
    limits stay: to change one, call again with `changes`. The whole page is the command `c4pipe tune`.

    Args:
        annotated: an annotated folder.
        limit: the limit, such as `few_words.at_least`; "" for the first limit of the page.
        changes: values of other limits, by these names.

    Returns an `altair.Chart`. Raises UsageError where the extra is missing, the folder is no annotated folder or has
    no such limit; DamagedFileError.
    """
    tuner = open_tuner(os.fspath(annotated))
    limits = {each.key: each for each in tuner.limits}
    for name in (*filter(None, [limit]), *(changes or {})):
        if name not in limits:
            raise UsageError(f"{annotated} has no limit {name!r}, but {', '.join(limits)}{suggestion(name, limits)}")
    return _page().notebook_chart(tuner, limits.get(limit, tuner.first), changes or {})


def _page() -> Any:
    """Returns the module of the page's elements. Raises UsageError where the extra is missing."""
    try:
        from c4pipe.inspect import tune_page
    except ModuleNotFoundError as error:
        raise UsageError(f"tune needs the package {error.name}: run pip install 'c4pipe[tune]'") from None
    return tune_page


def _free_port(port: int | None) -> int:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((_HOST, port or 0))
        except (OSError, OverflowError):
            raise UsageError(f"--port {port} can't be used: give another, or none for a free one") from None
        return int(tried.getsockname()[1])


def _say_when_open(port: int, secret: str, say: Callable[[str], None]) -> None:
    while True:
        try:
            socket.create_connection((_HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            say(f"http://{_HOST}:{port}/?access_token={secret}")
            return
