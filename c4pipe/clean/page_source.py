"""Where the pages of a WET file come from: the file itself, or an annotated file that was made of it."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from c4pipe.clean.annotated_file import AnnotatedHeader, annotated_rows, read_annotated_header
from c4pipe.clean.evaluator import RecipeEvaluator
from c4pipe.clean.known_facts import KnownFacts
from c4pipe.clean.operations import Operation
from c4pipe.clean.progress import PositionWriter
from c4pipe.io.downloads import ByteStream
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import EndsDigest
from c4pipe.wet.crawl_name import FIRST_PIECE, crawl_name
from c4pipe.wet.damage import Damage
from c4pipe.wet.page import Page
from c4pipe.wet.page_reader import PageReader
from c4pipe.wet.warc_pages import SkippedRecord

_COLUMNS = ("url", "timestamp", "text", "bytes")


class PageSource(Protocol):
    """The pages of a WET file, and what the work file says about it.

    Attributes:
        name: the name of the WET file, without folders.
        operations: those that evaluate the pages; None for the evaluator's own.
        damage: counters of damage that is not among the items.
    """

    name: str
    operations: tuple[Operation, ...] | None
    damage: Mapping[str, int]

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

    operations: tuple[Operation, ...] | None = None

    def __init__(self, stream: ByteStream, name: str, read_pages: PageReader) -> None:
        """Takes the file, gzipped or not, at its start, its name, and what reads its pages."""
        self.name = name
        self.damage: Mapping[str, int] = {}
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


class AnnotatedSource:
    """An annotated file. Its rows give the pages of the WET file, and what is known of them."""

    def __init__(self, path: StoragePath, evaluator: RecipeEvaluator, lists: Mapping[str, str], known: bool) -> None:
        """Takes its path, the evaluator of a recipe, the digests of the lists, and whether known facts are used.

        Raises UsageError where the file can't be read as an annotated file.
        """
        self._path = path
        self._header: AnnotatedHeader = read_annotated_header(path)
        self._facts = KnownFacts(evaluator.recipe, lists, self._header) if known else None
        self.operations = self._facts.operations if self._facts else None
        self.name, self.damage = self._header.source, self._header.damage
        self.size = 0

    def items(self) -> Iterator[Page]:
        """Yields the pages in their order. Raises DamagedFileError."""
        columns = dict.fromkeys((*_COLUMNS, *(self._facts.columns if self._facts else ())))
        share = self._header.source_bytes / max(1, self._header.rows)
        for position, row in enumerate(annotated_rows(self._path, tuple(columns))):
            if self._facts:
                self._facts.row = row
            self.size = int(share * position)
            body = row["text"]
            yield Page(row["url"], row["timestamp"], body, position, row["bytes"], body.encode())
        self.size = self._header.source_bytes

    def ends_sha256(self) -> str:
        """Returns the digest of the ends of the WET file."""
        return self._header.ends_sha256

    def crawl(self) -> str:
        """Returns the crawl that the WET file names; "" where it names none."""
        return self._header.crawl

    def note(self, position: PositionWriter, pages: int) -> None:
        """Notes the position in the WET file, given the number of pages so far."""
        position.note_share(self.size, self._header.source_bytes, pages)
