"""Where the pages of a WET file come from, and what is counted while they are read."""

from collections.abc import Iterator
from typing import Protocol

from c4pipe.clean.progress import PositionWriter
from c4pipe.io.downloads import ByteStream
from c4pipe.io.streams import EndsDigest
from c4pipe.wet.damage import Damage
from c4pipe.wet.page import Page
from c4pipe.wet.records import FIRST_PIECE, crawl_name
from c4pipe.wet.warc import PageReader, SkippedRecord


class PageSource(Protocol):
    """The pages of a WET file, and what the work file says about it.

    Attributes:
        name: the name of the WET file, without folders.
    """

    name: str

    @property
    def size(self) -> int:
        """How many bytes of the WET file, as it is stored, were read so far; all of them at the end."""

    def items(self) -> Iterator[Page | Damage | SkippedRecord]:
        """Yields pages in their order, damage, and records that are no page.

        A page is to be evaluated before the next one is read.
        """

    def ends_sha256(self) -> str:
        """Returns the digest of the ends of the WET file; at the end of `items`."""

    def crawl(self) -> str:
        """Returns the crawl that the WET file names, "" where it names none; at the end of `items`."""

    def note(self, position: PositionWriter, pages: int) -> None:
        """Notes the position in the file, given the number of pages so far."""


class CountedStream:
    """A stream that counts the bytes that were read from it, and knows the first ones and the digest of their ends."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.size = 0
        self.first = b""
        self.ends = EndsDigest()

    def read(self, size: int) -> bytes:
        """Returns at most `size` bytes; none at the end."""
        data = self._stream.read(size)
        if self.size < FIRST_PIECE:
            self.first += data[: FIRST_PIECE - self.size]
        self.size += len(data)
        self.ends.update(data)
        return data


class CrawlSource:
    """The pages of a WET or WARC file, from its start (a `PageSource`)."""

    def __init__(self, stream: ByteStream, name: str, read_pages: PageReader) -> None:
        """Takes the file, gzipped or not, at its start, its name, and what reads its pages."""
        self.name = name
        self._stream = stream
        self._counted = CountedStream(stream)
        self._read_pages = read_pages

    @property
    def size(self) -> int:
        """How many bytes were read so far."""
        return self._counted.size

    def items(self) -> Iterator[Page | Damage | SkippedRecord]:
        """Yields the pages in their order, the damage, and the records that are no page."""
        return self._read_pages(self._counted)

    def ends_sha256(self) -> str:
        """Returns the digest of the ends of what was read."""
        return self._counted.ends.hexdigest()

    def crawl(self) -> str:
        """Returns the crawl that the file names; "" where it names none."""
        return crawl_name(self._counted.first)

    def note(self, position: PositionWriter, pages: int) -> None:
        """Notes the position in the file, given the number of pages so far."""
        position.note(self._stream, self.size, pages)
