"""Where the pages of a WET file come from, and what is counted while they are read."""

from collections.abc import Iterator
from typing import Protocol

from c4pipe.clean.progress import PositionWriter
from c4pipe.errors import C4pipeError
from c4pipe.io.downloads import ByteStream
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import EndsDigest, WebPath
from c4pipe.io.words import error_reason
from c4pipe.wet.damage import Damage
from c4pipe.wet.extraction import TextLayout
from c4pipe.wet.page import Page
from c4pipe.wet.records import FIRST_PIECE, crawl_name
from c4pipe.wet.text_files import PARQUET_UNREADABLE, read_parquet_pages
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


class ParquetSource:
    """A Parquet file of text, read a few rows at a time."""

    def __init__(
        self, path: StoragePath | WebPath, name: str, layout: TextLayout, file_bytes: int, ends_sha256: str
    ) -> None:
        """Takes the file, its name, how documents lie in it, its bytes, and the digest of its ends."""
        self.name = name
        self.size = 0
        self._path, self._layout, self._bytes, self._ends = path, layout, file_bytes, ends_sha256

    def items(self) -> Iterator[Page | Damage]:
        """Yields the documents in their order, and the damage.

        Raises OSError where the file can't be read, C4pipeError where it is no Parquet or lacks the column of the text.
        """
        try:
            for item, share in read_parquet_pages(self._path, self.name, self._layout):
                self.size = int(self._bytes * share)
                yield item
        except OSError:
            raise
        except PARQUET_UNREADABLE as error:
            raise C4pipeError(f"{self._path} can't be read: {error_reason(error)}") from error
        self.size = self._bytes

    def ends_sha256(self) -> str:
        """Returns the digest of the ends of the file."""
        return self._ends

    def crawl(self) -> str:
        """Returns "": text is of no crawl."""
        return ""

    def note(self, position: PositionWriter, pages: int) -> None:
        """Notes the position in the file, given the number of pages so far."""
        position.note_share(self.size, self._bytes, pages)
