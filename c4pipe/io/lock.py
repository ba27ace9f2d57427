"""Locks: one run at a time works in a folder; two would delete each other's temporary files.

The system releases a lock (`flock`) when its process ends, for whatever reason. The lock file is removed on release, so
a finished corpus has none. Some file systems have no `flock` (`has_locks`), such as Lustre without its mount option.
There, as in an object store, two runs at the same time are not detected.
"""

import contextlib
import errno
import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from c4pipe.errors import UsageError
from c4pipe.io.atomic import make_folder, name_os_errors
from c4pipe.io.log import LOG
from c4pipe.io.paths import StoragePath, check_inner, open_file

LOCK_NAME = ".lock"

_NO_LOCKS = errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP


def has_locks(folder: Path) -> bool:
    """Tells whether the file system of a folder has locks (`flock`); makes the folder if it is missing."""
    make_folder(folder)
    return _has_locks(folder.absolute())


@cache
def _has_locks(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _NO_LOCKS
    return True


@contextlib.contextmanager
def only_run(folder: StoragePath) -> Iterator[None]:
    """Locks a folder, which is made if it is missing; an object store and some file systems have no locks.

    Raises UsageError, with the folder and the other process, if another run has locked it; as `check_inner`.
    """
    if not isinstance(folder, Path):
        yield
        return
    check_inner(folder)
    if not has_locks(folder):
        LOG.warning("%s: its file system has no locks (flock): do not run c4pipe twice in it at the same time", folder)
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(folder / LOCK_NAME))
        except BlockingIOError as error:
            raise UsageError(
                f"another run of c4pipe ({error}) is at work in {folder}: wait until it ends, or give another folder"
            ) from None
        yield


def lock_owner(folder: Path) -> str | None:
    """Returns the process that has locked a folder; None without one. Changes nothing."""
    try:
        with open_file(folder / LOCK_NAME) as file:
            text = file.read(200).decode("utf-8", "replace")
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
    except OSError:
        return None
    return text or "another process"


@contextlib.contextmanager
def file_lock(path: Path, wait: bool = False) -> Iterator[None]:
    """Locks a lock file in an existing folder: it is made, and removed at the end.

    Raises BlockingIOError, with the name of the other process, if that has locked it and `wait` is False; UsageError
    for something else in its place, such as a link; another OSError, with the path, if the disk has no locks.
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
    """Opens a lock file, but no link or pipe that the owner of the folder has put there."""
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
