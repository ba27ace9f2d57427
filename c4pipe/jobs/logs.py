"""The log file of a command: versions, the steps with their times, and the end."""

import contextlib
import errno
import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path

from c4pipe.errors import JobWritten, UsageError, hide_secrets
from c4pipe.io.log import LOG
from c4pipe.io.words import error_reason, format_cost, key_values, visible
from c4pipe.text.languages import LANGUAGES

_FORMAT = "%(asctime)s %(levelname)s %(message)s"


@contextlib.contextmanager
def log_to(path: Path | None, command: Sequence[str], on_error: Callable[[str], None] | None = None) -> Iterator[None]:
    """Appends a log of the `with` block to a file: versions, kernels, the command, its jobs, and how it ended.

    Args:
        path: the file, or None for no log.
        command: the arguments of the command.
        on_error: gets one sentence if records can't be written, as on a full disk. The block goes on.

    Raises UsageError if the file can't be opened.
    """
    if path is None:
        yield
        return
    from c4pipe.io.versions import versions
    from c4pipe.native import kernels

    try:
        handler = _LogFile(path, on_error)
    except OSError as error:
        raise UsageError(
            f"--log {path} can't be written: {_reason(error)}: give a file in a folder that you can write to"
        ) from None
    handler.setFormatter(_SafeFormatter(_FORMAT))
    handler.addFilter(_is_wanted)
    root, before = logging.getLogger(), LOG.level
    root.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        LOG.info("versions: %s", key_values(versions()))
        LOG.info("kernels: %s", key_values(kernels()))
        LOG.info("command: c4pipe %s", shlex.join(command))
        with _log_end():
            yield
    finally:
        LOG.setLevel(before)
        root.removeHandler(handler)
        handler.close()


def _reason(error: OSError) -> str:
    return "it is a pipe that nobody reads, or a socket" if error.errno == errno.ENXIO else error_reason(error)


class _LogFile(logging.FileHandler):
    """A log file whose errors do not end the run: the log is not the result of the run."""

    def __init__(self, path: Path, on_error: Callable[[str], None] | None) -> None:
        super().__init__(path, encoding="utf-8", errors="replace")
        self._path = path
        self._on_error = on_error

    def _open(self) -> TextIOWrapper:
        """Opens the file. A pipe that nobody reads is an error: without O_NONBLOCK, this would wait for a reader."""
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o666)
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "a", encoding=self.encoding, errors=self.errors)

    def handleError(self, record: logging.LogRecord) -> None:
        """Reports the first error alone."""
        error, on_error, self._on_error = sys.exc_info()[1], self._on_error, None
        if on_error:
            on_error(f"--log {self._path} can't be written, and the run goes on without it: {error}")

    def close(self) -> None:
        """Closes the file, even if its last records can't be written."""
        with contextlib.suppress(OSError):
            super().close()


class _SafeFormatter(logging.Formatter):
    """Writes records without control characters, which a terminal would obey, and without secrets of URLs."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the lines of a record."""
        return hide_secrets(visible(super().format(record), keep="\n"))


def count_values(counts: Mapping[str, int]) -> str:
    """Returns the counters of a job as one line, without those by language: there can be thousands."""
    return key_values({name: number for name, number in counts.items() if not name.startswith(LANGUAGES)})


def log_cost(job: str, seconds: float, text_bytes: int) -> None:
    """Logs the CPU seconds of a job, also for a terabyte of its input text as crawled."""
    cost = f", {format_cost(seconds, text_bytes)} of text" if text_bytes else ""
    LOG.info("%s: %.1f CPU s%s", job, seconds, cost)


def _is_wanted(record: logging.LogRecord) -> bool:
    """Tells whether a record belongs in the log: of Beam's workers in this process, only warnings and errors do."""
    return not record.name.startswith("apache_beam.runners.worker") or record.levelno >= logging.WARNING


@contextlib.contextmanager
def _log_end() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        LOG.warning("stopped")
        raise
    except JobWritten as written:
        LOG.info("%s", written)
        raise
    except Exception as error:
        LOG.error("%s: %s", type(error).__name__, error, exc_info=True)
        raise
    LOG.info("ended")
