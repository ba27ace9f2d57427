"""Time and space of a build: estimates from the sizes of its files, and from the measured cost of a few slices."""

import io
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.work_file import read_header
from c4pipe.clean.work_folder import find_work_files, read_headers_of, work_path
from c4pipe.corpus.formats.table import find_format
from c4pipe.dedup.known import INDEX
from c4pipe.errors import C4pipeError
from c4pipe.io.paths import StoragePath, file_sizes
from c4pipe.io.streams import InputOpener, is_url
from c4pipe.io.words import format_count
from c4pipe.jobs.clean import CleanPlan, note_wait, plan_clean
from c4pipe.jobs.dedup import dedup, plan_dedup
from c4pipe.jobs.index import write_index
from c4pipe.jobs.options import BuildOptions, CleanOptions, DedupOptions, ImportOptions
from c4pipe.lists import lists
from c4pipe.lists.lists import LISTS_FOLDER
from c4pipe.runners.events import Progress, Status
from c4pipe.wet.damage import NoRecordError
from c4pipe.wet.inputs import InputFile, crawl_names

PART = 8 * 1000 * 1000
"""Bytes of a slice, as they are stored."""

WARM_SECONDS = 2.0
"""CPU seconds after which imports and caches no longer count: the first slice took up to 1.8 times as long."""

SIZED = 32
"""The most files whose size is requested if sizes are not known."""

_FEWEST_SIZED = 4  # files of each of many crawls


@dataclass(frozen=True)
class Sizes:
    """Sizes of files.

    Attributes:
        files: how many files there are in all.
        known: the known sizes, in stored bytes: the sizes of all files, or of some evenly spread files.
    """

    files: int
    known: tuple[int, ...]

    @cached_property  # the plan of a hundred crawls asks for it thousands of times
    def total(self) -> int:
        """The bytes of all files. Unknown sizes count as the mean of the known sizes."""
        return sum(self.known) * self.files // len(self.known)

    @property
    def error(self) -> float:
        """The standard error of the total, as a share of it; 0 where all sizes are known."""
        count, mean = len(self.known), sum(self.known) / len(self.known)
        if count == self.files or count < 2 or not mean:
            return 0.0
        variance = sum((size - mean) ** 2 for size in self.known) / (count - 1)
        return float((variance / count) ** 0.5 / mean)


@dataclass(frozen=True)
class Cost:
    """The cost and the content of the slices.

    Attributes:
        parts: the number of slices.
        stored: their bytes, as they are stored.
        pages: pages read.
        text_bytes: bytes of their text, as crawled.
        kept: pages in the corpus.
        rows: rows of URLs, of spans and of bands that are shuffled.
        spilled: bytes of all shuffles: these rows and what follows from them, and pages as they are packed.
        clean_seconds: CPU seconds of clean.
        dedup_seconds: CPU seconds of dedup.
        fetched: whether the slices were downloaded.
        fetch_seconds: seconds that the downloads took, over one connection.
        work_bytes: bytes of the work files.
        corpus_bytes: bytes of the corpus, by format.
        index_bytes: bytes of the index of the corpus; 0 where it was not measured.
        index_seconds: CPU seconds of the index.
    """

    parts: int
    stored: int
    pages: int
    text_bytes: int
    kept: int
    rows: int
    spilled: int
    clean_seconds: float
    dedup_seconds: float
    fetched: bool
    fetch_seconds: float
    work_bytes: int
    corpus_bytes: dict[str, int]
    index_bytes: int = 0
    index_seconds: float = 0.0


def spread(files: Sequence[InputFile], count: int) -> list[InputFile]:
    """Returns at most `count` files, evenly spread over the list."""
    count = min(count, len(files))
    return [files[(2 * number + 1) * len(files) // (2 * count)] for number in range(count)]


def measure_sizes(files: Sequence[InputFile], sources: InputOpener, most: int = SIZED) -> Sizes:
    """Returns the sizes of files, in bytes as they are stored.

    If some sizes are not known, the server is asked for the sizes of at most `most` evenly spread files.

    Raises OSError if no size can be found out.
    """
    known = [file.size for file in files if file.size is not None]
    if len(known) < len(files):
        asked = [sources.size(file.path) for file in spread(files, most)]
        known = [size for size in asked if size is not None]
    if not known:
        raise OSError("the server does not send the sizes of files")
    return Sizes(len(files), tuple(known))


def measure_cost(
    plan: CleanPlan,
    formats: Sequence[str],
    count: int,
    sources: InputOpener,
    progress: Progress,
    with_index: bool = False,
) -> Cost:
    """Cleans and deduplicates a slice of each of `count` files, in this process, and returns the cost.

    With `with_index`, the index of the corpus is written, too.

    The slices are at evenly spread places in their files: in a WET file, pages are sorted by URL, and the first pages
    differ from the others. `progress` gets how many slices are cleaned.

    Raises OSError if a file can't be read, C4pipeError if the slices hold no page.
    """
    with tempfile.TemporaryDirectory(prefix="c4pipe-plan-") as folder:
        work, output = Path(folder) / "work", Path(folder) / "corpus"
        files = spread(plan.files, count)
        slices = _clean_slices(plan, files, work, sources, progress)
        headers = list(read_headers_of(find_work_files([work]).values()))
        options = DedupOptions(work, output=output, format=formats, workers=1)
        first = replace(options, output=Path(folder) / "first")
        dedup(plan_dedup(first), progress)  # not measured: it takes the time of imports and caches
        before = time.process_time()
        corpus = plan_dedup(options)
        manifest = dedup(corpus, Progress(), spill=str(Path(folder) / "spill"))
        done = time.process_time()
        if with_index:
            write_index(options.folder, options, progress)
        return Cost(
            parts=len(slices),
            stored=sum(each.stored for each in slices),
            pages=sum(each.pages for each in slices),
            text_bytes=sum(header.counts.get("bytes.read", 0) for header in headers),
            kept=manifest["counts"]["pages.kept"],
            rows=sum(header.rows + header.spans for header in headers) + corpus.band_rows,
            spilled=sum(file_sizes(Path(folder) / "spill", "*").values()),
            clean_seconds=sum(each.clean_seconds for each in slices),
            dedup_seconds=done - before,
            fetched=any(is_url(file.path) for file in files),
            fetch_seconds=sum(each.fetch_seconds for each in slices),
            work_bytes=sum(file_sizes(work, "*.parquet").values()),
            corpus_bytes={name: _bytes_of(name, manifest["shards"]) for name in formats},
            index_bytes=sum(file_sizes(output / INDEX, "*").values()) if with_index else 0,
            index_seconds=time.process_time() - done,
        )


class _Slice(NamedTuple):
    stored: int
    fetch_seconds: float
    clean_seconds: float
    pages: int


def _clean_slices(
    plan: CleanPlan, files: Sequence[InputFile], work: Path, sources: InputOpener, progress: Progress
) -> list[_Slice]:
    """Cleans a slice of each file into a work folder. Raises OSError, and C4pipeError if the slices hold no page."""
    plan.lists.save(work / LISTS_FOLDER)
    cleaner = WetFileCleaner(plan.recipe, lists.load_lists(work / LISTS_FOLDER, plan.lists.digests))
    slices, unread = list[_Slice](), list[str]()

    def look() -> Status:
        words = f"{len(slices)} of {format_count(len(files), 'slice')} cleaned"
        return Status(len(slices) / len(files), words)

    with progress.show("measure", work.parent, look):
        for number, file in enumerate(files):
            place = (number + 0.5) / len(files)
            target = work_path(work, file)
            try:
                slices.append(_clean_slice(file, place, sources, cleaner, target, is_first=not slices))
            except NoRecordError as error:
                unread.append(f"{file.path} {error}")
                progress.note(unread[-1])
    if not any(each.pages for each in slices):
        why = unread[0] if unread else f"are these {plan.recipe.input_format} files?"
        raise C4pipeError(f"no page was found in {len(files)} slices: {why}")
    return slices


def _clean_slice(
    file: InputFile, place: float, sources: InputOpener, cleaner: WetFileCleaner, target: StoragePath, is_first: bool
) -> _Slice:
    """Cleans the slice at a place between 0 and 1 of a file; its head, if no gzip member begins in that slice.

    The first of all slices is cleaned for WARM_SECONDS before it is measured. A file has as many examples as a slice:
    of their time, a slice counts its share.
    """
    size = sources.size(file.path) if file.size is None else file.size
    first = int(max(0, (size or 0) - PART) * place)
    while True:
        started = time.monotonic()
        part = sources.read_range(file.path, first, PART)
        fetched = time.monotonic() - started
        try:
            warm_until = time.process_time() + (WARM_SECONDS if is_first else 0)
            while time.process_time() < warm_until:
                cleaner.clean(io.BytesIO(part), file.name, target)
            before = time.process_time()
            cleaner.clean(io.BytesIO(part), file.name, target)
            seconds = time.process_time() - before
            pages = read_header(target).counts.get("pages.read", 0)
            if pages or not first:
                seconds -= cleaner.example_seconds * (1 - len(part) / max(size or 0, len(part), 1))
                return _Slice(len(part), fetched, seconds, pages)
        except NoRecordError:
            if not first:
                raise
        first = 0


def _bytes_of(name: str, shards: Sequence[Mapping[str, Any]]) -> int:
    return sum(shard["bytes"] for shard in shards if shard["path"].endswith(find_format(name).extension))


_TRIES = 4  # few, because a person waits for the answer

ASSUMPTIONS = (
    "The files that were not measured are like those that were measured.",
    "Each core is as fast as a core of this machine, and all cores are busy until the end.",
    "A whole crawl repeats more pages and sentences than slices do: kept pages and corpus are upper limits; the "
    "shuffle of near_duplicate is larger.",
    "Files are read while others are cleaned; dedup begins when all are cleaned. The disk is fast enough.",
    "Shuffle: rows and compressed pages, without the runner's own overhead; on one machine it is on disk.",
)
"""The assumptions of the estimates."""

CRAWLS_ASSUMPTIONS = (
    "The pages of all crawls cost the same. What earlier crawls have is not subtracted: corpus and index are smaller.",
    "A core compares 115 MB of the indexes of earlier crawls a second; the disk or store is not slower.",
    "Disk at once: the earlier corpora and indexes, and all of the crawl itself.",
)
"""The further assumptions of the estimates for several crawls."""


@dataclass(frozen=True)
class Plan:
    """An estimate for a build.

    Attributes:
        cores: the cores that wall time is estimated for.
        files: the number of files, or None where their list can't be read.
        sizes: their sizes, or None where they can't be read.
        cost: the cost of some slices, or None where none could be measured.
        bytes_per_second: the limit for reading from the network, or None for no limit.
        problem: why sizes or cost are None; empty if both are known.
    """

    cores: int
    files: int | None = None
    sizes: Sizes | None = None
    cost: Cost | None = None
    bytes_per_second: float | None = None
    problem: str = ""

    @property
    def scale(self) -> float:
        """The size of the input as a multiple of the slices. Needs sizes and cost."""
        assert self.sizes is not None
        assert self.cost is not None
        return self.sizes.total / self.cost.stored

    @property
    def download_seconds(self) -> float:
        """The time to read all files within the limit of the network; 0 without one. Needs sizes."""
        assert self.sizes is not None
        return self.sizes.total / self.bytes_per_second if self.bytes_per_second else 0.0

    @property
    def clean_seconds(self) -> float:
        """The wall time of clean, which reads files while it cleans others. Needs sizes and cost."""
        assert self.cost is not None
        return max(self.cost.clean_seconds * self.scale / self.cores, self.download_seconds)

    @property
    def dedup_seconds(self) -> float:
        """The wall time of dedup. Needs sizes and cost."""
        assert self.cost is not None
        return self.cost.dedup_seconds * self.scale / self.cores

    def wall_seconds(self) -> tuple[float, bool]:
        """Returns the wall time in seconds, and whether the network limits `clean`. Needs sizes and cost."""
        seconds = self.clean_seconds
        return seconds + self.dedup_seconds, seconds == self.download_seconds

    @property
    def shuffle_bytes(self) -> float:
        """The bytes of all shuffles. Needs sizes and cost."""
        assert self.cost is not None
        return self.cost.spilled * self.scale

    @property
    def disk_bytes(self) -> float:
        """The bytes on disk at once, at most: work files, shuffles and the corpus. Needs sizes and cost."""
        assert self.cost is not None
        return self.shuffle_bytes + (self.cost.work_bytes + sum(self.cost.corpus_bytes.values())) * self.scale

    def price(self, hourly: float) -> float:
        """Returns the price of a machine for the wall time, from its price for an hour. Needs sizes and cost."""
        return self.wall_seconds()[0] / 3600 * hourly


def make_plan(build: CleanPlan, formats: Sequence[str], slices: int, cores: int, progress: Progress) -> Plan:
    """Measures slices of some of the files, and returns the estimates. Values that can't be measured are None.

    Args:
        build: the files and the recipe of the build.
        formats: names of shard formats.
        slices: how many files to measure a slice of.
        cores: the cores that wall time is estimated for.
        progress: gets how many slices are measured, and a note for each wait for a server.
    """
    sources = _sources(build.options, progress)
    plan = Plan(cores, len(build.files), bytes_per_second=build.options.network.bytes_per_second)
    try:
        plan = replace(plan, sizes=measure_sizes(build.files, sources))
        return replace(plan, cost=measure_cost(build, formats, slices, sources, progress))
    except (OSError, C4pipeError) as error:
        return replace(plan, problem=str(error))


def _sources(options: CleanOptions | BuildOptions | ImportOptions, progress: Progress) -> InputOpener:
    return InputOpener(replace(options.network, tries=min(_TRIES, options.network.tries)), note_wait(progress))


KNOWN_RATE = 0.115e9
"""Bytes of the indexes of known corpora that dedup compares in a CPU second: docs/scale.md has the measurement."""


class Times(NamedTuple):
    """Seconds that crawls take: their two jobs, and the index of the corpus."""

    clean: float
    dedup: float
    indexing: float

    @property
    def total(self) -> float:
        """All of them."""
        return sum(self)


@dataclass(frozen=True)
class CrawlsPlan:
    """An estimate for several crawls with a corpus each, which lacks what the corpora of earlier crawls have (--known).

    Attributes:
        crawls: the plan of each crawl, by its name, with sizes and cost; the oldest first.
    """

    crawls: Mapping[str, Plan]

    @property
    def cost(self) -> Cost:
        """The cost of the slices of all crawls."""
        cost = next(iter(self.crawls.values())).cost
        assert cost is not None
        return cost

    def index_bytes(self, crawl: str) -> float:
        """Returns the bytes of the index of a crawl's corpus."""
        return self.cost.index_bytes * self.crawls[crawl].scale

    def known_bytes(self, crawl: str) -> float:
        """Returns the bytes of the indexes that `dedup` of a crawl reads: those of all earlier crawls."""
        return sum(self.index_bytes(each) for each in takewhile(crawl.__ne__, self.crawls))

    def corpus_bytes(self, crawl: str) -> float:
        """Returns the bytes of a crawl's corpus in all formats."""
        return sum(self.cost.corpus_bytes.values()) * self.crawls[crawl].scale

    def cpu_seconds(self, crawl: str) -> Times:
        """Returns the CPU seconds of a crawl."""
        cost, scale = self.cost, self.crawls[crawl].scale
        dedup = cost.dedup_seconds * scale + self.known_bytes(crawl) / KNOWN_RATE
        return Times(cost.clean_seconds * scale, dedup, cost.index_seconds * scale)

    def disk_bytes(self, crawl: str) -> float:
        """Returns the bytes on disk at once: all of a crawl, and the corpora of earlier crawls with their indexes."""
        earlier = sum(map(self.corpus_bytes, takewhile(crawl.__ne__, self.crawls))) + self.known_bytes(crawl)
        return earlier + self.crawls[crawl].disk_bytes + self.index_bytes(crawl)

    def wall_seconds(self, clean_nodes: int = 1, dedup_nodes: int = 1) -> Times:
        """Returns the wall time of all crawls, given the number of machines of each job."""
        cores = next(iter(self.crawls.values())).cores * dedup_nodes
        used = [self.cpu_seconds(crawl) for crawl in self.crawls]
        clean = sum(plan.clean_seconds for plan in self.crawls.values()) / clean_nodes
        return Times(clean, sum(each.dedup for each in used) / cores, sum(each.indexing for each in used) / cores)


def find_crawls(options: CleanOptions, progress: Progress) -> list[str]:
    """Returns the crawls that the inputs name, the oldest first; none where an input names something else.

    Raises UsageError or C4pipeError where the crawls of a pattern can't be found out.
    """
    named = [crawl_names(name, options.selection, note_wait(progress)) for name in options.input_names]
    return sorted({crawl for crawls in named for crawl in crawls}) if all(named) else []


def plan_crawls(
    options: CleanOptions, crawls: Sequence[str], formats: Sequence[str], slices: int, cores: int, progress: Progress
) -> CrawlsPlan:
    """Measures slices of some files of all crawls, and returns the estimates; the arguments are those of `make_plan`.

    One list of files is in memory at a time. Raises OSError or C4pipeError where files can't be read or listed.
    """
    sources, plans, chosen = _sources(options, progress), dict[str, Plan](), list[InputFile]()
    for number, crawl in enumerate(crawls):
        build = plan_clean(replace(options, inputs=[crawl]), progress)
        for text in build.notes:
            progress.note(text)
        sizes = measure_sizes(build.files, sources, max(_FEWEST_SIZED, SIZED // len(crawls)))
        plans[crawl] = Plan(cores, len(build.files), sizes, bytes_per_second=options.network.bytes_per_second)
        chosen += spread(build.files, (number + 1) * slices // len(crawls) - number * slices // len(crawls))
    cost = measure_cost(replace(build, files=tuple(chosen)), formats, len(chosen), sources, progress, with_index=True)
    return CrawlsPlan({crawl: replace(plan, cost=cost) for crawl, plan in plans.items()})
