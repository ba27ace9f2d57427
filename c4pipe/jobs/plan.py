"""What a build will cost: estimates from sizes and measured costs, and their table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.table import Table

from c4pipe.errors import C4pipeError
from c4pipe.filters.duplicates import SPAN_ROW
from c4pipe.io.streams import InputOpener
from c4pipe.jobs import measure
from c4pipe.jobs.clean_plan import CleanPlan
from c4pipe.jobs.measure import Cost, Sizes

_TRIES = 4  # for someone who waits

ASSUMPTIONS = (
    "Files that were not measured are like those that were.",
    "A core does what a core of this machine does; all cores are busy to the end.",
    "In a whole crawl more pages and sentences repeat than in slices: kept pages and corpus are at most this.",
    "Shuffle: rows of 24 bytes and compressed pages, without the engine's own overhead; on one machine, it is disk.",
)
"""What the estimates rest on."""


@dataclass(frozen=True)
class Plan:
    """An estimate for a build.

    Attributes:
        cores: the cores that wall time is estimated for.
        files: how many files, or None where their list can't be had.
        sizes: their sizes, or None where they can't be had.
        cost: the cost of some slices, or None where none could be measured.
        bytes_per_second: the most that is read from the network, or None for no limit.
        problem: why something is missing; empty where nothing is.
    """

    cores: int
    files: int | None = None
    sizes: Sizes | None = None
    cost: Cost | None = None
    bytes_per_second: float | None = None
    problem: str = ""

    @property
    def scale(self) -> float:
        """How many times as large as the slices the input is. Needs sizes and cost."""
        assert self.sizes is not None
        assert self.cost is not None
        return self.sizes.total / self.cost.stored

    def wall_seconds(self) -> tuple[float, bool]:
        """Returns the seconds that the cores take, or the network if it takes longer, and whether that is so."""
        assert self.sizes is not None
        assert self.cost is not None
        busy = (self.cost.clean_seconds + self.cost.dedup_seconds) * self.scale / self.cores
        network = self.sizes.total / self.bytes_per_second if self.bytes_per_second else 0.0
        return max(busy, network), network > busy


def make_plan(build: CleanPlan, formats: Sequence[str], slices: int, cores: int) -> Plan:
    """Measures slices of some of the files, and returns the estimates; those that can't be measured are missing.

    Args:
        build: the files and the recipe of the build.
        formats: names of shard formats.
        slices: how many files to measure a slice of.
        cores: the cores that wall time is estimated for.
    """
    network = build.options.network
    sources = InputOpener(replace(network, tries=min(_TRIES, network.tries)))
    plan = Plan(cores, len(build.files), bytes_per_second=network.bytes_per_second)
    try:
        plan = replace(plan, sizes=measure.sizes(build.files, sources))
        return replace(plan, cost=measure.cost(build, formats, slices, sources))
    except (OSError, C4pipeError) as error:
        return replace(plan, problem=str(error))


def plan_table(plan: Plan) -> Table:
    """Returns a plan as a table for the terminal: each estimate, and what it rests on."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("estimate", justify="right")
    table.add_column("from")
    _inputs(table, plan)
    if plan.sizes is None or plan.cost is None:
        for name in ("pages", "CPU", "wall time", "shuffle", "work files", "corpus"):
            table.add_row(name, "?", "not measured")
        return table
    table.add_section()
    _pages(table, plan, plan.cost)
    _times(table, plan, plan.sizes, plan.cost)
    table.add_section()
    _bytes(table, plan, plan.cost)
    return table


def _inputs(table: Table, plan: Plan) -> None:
    if plan.files is None:
        table.add_row("files", "?", "their list can't be had")
    else:
        table.add_row("files", f"{plan.files:,}", "")
    if plan.sizes is None:
        table.add_row("bytes to read", "?", "not measured")
        return
    known = len(plan.sizes.known)
    said = "their sizes" if known == plan.sizes.files else f"the sizes of {known} of them, ± {plan.sizes.error:.1%}"
    table.add_row("bytes to read", size(plan.sizes.total), said)


def _pages(table: Table, plan: Plan, cost: Cost) -> None:
    measured = f"{cost.pages:,} pages measured, in slices of {cost.parts} files ({size(cost.stored)})"
    table.add_row("pages to read", number(cost.pages * plan.scale), measured)
    share = cost.kept / cost.pages
    table.add_row("pages kept, at most", number(cost.kept * plan.scale), f"{share:.1%} of those measured")


def _times(table: Table, plan: Plan, sizes: Sizes, cost: Cost) -> None:
    for job, seconds in (("clean", cost.clean_seconds), ("dedup", cost.dedup_seconds)):
        said = f"{1000 * seconds / cost.pages:.2f} ms a page"
        table.add_row(f"{job}, CPU", core_time(seconds * plan.scale), said)
    wall, network = plan.wall_seconds()
    rate = sizes.total / wall if wall else 0.0
    said = "the limit is --bandwidth" if network else f"reads {size(rate)} a second"
    table.add_row(f"wall time, {plan.cores:,} core{'s' * (plan.cores > 1)}", duration(wall), said)
    if cost.fetched:
        table.add_row("", "", f"one connection gave {size(cost.stored / cost.fetch_seconds)} a second")


def _bytes(table: Table, plan: Plan, cost: Cost) -> None:
    rows = cost.rows * SPAN_ROW.itemsize
    largest = max(cost.corpus_bytes.values())
    said = f"{number(cost.rows * plan.scale)} rows, {size(rows * plan.scale)}; pages, {size(largest * plan.scale)}"
    table.add_row("shuffle", size((rows + largest) * plan.scale), said)
    table.add_row("work files, disk", size(cost.work_bytes * plan.scale), "")
    for name, amount in cost.corpus_bytes.items():
        table.add_row(f"corpus, {name}, disk", size(amount * plan.scale), "at most")


def number(value: float) -> str:
    """Returns a number of things with three digits: `2.63 billion`."""
    return _rounded(value, 1000, ("", " thousand", " million", " billion", " trillion"))


def size(value: float) -> str:
    """Returns bytes with three digits: `7.91 TB`."""
    return _rounded(value, 1000, (" B", " kB", " MB", " GB", " TB", " PB"))


def duration(seconds: float) -> str:
    """Returns a time: `3 d 4 h`, `5 h 12 min`, `40 s`."""
    units = {"d": 86400, "h": 3600, "min": 60, "s": 1}
    left = round(seconds)
    said: list[str] = []
    for name, length in units.items():
        amount, left = divmod(left, length)
        if amount or said:
            said.append(f"{amount} {name}")
        if len(said) == 2:
            break
    return " ".join(said) or "less than a second"


def core_time(seconds: float) -> str:
    """Returns CPU seconds: `1,950 core-hours`, or as a duration where they are few."""
    return f"{seconds / 3600:,.0f} core-hours" if seconds >= 36000 else duration(seconds)


def _rounded(value: float, step: int, units: tuple[str, ...]) -> str:
    place = 0
    while value >= step and place < len(units) - 1:
        value, place = value / step, place + 1
    digits = 0 if place == 0 or value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}{units[place]}"
