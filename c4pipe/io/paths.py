"""Paths of work folders and corpora: on this machine (also mounted), or in an object store.

A file appears complete or not at all: by a rename, or by an upload that is visible when it is complete.
"""

import contextlib
import errno
import fnmatch
import glob
import hashlib
import io
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from c4pipe.errors import UsageError
from c4pipe.io.downloads import DownloadError, NetworkOptions, RangedFile

if TYPE_CHECKING:
    from pyarrow import fs

# Arrow is imported when a store is used: the command line is read without Arrow.

_NETWORK = NetworkOptions(tries=6)  # about half a minute, because a person may be waiting
_TRIES = 3  # tries of the store's own library within each of our tries

_T = TypeVar("_T")
_U = TypeVar("_U", bound="UrlPath")


@dataclass(frozen=True)
class UrlPath:
    """A folder or file with a URL: the methods of `pathlib.Path` that read its parts."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self: _U, name: str) -> _U:
        return type(self)(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]

    @property
    def parent(self: _U) -> _U:
        """The folder that contains this one."""
        return type(self)(self.url.rpartition("/")[0])

    def absolute(self: _U) -> _U:
        """Returns this path: a URL means the same everywhere."""
        return self

    def open(self) -> RangedFile:
        """Opens a file for reading. Raises OSError."""
        raise NotImplementedError

    def read_bytes(self, most: int = sys.maxsize) -> bytes:
        """Returns the content of a file. Raises OSError, also if it has more than `most` bytes."""
        raise NotImplementedError


class RemotePath(UrlPath):
    """A folder or file in an object store, with methods of `pathlib.Path`. A folder exists if a file is in it.

    A failed request is repeated; in the end, every method can raise OSError.
    """

    def with_name(self, name: str) -> "RemotePath":
        """Returns the path with another name in the same folder."""
        return self.parent / name

    def _do(self, operation: "Callable[[fs.FileSystem, str], _T]") -> _T:
        """Calls a function with file system and path until it succeeds or no try is left."""
        from c4pipe.io.object_store import retried

        try:
            return retried(self.url, _NETWORK, operation, _TRIES)
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.url}: there is no such file or bucket") from None
        except DownloadError as error:  # a DownloadError is for inputs, which may be missing
            raise OSError(str(error)) from None

    def _type(self) -> str:
        """Returns the name of the `pyarrow.fs.FileType`."""
        return self._do(lambda store, path: str(store.get_file_info(path).type.name))

    def exists(self) -> bool:
        """Tells whether the file or folder exists."""
        return self._type() != "NotFound"

    def is_dir(self) -> bool:
        """Tells whether this is a folder: an object's URL begins with this one and a slash."""
        return self._type() == "Directory"

    def open(self) -> "RemoteFile":
        """Opens a file for reading. Raises FileNotFoundError if it is missing."""
        return RemoteFile(self)

    def read_bytes(self, most: int = sys.maxsize) -> bytes:
        """Returns the content of a file. Raises FileNotFoundError if it is missing, OSError if it is larger."""
        with self.open() as file:
            if file.size > most:
                raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", self.url)
            return file.read()

    def list(self) -> "list[fs.FileInfo]":
        """Returns the files and folders directly in a folder, by name; none if the folder does not exist."""
        from pyarrow import fs

        infos = self._do(lambda store, path: store.get_file_info(fs.FileSelector(path, allow_not_found=True)))
        return sorted(infos, key=lambda info: str(info.base_name))

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        """Yields the files and folders directly in this folder whose names match a pattern, by name."""
        yield from (self / each.base_name for each in self.list() if fnmatch.fnmatchcase(each.base_name, pattern))

    def upload(self, file: Path) -> None:
        """Uploads a file of this machine; the object is visible after the upload."""
        import secrets

        from c4pipe.io.object_store import path_of

        # HDFS shows a file while it is written, but can rename it; the others show an object when it is complete.
        is_hdfs = self.url.startswith("hdfs://")
        target = self.with_name(f".{secrets.token_hex(16)}.tmp") if is_hdfs else self
        target._do(lambda store, path: _send(file, store, path))
        if is_hdfs:  # replaces an existing file
            self._do(lambda store, path: store.move(path_of(target.url), path))

    def replace(self, target: "RemotePath") -> None:
        """Moves a file inside its bucket, over an existing file too."""
        from c4pipe.io.object_store import path_of

        self._do(lambda store, path: store.move(path, path_of(target.url)))

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes a file. Raises FileNotFoundError if it is missing, unless `missing_ok`."""
        with contextlib.suppress(*[FileNotFoundError] * missing_ok):
            self._do(lambda store, path: store.delete_file(path))

    def rmtree(self) -> None:
        """Removes a folder and everything in it, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            if self.is_dir():  # gs:// raises another error for a folder that does not exist
                self._do(lambda store, path: store.delete_dir(path))


def _send(file: Path, store: "fs.FileSystem", path: str) -> None:
    """Writes the bytes of a file to an object."""
    import pyarrow as pa

    # In one call of Arrow: a dropped stream makes an object of the bytes so far, so Ctrl-C between two calls would
    # leave a part of the file. Not with Arrow's copy_files, which does not report the last errors.
    with pa.memory_map(str(file)) as source:
        stream = store.open_output_stream(path, compression=None)
        stream.write(source.read_buffer())
        stream.close()


class RemoteFile(RangedFile):
    """A file in an object store, open for reading at any offset, by several threads, too (`range`).

    Failed requests are repeated before OSError.
    """

    def __init__(self, path: RemotePath) -> None:
        self._path = path
        self._file: Any = None
        super().__init__(self._do(lambda file: int(file.size())))

    def _do(self, operation: Callable[[Any], _T]) -> _T:
        def once(store: "fs.FileSystem", path: str) -> _T:
            file = self._file  # of this thread: another one may drop it
            if file is None:
                file = self._file = store.open_input_file(path)
            try:
                return operation(file)
            except OSError:
                self._file = None
                raise

        return self._path._do(once)

    def range(self, first: int, size: int) -> bytes:
        return self._do(lambda file: _check_size(file.read_at(size, first), size))


def _check_size(data: bytes, size: int) -> bytes:
    """Returns the data. Raises OSError if some are missing."""
    if len(data) < size:
        raise OSError(f"only {len(data):,} of {size:,} bytes arrived")
    return data


StoragePath = Path | RemotePath
"""A folder or file on this machine or in an object store."""


def storage_path(text: str | Path, reads: bool = False) -> StoragePath:
    """Returns the path of a folder or file, given a path or a URL of a store.

    With `reads` it is only read: any URL of fsspec is possible, and a URL of the Hub gets its commit.

    Raises UsageError for another URL, or for a repository of the Hub that can't be read.
    """
    text = str(text)
    if "://" not in text:
        return Path(text)
    from c4pipe.io.object_store import SCHEMES, is_store, pinned

    if reads and is_store(text) and not text.startswith(SCHEMES):
        try:
            return RemotePath(pinned(text.rstrip("/")))
        except DownloadError as error:
            raise UsageError(str(error)) from None
    scheme, _, rest = text.partition("://")
    if f"{scheme}://" not in SCHEMES or not (rest.strip("/") and (scheme == "hdfs" or rest[0] != "/")):
        raise UsageError(
            f"{text}: c4pipe writes to folders of this machine, mounted ones too, and to {', '.join(SCHEMES)}"
        )
    return RemotePath(text.rstrip("/"))


MOST_BYTES = 1 << 28
"""The most bytes that are read at once: the manifest of 100,000 inputs and a million shards is smaller."""


def check_regular(path: Path) -> None:
    """Raises OSError for a pipe, a device or a socket: reading could block, or never end."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # to open a folder is an error of its own
        raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", str(path))


def check_is_folder(option: str, folder: StoragePath) -> None:
    """Raises UsageError if an option names a file instead of a folder."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{option} {folder} is a file: give a folder")


def check_inner(folder: StoragePath, *names: str) -> None:
    """The door to a user's folder: nothing is written, moved or deleted in it before (`lock.only_run` calls it).

    `folder`, which the user named, may be a link. The folders that c4pipe makes inside, at any depth, may not: those
    whose names begin with `_`, and `names`, which are paths inside, such as a language, also missing ones.

    Raises UsageError if a link stands for such a folder: c4pipe would write and delete files outside.
    """
    for path in _inner_folders(folder, names) if isinstance(folder, Path) and folder.is_dir() else ():
        if path.is_symlink():
            raise UsageError(f"{path} is a link, and no folder that c4pipe has made: remove it, or put a folder there")


def _inner_folders(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yields each folder before those inside: who finds a link looks at nothing behind it."""
    for name in names:
        parts = Path(name).parts
        yield from (folder.joinpath(*parts[:end]) for end in range(1, len(parts) + 1))
    for name in sorted(name for name in list_names(folder) if name.startswith("_")):
        yield folder / name
        for above, inner, _ in os.walk(folder / name):
            yield from (Path(above, each) for each in sorted(inner))


def open_file(path: Path | UrlPath) -> BinaryIO:
    """Opens a file for reading. Raises OSError, also for a pipe or device (`check_regular`)."""
    if isinstance(path, UrlPath):
        return cast(BinaryIO, path.open())
    check_regular(path)
    return path.open("rb")


def read_file(path: Path | UrlPath, most: int = MOST_BYTES) -> bytes:
    """Returns the bytes of a file. Raises OSError, also if it has more than `most` bytes."""
    if isinstance(path, UrlPath):
        return path.read_bytes(most)
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size <= most:
            return file.read()
    raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))


def sha256_of(file: BinaryIO) -> str:
    """Returns the SHA-256 of the rest of an open file, in hex."""
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def list_names(folder: StoragePath) -> set[str]:
    """Returns the names directly in a folder, from one listing; none if the folder does not exist."""
    if not isinstance(folder, Path):
        return {each.base_name for each in folder.list()}
    try:
        with os.scandir(folder) as listing:
            return {entry.name for entry in listing}
    except FileNotFoundError:
        return set()


def walk_folders(
    folder: Path, on_note: Callable[[str], None] = lambda text: None, skipped: tuple[str, ...] = ()
) -> Iterator[tuple[Path, list[Path]]]:
    """Yields a folder and its inner folders, also linked ones, each with its files, by name.

    Each real folder is searched once, by its path without links if possible: loops of links end.

    Args:
        folder: on this machine.
        on_note: is called with a sentence about each folder that has a second path.
        skipped: the beginnings of the names of inner folders that are left out.

    Raises OSError if a folder can't be read.
    """
    searched: dict[tuple[int, int], Path] = {}
    folders, links = [folder], list[Path]()
    while folders or links:
        path = folders.pop() if folders else links.pop()
        status = path.stat()
        first = searched.setdefault((status.st_dev, status.st_ino), path)
        if first != path:
            on_note(f"{path} and {first} are one folder: it is searched once")
            continue
        files: list[Path] = []
        with os.scandir(path) as listing:
            for entry in sorted(listing, key=lambda entry: entry.name, reverse=True):
                inner, is_link = path / entry.name, entry.is_symlink()
                if not (inner.is_dir() if is_link else entry.is_dir()):
                    files.append(inner)
                elif not entry.name.startswith(skipped):
                    (links if is_link else folders).append(inner)
        yield path, files[::-1]


def match_paths(pattern: str, on_note: Callable[[str], None]) -> Iterator[Path]:
    """Yields the files and folders of this machine that a glob names, as `glob.glob` with `recursive`; some twice.

    A name with brackets, such as `run[1]`, is found, too. `**` searches as `walk_folders`. Raises OSError if a folder
    can't be read.
    """
    yield from _match(Path(), Path(pattern).parts, on_note)


def _match(folder: Path, parts: Sequence[str], on_note: Callable[[str], None]) -> Iterator[Path]:
    if not parts:
        yield folder
    elif parts[0] == "**":
        for inner, _ in walk_folders(folder, on_note, (".",)) if folder.is_dir() else ():
            yield from _match(inner, parts[1:] or ("*",), on_note)
    elif not glob.has_magic(parts[0]) or (not {"*", "?"} & {*parts[0]} and os.path.lexists(folder / parts[0])):
        path = folder / parts[0]
        yield from _match(path, parts[1:], on_note) if os.path.lexists(path) else ()
    elif folder.is_dir():
        for name in sorted(fnmatch.filter((path.name for path in folder.iterdir()), parts[0])):
            if not name.startswith(".") or parts[0].startswith("."):
                yield from _match(folder / name, parts[1:], on_note)


def file_sizes(folder: StoragePath, pattern: str) -> dict[str, int]:
    """Returns the sizes in bytes of the regular files directly in a folder whose names match a pattern, by name.

    Empty if the folder does not exist.
    """
    if not isinstance(folder, Path):
        return {each.base_name: each.size for each in folder.list() if fnmatch.fnmatchcase(each.base_name, pattern)}
    return {path.name: path.stat().st_size for path in folder.glob(pattern) if path.is_file()}


def file_size(file: Path | UrlPath) -> int:
    """Returns the size of a file in bytes. Raises OSError if it can't be read."""
    return file.stat().st_size if isinstance(file, Path) else file.open().seek(0, io.SEEK_END)


def remove_tree(folder: StoragePath) -> None:
    """Removes a folder and its content, or what stands in its place, if it exists."""
    if not isinstance(folder, Path):
        folder.rmtree()
    elif folder.is_dir() and not folder.is_symlink():  # the target of a link is not ours
        shutil.rmtree(folder)
    else:  # rmtree would wait for the other end of a pipe
        folder.unlink(missing_ok=True)


def once_a_file(read: Callable[[Path], _T]) -> Callable[[Path], _T]:
    """Makes `read` keep its result for each file of this machine until the file is changed."""
    kept: dict[Path, tuple[tuple[int, ...], _T]] = {}

    def read_once(path: Path) -> _T:
        status = path.stat()
        state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        found = kept.get(path)
        if found is None or found[0] != state:
            found = kept[path] = state, read(path)
        return found[1]

    return read_once
