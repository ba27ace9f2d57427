"""Cleans one WET file into one work file, and counts what happens to its pages and lines."""

import contextlib
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from c4pipe.clean.annotated_folder import Annotate
from c4pipe.clean.annotator import AnnotatedFile, Annotator
from c4pipe.clean.dropped_pages import DroppedFile, KeepDropped
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.progress import NoteWriter, SlowWatch
from c4pipe.clean.quarantine import QuarantineFile
from c4pipe.clean.side_files import CleanedFile, ExamplesFile, SideFile, WorkFile, count_page
from c4pipe.errors import C4pipeError
from c4pipe.io.atomic import FileBatch
from c4pipe.io.downloads import ByteStream
from c4pipe.io.gzip_members import start_size
from c4pipe.io.parquet_footer import UNREADABLE
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import EndsDigest, digest_ends, input_path
from c4pipe.io.words import error_reason
from c4pipe.lists.lists import Lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.columns import COPIES_COLUMN
from c4pipe.wet.damage import HAS_NO, Damage, NoRecordError, describe_content
from c4pipe.wet.extraction import TextLayout, is_text_layout
from c4pipe.wet.inputs import FileSlice, part_of
from c4pipe.wet.page import Page
from c4pipe.wet.records import FIRST_PIECE, crawl_name, has_record
from c4pipe.wet.text_files import read_parquet_pages, read_part_pages, read_text_pages
from c4pipe.wet.warc import PageReader, SkippedRecord, page_reader


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

    def __init__(self, stream: ByteStream, name: str, read_pages: PageReader) -> None:
        """Takes the file at its start, its name without folders, and the reader of its pages."""
        super().__init__(stream)
        self.name = self.work_name = name
        self._read_pages = read_pages

    def items(self) -> Iterator[Page | Damage | SkippedRecord]:
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


@dataclass
class WetFileCleaner:
    """Cleans WET files by one recipe. A worker has a single cleaner: loading takes a while.

    Attributes:
        recipe: the recipe.
        lists: its lists.
        keep_dropped: which dropped pages are kept.
        annotate: where annotated pages are written.
        all_columns: as in `TextLayout`.
        shown_to: the largest hash of a name with which a work file gets examples (`examples.find_last`).
    """

    recipe: Recipe
    lists: Lists
    keep_dropped: KeepDropped | None = None
    annotate: Annotate | None = None
    all_columns: bool = False
    shown_to: str = "g"

    def __post_init__(self) -> None:
        self._watch = SlowWatch()
        self._evaluator = RecipeEvaluator(self.recipe, self.lists)
        self._annotator = Annotator(self._evaluator, self.annotate.labels) if self.annotate else None
        is_text = is_text_layout(self.recipe.extraction)
        self._layout = TextLayout.of_extraction(self.recipe.extraction, self.all_columns) if is_text else None

    def clean(
        self,
        stream: ByteStream,
        source: str,
        target: StoragePath,
        batch: FileBatch | None = None,
    ) -> None:
        """Writes the work file `target` of a WET file; the file appears when it is complete.

        Quarantine file, examples, and the files of dropped and annotated pages appear before it. A slow file or page is
        reported by a `NoteWriter`.

        Args:
            stream: the WET file, gzipped or not, at its start; or a file of text that is not Parquet.
            source: the name of the WET file, without folders.
            target: the path of the work file.
            batch: work file and examples appear with these files; None for at once.

        Raises OSError if the WET file can't be read or the work file can't be written, NoRecordError if the WET file
        has no record. Then `target` and the files beside it do not exist.
        """
        self._clean(CrawlSource(stream, source, self._reader(source)), target, batch)

    def clean_text(
        self,
        path: str,
        stream: ByteStream | None,
        size: int,
        read_ends: Callable[[], str],
        target: StoragePath,
        part: FileSlice | None = None,
        batch: FileBatch | None = None,
    ) -> None:
        """Writes the work file `target` of a Parquet file of text, or of a part of a file of text, as `clean` does.

        Args:
            path: the path or URL of the file.
            stream: the stream of `read_part_pages`; None for Parquet.
            size: the bytes of the file.
            read_ends: returns the digest of its ends.
            target, batch: as for `clean`.
            part: None for a whole Parquet file.

        Raises C4pipeError if the file is no Parquet, lacks the column of the text or was changed, and the errors of
        `clean`.
        """
        assert self._layout
        name, columns = part_of(target.name)[0].removesuffix(".parquet"), self.recipe.input_columns
        if stream is None:
            items = read_parquet_pages(input_path(path), name, self._layout, columns, part)
        else:
            assert part
            items = read_part_pages(stream, name, self._layout, columns, part)
        source = TextSource(items, path, name, size, read_ends, part)
        self._clean(source, target, batch)

    def _reader(self, name: str) -> PageReader:
        layout, columns = self._layout, self.recipe.input_columns
        if layout:
            return lambda stream: read_text_pages(stream, name, layout, columns)
        return partial(self._read_pages, source=name) if set(columns) - {COPIES_COLUMN} else self._read_pages

    @cached_property
    def _read_pages(self) -> PageReader:
        return page_reader(self.recipe.extraction)

    def _clean(self, source: CrawlSource | TextSource, target: StoragePath, batch: FileBatch | None) -> None:
        counts: Counter[str] = Counter()
        of_columns: Mapping[str, int] = {}
        clean = (self._annotator or self._evaluator).clean
        files: list[SideFile] = []
        with (
            self._watch.over(source.name, NoteWriter(target, source.name).slow),
            FileBatch() if batch is None else contextlib.nullcontext(batch) as finished,
            contextlib.ExitStack() as unfinished,
        ):
            for file in self._side_files(source, target, finished):
                unfinished.callback(file.discard)
                files.append(file)
            for item in source.items():
                if isinstance(item, Damage):
                    counts[f"damage.{item.kind}"] += 1
                    for file in files:
                        file.add_damage(item)
                elif isinstance(item, SkippedRecord):
                    counts[f"records.skipped.{item.kind}"] += 1
                else:
                    self._watch.page = item
                    of_columns = item.counters
                    verdict, page = clean(item)
                    count_page(page, verdict, self._evaluator.line_counters, counts)
                    for file in files:
                        file.add(verdict, page)
                    self._watch.page = None
            counts.update(of_columns)
            cleaned = source.cleaned(counts)
            for file in files:
                file.finish(cleaned)
            unfinished.pop_all()

    def _side_files(
        self, source: CrawlSource | TextSource, target: StoragePath, batch: FileBatch
    ) -> Iterator[SideFile]:
        """Yields the files in the order in which they appear: the work file says that all exist."""
        evaluator, digests = self._evaluator, self.lists.digests
        yield QuarantineFile(target, source.name, "row" if self._layout else "offset")
        yield ExamplesFile(target, evaluator, batch, self.shown_to)
        if self.keep_dropped:
            yield DroppedFile(self.keep_dropped, source.work_name, "clean", evaluator)
        if self.annotate and self._annotator:  # a kept page stays as it is, a dropped one gets its final lines
            yield AnnotatedFile(self.annotate, source.work_name, self._annotator, digests)
        yield WorkFile(target, self.recipe, digests, batch)


_RECORDS = ("pages.read", "records.", "damage.no_text", "damage.record_too_large")


def check_records(first: bytes, counts: Mapping[str, int]) -> None:
    """Raises NoRecordError for a file without any record, given its first FIRST_PIECE bytes and its counts.

    A file without any count is whole: it has records of other types, or it is a Parquet file of no rows.
    """
    is_other = "damage.other_format" in counts  # of text: a WET file has records
    if counts and not any(name.startswith(_RECORDS) for name in counts) and (is_other or not has_record(first)):
        damage = {name.removeprefix("damage."): number for name, number in counts.items()}
        raise NoRecordError(f"{HAS_NO}: {describe_content(first, damage)}")
