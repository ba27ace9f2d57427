"""Where work folders and corpora are: folders of this machine (or mounted there), or of a store. One layer for both.

A file appears whole or not at all: by rename, or by an upload that counts once it is complete.
"""

import contextlib
import fnmatch
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyarrow import ArrowInvalid, fs

from c4pipe.errors import UsageError
from c4pipe.stores import SCHEMES, file_system, path_of

_STALL_SECONDS = 60.0
_TRIES = 10  # of the store's own library, which waits longer each time


@dataclass(frozen=True)
class StorePath:
    """A folder or file in a store: what c4pipe uses of `pathlib.Path`, for a URL. All of it can raise OSError.

    Folders need not be made.
    """

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "StorePath":
        return StorePath(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self.url.rpartition("/")[2]

    def with_name(self, name: str) -> "StorePath":
        """Returns what has that name beside this."""
        return StorePath(f"{self.url.rpartition('/')[0]}/{name}")

    def absolute(self) -> "StorePath":
        """Returns this: a URL means the same everywhere."""
        return self

    @property
    def _fs(self) -> fs.FileSystem:
        with self._errors():
            return file_system(self.url, _STALL_SECONDS, _TRIES)

    @property
    def _path(self) -> str:
        return path_of(self.url)

    def arrow(self) -> tuple[str, fs.FileSystem]:
        """Returns path and file system, as Arrow's readers take them."""
        return self._path, self._fs

    def _info(self) -> fs.FileInfo:
        with self._errors():
            info: fs.FileInfo = self._fs.get_file_info(self._path)
            return info

    def exists(self) -> bool:
        """Tells whether there is a file or folder."""
        return bool(self._info().type != fs.FileType.NotFound)

    def is_dir(self) -> bool:
        """Tells whether there is a folder: something whose URL begins with this one and a slash."""
        return bool(self._info().type == fs.FileType.Directory)

    def read_bytes(self) -> bytes:
        """Returns what a file holds. Raises FileNotFoundError where there is none."""
        with self._errors(), self._fs.open_input_file(self._path) as file:
            data: bytes = file.read()
            return data

    def read_text(self, encoding: str = "utf-8") -> str:
        """Returns the text of a file. Raises FileNotFoundError where there is none."""
        return self.read_bytes().decode(encoding)

    def list(self) -> list[fs.FileInfo]:
        """Returns what is directly in a folder, by name; nothing where there is none."""
        selector = fs.FileSelector(self._path, allow_not_found=True)
        with self._errors():
            return sorted(self._fs.get_file_info(selector), key=lambda info: str(info.base_name))

    def glob(self, pattern: str) -> Iterator["StorePath"]:
        """Yields what matches a pattern without folders in it, by name."""
        yield from (self / each.base_name for each in self.list() if fnmatch.fnmatchcase(each.base_name, pattern))

    def upload(self, file: Path) -> None:
        """Makes this object from a file of this machine; it is there when all of it is."""
        # HDFS shows a file while it grows, but renames; the others show an object when it is whole.
        grows = self.url.startswith("hdfs://")
        target = self.with_name(f".{self.name}.{secrets.token_hex(4)}.tmp") if grows else self
        with self._errors():
            # In one call of Arrow's: were the bytes written from here, Ctrl-C would end the object where it is.
            local = fs.LocalFileSystem()
            fs.copy_files(str(file), target._path, local, self._fs, use_threads=False)
            if grows:
                self.unlink(missing_ok=True)
                self._fs.move(target._path, self._path)

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes a file. Raises FileNotFoundError where there is none, unless it may be missing."""
        try:
            with self._errors():
                self._fs.delete_file(self._path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rmtree(self) -> None:
        """Removes a folder with all that is in it; it need not be there."""
        with self._errors(), contextlib.suppress(FileNotFoundError):
            self._fs.delete_dir(self._path)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Shortens what Arrow says, and says where."""
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.url}: there is no such file or bucket") from None
        except (OSError, ArrowInvalid) as error:
            why = str(error).partition("\n")[0]
            raise OSError(why if why.startswith(self.url) else f"{self.url}: {why}") from error


Place = Path | StorePath
"""A folder or file, wherever it is."""


def place(text: str | Path) -> Place:
    """Returns the place that a path or URL names. Raises UsageError for a URL that c4pipe can't write to."""
    text = str(text)
    if "://" not in text:
        return Path(text)
    scheme, _, rest = text.partition("://")
    if f"{scheme}://" not in SCHEMES or not (rest.strip("/") and (scheme == "hdfs" or rest[0] != "/")):
        raise UsageError(
            f"{text}: c4pipe writes to folders of this machine, mounted ones too, and to {', '.join(SCHEMES)}"
        )
    return StorePath(text.rstrip("/"))


def arrow(file: Place) -> tuple[str, fs.FileSystem | None]:
    """Returns path and file system of a file, as Arrow's readers take them."""
    return (str(file), None) if isinstance(file, Path) else file.arrow()


def names(folder: Place) -> set[str]:
    """Returns the names directly in a folder, in one look; none where there is no such folder."""
    if not isinstance(folder, Path):
        return {each.base_name for each in folder.list()}
    try:
        return {path.name for path in folder.iterdir()}
    except FileNotFoundError:
        return set()


def file_sizes(folder: Place, pattern: str) -> dict[str, int]:
    """Returns the bytes of the files directly in a folder whose names match, by name; none where it is not there."""
    if not isinstance(folder, Path):
        return {each.base_name: each.size for each in folder.list() if fnmatch.fnmatchcase(each.base_name, pattern)}
    return {path.name: path.stat().st_size for path in folder.glob(pattern)}


def remove_tree(folder: Place) -> None:
    """Removes a folder with all that is in it; it need not be there."""
    if not isinstance(folder, Path):
        folder.rmtree()
    elif folder.exists():
        shutil.rmtree(folder)


class Whole:
    """A file that appears whole or not at all.

    Attributes:
        path: where to write it, on this machine.
    """

    def __init__(self, target: Place) -> None:
        self._target = target
        # the token because machines that share a drive can have a process of the same number
        name = f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        self.path = target.with_name(name) if isinstance(target, Path) else Path(tempfile.gettempdir(), name)

    def publish(self) -> None:
        """Puts the file in its place, over one that is there."""
        if isinstance(self._target, Path):
            self.path.replace(self._target)
        else:
            self._target.upload(self.path)
            self.path.unlink()

    def discard(self) -> None:
        """Removes what was written, unless it was published."""
        self.path.unlink(missing_ok=True)


def write_text(target: Place, text: str) -> None:
    """Writes a file, UTF-8, whole or not at all. Raises OSError."""
    whole = Whole(target)
    try:
        whole.path.write_text(text, encoding="utf-8")
        whole.publish()
    finally:
        whole.discard()
