"""The log file of a command: what it did and when, for whoever looks later."""

import contextlib
import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from c4pipe.errors import JobWritten, UsageError

LOG = logging.getLogger("c4pipe")
"""Where all of c4pipe logs to. Without --log that is nowhere."""

_FORM = "%(asctime)s %(levelname)s %(message)s"


@contextlib.contextmanager
def log_to(path: Path | None, command: Sequence[str]) -> Iterator[None]:
    """Logs to the end of a file, from versions and command to how it ended; to none where `path` is None.

    Raises UsageError where the file can't be written.
    """
    if path is None:
        yield
        return
    from c4pipe.corpus.manifest import versions  # here, for it needs Arrow

    try:
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--log {path} can't be written: {error}") from None
    handler.setFormatter(logging.Formatter(_FORM))
    handler.addFilter(_is_wanted)
    root, before = logging.getLogger(), LOG.level
    root.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        LOG.info("versions: %s", said(versions()))
        LOG.info("command: c4pipe %s", shlex.join(command))
        with _ending():
            yield
    finally:
        LOG.setLevel(before)
        root.removeHandler(handler)
        handler.close()


def said(values: Mapping[str, object]) -> str:
    """Returns values in a line, as `name=value`."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def _is_wanted(record: logging.LogRecord) -> bool:
    """Tells whether a record is of this command, or a warning: not what workers in this process tell each other."""
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
