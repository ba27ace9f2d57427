"""Opens inputs: files, and URLs of web servers and object stores, with a cache for downloads.

The cache is a folder of downloaded files: complete, verified, and shared by all runs that name it.
"""

import contextlib
import hashlib
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from c4pipe.errors import hide_secrets
from c4pipe.io.atomic import AtomicFile, FileBatch, make_folder, name_os_errors
from c4pipe.io.downloads import ByteStream, DownloadStream, NetworkOptions, OnWait, RangedFile
from c4pipe.io.lock import file_lock, has_locks
from c4pipe.io.object_store import BUCKETS, ObjectDownload, is_store
from c4pipe.io.paths import StoragePath, UrlPath, check_inner, open_file, read_file, sha256_of, storage_path

if TYPE_CHECKING:
    from c4pipe.io.http import Pool

_WEB = "http://", "https://"
_READ_SIZE = 1 << 20  # bytes of a file or download
_LONGEST = 240  # characters of a cached file's name, with room for ".sha256": file systems allow 255 bytes
_END_BYTES = 512 * 1024  # of a digest of ends


def is_url(path: str) -> bool:
    """Tells whether an input is a URL, not a path."""
    return path.startswith(_WEB) or is_store(path)


class InputOpener:
    """Opens inputs, and keeps the connections of a worker."""

    def __init__(self, network: NetworkOptions, on_wait: OnWait | None = None) -> None:
        """Takes the options of downloads, and a function that gets each wait (default: the log)."""
        self._network = network
        self._on_wait = on_wait

    @cached_property
    def _pool(self) -> "Pool":
        from c4pipe.io.http import Pool

        return Pool()

    @cached_property
    def _cache(self) -> Path | None:
        """The folder of the cache; None also on a disk without locks, where two processes could write one file."""
        cache = self._network.cache
        return cache if cache is not None and has_locks(cache) else None

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[ByteStream]:
        """Opens a path or URL. Raises OSError (DownloadError for a URL)."""
        cache = self._cache if is_url(path) else None
        local = cached_file(cache, path, lambda: self._download(path)) if cache else path
        with self.open_at(str(local)) as stream:
            yield stream

    @contextlib.contextmanager
    def open_at(self, path: str, first: int = 0, size: int | None = None) -> Iterator[ByteStream]:
        """Opens a path or URL at an offset, without the cache; of a URL, `size` bytes are requested. Raises OSError."""
        if is_url(path):
            with self._download(path, first, size) as stream:
                yield stream
        else:
            with open_file(Path(path)) as file:
                file.seek(first)
                yield file

    def read(self, path: str, first: int = 0, size: int = sys.maxsize) -> bytes:
        """Returns `size` bytes of an input from an offset on, fewer at its end; not cached. Raises OSError."""
        data = bytearray()
        with self.open_at(path, first, None if size == sys.maxsize else size) as stream:
            while piece := stream.read(min(_READ_SIZE, size - len(data))):
                data += piece
        return bytes(data)

    def size(self, path: str, with_ranges: bool = False) -> int | None:
        """Returns the size of an input in bytes; None if its server does not tell it. Raises OSError.

        With `with_ranges`, also None if the server sends no parts of files.
        """
        if not is_url(path):
            return Path(path).stat().st_size
        with self._download(path, 0, 1) as download:
            download.read(1)
            return download.length if download.has_ranges or not with_ranges else None

    def _download(self, url: str, first: int = 0, size: int | None = None) -> AbstractContextManager[DownloadStream]:
        if is_store(url) and not url.startswith(BUCKETS):
            return contextlib.closing(ObjectDownload(url, self._network, first, size, self._on_wait))
        from c4pipe.io.http import Download  # urllib3 takes a while, and most inputs are files

        return contextlib.closing(Download(url, self._pool, self._network, first, size, self._on_wait))


def cached_file(folder: Path, url: str, download: Callable[[], AbstractContextManager[ByteStream]]) -> Path:
    """Returns the path of a URL's file in the cache; downloads it first if it is missing or damaged.

    The SHA-256 of each file is in a file beside it and is checked each time. If several processes need the same file,
    the first downloads it and the others wait. The path is made of the URL without its secrets.

    Raises the errors of the download, and OSError if the cache can't be written.
    """
    names = [_file_name(part) for part in hide_secrets(url).replace("://", "/", 1).split("/")]
    check_inner(folder, "/".join(names[:-1]))
    path = folder.joinpath(*names)
    digest = path.with_name(f"{path.name}.sha256")
    label = hashlib.sha256(path.name.encode()).hexdigest()[:16]  # for a name that may have 255 bytes itself
    with name_os_errors(path):
        make_folder(path.parent)
        with file_lock(path.with_name(f".{label}.lock"), wait=True):
            if not _is_intact(path, digest):
                for abandoned in path.parent.glob(f".{label}.*.tmp"):  # by a run that was killed
                    abandoned.unlink()
                _save(download, path, digest, label)
    return path


def _save(download: Callable[[], AbstractContextManager[ByteStream]], path: Path, digest: Path, label: str) -> None:
    """Writes a download into a file, and before it its SHA-256 into a second file."""
    sha256 = hashlib.sha256()
    file, line = AtomicFile(path, f"{label}."), AtomicFile(digest, f"{label}.")
    with FileBatch([line, file]):
        with download() as stream, file.path.open("xb") as opened:
            while data := stream.read(_READ_SIZE):
                sha256.update(data)
                opened.write(data)
        line.path.write_text(f"{sha256.hexdigest()}  {path.name}\n")


def _is_intact(path: Path, digest: Path) -> bool:
    try:
        expected = read_file(digest).decode().partition(" ")[0]
        with open_file(path) as file:
            return sha256_of(file) == expected
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def _file_name(part: str) -> str:
    """Returns a part of a URL as a file name: another one for each part, and never a reserved name."""
    quoted = quote(part, safe=" @+=,") or "%"
    if len(quoted) > _LONGEST:  # "%-" is in no other name
        quoted = f"{quoted[: _LONGEST - 66]}%-{hashlib.sha256(part.encode()).hexdigest()}"
    if quoted.startswith("."):  # `..`, lock files and temporary files begin with a dot, too
        quoted = f"%2E{quoted[1:]}"
    return quoted.replace(".", "%2E") if quoted.endswith(".sha256") else quoted


NETWORK = NetworkOptions(tries=6, file_seconds=600)  # little, because a person or a training waits


class WebPath(UrlPath):
    """A folder or file of a web server, with the methods of `pathlib.Path` that reading uses."""

    def open(self) -> "WebFile":
        """Opens a file for reading. Raises DownloadError if it can't be read."""
        return WebFile(self.url)

    def read_bytes(self, most: int = sys.maxsize) -> bytes:
        """Returns the content of a file of at most `most` bytes. Raises DownloadError."""
        return InputOpener(NETWORK._replace(file_bytes=most)).read(self.url)


InputPath = StoragePath | WebPath
"""A folder or file to read, on this machine or not."""


def input_path(path: str | Path | InputPath) -> InputPath:
    """Returns the folder or file that a path or URL names. Raises UsageError for a URL that c4pipe can't read."""
    text = str(path)
    return WebPath(text.rstrip("/")) if text.startswith(_WEB) else storage_path(text, reads=True)


class WebFile(RangedFile):
    """A file of a web server, open for reading at any offset. Each read is a request, and can raise OSError."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opener = InputOpener(NETWORK)  # with its own connection: this process may be a fork of another
        size = self._opener.size(url)
        if size is None:
            raise OSError(f"{url}: the server does not say its size")
        super().__init__(size)

    def range(self, first: int, size: int) -> bytes:
        data = self._opener.read(self._url, first, size)
        if len(data) < size:
            raise OSError(f"{self._url}: only {len(data):,} of {size:,} bytes arrived")
        return data


class EndsDigest:
    """The SHA-256 of the first and the last 512 KiB of a stream; of a stream of up to 1 MiB, of all its bytes."""

    def __init__(self) -> None:
        self._head, self._tail = bytearray(), deque[bytes]()
        self._tail_bytes = 0

    def update(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        room = _END_BYTES - len(self._head)
        self._head += data[:room] if room else b""
        self._tail.append(data[room:][-_END_BYTES:])
        self._tail_bytes += len(self._tail[-1])
        while self._tail_bytes - len(self._tail[0]) >= _END_BYTES:
            self._tail_bytes -= len(self._tail.popleft())

    def hexdigest(self) -> str:
        """Returns the digest of the bytes so far, in hex."""
        return hashlib.sha256(self._head + b"".join(self._tail)[-_END_BYTES:]).hexdigest()


def digest_ends(read: Callable[[int, int], bytes], size: int) -> str:
    """Returns the `EndsDigest` of a file, given its size and a function that reads (offset, size)."""
    rest = max(0, min(size - _END_BYTES, _END_BYTES))
    tail = read(size - rest, rest) if rest else b""
    return hashlib.sha256(read(0, min(size, _END_BYTES)) + tail).hexdigest()
