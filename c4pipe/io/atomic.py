"""Files that appear complete or not at all, even after a power cut, and small files of JSON and text."""

import contextlib
import errno
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

from c4pipe.errors import UsageError
from c4pipe.io.paths import RemotePath, StoragePath


class AtomicFile:
    """A file that appears complete or not at all: write it at `path`, then publish it.

    Attributes:
        path: a temporary file on this machine, which does not exist yet.
    """

    def __init__(self, target: StoragePath, label: str = "") -> None:
        """Takes the path of the complete file, and the start of the temporary file's name after its dot."""
        self._target = target
        # Random: two machines that share a drive can have processes with the same id, and nobody can put a link in the
        # way. It has a part of the target's name only, which may have 255 bytes itself.
        start = os.fsencode(target.name)[:100].decode("utf-8", "ignore")
        name = f".{label}{start}.{os.getpid()}-{secrets.token_hex(16)}.tmp"
        self.path = target.with_name(name) if isinstance(target, Path) else Path(tempfile.gettempdir(), name)

    def publish(self, sync_file: bool = True, sync_folder: bool = True) -> None:
        """Moves the file to its target and replaces an existing one. Raises OSError, which names the target.

        Without `sync_file`, the caller has brought its bytes to the disk. Without `sync_folder`, a power cut can remove
        the whole file again: a caller with many files syncs their folder after the last one.
        """
        if isinstance(self._target, Path):
            with name_os_errors(self._target):
                if sync_file:
                    sync(self.path)
                self.path.replace(self._target)
                if sync_folder:
                    sync(self._target.parent)
        else:
            self._target.upload(self.path)
            self.path.unlink()

    def discard(self) -> None:
        """Removes the temporary file, if it was not published."""
        self.path.unlink(missing_ok=True)


class FileBatch(list[AtomicFile]):
    """Files of one folder that are published together, in their order, at the end of the `with` block.

    Their folder is not synced. If the block fails, none is published. Many small files are synced at once: that takes a
    tenth of the time.
    """

    def __enter__(self) -> "FileBatch":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                are_synced = len(self) >= _MANY and _sync_disk(self[0].path.parent)
                while self:
                    self[0].publish(sync_file=not are_synced, sync_folder=False)
                    del self[0]
        finally:
            while self:
                self.pop().discard()


_MANY = 10  # files for which the whole disk is synced


def _sync_disk(folder: Path) -> bool:
    """Syncs the whole disk of a folder. Returns False if that is impossible; then `sync` each file.

    Linux can (syncfs(2)), but perhaps no drive without a block device, such as one of another machine or FUSE.
    """
    import ctypes

    if sys.platform != "linux" or not os.major(folder.stat().st_dev):
        return False
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return bool(ctypes.CDLL(None).syncfs(descriptor) == 0)
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Brings a file's bytes, or a folder's names, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a drive of another machine may not do it for folders
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: StoragePath) -> None:
    """Makes a folder and the folders above it, and brings their names to the disk. Raises OSError.

    A store needs no folders.
    """
    if not isinstance(folder, Path) or folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync(folder.parent)


def move(path: StoragePath, target: StoragePath) -> None:
    """Gives a file (on this machine, also a folder) another path, over an existing file. Raises OSError.

    Makes the folder of the target, and brings the new name to the disk.
    """
    make_folder(target.parent)
    if isinstance(path, Path) and isinstance(target, Path):
        path.rename(target)
        for folder in {path.parent, target.parent}:
            sync(folder)
    else:
        cast(RemotePath, path).replace(cast(RemotePath, target))


@contextlib.contextmanager
def name_os_errors(path: StoragePath) -> Iterator[None]:
    """Adds the name of the file to errors of the system, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (error.filename and not str(error.filename).endswith(".tmp")):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def check_output(path: StoragePath, option: str = "--output", ending: str = "") -> None:
    """Raises UsageError if an option names a file that exists or can't be written, or with another ending."""
    if os.path.lexists(path) if isinstance(path, Path) else path.exists():
        raise UsageError(f"{path} exists: give another {option}, or delete it")
    if not path.name.lower().endswith(ending):
        raise UsageError(f"{option} {path}: give a name that ends in {ending}")
    if isinstance(path, Path) and not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path} can't be written: give a file in a folder that you can write to")


def write_text(target: StoragePath, text: str) -> None:
    """Writes a text file in UTF-8 that appears complete or not at all. Raises OSError."""
    write_bytes(target, text.encode())


def write_bytes(target: StoragePath, data: bytes, batch: FileBatch | None = None, mode: int = 0o666) -> None:
    """Writes a file that appears complete or not at all: at once, or with a batch. Raises OSError.

    `mode` are its permissions, from its first byte on, without those that the user's umask takes away.
    """
    file = AtomicFile(target)
    try:
        with name_os_errors(target), open(file.path, "xb", opener=partial(os.open, mode=mode)) as opened:
            opened.write(data)
        if batch is None:
            file.publish()
        else:
            batch.append(file)
    except BaseException:
        file.discard()
        raise


def clear_abandoned(folder: StoragePath) -> None:
    """Removes the incomplete files of a killed run from a folder, to which no other run may write meanwhile."""
    for abandoned in folder.glob(".*.tmp"):
        abandoned.unlink(missing_ok=True)
