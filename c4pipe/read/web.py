"""A corpus behind https:// (or http://): files that are read by ranges."""

import io
from dataclasses import dataclass
from typing import Any

from c4pipe.remote import Network
from c4pipe.sources import Sources

NETWORK = Network(tries=6)


@dataclass(frozen=True)
class WebPath:
    """A folder or file of a web server: what reading uses of `pathlib.Path`, for a URL."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "WebPath":
        return WebPath(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> "WebPath":
        """The folder that this is in."""
        return WebPath(self.url.rpartition("/")[0])

    def open(self) -> "WebFile":
        """Opens a file to be read. Raises DownloadError where it can't be had."""
        return WebFile(self.url)

    def read_bytes(self) -> bytes:
        """Returns what a file holds. Raises DownloadError where it can't be had."""
        with Sources(NETWORK).open(self.url) as stream:
            return b"".join(iter(lambda: stream.read(1 << 20), b""))


class WebFile(io.RawIOBase):
    """A file of a web server, open to be read at any place. A read is a request; OSError where it fails for good."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._sources = Sources(NETWORK)  # with a connection of its own: a process may have been forked since
        self._at = 0
        size = self._sources.size(url)
        if size is None:
            raise OSError(f"{url}: the server does not tell its size")
        self.size = size

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Returns the byte that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes to a byte, counted from the start, from here, or from the end."""
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Returns that many bytes, fewer at the end only; all that are left for None or -1."""
        left = max(0, self.size - self._at)
        size = left if size is None or size < 0 else min(size, left)
        if not size:
            return b""
        data = self._sources.part(self._url, self._at, size)
        if len(data) < size:
            raise OSError(f"{self._url}: {len(data):,} of {size:,} bytes came")
        self._at += size
        return data

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer, less of it at the end only; returns how many bytes there are."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)
