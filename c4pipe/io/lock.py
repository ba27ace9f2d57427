"""Locks: one run at a time works in a folder, since two would delete each other's temporary files.

The system releases a lock (`flock`) when its process ends, for whatever reason. The lock file is removed on release, so
that a finished corpus holds no file of it.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from c4pipe.errors import UsageError
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
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(held(folder / NAME))
        except BlockingIOError as error:
            raise UsageError(
                f"another run of c4pipe ({error}) is at work in {folder}: wait until it ends, or give another folder"
            ) from None
        yield


@contextlib.contextmanager
def held(path: Path, wait: bool = False) -> Iterator[None]:
    """Locks a lock file, whose folder must exist.

    Args:
        path: the lock file; it is made, and removed at the end.
        wait: whether to wait for another process to release it.

    Raises BlockingIOError, with the name of the other process, if that has locked it and `wait` is False.
    """
    while True:
        with path.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                file.seek(0)
                raise BlockingIOError(file.read(200).strip() or "another process") from None
            if not _is_same_file(path, file.fileno()):  # the last holder removed it while we waited
                continue
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
