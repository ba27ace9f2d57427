"""A corpus behind https:// (or http://): files that are read by ranges."""

from dataclasses import dataclass

from c4pipe.io.ranged_file import RangedFile
from c4pipe.io.retry import NetworkOptions
from c4pipe.io.streams import InputOpener

NETWORK = NetworkOptions(tries=6)


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
        with InputOpener(NETWORK).open(self.url) as stream:
            return b"".join(iter(lambda: stream.read(1 << 20), b""))


class WebFile(RangedFile):
    """A file of a web server, open to be read at any place. A read is a request; OSError where it fails for good."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._sources = InputOpener(NETWORK)  # with a connection of its own: a process may have been forked since
        size = self._sources.size(url)
        if size is None:
            raise OSError(f"{url}: the server does not tell its size")
        super().__init__(size)

    def range(self, first: int, size: int) -> bytes:
        """Returns `size` bytes from byte `first` on."""
        data = self._sources.part(self._url, first, size)
        if len(data) < size:
            raise OSError(f"{self._url}: {len(data):,} of {size:,} bytes came")
        return data
