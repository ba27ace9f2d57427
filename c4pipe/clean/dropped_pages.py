"""Dropped pages, kept for audits: a sample by URL, with the rule that dropped each and what decided. No Beam.

Parquet in a folder of its own, for each WET file one file of each job: `<WET file>.clean.parquet`, `.dedup.parquet`.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.clean.fact_wording import NOTHING_LEFT, judge
from c4pipe.clean.page_facts import PageFacts
from c4pipe.clean.resources import RuleResources
from c4pipe.clean.trace import explain_final
from c4pipe.clean.work_file import utf8_size
from c4pipe.clean.work_folder import clear_abandoned
from c4pipe.errors import UsageError
from c4pipe.filters.urls import normalise_url, url_key
from c4pipe.io.atomic import AtomicFile
from c4pipe.io.paths import StoragePath, names, storage_path
from c4pipe.recipes.recipe import Recipe

FOLDER = "_dropped"
"""The folder, inside the corpus (of `clean` alone: the work folder), where dropped pages are."""

SCHEMA = pa.schema(
    [
        pa.field("url", pa.string(), nullable=False),
        pa.field("timestamp", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("fact", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("lines", pa.int64(), nullable=False),
    ]
)

_GROUP_BYTES = 32 * 1024 * 1024  # text in a row group: bounds the memory of writer and reader
_GROUP_ROWS = 64 * 1024


class DroppedPage(NamedTuple):
    """A row of an audit.

    Attributes:
        url: as crawled.
        timestamp: as crawled.
        reason: the rule that dropped the page.
        fact: what decided, in a few words.
        text: what that rule looked at: the page as crawled, or what the rules had left of it. Of a page of which job 1
            left nothing, the page as crawled.
        lines: how many lines the rules had left.
    """

    url: str
    timestamp: str
    reason: str
    fact: str
    text: str
    lines: int


@dataclass(frozen=True)
class KeepDropped:
    """Which dropped pages are kept, and where.

    Attributes:
        share: of all URLs, by the hash of the normalised one: above 0, at most 1.
        folder: the folder for them, as a path or URL.
    """

    share: float
    folder: str

    def takes(self, key: int) -> bool:
        """Tells whether a dropped page is kept, by the key of its URL (`page.url_key`)."""
        return key < self.share * 2**64

    def path(self, source: str, job: str) -> StoragePath:
        """Returns the file for a WET file, by its name, and a job (`clean` or `dedup`)."""
        return storage_path(self.folder) / f"{source}.{job}.parquet"


def parse_share(text: str) -> float:
    """Returns the share that --keep-dropped names. Raises UsageError unless it is `all`, or above 0 and at most 1."""
    with contextlib.suppress(ValueError):
        share = 1.0 if text == "all" else float(text)
        if 0 < share <= 1:
            return share
    raise UsageError(f"--keep-dropped {text}: give a share of the URLs, above 0 and at most 1, or all")


def clear(keep: KeepDropped, sources: Iterable[str], job: str) -> None:
    """Removes the files of some WET files and a job that an earlier run left, and all that one was stopped at."""
    folder = storage_path(keep.folder)
    clear_abandoned(folder)
    for name in names(folder).intersection(keep.path(source, job).name for source in sources):
        (folder / name).unlink(missing_ok=True)


def without(keep: KeepDropped, sources: Iterable[str], job: str) -> list[str]:
    """Returns the WET files, by name, whose dropped pages in a job are not there."""
    there = names(storage_path(keep.folder))
    return [source for source in sources if keep.path(source, job).name not in there]


class DroppedWriter:
    """Writes the dropped pages of one WET file in one job; the file appears when it is finished.

    There is one, without rows, where no page was dropped.
    """

    def __init__(self, keep: KeepDropped, source: str, job: str, recipe: Recipe, tools: RuleResources) -> None:
        """Takes what is kept, the WET file's name, the job, the recipe and its tools."""
        self._keep, self._recipe, self._tools = keep, recipe, tools
        target = keep.path(source, job)
        if isinstance(target, Path):
            target.parent.mkdir(parents=True, exist_ok=True)
        self._file = AtomicFile(target)
        self._writer = pq.ParquetWriter(self._file.path, SCHEMA, compression="zstd", use_dictionary=["reason"])
        self._held: list[DroppedPage] = []
        self._held_bytes = 0

    def add_cleaned(self, draft: PageFacts, reason: str, with_lines: bool) -> None:
        """Adds a page that job 1 dropped, if it is of those that are kept; `with_lines`: after line rules began."""
        if self._keep.takes(url_key(draft.normalised_url)):
            fact, text = _decided(draft, reason, with_lines, self._recipe)
            self._add(DroppedPage(draft.page.url, draft.page.timestamp, reason, fact, text, draft.line_count))

    def add_older(self, pages: pa.Table) -> None:
        """Adds those that are kept of pages that are not the newest of their URL: `url`, `timestamp`, `text`."""
        for page in pages.to_pylist():
            normalised = self._taken(page["url"])
            if normalised is not None:
                fact = f"another capture of {normalised} counts as the newest"
                text = page["text"]
                self._add(
                    DroppedPage(page["url"], page["timestamp"], "stale_capture", fact, text, text.count("\n") + 1)
                )

    def add_finished(self, pages: pa.Table) -> None:
        """Adds those that are kept of pages that the last rules dropped, as `PageFinisher` edited them."""
        for page in pages.to_pylist():
            if self._taken(page["url"]) is not None:
                url, text = page["url"], page["text"]
                judged, _ = explain_final(url, text, page["units_left"], self._recipe, self._tools)
                fact = next(each.fact for each in judged if each.rule == page["dropped"])
                lines = text.count("\n") + 1 if text else 0
                self._add(DroppedPage(url, page["timestamp"], page["dropped"], fact, text, lines))

    def _taken(self, url: str) -> str | None:
        """Returns the normalised URL of a page that is kept, else None."""
        normalised = normalise_url(url, self._tools.scheme)
        return normalised if self._keep.takes(url_key(normalised)) else None

    def _add(self, page: DroppedPage) -> None:
        self._held.append(page)
        self._held_bytes += utf8_size(page.text)
        if self._held_bytes >= _GROUP_BYTES or len(self._held) >= _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            columns = zip(*self._held, strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
            self._writer.write_table(pa.table(arrays, SCHEMA))
            self._held, self._held_bytes = [], 0

    def finish(self) -> None:
        """Puts the file in its place, over one that is there."""
        self._flush()
        self._writer.close()
        self._file.publish()

    def discard(self) -> None:
        """Removes what was written, unless it was finished."""
        try:
            self._writer.close()
        finally:
            self._file.discard()


@contextlib.contextmanager
def dropped_writer(
    keep: KeepDropped | None, source: str, job: str, recipe: Recipe, tools: RuleResources
) -> Iterator[DroppedWriter | None]:
    """Gives a DroppedWriter, or None where nothing is kept. What is not finished in the end is removed."""
    if keep is None:
        yield None
        return
    writer = DroppedWriter(keep, source, job, recipe, tools)
    try:
        yield writer
    finally:
        writer.discard()


def _decided(draft: PageFacts, rule: str, with_lines: bool, recipe: Recipe) -> tuple[str, str]:
    """Returns what made a rule of job 1 drop a page, in words, and the text that the rule looked at."""
    if with_lines and not draft.line_count:
        return NOTHING_LEFT, draft.body
    stages = (recipe.lines, recipe.cleaned) if with_lines else (recipe.readable, recipe.crawled)
    step = next(step for stage in stages for step in stage if step.rule == rule)
    _, fact = judge(draft, step, with_lines)
    as_crawled = not with_lines and step.definition.looks_at in ("written", "lower")
    return fact, draft.body if as_crawled else draft.text
