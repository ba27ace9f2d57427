"""Cleans one WET file into one work file, and counts what happens to its pages and lines."""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from c4pipe.clean.annotated_folder import Annotate
from c4pipe.clean.annotator import annotation_writer
from c4pipe.clean.dropped_pages import KeepDropped, dropped_writer
from c4pipe.clean.evaluate import RecipeEvaluator, Verdict
from c4pipe.clean.examples import SmallestKeys, write_examples
from c4pipe.clean.progress import NoteWriter, SlowLimits, SlowWatch
from c4pipe.clean.work_file import KeptPage, WorkWriter, work_schema
from c4pipe.errors import C4pipeError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.corpus_rules import NearDuplicate, RepeatedSpan, Validation
from c4pipe.io.atomic import FileBatch
from c4pipe.io.downloads import ByteStream
from c4pipe.io.gzip_members import start_size
from c4pipe.io.parquet_footer import UNREADABLE
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import EndsDigest, input_path
from c4pipe.io.words import error_reason
from c4pipe.lists.lists import Lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.text import minhash
from c4pipe.text.hashes import U64, capture_hash, is_validation, page_hashes, page_key, span_hashes
from c4pipe.text.languages import language_counter
from c4pipe.text.minhash import U16
from c4pipe.wet.columns import COPIES_COLUMN
from c4pipe.wet.damage import HAS_NO, Damage, NoRecordError, QuarantineWriter, describe_content
from c4pipe.wet.extraction import TextLayout, is_text
from c4pipe.wet.inputs import Part, part_of
from c4pipe.wet.page import Page
from c4pipe.wet.records import FIRST_PIECE, crawl_name, has_record
from c4pipe.wet.text_files import read_parquet_pages, read_part_pages, read_text_pages
from c4pipe.wet.warc import PageReader, SkippedRecord, page_reader


class PageSource(Protocol):
    """The pages of a WET file, and the properties of the file that the work file's header names.

    Attributes:
        name: the name of the WET file, without folders.
    """

    name: str

    @property
    def size(self) -> int:
        """How many stored bytes of the WET file were read so far; at the end, the whole size."""

    def items(self) -> Iterator[Page | Damage | SkippedRecord]:
        """Yields pages in their order, damage, and records that are no page.

        A page is to be evaluated before the next one is read.
        """

    def ends_sha256(self) -> str:
        """Returns the digest of the ends of the WET file; at the end of `items`."""

    def crawl(self) -> str:
        """Returns the crawl that the WET file names, "" where it names none; at the end of `items`."""

    def first_bytes(self) -> bytes:
        """Returns the first bytes of the file; at the end of `items`."""


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


class CrawlSource:
    """The pages of a WET or WARC file, from its start (a `PageSource`)."""

    def __init__(self, stream: ByteStream, name: str, read_pages: PageReader) -> None:
        """Takes the file, gzipped or not, at its start, its name, and what reads its pages."""
        self.name = name
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

    def first_bytes(self) -> bytes:
        """Returns the first bytes that were read."""
        return self._counted.first


class TextSource:
    """A Parquet file of text, or a part of a large file of text (a `PageSource`)."""

    def __init__(
        self,
        items: Iterator[tuple[Page | Damage, float]],
        path: str,
        name: str,
        size: int,
        ends: str,
        part: Part | None,
    ) -> None:
        """Takes the documents and the shares read before, and the path, name, size, digest and part of the file."""
        self.name = name
        self.size = 0
        self._path = path
        self._items, self._bytes, self._ends = items, size, ends
        self._length = size // (part.of if part else 1)

    def items(self) -> Iterator[Page | Damage]:
        """Yields the documents in their order, and the damage.

        Raises OSError where the file can't be read, C4pipeError where it is no Parquet or lacks the column of the text.
        """
        try:
            for item, share in self._items:
                self.size = int(self._length * share)
                yield item
        except OSError:
            raise
        except UNREADABLE as error:
            raise C4pipeError(f"{self._path} can't be read: {error_reason(error)}") from error
        self.size = self._bytes  # also of a part: the headers of all parts name the whole file

    def ends_sha256(self) -> str:
        """Returns the digest of the ends of the file."""
        return self._ends

    def crawl(self) -> str:
        """Returns "": text is of no crawl."""
        return ""

    def first_bytes(self) -> bytes:
        """Returns nothing: a file of another format has been refused."""
        return b""


_NO_SPANS = np.empty(0, dtype=np.uint64)


class WetFileCleaner:
    """Cleans WET files by one recipe. A worker has a single cleaner: loading takes a while.

    Attributes:
        example_seconds: the CPU seconds that the examples of the last file took.
    """

    def __init__(
        self,
        recipe: Recipe,
        lists: Lists,
        keep_dropped: KeepDropped | None = None,
        slow_limits: SlowLimits | None = None,
        annotate: Annotate | None = None,
    ) -> None:
        """Takes the recipe and its lists, the pages to write besides the work file, and the limits of slow pages.

        Args:
            recipe: the recipe.
            lists: its lists.
            keep_dropped: which dropped pages are kept; None for no pages.
            slow_limits: when a page or file counts as slow; None for the defaults.
            annotate: where all pages are written with the decisions of all rules; None for nowhere.
        """
        self.example_seconds = 0.0
        self._watch = SlowWatch(slow_limits or SlowLimits())
        self._recipe = recipe
        self._lists = lists
        self._keep_dropped = keep_dropped
        self._annotate = annotate
        self._evaluator = RecipeEvaluator(recipe, lists)
        self._keeper = PageKeeper(recipe)
        self._layout = TextLayout.of_extraction(recipe.extraction) if is_text(recipe.extraction) else None

    def clean(
        self,
        stream: ByteStream,
        source: str,
        target: StoragePath,
        batch: FileBatch | None = None,
    ) -> None:
        """Writes the work file `target` of a WET file; the file appears when it is complete.

        The quarantine file, the examples, and the files of dropped and annotated pages appear before it. Where the file
        or a page takes far longer than its size explains, a note appears in the folder of the target (see
        `NoteWriter`).

        Args:
            stream: the WET file, gzipped or not, at its start; or a file of text that is not Parquet.
            source: the name of the WET file, without folders.
            target: the path of the work file.
            batch: work file and examples appear with these files; None for at once.

        Raises OSError where the WET file can't be read or the work file can't be written, and NoRecordError where it
        has no record; `target` and the files beside it do not exist then.
        """
        self._clean(CrawlSource(stream, source, self._reader(source)), target, batch)

    def clean_text(
        self,
        path: str,
        stream: ByteStream | None,
        size: int,
        ends_sha256: str,
        target: StoragePath,
        part: Part | None = None,
        batch: FileBatch | None = None,
    ) -> None:
        """Writes the work file `target` of a Parquet file of text, or of a part of a file of text, as `clean` does.

        Args:
            path: the path or URL of the file.
            stream: for a part of a file that is not Parquet, the file from there on (see `read_part_pages`); None for
                Parquet.
            size: the bytes of the file.
            ends_sha256: the digest of its ends.
            target: the path of the work file, which has the name of the input.
            part: the part; None for a whole Parquet file.
            batch: as for `clean`.

        Raises C4pipeError where the file is no Parquet or lacks the column of the text, and the errors of `clean`.
        """
        assert self._layout
        name, columns = part_of(target.name)[0].removesuffix(".parquet"), self._recipe.input_columns
        if stream is None:
            items = read_parquet_pages(input_path(path), name, self._layout, columns, part)
        else:
            assert part
            items = read_part_pages(stream, name, self._layout, columns, part)
        source = TextSource(items, path, name, size, ends_sha256, part)
        self._clean(source, target, batch, part)

    def _reader(self, name: str) -> PageReader:
        """Returns the reader of pages for a file of this name that is read as a stream."""
        layout, columns = self._layout, self._recipe.input_columns
        if layout:
            return lambda stream: read_text_pages(stream, name, layout, columns)
        return partial(self._read_pages, source=name) if set(columns) - {COPIES_COLUMN} else self._read_pages

    @cached_property
    def _read_pages(self) -> PageReader:
        return page_reader(self._recipe.extraction)

    def _clean(
        self,
        source: PageSource,
        target: StoragePath,
        batch: FileBatch | None,
        part: Part | None = None,
    ) -> None:
        counts: Counter[str] = Counter()
        work_name = part.work_name(source.name) if part else source.name
        audit = dropped_writer(self._keep_dropped, work_name, "clean", self._evaluator)
        annotations = annotation_writer(self._annotate, work_name, self._evaluator, self._lists.digests)
        examples = SmallestKeys()
        with (
            QuarantineWriter(target, source.name, "row" if self._layout else "offset") as quarantine,
            audit as dropped,
            annotations as annotated,
            self._watch.over(source.name, source, NoteWriter(target, source.name).slow),
            FileBatch() if batch is None else contextlib.nullcontext(batch) as finished,
        ):
            writer = WorkWriter(target, work_schema(self._recipe))
            try:
                for item in source.items():
                    if isinstance(item, Damage):
                        counts[f"damage.{item.kind}"] += 1
                        quarantine.add(item)
                    elif isinstance(item, SkippedRecord):
                        counts[f"records.skipped.{item.kind}"] += 1
                    else:
                        self._watch.page = item
                        verdict, page = annotated.clean(item) if annotated else self._evaluator.clean(item)
                        self._add(verdict, page, writer, counts)
                        keep_examples(page, verdict, examples)
                        if dropped:
                            dropped.add_cleaned(verdict, page)
                        if annotated:
                            annotated.add(verdict)
                        self._watch.page = None
                if part is None:  # all documents of a part may be damaged
                    check_records(source.first_bytes(), counts)
                quarantine.finish()
                before = time.process_time()
                write_examples(examples, self._evaluator, target, finished)
                self.example_seconds = time.process_time() - before
                if dropped:
                    dropped.finish()
                ends = source.ends_sha256()
                if annotated:
                    annotated.finish(work_name, source.size, ends, counts, source.crawl())
                of_recipe = self._recipe, self._lists.digests
                writer.finish(source.name, source.size, *of_recipe, counts, ends, source.crawl(), finished)
            except BaseException:
                writer.discard()
                raise

    def _add(self, verdict: Verdict, page: CheckedPage, writer: WorkWriter, counts: Counter[str]) -> None:
        count_page(page, verdict, self._evaluator.line_counters, counts)
        if verdict.readable:
            assert page.captured is not None  # a page without a timestamp is not readable
            kept = None if verdict.reason else self._keeper.keep(page, verdict.final)
            crawled = page.page
            body = crawled.body.encode("utf-8", "replace") if crawled.encoded is None else crawled.encoded
            tie = capture_hash(crawled.url, crawled.timestamp, body)
            writer.add(page.url_key, page.captured, tie, kept)


_RECORDS = ("pages.read", "records.", "damage.no_text", "damage.record_too_large")


def check_records(first: bytes, counts: Mapping[str, int]) -> None:
    """Raises NoRecordError for a file without any record, given its first FIRST_PIECE bytes and its counts.

    A file without any count is whole: it has records of other types, or it is a Parquet file of no rows.
    """
    is_other = "damage.other_format" in counts  # of text: a WET file has records
    if counts and not any(name.startswith(_RECORDS) for name in counts) and (is_other or not has_record(first)):
        damage = {name.removeprefix("damage."): number for name, number in counts.items()}
        raise NoRecordError(f"{HAS_NO}: {describe_content(first, damage)}")


class PageKeeper:
    """Computes the units, spans and hashes of kept pages that job 2 needs, by one recipe."""

    def __init__(self, recipe: Recipe) -> None:
        """Looks up once the parts of the recipe that each page needs."""
        self._span = recipe.find(RepeatedSpan)
        self._near = recipe.find(NearDuplicate)
        validation = recipe.find(Validation)
        self._one_in = validation.one_in if validation else 0
        self._by_md5 = recipe.page_keys[1]

    def keep(self, page: CheckedPage, final: str | None) -> KeptPage:
        """Returns a page that passed, with its units and spans.

        Args:
            page: the page.
            final: the rule of the stage `final` that drops the page if it loses no text; None if there is none.
        """
        guess, starts, span = page.guess, page.unit_starts, self._span
        spans = _NO_SPANS
        if span:
            spans = span_hashes(page_hashes(page.encoded, starts, span.whitespace), span.size)
        bands, minima = self._signature(page) if self._near and not final else ((), ())
        return KeptPage(
            page_key=page_key(page.page.url, page.normalised_url, self._by_md5),
            url=page.page.url,
            text=page.text,
            encoded=page.encoded,
            timestamp=page.page.timestamp,
            language=guess.language if guess else None,
            language_probability=round(guess.probability, 6) if guess else None,
            validation=bool(self._one_in) and is_validation(page.normalised_url, self._one_in),
            dropped=final,
            unit_starts=starts,
            span_hashes=spans,
            band_hashes=bands,
            minima=minima,
            extra=page.page.extra,
        )

    def _signature(self, page: CheckedPage) -> tuple[U64, U16]:
        """Returns the band hashes and the short minima of a page's text."""
        near = self._near
        assert near
        signature = minhash.minima(page.text, near.ngram, near.bands, near.rows, page.tokenizer, near.scripts)
        return minhash.band_hashes(signature, near.bands), minhash.short_minima(signature)


def keep_examples(page: CheckedPage, verdict: Verdict, examples: SmallestKeys) -> None:
    """Keeps a page as an example of each rule that drops it or changes its lines, if its key is small enough."""
    key, limits = page.url_key, examples.limits
    if verdict.reason and key < limits[verdict.reason]:
        examples.add(verdict.reason, key, page.page.position, page.page)
    for rule, changed in verdict.lines.items():
        if changed and key < limits[rule]:
            examples.add(rule, key, page.page.position, page.page)


def count_page(page: CheckedPage, verdict: Verdict, line_counters: Mapping[str, str], counts: Counter[str]) -> None:
    """Adds one page to the counters of the funnel; `line_counters` are those of the evaluator.

    pages.read = pages.dropped.* + pages.cleaned. Pages that are dropped when their language is known count by it, too.
    Over the pages that came to the line rules, lines.read = lines.dropped.* + lines.left. bytes.read is the size of the
    bodies, bytes.cleaned that of the texts in UTF-8.
    """
    counts["pages.read"] += 1
    counts["bytes.read"] += page.page.size
    if verdict.lines_read is not None:
        counts["lines.read"] += verdict.lines_read
        counts["lines.left"] += page.line_count
        for rule, number in verdict.lines.items():
            counts[line_counters[rule]] += number
    if verdict.reason:
        counts[f"pages.dropped.{verdict.reason}"] += 1
        if verdict.language is not None:
            counts[language_counter(verdict.language, verdict.reason)] += 1
        return
    counts["pages.cleaned"] += 1
    counts["units.cleaned"] += len(page.unit_starts)
    counts["bytes.cleaned"] += len(page.encoded)
