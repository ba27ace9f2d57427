"""Locks: one run at a time works in a folder; two would delete each other's temporary files.

The system releases a lock (`flock`) when its process ends, for whatever reason. The lock file is removed on release, so
a finished corpus has none. Some file systems have no `flock` (`has_locks`), such as Lustre without its mount option.
There, a folder is locked by a file that names its owner, which stays after a kill.
"""

import contextlib
import errno
import fcntl
import os
import re
import socket
import stat
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from c4pipe.errors import UsageError
from c4pipe.io.atomic import make_folder, name_os_errors
from c4pipe.io.paths import StoragePath, check_inner, open_file, read_file

LOCK_NAME = ".lock"
_MOST = 2000  # bytes of a lock file that are read

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
    """Locks a folder, which is made if it is missing; an object store has no locks.

    Raises UsageError, with the folder and the other process, if another run has locked it; as `check_inner`.
    """
    if not isinstance(folder, Path):
        yield
        return
    check_inner(folder)
    if not has_locks(folder):
        with _lock_by_file(folder / LOCK_NAME):
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
            text = file.read(_MOST).decode("utf-8", "replace")
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
    except OSError:
        return None
    return None if _has_ended(text) else text.partition("\n")[0][:200] or "another process"


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


@contextlib.contextmanager
def _lock_by_file(path: Path) -> Iterator[None]:
    """Locks by a file that names this process; replaces the file of an ended process. Raises UsageError."""
    owner = "\n".join((f"process {os.getpid()} on {socket.gethostname()}", *_identify_machine()))
    while not _make_file(path, owner):
        with contextlib.suppress(FileNotFoundError):  # it was released meanwhile
            other = read_file(path, _MOST).decode("utf-8", "replace")
            guard = path.with_name(f"{LOCK_NAME}.guard")  # without it, a run could remove the file of the next one
            if not _has_ended(other):
                name = other.partition("\n")[0][:200] or "another process"
                raise UsageError(_describe_lock(path, name))
            if not _make_file(guard, owner):
                raise UsageError(_describe_lock(guard, "another process"))
            try:
                if read_file(path, _MOST).decode("utf-8", "replace") == other:
                    path.unlink()
            finally:
                guard.unlink(missing_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if read_file(path, _MOST).decode() == owner:
                path.unlink()


def _describe_lock(path: Path, owner: str) -> str:
    return (
        f"another run of c4pipe ({owner}) is at work in {path.parent}, whose file system has no locks: wait until it "
        f"ends, give another folder, or delete {path} if it has ended"
    )


def _make_file(path: Path, text: str) -> bool:
    """Makes a file with a text; returns False if it exists."""
    try:
        with name_os_errors(path), path.open("x") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def _identify_machine() -> tuple[str, str, str]:
    """Returns the identities of the machine, of its last start and of the container's processes; "" if unknown."""
    found = ["", "", ""]
    with contextlib.suppress(OSError):
        found[0] = Path("/etc/machine-id").read_text().strip()
    with contextlib.suppress(OSError):
        found[1] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with contextlib.suppress(OSError):
        found[2] = str(Path("/proc/self/ns/pid").readlink())
    return found[0], found[1], found[2]


def _has_ended(owner: str) -> bool:
    """Tells whether the owner of a lock is an ended process of this machine; False if that is uncertain."""
    match = re.fullmatch(r"process ([0-9]{1,9}) on (.*)\n(.*)\n(.*)\n(.*)", owner)
    machine, start, processes = _identify_machine()
    if not match or (match[2], match[3]) != (socket.gethostname(), machine):
        return False
    if match[4] != start:
        return bool(machine)  # started again since; without its id, it may be another machine of this name
    if match[5] != processes:
        return False
    try:
        os.kill(int(match[1]), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False
