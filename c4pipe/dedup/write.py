"""Finished pages, packed for the shuffle to their shard, merged there and written; the last steps of job 2. No Beam."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from c4pipe.clean import examples
from c4pipe.clean.work_folder import find_work_files
from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA
from c4pipe.corpus.layout import Layout, ShardId
from c4pipe.corpus.writer import ShardWriter
from c4pipe.dedup import near_duplicates, shuffle
from c4pipe.dedup.publishers import publisher
from c4pipe.dedup.removals import with_texts
from c4pipe.dedup.shuffle import PAGES, Sent
from c4pipe.dedup.step import DedupPlan, DedupStep, Received, StepItem
from c4pipe.errors import C4pipeError
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.io.rows import arrow_array, groups_of, unique
from c4pipe.io.words import explain_errors
from c4pipe.report.profile import Profiler
from c4pipe.runners import control_totals
from c4pipe.runners.control_totals import REPORT
from c4pipe.runners.flow import Step
from c4pipe.wet.columns import EXTRA, flat

SHARD = "shard"
"""The name of the output that carries the name of each shard."""

_BATCH_SCHEMA = CORPUS_SCHEMA.insert(0, pa.field("page_key", pa.uint64(), nullable=False))
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_ROWS_AT_ONCE = 256  # of a batch that are uncompressed at a time
_PART_BYTES = 2 * 1024 * 1024  # of compressed pages that a shard uncompresses at a time
_CHUNK_ROWS = 512  # rows that are written, and are Python strings, at a time
_JOINED_BYTES = 8 * 1024 * 1024  # of uncompressed pages of short batches that become one run
_END_BYTES = 8  # of an Arrow stream, after its last rows
_LAST_KEY = 2**64 - 1


def pack_pages(pages: pa.Table, rows: Any = None) -> bytes:
    """Returns pages, in the order of their keys, as a compressed Arrow stream.

    Args:
        pages: the pages.
        rows: the numbers of the pages to take, in the order of their keys; None for all pages, in any order.
    """
    schema = _BATCH_SCHEMA.append(pages.schema.field(EXTRA)) if EXTRA in pages.schema.names else _BATCH_SCHEMA
    pages = pages.select(schema.names).cast(schema)
    if rows is None:
        rows = np.argsort(pages["page_key"].to_numpy(), kind="stable")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_COMPRESSED) as stream:
        for first in range(0, len(rows), _ROWS_AT_ONCE):  # no second copy of all pages is made
            stream.write_table(pages.take(arrow_array(rows[first : first + _ROWS_AT_ONCE])))
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def in_order(batches: Iterable[bytes]) -> Iterator[pa.Table]:
    """Yields the pages of batches, in the order of their keys, a few thousand at a time.

    The batches stay compressed in memory, and only a part of the pages is uncompressed at a time. Pages with one key,
    which only a user's own transforms can make, are in the order of URL, timestamp and text.
    """
    runs, size = _runs(batches)
    parts = 1 + size // _PART_BYTES
    for part in range(1, parts + 1):
        pages = _sorted(_table(rows for run in runs for rows in run.take((part << 64) // parts - 1)))
        for first in range(0, len(pages), _CHUNK_ROWS):
            yield pages.slice(first, _CHUNK_ROWS)


def _runs(batches: Iterable[bytes]) -> tuple[list["_Run"], int]:
    """Returns batches as runs, and the bytes of the batches.

    In a large corpus, a shard has thousands of short batches. From the first part on, all their pages would be in
    memory twice, compressed and uncompressed, and each batch costs time in each part. So short batches are joined.
    """
    runs: list[_Run] = []
    short: list[_Run] = []
    size = short_bytes = 0
    for batch in batches:
        size += len(batch)
        run = _Run(batch)
        if not run.is_short:
            runs.append(run)
            continue
        short.append(run)
        short_bytes += run.bytes
        if short_bytes >= _JOINED_BYTES:
            runs.append(_Run(pack_pages(_table(rows for each in short for rows in each.take(_LAST_KEY)))))
            short, short_bytes = [], 0
    return [*runs, *short], size


def _table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    found = list(batches)
    return pa.Table.from_batches(found, found[0].schema if found else _BATCH_SCHEMA).combine_chunks()


def _sorted(pages: pa.Table) -> pa.Table:
    keys = pages["page_key"].to_numpy()
    if len(unique(keys)) == len(keys):
        return pages.take(arrow_array(np.argsort(keys)))
    return pages.sort_by([(name, "ascending") for name in ("page_key", "url", "timestamp", "text")])


class _Run:
    """A batch of pages in the order of their keys, which is read piece by piece.

    Attributes:
        is_short: whether all pages are uncompressed now.
        bytes: the memory of the pages that are uncompressed now.
    """

    def __init__(self, batch: bytes) -> None:
        source = pa.BufferReader(batch)
        self._reader = pa.ipc.open_stream(source, options=pa.ipc.IpcReadOptions(use_threads=False))
        self._next: pa.RecordBatch | None = next(self._reader, None)
        self.is_short = source.tell() + _END_BYTES >= len(batch)
        self.bytes = self._next.nbytes if self._next else 0

    def take(self, last: int) -> Iterator[pa.RecordBatch]:
        """Yields the next pages, up to a key."""
        while self._next is not None:
            end = int(np.searchsorted(self._next["page_key"].to_numpy(), np.uint64(last), side="right"))
            if end:
                yield self._next.slice(0, end)
            if end < len(self._next):
                self._next = self._next.slice(end)
                return
            self._next = next(self._reader, None)


def _folders_of(pages: pa.Table, layout: Layout) -> Any:
    """Returns the number of each page's folder (language and split) as a NumPy array."""
    number = {(each, split): layout.folder(each, split) for each in layout.languages for split in (False, True)}
    folders = zip(pages["language"].to_pylist(), pages["validation"].to_pylist(), strict=True)
    return np.array([number[pair] for pair in folders], dtype=np.uint32)


def _by_shard(pages: pa.Table, numbers: Any) -> Iterator[tuple[int, Any]]:
    """Yields (shard number, the rows of its pages in the order of their keys), given the shard of each page."""
    order = np.lexsort((pages["page_key"].to_numpy(), numbers))
    for start, end in zip(*groups_of(numbers[order]), strict=True):
        yield int(numbers[order[start]]), order[start:end]


_WAITING = 8  # batches of 512 pages that may wait for the profile


def send_to_shards(pages: pa.Table, layout: Layout) -> Sent:
    """Sends finished pages to their shards."""
    keys = pages["page_key"].to_numpy()
    numbers = layout.shard_numbers(_folders_of(pages, layout), keys)
    return Sent(PAGES, shuffle.totals(keys), ((n, pack_pages(pages, rows)) for n, rows in _by_shard(pages, numbers)))


def write_shard_files(
    batches: Iterable[bytes],
    shard: ShardId,
    output: StoragePath,
    formats: Sequence[str],
    on_pages: Callable[[int], None] = lambda pages: None,
    columns: Sequence[str] = (),
) -> control_totals.Report:
    """Writes the files of a shard into the publisher's folder.

    Args:
        batches: the pages of the shard, packed by `pack_pages`.
        shard: the identity of the shard.
        output: the folder of the corpus.
        formats: the formats to write.
        on_pages: gets the number of newly written pages after each write.
        columns: the further columns of the pages, as `Recipe.columns`.

    Returns a report: control totals, the files, and the profile of the pages. Raises C4pipeError if the files can't
    be written.
    """
    folder = publisher(output).shards_folder
    profiler = Profiler(shard.language, shard.split)
    waiting = deque[Future[None]]()
    report: control_totals.Report = {}
    name = f"shard {shard.shard_index} of {shard.num_shards} ({shard.language}, {shard.split})"
    with (
        explain_errors(f"{name} can't be written to {folder}", kind=C4pipeError, with_path=True),
        ThreadPoolExecutor(1, thread_name_prefix="profile") as profile,  # Arrow lets other threads work meanwhile
        ShardWriter(folder, shard, formats, columns) as writer,
    ):
        for pages in in_order(batches):
            totals = control_totals.received("pages", shuffle.totals(pages["page_key"].to_numpy()))
            report = control_totals.add_reports([report, totals])
            rows = flat(pages, CORPUS_SCHEMA.names)
            waiting.append(profile.submit(profiler.add, rows))
            if len(waiting) > _WAITING:
                waiting.popleft().result()
            writer.write(rows)
            on_pages(len(pages))
    for each in waiting:
        each.result()
    return {**report, "shards": [file.to_json() for file in writer.files], "profiles": [profiler.result()]}


class WriteShard(DedupStep):
    """The name and the pages of a shard -> a report. Writes the shard's files into the publisher's folder."""

    tallied = ("shards",)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Writes the files of one shard."""
        (name,) = received.given(SHARD)
        shard = ShardId(*name)
        output = storage_path(self._plan.output)
        tally, columns = partial(self._tally, "shards"), self._plan.rules.columns
        yield write_shard_files(received.streams(PAGES), shard, output, self._plan.formats, tally, columns)


class ReadExamples(Step):
    """The sum of the reports before the shards -> the sum with examples and span texts from the work files."""

    outputs = (REPORT,)
    sums = (REPORT,)

    def __init__(self, plan: DedupPlan, shown: Collection[str]) -> None:
        self._plan = plan
        self._shown = sorted(shown)

    def process(self, element: control_totals.Report) -> Iterable[tuple[str, Any]]:
        """Adds the examples of job 1 and the texts of repeated spans."""
        clean_examples = examples.gather_examples([storage_path(path) for path in self._shown])
        span = self._plan.span
        files = list(find_work_files([storage_path(each) for each in self._plan.work]).values())
        repeats = with_texts(element.get("repeats", ()), files, span.size) if span else []
        report = {**element, "clean_examples": clean_examples, "repeats": repeats}
        report["near_clusters"] = near_duplicates.largest_clusters(element.get("near_clusters", ()), files)
        return [(REPORT, report)]


class Publish(Step):
    """The sum of all reports -> nothing. Publishes the corpus."""

    def __init__(self, plan: DedupPlan) -> None:
        self._plan = plan

    def process(self, element: control_totals.Report) -> Iterable[tuple[str, Any]]:
        """Checks the reports and publishes."""
        from c4pipe.dedup import publish

        moved = element.get("moved_spans", []) if self._plan.moves_survivors else None
        output, token = storage_path(self._plan.output), self._plan.publication_token
        publish.finish_corpus(output, element, token, moved, self._plan.taken_down)
        return ()
