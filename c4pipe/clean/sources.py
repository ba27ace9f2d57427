"""The files that `clean` reads: WET and WARC files, Parquet files of text, and parts of text files."""

import io
import os
from collections.abc import Callable, Iterator, Mapping

from c4pipe.clean.side_files import CleanedFile
from c4pipe.errors import C4pipeError
from c4pipe.io.downloads import ByteStream
from c4pipe.io.gzip_members import start_size
from c4pipe.io.parquet_footer import UNREADABLE
from c4pipe.io.streams import EndsDigest, digest_ends
from c4pipe.io.words import error_reason
from c4pipe.wet.damage import HAS_NO, Damage, NoRecordError, describe_content
from c4pipe.wet.inputs import FileSlice
from c4pipe.wet.page import Page, PlainPages
from c4pipe.wet.records import FIRST_PIECE, crawl_name, has_record
from c4pipe.wet.warc import SkippedRecord

_Items = Iterator[Page | Damage | SkippedRecord | PlainPages]
ItemReader = Callable[[ByteStream], _Items]
"""Yields pages, damage and other records of a file in order."""


def changed(file: str) -> C4pipeError:
    """Returns the error for a file that is not the one with which its reading began."""
    return C4pipeError(f"{file} was changed while it was read: run the command again")


class CountedStream:
    """A stream that counts the bytes that were read from it, and keeps the first bytes and the digest of the ends."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.size = 0
        self.first = b""
        self.ends = EndsDigest()

    def read(self, size: int) -> bytes:
        """Returns at most `size` bytes; none at the end."""
        data = self._stream.read(size)
        most = FIRST_PIECE + start_size(self.first or data)
        if self.size < most:
            self.first += data[: most - self.size]
        self.size += len(data)
        self.ends.update(data)
        return data


class CrawlSource(CountedStream):
    """The pages of a WET or WARC file, from its start. `work_name` is the name of its work file without the ending."""

    def __init__(self, stream: ByteStream, name: str, read_pages: ItemReader) -> None:
        """Takes the file at its start, its name without folders, and the reader of its pages."""
        super().__init__(stream)
        self.name = self.work_name = name
        self._read_pages = read_pages

    def items(self) -> _Items:
        """Yields pages, damage and other records in order. Evaluate a page before you read the next page."""
        return self._read_pages(self)

    def cleaned(self, counts: Mapping[str, int]) -> CleanedFile:
        """Returns the file at the end of `items`, given its counts.

        Raises NoRecordError if it has no record, C4pipeError if it was overwritten while it was read.
        """
        check_records(self.first, counts)
        ends = self.ends.hexdigest()
        if isinstance(self._stream, io.BufferedReader):  # of this machine
            file = self._stream.fileno()
            if digest_ends(lambda first, size: os.pread(file, size, first), self.size) != ends:
                raise changed(self.name)
        return CleanedFile(self.name, self.size, ends, crawl_name(self.first), counts)


class TextSource:
    """A Parquet file of text, or a part of a large file of text, with the members of a `CrawlSource`."""

    def __init__(
        self,
        items: Iterator[tuple[Page | Damage, float]],
        path: str,
        name: str,
        size: int,
        read_ends: Callable[[], str],
        part: FileSlice | None,
    ) -> None:
        """Takes documents with the share of the file before them; path, name, bytes, digest and part of the file.

        `read_ends` reads the digest of the file, at the start and at the end.
        """
        self.name, self.work_name = name, part.work_name(name) if part else name
        self.size = 0
        self._path, self._part = path, part
        self._items, self._bytes, self._read_ends = items, size, read_ends
        self._ends = part.ends if part else read_ends()

    def items(self) -> Iterator[Page | Damage]:
        """Yields the documents in their order, and the damage.

        Raises OSError if the file can't be read, C4pipeError if it is no Parquet or lacks the column of the text.
        """
        length = self._bytes // (self._part.of if self._part else 1)
        try:
            for item, share in self._items:
                self.size = int(length * share)
                yield item
        except OSError:
            raise
        except UNREADABLE as error:
            raise C4pipeError(f"{self._path} can't be read: {error_reason(error)}") from error

    def cleaned(self, counts: Mapping[str, int]) -> CleanedFile:
        """Returns the file at its end; also for a part, the size counts the whole file.

        Raises NoRecordError; C4pipeError if the file was changed.
        """
        if self._read_ends() != self._ends:
            raise changed(self._path)
        if self._part is None:  # all documents of a part may be damaged
            check_records(b"", counts)  # a file of another format has been refused
        return CleanedFile(self.name, self._bytes, self._ends, "", counts)


_RECORDS = ("pages.read", "records.", "damage.no_text", "damage.record_too_large")


def check_records(first: bytes, counts: Mapping[str, int]) -> None:
    """Raises NoRecordError for a file without any record, given its first FIRST_PIECE bytes and its counts.

    A file without any count is whole: it has records of other types, or it is a Parquet file of no rows.
    """
    is_other = "damage.other_format" in counts  # of text: a WET file has records
    if counts and not any(name.startswith(_RECORDS) for name in counts) and (is_other or not has_record(first)):
        damage = {name.removeprefix("damage."): number for name, number in counts.items()}
        raise NoRecordError(f"{HAS_NO}: {describe_content(first, damage)}")
