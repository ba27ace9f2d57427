"""One run at a time in a folder: two would take each other's temporary files for left-overs."""

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
    """Holds a folder for this process. Raises UsageError, naming the other process, where one has it.

    A store has no locks: there, nothing is held.
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
                f"another run of c4pipe ({error}) is at work in {folder}: wait for its end, or give another folder"
            ) from None
        yield


@contextlib.contextmanager
def held(path: Path, wait: bool = False) -> Iterator[None]:
    """Holds a lock file; the system lets go of it when the process ends, however that is.

    Raises BlockingIOError, with a word about the process that has it, unless told to wait.
    """
    while True:
        with path.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                file.seek(0)
                raise BlockingIOError(file.read(200).strip() or "another process") from None
            if not _is_still(path, file.fileno()):  # its last holder removed it before we had it
                continue
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
