"""The command `plan`: what a build will take."""

import sys
from typing import TYPE_CHECKING

from c4pipe.cli.console import MISSING, new_table, note, printer, say
from c4pipe.cli.parser import Command
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.words import format_core_time, format_cost, format_count, format_duration, format_number, format_size
from c4pipe.jobs.options import PlanOptions, check_input_kind

if TYPE_CHECKING:
    from rich.table import Table

    from c4pipe.jobs.plan import Cost, Plan, Sizes


def run(options: PlanOptions) -> int:
    """Measures slices of some files, prints the estimates, and returns the exit status: 3 where one is missing."""
    for name, value in (("--cores", options.cores), ("--measure", options.measure)):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value}: give 1 or more")
    if options.price is not None and not 0 <= options.price < float("inf"):
        raise UsageError(f"--price {options.price}: give 0 or more")

    from c4pipe.cli.progress import BAR_SECONDS, ProgressBar
    from c4pipe.jobs.clean import plan_clean
    from c4pipe.jobs.plan import ASSUMPTIONS, Plan, make_plan
    from c4pipe.runners.events import Progress
    from c4pipe.runners.machine_limits import allowed_cores

    check_input_kind(options.input_kind)
    formats = options.formats
    cores = options.cores or allowed_cores().most
    on_terminal = printer().is_terminal
    progress = Progress(ProgressBar(printer()) if on_terminal else None, note, BAR_SECONDS)
    try:
        clean = plan_clean(options.clean, progress)
    except UsageError:
        raise
    except C4pipeError as error:  # the list of the crawl's files can't be downloaded
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
    from c4pipe.dedup.near_pages import BAND_ROW
    from c4pipe.filters.duplicates import SPAN_ROW

    rows = cost.rows * SPAN_ROW.itemsize + cost.band_rows * BAND_ROW.itemsize
    largest = max(cost.corpus_bytes.values())
    row_count, row_size = format_number((cost.rows + cost.band_rows) * plan.scale), format_size(rows * plan.scale)
    source = f"{row_count} rows, {row_size}; pages, {format_size(largest * plan.scale)}"
    table.add_row("shuffle", format_size(plan.shuffle_bytes), source)
    table.add_row("work files, disk", format_size(cost.work_bytes * plan.scale), "")
    for name, amount in cost.corpus_bytes.items():
        table.add_row(f"corpus, {name}, disk", format_size(amount * plan.scale), "at most")
    table.add_row("disk at once", format_size(plan.disk_bytes), "at most: work files, shuffle and corpus")


COMMAND = Command(PlanOptions, run, examples=("c4pipe plan CC-MAIN-2019-18 --cores 64",))
