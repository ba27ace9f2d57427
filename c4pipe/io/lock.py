"""Locks: one run at a time works in a folder, since two would delete each other's temporary files.

The system releases a lock (`flock`) when its process ends, for whatever reason. The lock file is removed on release, so
that a finished corpus holds no file of it.
"""

import contextlib
import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from c4pipe.errors import UsageError
from c4pipe.io.atomic import make_folder, name_os_errors
from c4pipe.io.paths import StoragePath

NAME = ".lock"


@contextlib.contextmanager
def only_run(folder: StoragePath) -> Iterator[None]:
    """Locks a folder for this process; makes the folder if it is missing.

    A folder in an object store is not locked: stores have no locks.

    Raises UsageError, with the folder and the other process, if another run has locked it.
    """
    if not isinstance(folder, Path):
        yield
        return
    make_folder(folder)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(folder / NAME))
        except BlockingIOError as error:
            raise UsageError(
                f"another run of c4pipe ({error}) is at work in {folder}: wait until it ends, or give another folder"
            ) from None
        yield


@contextlib.contextmanager
def file_lock(path: Path, wait: bool = False) -> Iterator[None]:
    """Locks a lock file, whose folder must exist.

    Args:
        path: the lock file; it is made, and removed at the end.
        wait: whether to wait for another process to release it.

    Raises BlockingIOError, with the name of the other process, if that has locked it and `wait` is False; UsageError if
    something else is in its place, such as a link; another OSError, with the path, if the disk has no locks.
    """
    while True:
        with os.fdopen(_open(path), "r+", encoding="utf-8", errors="replace") as file:
            try:
                with name_os_errors(path):
                    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                file.seek(0)
                raise BlockingIOError(file.read(200).strip() or "another process") from None
            if not _is_same_file(path, file.fileno()):  # the last holder removed it while we waited
                continue
            with name_os_errors(path):
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}")
                file.flush()
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _open(path: Path) -> int:
    """Opens a lock file, and nothing else of that name: the owner of the folder may have put a link there."""
    # without O_NONBLOCK, a pipe would wait for its other end
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
    else:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:  # 0: its last holder has just removed it
            return descriptor
        os.close(descriptor)
    raise UsageError(f"{path} is no lock file of c4pipe, but a link or something else: remove it")


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
