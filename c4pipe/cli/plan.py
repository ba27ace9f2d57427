"""The command `plan`: what a build will take."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from c4pipe.cli.console import MISSING, new_table, note, printer, say
from c4pipe.cli.parser import Command
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.words import format_core_time, format_cost, format_count, format_duration, format_number, format_size
from c4pipe.jobs.options import PlanOptions

if TYPE_CHECKING:
    from rich.table import Table

    from c4pipe.jobs.plan import Cost, CrawlsPlan, Plan, Sizes
    from c4pipe.runners.events import Progress


def run(options: PlanOptions) -> int:
    """Measures slices of some files, prints the estimates, and returns the exit status: 3 where one is missing."""
    for name, value in (("--cores", options.cores), ("--measure", options.measure), ("--nodes", options.nodes)):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value}: give 1 or more")
    if options.price is not None and not 0 <= options.price < float("inf"):
        raise UsageError(f"--price {options.price}: give 0 or more")

    from c4pipe.cli.progress import BAR_SECONDS, ProgressBar
    from c4pipe.jobs.clean import plan_clean
    from c4pipe.jobs.plan import ASSUMPTIONS, Plan, find_crawls, make_plan
    from c4pipe.runners.events import Progress
    from c4pipe.runners.machine_limits import allowed_cores
    from c4pipe.wet.extraction import choose_extraction

    choose_extraction(options.input_kind, options.extract)
    formats = options.formats
    cores = options.cores or allowed_cores().most
    on_terminal = printer().is_terminal
    progress = Progress(ProgressBar(printer()) if on_terminal else None, note, BAR_SECONDS)
    try:
        crawls = find_crawls(options.clean, progress)
        if len(crawls) > 1:
            return _run_crawls(options, crawls, cores, progress)
        clean = plan_clean(options.clean, progress)
    except UsageError:
        raise
    except (OSError, C4pipeError) as error:  # a list can't be downloaded, or a file of several crawls can't be read
        plan = Plan(cores, problem=str(error))
    else:
        for text in clean.notes:
            note(text)
        say(printer(), f"measuring slices of {format_count(min(options.measure, len(clean.files)), 'file')} ...")
        plan = make_plan(clean, formats, options.measure, cores, progress)
    console = printer(sys.stdout)
    console.print(plan_table(plan, options.price))
    console.print()
    if plan.problem:
        note(f"not measured: {plan.problem}")
        return MISSING
    for line in ASSUMPTIONS:
        say(console, f"- {line}")
    return 0


def _run_crawls(options: PlanOptions, crawls: Sequence[str], cores: int, progress: "Progress") -> int:
    from c4pipe.jobs.plan import ASSUMPTIONS, CRAWLS_ASSUMPTIONS, plan_crawls

    say(printer(), f"measuring slices of {format_count(options.measure, 'file')} of {len(crawls):,} crawls ...")
    plan = plan_crawls(options.clean, crawls, options.formats, options.measure, cores, progress)
    console = printer(sys.stdout)
    for table in (crawls_table(plan), times_table(plan, options.nodes)):
        console.print(table)
        console.print()
    if options.price is not None:
        hours = plan.wall_seconds().total / 3600
        say(
            console,
            f"price: {hours * options.price:,.2f}, for {hours:,.1f} hours of a machine; more machines share them",
        )
    for line in (*keeping(plan), *CRAWLS_ASSUMPTIONS, *ASSUMPTIONS):
        say(console, f"- {line}")
    return 0


def crawls_table(plan: "CrawlsPlan") -> "Table":
    """Returns what each crawl of a plan takes, as a table for the terminal; the last row is of all."""
    table = new_table()
    names = ("", "read", "pages,\nmillions", "work\nfiles", "corpus", "index", "disk at\nonce", "CPU-\nhours")
    for name in names:
        table.add_column(name, justify="right" if name else "left", vertical="bottom", no_wrap=True)
    rows = {crawl: _crawl_row(plan, crawl) for crawl in plan.crawls}
    *others, disks, times = zip(*rows.values(), strict=True)
    rows["all"] = (*map(sum, others), max(disks), sum(times))
    for name, (read, pages, *sizes, seconds) in rows.items():
        if name == "all":
            table.add_section()
        table.add_row(name, format_size(read), _short(pages / 1e6), *map(format_size, sizes), _short(seconds / 3600))
    return table


def _crawl_row(plan: "CrawlsPlan", crawl: str) -> tuple[float, ...]:
    """Returns bytes read, pages, bytes of work files, corpus, index and disk, and CPU seconds of a crawl."""
    each = plan.crawls[crawl]
    assert each.sizes is not None
    pages, work = plan.cost.pages * each.scale, plan.cost.work_bytes * each.scale
    sizes = plan.corpus_bytes(crawl), plan.index_bytes(crawl), plan.disk_bytes(crawl)
    return each.sizes.total, pages, work, *sizes, plan.cpu_seconds(crawl).total


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def times_table(plan: "CrawlsPlan", nodes: int) -> "Table":
    """Returns the wall time of all crawls on one machine and on several, as a table for the terminal."""
    table = new_table()
    for name in ("", "clean", "dedup", "index", "wall time"):
        table.add_column(name, justify="right" if name else "left")
    cores = format_count(next(iter(plan.crawls.values())).cores, "core")
    for name, times in (
        (f"one machine of {cores}", plan.wall_seconds()),
        (f"Slurm, {format_count(nodes, 'machine')}", plan.wall_seconds(nodes)),
        (f"Ray, {format_count(nodes, 'machine')}", plan.wall_seconds(nodes, nodes)),
    ):
        table.add_row(name, *map(format_duration, (*times, times.total)))
    return table


def keeping(plan: "CrawlsPlan") -> list[str]:
    """Returns sentences: how the crawls are built, what has to be kept, and what can be deleted when."""
    largest = max(plan.crawls, key=lambda crawl: plan.crawls[crawl].scale)
    work = format_size(plan.cost.work_bytes * plan.crawls[largest].scale)
    hours = format_core_time(plan.cpu_seconds(largest).clean)
    indexes = format_size(sum(map(plan.index_bytes, plan.crawls)))
    last = list(plan.crawls)[-1]
    return [
        "Build the crawls one after the other: c4pipe build CRAWL --output CORPUS --index, with --known EARLIER for "
        f"each earlier corpus. dedup of {last} reads {format_size(plan.known_bytes(last))} of indexes. "
        "c4pipe clean can clean later crawls meanwhile.",
        f"Keep each corpus and its index ({indexes} for all). Later crawls read only the manifest and the index: the "
        "shards can be moved elsewhere.",
        f"Delete the work files of a crawl (up to {work}) when its corpus and index are complete. To dedup the crawl "
        f"again without them, it has to be cleaned again: {hours}.",
        "dedup deletes its shuffle files itself. With Slurm, dedup and the index are made on one machine.",
    ]


def plan_table(plan: "Plan", hourly: float | None = None) -> "Table":
    """Returns a plan as a table for the terminal: each estimate and its source.

    Args:
        plan: the estimates.
        hourly: the price of the machine for an hour, or None.
    """
    table = new_table()
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
    if hourly is not None:
        table.add_row("price", f"{plan.price(hourly):,.2f}", f"{hourly:,.2f} an hour, in the currency of --price")
    table.add_section()
    _bytes(table, plan, plan.cost)
    return table


def _inputs(table: "Table", plan: "Plan") -> None:
    if plan.files is None:
        table.add_row("files", "?", "their list can't be read")
    else:
        table.add_row("files", f"{plan.files:,}", "")
    if plan.sizes is None:
        table.add_row("bytes to read", "?", "not measured")
        return
    known = len(plan.sizes.known)
    source = "their sizes" if known == plan.sizes.files else f"the sizes of {known} of them, ± {plan.sizes.error:.1%}"
    table.add_row("bytes to read", format_size(plan.sizes.total), source)


def _pages(table: "Table", plan: "Plan", cost: "Cost") -> None:
    slices = f"slices of {format_count(cost.parts, 'file')} ({format_size(cost.stored)})"
    measured = f"{cost.pages:,} pages measured, in {slices}"
    table.add_row("pages to read", format_number(cost.pages * plan.scale), measured)
    share = cost.kept / cost.pages
    table.add_row("pages kept, at most", format_number(cost.kept * plan.scale), f"{share:.1%} of those measured")


def _times(table: "Table", plan: "Plan", sizes: "Sizes", cost: "Cost") -> None:
    for job, seconds in (("clean", cost.clean_seconds), ("dedup", cost.dedup_seconds)):
        source = f"{1000 * seconds / cost.pages:.2f} ms a page"
        table.add_row(f"{job}, CPU", format_core_time(seconds * plan.scale), source)
    if cost.text_bytes:
        table.add_row(
            "both, CPU",
            format_core_time((cost.clean_seconds + cost.dedup_seconds) * plan.scale),
            f"{format_cost(cost.clean_seconds + cost.dedup_seconds, cost.text_bytes)} of text",
        )
    cores = format_count(plan.cores, "core")
    wall, network = plan.wall_seconds()
    if plan.bytes_per_second:
        rate = f"--bandwidth: {format_size(plan.bytes_per_second)} a second"
        table.add_row("download", format_duration(plan.download_seconds), rate)
    read = sizes.total / plan.clean_seconds if plan.clean_seconds else 0.0
    source = "the limit is --bandwidth" if network else f"reads {format_size(read)} a second"
    table.add_row(f"clean, {cores}", format_duration(plan.clean_seconds), source)
    table.add_row(f"dedup, {cores}", format_duration(plan.dedup_seconds), "after all files are cleaned")
    table.add_row(f"wall time, {cores}", format_duration(wall), "")
    if cost.fetched:
        table.add_row("", "", f"one connection gave {format_size(cost.stored / cost.fetch_seconds)} a second")


def _bytes(table: "Table", plan: "Plan", cost: "Cost") -> None:
    source = f"{format_number(cost.rows * plan.scale)} rows, what follows from them, and pages"
    table.add_row("shuffle", format_size(plan.shuffle_bytes), source)
    table.add_row("work files, disk", format_size(cost.work_bytes * plan.scale), "")
    for name, amount in cost.corpus_bytes.items():
        table.add_row(f"corpus, {name}, disk", format_size(amount * plan.scale), "at most")
    table.add_row("disk at once", format_size(plan.disk_bytes), "at most: work files, shuffle and corpus")


COMMAND = Command(
    PlanOptions,
    run,
    examples=("c4pipe plan CC-MAIN-2019-18 --cores 64", "c4pipe plan 'CC-MAIN-2025-*' --cores 64 --price 3.28"),
)
