"""Cleans one WET file into one work file, and counts what happens to its pages and lines."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from c4pipe.clean.annotated_folder import Annotate
from c4pipe.clean.annotator import AnnotatedFile, Annotator
from c4pipe.clean.dropped_pages import DroppedFile, KeepDropped
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.page_batch import BatchCleaner, has_keys_in_c
from c4pipe.clean.progress import NoteWriter
from c4pipe.clean.quarantine import QuarantineFile
from c4pipe.clean.side_files import ExamplesFile, SideFile, WorkFile, count_page
from c4pipe.clean.slow_watch import SlowWatch
from c4pipe.clean.sources import CrawlSource, ItemReader, TextSource
from c4pipe.io.atomic import FileBatch
from c4pipe.io.downloads import ByteStream
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import input_path
from c4pipe.lists.lists import Lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.columns import COPIES_COLUMN
from c4pipe.wet.damage import Damage
from c4pipe.wet.extraction import TextLayout, is_text_layout
from c4pipe.wet.inputs import FileSlice, part_of
from c4pipe.wet.page import PlainPages
from c4pipe.wet.records import read_page_batches
from c4pipe.wet.text_files import read_parquet_pages, read_part_pages, read_text_pages
from c4pipe.wet.warc import PageReader, SkippedRecord, page_reader


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

    def _reader(self, name: str) -> ItemReader:
        layout, columns = self._layout, self.recipe.input_columns
        if layout:
            return lambda stream: read_text_pages(stream, name, layout, columns)
        if set(columns) - {COPIES_COLUMN}:
            return partial(self._read_pages, source=name)
        return partial(read_page_batches, split=self._batches.split) if self._batches else self._read_pages

    @cached_property
    def _read_pages(self) -> PageReader:
        return page_reader(self.recipe.extraction)

    @cached_property
    def _batches(self) -> BatchCleaner | None:
        """Cleans the usual pages of a WET file together, if the recipe and the files allow it."""
        is_usual = not self.annotate and not self.recipe.extraction
        return BatchCleaner(self._evaluator) if is_usual and has_keys_in_c(self.recipe) else None

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
                elif isinstance(item, PlainPages):
                    assert self._batches
                    pages = self._batches.clean(item, self._watch)
                    pages.count(self._evaluator.line_counters, counts)
                    for file in files:
                        file.add_batch(pages)
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
