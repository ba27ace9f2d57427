"""The documents of a Parquet file as the pages of an input (a `PageSource`). Other text files are streams."""

from collections.abc import Iterator

from c4pipe.clean.progress import PositionWriter
from c4pipe.errors import C4pipeError
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import WebPath
from c4pipe.io.words import error_reason
from c4pipe.wet.damage import Damage
from c4pipe.wet.extraction import TextLayout
from c4pipe.wet.page import Page
from c4pipe.wet.text_files import PARQUET_UNREADABLE, read_parquet_pages


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
