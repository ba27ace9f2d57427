"""Where work folders and corpora are: folders of this machine (or mounted there), or of a store. One layer for both.

A file appears whole or not at all: by rename, or by an upload that counts once it is complete.
"""

import contextlib
import fnmatch
import io
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import ArrowInvalid, fs

from c4pipe.errors import UsageError
from c4pipe.io.object_store import SCHEMES, file_system, path_of, transient_reason
from c4pipe.io.ranged_file import RangedFile
from c4pipe.io.retry import DownloadError, NetworkOptions, RetryPolicy

_NETWORK = NetworkOptions(tries=6)  # about half a minute: someone may be waiting for it
_TRIES = 3  # of the store's own library, within one of these

T = TypeVar("T")


@dataclass(frozen=True)
class RemotePath:
    """A folder or file in a store: what c4pipe uses of `pathlib.Path`, for a URL.

    Folders need not be made. What fails on the way is tried again; in the end everything here can raise OSError.
    """

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> "RemotePath":
        """The folder that this is in."""
        return RemotePath(self.url.rpartition("/")[0])

    def with_name(self, name: str) -> "RemotePath":
        """Returns what has that name beside this."""
        return RemotePath(f"{self.url.rpartition('/')[0]}/{name}")

    def absolute(self) -> "RemotePath":
        """Returns this: a URL means the same everywhere."""
        return self

    def _do(self, operation: Callable[[fs.FileSystem, str], T]) -> T:
        """Does something with file system and path until it is done, or there is no hope."""
        patience = RetryPolicy(self.url, _NETWORK)
        try:
            while True:
                try:
                    return operation(file_system(self.url, _NETWORK.stall_seconds, _TRIES), path_of(self.url))
                except FileNotFoundError:
                    raise FileNotFoundError(f"{self.url}: there is no such file or bucket") from None
                except (OSError, ArrowInvalid) as error:
                    why = transient_reason(error, self.url)
                patience.pause(why)
        except DownloadError as error:  # of ours: it must not be taken for an input that can't be had
            raise OSError(str(error)) from None

    def _type(self) -> Any:
        return self._do(lambda store, path: store.get_file_info(path).type)

    def exists(self) -> bool:
        """Tells whether there is a file or folder."""
        return bool(self._type() != fs.FileType.NotFound)

    def is_dir(self) -> bool:
        """Tells whether there is a folder: something whose URL begins with this one and a slash."""
        return bool(self._type() == fs.FileType.Directory)

    def open(self) -> "RemoteFile":
        """Opens a file to be read. Raises FileNotFoundError where there is none."""
        return RemoteFile(self)

    def read_bytes(self) -> bytes:
        """Returns what a file holds. Raises FileNotFoundError where there is none."""
        with self.open() as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        """Returns the text of a file. Raises FileNotFoundError where there is none."""
        return self.read_bytes().decode(encoding)

    def list(self) -> list[fs.FileInfo]:
        """Returns what is directly in a folder, by name; nothing where there is none."""
        infos = self._do(lambda store, path: store.get_file_info(fs.FileSelector(path, allow_not_found=True)))
        return sorted(infos, key=lambda info: str(info.base_name))

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        """Yields what matches a pattern without folders in it, by name."""
        yield from (self / each.base_name for each in self.list() if fnmatch.fnmatchcase(each.base_name, pattern))

    def upload(self, file: Path) -> None:
        """Makes this object from a file of this machine; it is there when all of it is."""
        # HDFS shows a file while it grows, but renames; the others show an object when it is whole.
        grows = self.url.startswith("hdfs://")
        target = self.with_name(f".{self.name}.{secrets.token_hex(4)}.tmp") if grows else self
        target._do(lambda store, path: _send(file, store, path))
        if grows:  # over one that is there
            self._do(lambda store, path: store.move(path_of(target.url), path))

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes a file. Raises FileNotFoundError where there is none, unless it may be missing."""
        try:
            self._do(lambda store, path: store.delete_file(path))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rmtree(self) -> None:
        """Removes a folder with all that is in it; it need not be there."""
        with contextlib.suppress(FileNotFoundError):
            if self.is_dir():  # gs:// has another error for one that is not there
                self._do(lambda store, path: store.delete_dir(path))


def _send(file: Path, store: fs.FileSystem, path: str) -> None:
    """Writes an object with all bytes of a file."""
    # In one call of Arrow's, for a stream that is let go of makes an object of what it has so far: Ctrl-C between
    # two calls would leave a part of the file. And not by Arrow's copy_files, which keeps the last errors to itself.
    with pa.memory_map(str(file)) as source:
        stream = store.open_output_stream(path, compression=None)
        stream.write(source.read_buffer())
        stream.close()


class RemoteFile(RangedFile):
    """A file in a store, open to be read at any place. What fails on the way is tried again, then OSError is raised."""

    def __init__(self, path: RemotePath) -> None:
        self._path = path
        self._file: Any = None
        super().__init__(self._do(lambda file: int(file.size())))

    def _do(self, operation: Callable[[Any], T]) -> T:
        def once(store: fs.FileSystem, path: str) -> T:
            if self._file is None:
                self._file = store.open_input_file(path)
            try:
                return operation(self._file)
            except OSError:
                self._file = None
                raise

        return self._path._do(once)

    def range(self, first: int, size: int) -> bytes:
        """Returns `size` bytes from byte `first` on."""
        return self._do(lambda file: _whole(file.read_at(size, first), size))


def _whole(data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise OSError(f"{len(data):,} of {size:,} bytes came")
    return data


StoragePath = Path | RemotePath
"""A folder or file, wherever it is."""


def storage_path(text: str | Path) -> StoragePath:
    """Returns the place that a path or URL names. Raises UsageError for a URL that c4pipe can't write to."""
    text = str(text)
    if "://" not in text:
        return Path(text)
    scheme, _, rest = text.partition("://")
    if f"{scheme}://" not in SCHEMES or not (rest.strip("/") and (scheme == "hdfs" or rest[0] != "/")):
        raise UsageError(
            f"{text}: c4pipe writes to folders of this machine, mounted ones too, and to {', '.join(SCHEMES)}"
        )
    return RemotePath(text.rstrip("/"))


def parquet_source(file: StoragePath) -> str | RemoteFile:
    """Returns a file as Arrow's readers of Parquet take it. Raises OSError for one in a store that can't be had."""
    return str(file) if isinstance(file, Path) else file.open()


def names(folder: StoragePath) -> set[str]:
    """Returns the names directly in a folder, in one look; none where there is no such folder."""
    if not isinstance(folder, Path):
        return {each.base_name for each in folder.list()}
    try:
        return {path.name for path in folder.iterdir()}
    except FileNotFoundError:
        return set()


def file_sizes(folder: StoragePath, pattern: str) -> dict[str, int]:
    """Returns the bytes of the files directly in a folder whose names match, by name; none where it is not there."""
    if not isinstance(folder, Path):
        return {each.base_name: each.size for each in folder.list() if fnmatch.fnmatchcase(each.base_name, pattern)}
    return {path.name: path.stat().st_size for path in folder.glob(pattern)}


def file_size(file: StoragePath) -> int:
    """Returns the bytes of a file. Raises OSError where it can't be had."""
    return file.stat().st_size if isinstance(file, Path) else file.open().seek(0, io.SEEK_END)


def remove_tree(folder: StoragePath) -> None:
    """Removes a folder with all that is in it; it need not be there."""
    if not isinstance(folder, Path):
        folder.rmtree()
    elif folder.exists():
        shutil.rmtree(folder)
