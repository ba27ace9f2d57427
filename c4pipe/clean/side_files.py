"""The files that `clean` writes about a WET file: its work file, and the files beside the work file.

Each is a class with the methods of `SideFile`, and `WetFileCleaner` has the list of them.
"""

import json
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.clean.evaluate import RecipeEvaluator, Verdict
from c4pipe.clean.examples import SmallestKeys, examples_file, hash_name, write_examples
from c4pipe.clean.page_batch import PageBatch
from c4pipe.clean.work_file import GROUP_ROWS, HEADER_KEY, WORK_FILE_VERSION, WORK_SCHEMA, WorkHeader, work_schema
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.corpus_rules import NearDuplicate, RepeatedSpan, Validation
from c4pipe.io.atomic import AtomicFile, FileBatch, make_folder, name_os_errors
from c4pipe.io.json_files import to_json
from c4pipe.io.parquet_footer import parquet_writer, sign_footer
from c4pipe.io.paths import StoragePath
from c4pipe.io.rows import Rows, arrow_array, with_fields
from c4pipe.recipes.choose import text_versions
from c4pipe.recipes.recipe import Recipe
from c4pipe.text import minhash
from c4pipe.text.hashes import U64, capture_hash, is_validation, page_hashes, page_key, span_hashes
from c4pipe.text.languages import language_counter
from c4pipe.text.minhash import U16
from c4pipe.wet.columns import EXTRA
from c4pipe.wet.damage import Damage

_GROUP_BYTES = 32 * 1024 * 1024  # text of a row group, which limits the memory of writer and reader
_FEW_ROWS = 16  # of a row group: the first has only its text compressed, and its columns are made row by row
_PAGE_VALUES = [name for name in WORK_SCHEMA.names[3:] if name != "text"]
_page_values = attrgetter(*_PAGE_VALUES)
_TOMBSTONE = (*[None] * (len(_PAGE_VALUES) - 2), (), ())
_CAPTURE = np.dtype([("url_key", "<u8"), ("captured", "<i8"), ("tie", "<u8")])
_LARGEST = 2**64 - 1  # of keys
_NO_SPANS = np.empty(0, dtype=np.uint64)


class CleanedFile(NamedTuple):
    """A WET file of which all pages were cleaned. The names mean the same as in `WorkHeader`; `size` is in bytes."""

    source: str
    size: int
    ends_sha256: str
    crawl: str
    counts: Mapping[str, int]


class SideFile:
    """A file about the pages of one WET file, which appears when it is finished. By default, it takes nothing."""

    def add(self, verdict: Verdict, page: CheckedPage) -> None:
        """Takes a page and its verdict, as `RecipeEvaluator.clean` returned them."""

    def add_batch(self, batch: PageBatch) -> None:
        """Takes pages that were cleaned together."""

    def add_damage(self, damage: Damage) -> None:
        """Takes a damage of the WET file."""

    def finish(self, file: CleanedFile) -> None:
        """Completes the file and gives it its name. Raises OSError."""

    def discard(self) -> None:
        """Removes the unfinished file."""


class PageRows(SideFile):
    """A Parquet file with a row for each page. It is written by row groups, and replaces a file of its name."""

    def __init__(self, path: StoragePath, schema: pa.Schema, dictionaries: Sequence[str], **options: bool) -> None:
        """Makes the folder of the file. Raises OSError.

        `dictionaries` are the columns with few different values; `options` are those of Arrow's writer.
        """
        make_folder(path.parent)
        self._path, self._schema = path, schema
        self._file = AtomicFile(path)
        self._options = {"use_dictionary": list(dictionaries), **options}
        self.rows = 0
        self._begin_group()

    @cached_property
    def _writer(self) -> pq.ParquetWriter:
        """The writer, from the first row group on: to begin the compression of all columns takes as long as a page."""
        text = {"text": "zstd"} if self._text else "none"
        few = {"compression": text, "use_dictionary": False, "write_statistics": False}
        options = {**self._options, **(few if self.rows <= _FEW_ROWS else {})}
        return parquet_writer(self._file.path, self._schema, **options)

    def _begin_group(self) -> None:
        self._held: list[tuple[Any, ...]] = []
        self._text, self._text_ends, self._has_text = bytearray(), array("i", [0]), bytearray()
        self._extra_bytes = 0

    def add_row(self, values: tuple[Any, ...], text: bytes, extra_bytes: int = 0) -> None:
        """Adds a row: the values of all columns but `text`, in their order, and the text in UTF-8.

        `extra_bytes` is about how many bytes of memory the large values besides the text take.
        """
        self._held.append(values)
        self._text += text
        self._extra_bytes += extra_bytes
        self._end_rows(b"\1")

    def _end_rows(self, has_text: bytes) -> None:
        """Ends a row with the text that was added last (a byte 1), or rows without text (a 0 for each)."""
        self._text_ends.extend([len(self._text)] * len(has_text))
        self._has_text += has_text
        self.rows += len(has_text)
        if len(self._text) + self._extra_bytes >= _GROUP_BYTES or len(self._has_text) >= GROUP_ROWS:
            self._flush()

    def publish(self, metadata: Mapping[bytes, bytes] | None = None, batch: FileBatch | None = None) -> None:
        """Completes the file, which appears at once or with a batch; metadata are signed. Raises OSError."""
        self._flush()
        with name_os_errors(self._path):
            if metadata:
                self._writer.add_key_value_metadata(metadata)
            self._writer.close()
            if metadata:
                sign_footer(self._file.path)
        if batch is None:
            self._file.publish()
        else:
            batch.append(self._file)

    def discard(self) -> None:
        """Removes the incomplete file."""
        try:
            if "_writer" in vars(self):
                self._writer.close()
        finally:
            self._file.discard()

    def _make_columns(self, fields: list[pa.Field]) -> list[pa.Array]:
        """Returns the columns of the group, without the text."""
        columns: list[pa.Array] = pa.array(self._held, pa.struct(fields)).flatten()  # one call for all columns
        return columns

    def _flush(self) -> None:
        if self._has_text:
            validity = np.packbits(np.frombuffer(self._has_text, np.uint8), bitorder="little")
            buffers = map(pa.py_buffer, (self._text_ends, self._text, validity))  # texts are not copied
            text = pa.StringArray.from_buffers(len(self._has_text), *buffers)
            arrays = self._make_columns([each for each in self._schema if each.name != "text"])
            arrays.insert(self._schema.get_field_index("text"), text)
            with name_os_errors(self._path):
                self._writer.write_table(pa.table(arrays, self._schema))
            self._begin_group()


@dataclass  # not frozen: that would take four times as long
class KeptPage:
    """A page that passed `clean`.

    Attributes:
        page_key: a hash that decides the page's place in the corpus; the page with the smallest key keeps a repeated
            span.
        url, timestamp: as they were crawled.
        encoded: the text in UTF-8.
        validation: whether the page belongs to the validation split.
        dropped: the rule of the `final` stage that drops the page, if the page loses no repeated span.
        unit_starts: the offset at which each unit (sentence or line) starts, in characters of the text.
        span_hashes: the hash of each span, in the order of the first units.
        band_hashes: the hash of each band of the signature (see `text.minhash`); empty if the rule
            `near_duplicate` has nothing to compare.
        minima: the last 16 bits of each minimum of the signature.
        extra: the values of the columns that the recipe names, by name.
    """

    page_key: int
    url: str
    text: str
    encoded: bytes
    timestamp: str
    language: str | None
    language_probability: float | None
    validation: bool
    dropped: str | None
    unit_starts: Sequence[int]
    span_hashes: U64
    band_hashes: U64 | tuple[()] = ()
    minima: U16 | tuple[()] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


class PageKeeper:
    """Computes the units, spans and hashes of kept pages that job 2 needs, by one recipe."""

    def __init__(self, recipe: Recipe) -> None:
        """Looks up the rules of the recipe that each page needs."""
        self._span = recipe.find(RepeatedSpan)
        self._near = recipe.find(NearDuplicate)
        validation = recipe.find(Validation)
        self._one_in = validation.one_in if validation else 0
        self._by_md5 = recipe.page_keys[1]

    def keep(self, page: CheckedPage, final: str | None) -> KeptPage:
        """Returns a page that passed; `final` is the rule that drops it in the stage `final` if it loses no text."""
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
            timestamp=page.timestamp,
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
        near = self._near
        assert near
        more = page.tokenizer, near.scripts, near.numbers, near.short_pages
        signature = minhash.minima(page.text, near.ngram, near.bands, near.rows, *more)
        return minhash.band_hashes(signature, near.bands), minhash.short_minima(signature)


class ExamplesFile(SideFile):
    """For each rule, the pages of the smallest keys that it drops or changes."""

    def __init__(self, work_file: StoragePath, evaluator: RecipeEvaluator, batch: FileBatch, shown_to: str) -> None:
        """Takes the path of the work file, the evaluator, the batch of the file, and the result of `find_last`."""
        self._work_file, self._evaluator, self._batch = work_file, evaluator, batch
        self._is_shown = hash_name(work_file.name) <= shown_to
        self._pages = SmallestKeys()

    def add(self, verdict: Verdict, page: CheckedPage) -> None:
        """Keeps a page as an example of each rule for which its key is small enough."""
        if not self._is_shown:
            return
        key, limits = page.url_key, self._pages.limits
        if verdict.reason and key < limits[verdict.reason]:
            self._pages.add(verdict.reason, key, page.page.position, page.page)
        for rule, changed in verdict.lines.items():
            if changed and key < limits[rule]:
                self._pages.add(rule, key, page.page.position, page.page)

    def add_batch(self, batch: PageBatch) -> None:
        """Keeps those pages as examples of the rules for which their keys are small enough."""
        if not self._is_shown:
            return
        keys, rules = batch.rows["url_key"], [each.name for each in batch.operations]
        dropped = np.flatnonzero(~batch.kept)
        small = dropped[keys[dropped] <= self._limits(rules)[batch.drops[dropped]]]
        found = [(rules[batch.drops[place]], place) for place in small.tolist()]
        changed = (batch.taken > 0) & (batch.read >= 0) & (keys <= self._limits(batch.line_rules)[:, None])
        found += [(batch.line_rules[rule], place) for rule, place in np.argwhere(changed).tolist()]
        for rule, place in found:
            page = batch.page(place).page
            self._pages.add(rule, int(keys[place]), page.position, page)

    def _limits(self, rules: Sequence[str]) -> U64:
        return np.array([min(self._pages.limits[rule], _LARGEST) for rule in rules], np.uint64)

    def finish(self, file: CleanedFile) -> None:
        """Explains the pages, and adds the file to the batch; or removes that of an earlier run. Raises OSError."""
        if self._is_shown:
            write_examples(self._pages, self._evaluator, self._work_file, self._batch)
        else:
            examples_file(self._work_file).unlink(missing_ok=True)


class WorkFile(PageRows):
    """The work file: a row for each readable page, and the header."""

    def __init__(
        self, path: StoragePath, recipe: Recipe, lists: Mapping[str, str], batch: FileBatch | None = None
    ) -> None:
        """Takes the path, the recipe, the digests of its lists, and the batch with which the file appears, if any."""
        columns = work_schema(recipe)
        self._is_near, self._has_extra = "minima" in columns.names, EXTRA in columns.names
        self._tombstone = (*_TOMBSTONE, *([(), b"", None] if self._is_near else []), *[None] * self._has_extra)
        self._captures = bytearray()  # a _CAPTURE for each row of the group
        # Arrow's own form of the columns would be a third of a small file, and is read each time.
        super().__init__(path, columns, ["language", "dropped"], store_schema=False)
        self._recipe, self._lists, self._batch = recipe, lists, batch
        self._keeper = PageKeeper(recipe)
        self.spans = 0
        self.text_bytes: dict[str, int] = {}

    def add(self, verdict: Verdict, page: CheckedPage) -> None:
        """Adds a page if it is readable."""
        if verdict.readable:
            assert page.captured is not None  # a page without a timestamp is not readable
            kept = None if verdict.reason else self._keeper.keep(page, verdict.final)
            crawled = page.page
            body = crawled.body.encode("utf-8", "replace") if crawled.encoded is None else crawled.encoded
            tie = capture_hash(crawled.url, crawled.timestamp, body)
            self.add_page(page.url_key, page.captured, tie, kept)

    def add_batch(self, batch: PageBatch) -> None:
        """Adds those pages that are readable."""
        places, done = np.flatnonzero(batch.readable), 0
        captures = with_fields(batch.rows[places], _CAPTURE)
        for row in np.flatnonzero(batch.kept[places]).tolist():
            place = int(places[row])
            final = batch.drop(place)
            page = self._keeper.keep(batch.page(place), final.name if final else None)
            self._add_captures(captures[done : row + 1], page)
            done = row + 1
        self._add_captures(captures[done:], None)

    def add_page(self, url_key: int, captured: int, tie: int, page: KeptPage | None) -> None:
        """Adds a row of `work_file.URL_ROW`, and the page; without a page, the row is a tombstone."""
        self._add_captures(np.array([(url_key, captured, tie)], _CAPTURE), page)

    def _add_captures(self, captures: Rows, page: KeptPage | None) -> None:
        """Adds tombstones, but for the last capture a page if there is one."""
        tombstones = captures if page is None else captures[:-1]
        while len(tombstones):
            room = GROUP_ROWS - len(self._has_text)
            added, tombstones = tombstones[:room], tombstones[room:]
            self._captures += added.tobytes()
            self._end_rows(bytes(len(added)))
        if page is None:
            return
        values: tuple[Any, ...] = _page_values(page)
        extra_bytes = 0
        if self._is_near:
            values = (*values, page.band_hashes, bytes(page.minima), len(page.text))
        if self._has_extra:
            values = (*values, page.extra)
            extra_bytes = sum(map(_memory_size, page.extra.values()))
        self.spans += len(page.span_hashes)
        if page.language is not None and page.dropped is None:
            self.text_bytes[page.language] = self.text_bytes.get(page.language, 0) + len(page.encoded)
        self._captures += captures[-1:].tobytes()
        self.add_row(values, page.encoded, extra_bytes)

    def _make_columns(self, fields: list[pa.Field]) -> list[pa.Array]:
        captures, self._captures = np.frombuffer(self._captures, _CAPTURE), bytearray()
        if len(self._has_text) <= _FEW_ROWS:  # `take` is slow to begin
            held = iter(self._held)
            rows = [next(held) if has_text else self._tombstone for has_text in self._has_text]
            columns = pa.array(rows, pa.struct(fields[3:])).flatten()
        else:
            pages = pa.array([self._tombstone, *self._held], pa.struct(fields[3:]))
            is_kept = np.frombuffer(self._has_text, np.uint8)
            columns = pages.take(arrow_array(np.cumsum(is_kept) * is_kept)).flatten()  # 0 for each tombstone
        return [*(arrow_array(captures[name]) for name in _CAPTURE.names or ()), *columns]

    def finish(self, file: CleanedFile) -> None:
        """Writes the header, and publishes the file. From then on, its WET file is not cleaned again."""
        header = WorkHeader(
            source=file.source,
            source_bytes=file.size,
            ends_sha256=file.ends_sha256,
            recipe=self._recipe,
            fingerprint=self._recipe.fingerprint(self._lists),
            lists=dict(self._lists),
            rows=self.rows,
            spans=self.spans,
            text_bytes=dict(sorted(self.text_bytes.items())),
            counts=dict(sorted(file.counts.items())),
            crawl=file.crawl,
            text_versions=text_versions(self._recipe),
        )
        values = {"version": WORK_FILE_VERSION, **to_json(header)}
        self.publish({HEADER_KEY: json.dumps(values).encode()}, self._batch)


def _memory_size(value: Any) -> int:
    """Returns about how many bytes of memory a value takes."""
    return len(value) if isinstance(value, str) else 8 * len(str(value))


def count_page(page: CheckedPage, verdict: Verdict, line_counters: Mapping[str, str], counts: Counter[str]) -> None:
    """Adds one page to the counters of the funnel; `line_counters` belong to the evaluator.

    pages.read = pages.dropped.* + pages.cleaned. Pages that are dropped when their language is known count by it, too.
    Over the pages that came to the line rules, lines.read = lines.dropped.* + lines.left. bytes.read is the size of the
    bodies, bytes.cleaned the size of the texts in UTF-8.
    """
    counts["pages.read"] += 1
    counts["bytes.read"] += page.page.size
    if verdict.lines_read is not None:
        counts["lines.read"] += verdict.lines_read
        counts["lines.left"] += page.line_count
        for rule, number in verdict.lines.items():
            if number or line_counters[rule] not in counts:  # most are 0
                counts[line_counters[rule]] += number
    if verdict.reason:
        counts[f"pages.dropped.{verdict.reason}"] += 1
        if verdict.language is not None:
            counts[language_counter(verdict.language, verdict.reason)] += 1
        return
    counts["pages.cleaned"] += 1
    counts["units.cleaned"] += len(page.unit_starts)
    counts["bytes.cleaned"] += len(page.encoded)
