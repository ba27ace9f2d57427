"""What a build will take: estimates from the sizes of its files and the measured cost of a few slices."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from c4pipe.dedup.near_pages import BAND_ROW
from c4pipe.errors import C4pipeError
from c4pipe.filters.duplicates import SPAN_ROW
from c4pipe.io.streams import InputOpener
from c4pipe.jobs import measure
from c4pipe.jobs.clean_plan import CleanPlan, note_wait
from c4pipe.jobs.measure import Cost, Sizes
from c4pipe.runners.events import Progress

_TRIES = 4  # few, because a person waits for the answer

ASSUMPTIONS = (
    "The files that were not measured are like those that were measured.",
    "Each core is as fast as a core of this machine, and all cores are busy until the end.",
    "A whole crawl repeats more pages and sentences than slices do: kept pages and corpus are upper limits.",
    "Files are read while others are cleaned; dedup begins when all are cleaned. The disk is fast enough.",
    "Shuffle: rows of 24 bytes, of 32 for bands of near-duplicates, and compressed pages, without the runner's own "
    "overhead; on one machine it is on disk.",
)
"""The assumptions of the estimates."""


@dataclass(frozen=True)
class Plan:
    """An estimate for a build.

    Attributes:
        cores: the cores that wall time is estimated for.
        files: the number of files, or None where their list can't be read.
        sizes: their sizes, or None where they can't be read.
        cost: the cost of some slices, or None where none could be measured.
        bytes_per_second: the limit for reading from the network, or None for no limit.
        problem: why sizes or cost are None; empty where they are not.
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
        """Returns the wall time in seconds, and whether the network sets that of clean. Needs sizes and cost."""
        seconds = self.clean_seconds
        return seconds + self.dedup_seconds, seconds == self.download_seconds

    @property
    def shuffle_bytes(self) -> float:
        """The bytes of all shuffles: rows, and pages as they are packed. Needs sizes and cost."""
        assert self.cost is not None
        rows = self.cost.rows * SPAN_ROW.itemsize + self.cost.band_rows * BAND_ROW.itemsize
        return (rows + max(self.cost.corpus_bytes.values())) * self.scale

    @property
    def disk_bytes(self) -> float:
        """The bytes on disk at once, at most: work files, shuffles and the corpus. Needs sizes and cost."""
        assert self.cost is not None
        return self.shuffle_bytes + (self.cost.work_bytes + sum(self.cost.corpus_bytes.values())) * self.scale

    def price(self, hourly: float) -> float:
        """Returns the price of a machine for the wall time, from its price for an hour. Needs sizes and cost."""
        return self.wall_seconds()[0] / 3600 * hourly


def make_plan(build: CleanPlan, formats: Sequence[str], slices: int, cores: int, progress: Progress) -> Plan:
    """Measures slices of some of the files, and returns the estimates; those that can't be measured are missing.

    Args:
        build: the files and the recipe of the build.
        formats: names of shard formats.
        slices: how many files to measure a slice of.
        cores: the cores that wall time is estimated for.
        progress: gets how many slices are measured, and a note for each wait for a server.
    """
    network = build.options.network
    sources = InputOpener(replace(network, tries=min(_TRIES, network.tries)), note_wait(progress))
    plan = Plan(cores, len(build.files), bytes_per_second=network.bytes_per_second)
    try:
        plan = replace(plan, sizes=measure.sizes(build.files, sources))
        return replace(plan, cost=measure.cost(build, formats, slices, sources, progress))
    except (OSError, C4pipeError) as error:
        return replace(plan, problem=str(error))
