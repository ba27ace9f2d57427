"""Time and space of a build: estimates from the sizes of its files, and from the measured cost of a few slices."""

import io
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.work_file import read_header
from c4pipe.clean.work_folder import find_work_files, read_headers_of, work_path
from c4pipe.corpus.opened import open_corpus
from c4pipe.errors import C4pipeError
from c4pipe.io.paths import StoragePath, file_sizes
from c4pipe.io.streams import InputOpener
from c4pipe.io.words import format_count
from c4pipe.jobs.clean_plan import CleanPlan
from c4pipe.jobs.dedup import dedup
from c4pipe.jobs.dedup_plan import plan_dedup
from c4pipe.jobs.options import DedupOptions
from c4pipe.lists import lists
from c4pipe.lists.lists import LISTS_FOLDER
from c4pipe.runners.events import Progress, Status
from c4pipe.wet.damage import NoRecordError
from c4pipe.wet.inputs import InputFile

PART = 8 * 1000 * 1000
"""Bytes of a slice, as they are stored."""

WARM_SECONDS = 2.0
"""CPU seconds after which imports and caches no longer count: the first slice took up to 1.8 times as long."""

SIZED = 32
"""The most files whose size is requested if sizes are not known."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of files.

    Attributes:
        files: how many files there are in all.
        known: the known sizes, in stored bytes: the sizes of all files, or of some evenly spread files.
    """

    files: int
    known: tuple[int, ...]

    @property
    def total(self) -> int:
        """The bytes of all files. Unknown sizes count as the mean of the known sizes."""
        return sum(self.known) * self.files // len(self.known)

    @property
    def error(self) -> float:
        """The standard error of the total, as a share of it; 0 if all sizes are known."""
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
        work_bytes: bytes of the work files.
        corpus_bytes: bytes of the corpus, by format.
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
    work_bytes: int
    corpus_bytes: dict[str, int]


def spread(files: Sequence[InputFile], count: int) -> list[InputFile]:
    """Returns at most `count` files, evenly spread over the list."""
    count = min(count, len(files))
    return [files[(2 * number + 1) * len(files) // (2 * count)] for number in range(count)]


def measure_sizes(files: Sequence[InputFile], sources: InputOpener) -> Sizes:
    """Returns the sizes of files, in bytes as they are stored.

    If some sizes are not known, the server is asked for the sizes of at most SIZED evenly spread files.

    Raises OSError if no size can be found out.
    """
    known = [file.size for file in files if file.size is not None]
    if len(known) < len(files):
        asked = [sources.size(file.path) for file in spread(files, SIZED)]
        known = [size for size in asked if size is not None]
    if not known:
        raise OSError("the server does not send the sizes of files")
    return Sizes(len(files), tuple(known))


def measure_cost(plan: CleanPlan, formats: Sequence[str], count: int, sources: InputOpener, progress: Progress) -> Cost:
    """Cleans and deduplicates a slice of each of `count` files, in this process, and returns the cost.

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
        dedup_seconds = time.process_time() - before
        made = open_corpus(options.folder)
        return Cost(
            parts=len(slices),
            stored=sum(each.stored for each in slices),
            pages=sum(each.pages for each in slices),
            text_bytes=sum(header.counts.get("bytes.read", 0) for header in headers),
            kept=manifest["counts"]["pages.kept"],
            rows=sum(header.rows + header.spans for header in headers) + corpus.band_rows,
            spilled=sum(file_sizes(Path(folder) / "spill", "*").values()),
            clean_seconds=sum(each.clean_seconds for each in slices),
            dedup_seconds=dedup_seconds,
            work_bytes=sum(file_sizes(work, "*.parquet").values()),
            corpus_bytes={name: sum(shard.bytes for shard in made.shards(None, name)) for name in formats},
        )


class _Slice(NamedTuple):
    stored: int
    clean_seconds: float
    pages: int


def _clean_slices(
    plan: CleanPlan, files: Sequence[InputFile], work: Path, sources: InputOpener, progress: Progress
) -> list[_Slice]:
    """Cleans a slice of each file into a work folder. Raises OSError, and C4pipeError if the slices hold no page."""
    plan.listed.lists.save(work / LISTS_FOLDER)
    # few files of a crawl have examples
    cleaner = WetFileCleaner(plan.recipe, lists.load_lists(work / LISTS_FOLDER, plan.listed.lists.digests), shown_to="")
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

    The first of all slices is cleaned for WARM_SECONDS before it is measured.
    """
    size = sources.size(file.path) if file.size is None else file.size
    first = int(max(0, (size or 0) - PART) * place)
    while True:
        part = sources.read(file.path, first, PART)
        try:
            warm_until = time.process_time() + (WARM_SECONDS if is_first else 0)
            while time.process_time() < warm_until:
                cleaner.clean(io.BytesIO(part), file.name, target)
            before = time.process_time()
            cleaner.clean(io.BytesIO(part), file.name, target)
            seconds = time.process_time() - before
            pages = read_header(target).counts.get("pages.read", 0)
            if pages or not first:
                return _Slice(len(part), seconds, pages)
        except NoRecordError:
            if not first:
                raise
        first = 0


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


@dataclass(frozen=True)
class Estimate:
    """The time and space of a build, by the sizes of its files and the cost of some slices.

    Attributes:
        cores: the cores that wall time is estimated for.
        sizes: the sizes of the files.
        cost: the cost of the slices.
        bytes_per_second: the limit for reading from the network, or None for no limit.
    """

    cores: int
    sizes: Sizes
    cost: Cost
    bytes_per_second: float | None = None

    @property
    def scale(self) -> float:
        """The size of the input as a multiple of the slices."""
        return self.sizes.total / self.cost.stored

    @property
    def download_seconds(self) -> float:
        """The time to read all files within the limit of the network; 0 without one."""
        return self.sizes.total / self.bytes_per_second if self.bytes_per_second else 0.0

    @property
    def cpu_seconds(self) -> float:
        """The CPU seconds of both jobs."""
        return (self.cost.clean_seconds + self.cost.dedup_seconds) * self.scale

    @property
    def clean_seconds(self) -> float:
        """The wall time of clean, which reads files while it cleans others."""
        return max(self.cost.clean_seconds * self.scale / self.cores, self.download_seconds)

    @property
    def dedup_seconds(self) -> float:
        """The wall time of dedup."""
        return self.cost.dedup_seconds * self.scale / self.cores

    @property
    def wall_seconds(self) -> float:
        """The wall time of both jobs, one after the other."""
        return self.clean_seconds + self.dedup_seconds

    @property
    def shuffle_bytes(self) -> float:
        """The bytes of all shuffles."""
        return self.cost.spilled * self.scale

    @property
    def corpus_bytes(self) -> float:
        """The bytes of the corpus in all formats."""
        return sum(self.cost.corpus_bytes.values()) * self.scale

    @property
    def disk_bytes(self) -> float:
        """The bytes on disk at once, at most: work files, shuffles and the corpus."""
        return self.shuffle_bytes + self.cost.work_bytes * self.scale + self.corpus_bytes

    def price(self, hourly: float) -> float:
        """Returns the price of a machine for the wall time, from its price for an hour."""
        return self.wall_seconds / 3600 * hourly


@dataclass(frozen=True)
class Plan:
    """An estimate for a build, as far as it could be made.

    Attributes:
        files: the number of files, or None if their list can't be read.
        sizes: their sizes, or None if they can't be read.
        estimate: time and space, or None if they could not be measured.
        problem: the reason for that, or "".
    """

    files: int | None = None
    sizes: Sizes | None = None
    estimate: Estimate | None = None
    problem: str = ""


def make_plan(build: CleanPlan, formats: Sequence[str], slices: int, cores: int, progress: Progress) -> Plan:
    """Measures slices of some of the files, and returns the estimates. Values that can't be measured are None.

    Args:
        build: the files and the recipe of the build.
        formats: names of shard formats.
        slices: how many files to measure a slice of.
        cores: the cores that wall time is estimated for.
        progress: gets how many slices are measured, and a note for each wait for a server.
    """
    network = build.options.network
    sources = InputOpener(network._replace(tries=min(_TRIES, network.tries)), progress.note_wait)
    plan = Plan(len(build.files))
    try:
        plan = replace(plan, sizes=(sizes := measure_sizes(build.files, sources)))
        cost = measure_cost(build, formats, slices, sources, progress)
        return replace(plan, estimate=Estimate(cores, sizes, cost, network.bytes_per_second))
    except (OSError, C4pipeError) as error:
        return replace(plan, problem=str(error))
