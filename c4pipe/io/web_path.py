"""A corpus behind https:// (or http://), whose files are read by byte ranges."""

import sys
from dataclasses import dataclass

from c4pipe.io.ranged_file import RangedFile
from c4pipe.io.retry import DownloadError, NetworkOptions
from c4pipe.io.streams import InputOpener

NETWORK = NetworkOptions(tries=6)  # few tries, because a person or a training waits


@dataclass(frozen=True)
class WebPath:
    """A folder or file of a web server: the methods of `pathlib.Path` that reading uses, for a URL."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "WebPath":
        return WebPath(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> "WebPath":
        """The folder that contains this one."""
        return WebPath(self.url.rpartition("/")[0])

    def open(self) -> "WebFile":
        """Opens a file for reading. Raises DownloadError where it can't be read."""
        return WebFile(self.url)

    def read_bytes(self, most: int = sys.maxsize) -> bytes:
        """Returns the content of a file. Raises DownloadError where it can't be read, or has more than `most` bytes."""
        blocks: list[bytes] = []
        with InputOpener(NETWORK).open(self.url) as stream:
            while block := stream.read(1 << 20):
                blocks.append(block)
                if sum(map(len, blocks)) > most:
                    raise DownloadError(f"{self.url} has more than {most:,} bytes")
        return b"".join(blocks)


class WebFile(RangedFile):
    """A file of a web server, open for reading at any offset. A read is a request; it can raise OSError."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opener = InputOpener(NETWORK)  # with its own connection: this process may be a fork of another
        size = self._opener.size(url)
        if size is None:
            raise OSError(f"{url}: the server does not say its size")
        super().__init__(size)

    def range(self, first: int, size: int) -> bytes:
        """Returns exactly `size` bytes from offset `first` on."""
        data = self._opener.read_range(self._url, first, size)
        if len(data) < size:
            raise OSError(f"{self._url}: only {len(data):,} of {size:,} bytes arrived")
        return data
