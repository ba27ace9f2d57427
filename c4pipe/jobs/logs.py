"""The log file of a command: its versions, what it did and when, and how it ended."""

import contextlib
import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from c4pipe.display import error_reason
from c4pipe.errors import JobWritten, UsageError

LOG = logging.getLogger("c4pipe")
"""The logger of c4pipe. Without --log and without handlers of the user's own, it writes nowhere."""

_FORM = "%(asctime)s %(levelname)s %(message)s"


@contextlib.contextmanager
def log_to(path: Path | None, command: Sequence[str]) -> Iterator[None]:
    """Appends a log of the `with` block to a file: versions, kernels, the command, its jobs, and how it ended.

    Args:
        path: the file, or None for no log.
        command: the arguments of the command.

    Raises UsageError if the file can't be written.
    """
    if path is None:
        yield
        return
    from c4pipe.corpus import versions
    from c4pipe.native import kernels

    try:
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--log {path} can't be written: {error_reason(error)}: give a file in a folder that you can write to"
        ) from None
    handler.setFormatter(logging.Formatter(_FORM))
    handler.addFilter(_is_wanted)
    root, before = logging.getLogger(), LOG.level
    root.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        LOG.info("versions: %s", key_values(versions()))
        LOG.info("kernels: %s", key_values(kernels()))
        LOG.info("command: c4pipe %s", shlex.join(command))
        with _ending():
            yield
    finally:
        LOG.setLevel(before)
        root.removeHandler(handler)
        handler.close()


def key_values(values: Mapping[str, object]) -> str:
    """Returns values as one line: `name=value other=value`."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def _is_wanted(record: logging.LogRecord) -> bool:
    """Tells whether a record belongs in the log: not what Beam's workers in this process log below a warning."""
    return not record.name.startswith("apache_beam.runners.worker") or record.levelno >= logging.WARNING


@contextlib.contextmanager
def _ending() -> Iterator[None]:
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
