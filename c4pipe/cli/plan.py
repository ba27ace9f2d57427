"""The command `plan`: time and disk space of a build."""

import sys
from typing import TYPE_CHECKING

from c4pipe.cli.console import MISSING, new_table, note, printer, say
from c4pipe.cli.parser import Command
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.words import format_core_time, format_cost, format_count, format_duration, format_number, format_size
from c4pipe.jobs.options import PlanOptions

if TYPE_CHECKING:
    from rich.table import Table

    from c4pipe.jobs.plan import Estimate, Plan


def run(options: PlanOptions) -> int:
    """Measures slices of some files, prints the estimates, and returns the exit status: 3 if one is missing."""
    for name, value in (("--cores", options.cores), ("--measure", options.measure)):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value}: give 1 or more")
    if options.price is not None and not 0 <= options.price < float("inf"):
        raise UsageError(f"--price {options.price}: give 0 or more")

    from c4pipe.cli.progress import BAR_SECONDS, ProgressBar
    from c4pipe.jobs.clean_plan import plan_clean
    from c4pipe.jobs.plan import ASSUMPTIONS, Plan, make_plan
    from c4pipe.runners.events import Progress
    from c4pipe.runners.machine_limits import allowed_cores
    from c4pipe.wet.extraction import choose_extraction

    choose_extraction(options.input_kind, options.extract)
    formats = options.formats
    cores = options.cores or allowed_cores().most
    progress = Progress(ProgressBar(printer()) if printer().is_terminal else None, note, BAR_SECONDS)
    try:
        clean = plan_clean(options.clean, progress)
    except UsageError:
        raise
    except (OSError, C4pipeError) as error:  # a list can't be downloaded
        plan = Plan(problem=str(error))
    else:
        for text in clean.notes:
            note(text)
        say(f"measuring slices of {format_count(min(options.measure, len(clean.files)), 'file')} ...", sys.stderr)
        plan = make_plan(clean, formats, options.measure, cores, progress)
    console = printer(sys.stdout)
    console.print(plan_table(plan, options.price))
    console.print()
    if plan.problem:
        note(f"not measured: {plan.problem}")
        return MISSING
    for line in ASSUMPTIONS:
        say(f"- {line}")
    return 0


def plan_table(plan: "Plan", hourly: float | None = None) -> "Table":
    """Returns a table of estimates and their sources, for a machine of a price per hour."""
    table = new_table("", numbers=("estimate",))
    table.add_column("from")
    _add_inputs(table, plan)
    if (estimate := plan.estimate) is None:
        for name in ("pages", "CPU", "wall time", "shuffle", "work files", "corpus"):
            table.add_row(name, "?", "not measured")
        return table
    table.add_section()
    _add_pages(table, estimate)
    _add_times(table, estimate)
    if hourly is not None:
        price = f"{estimate.price(hourly):,.2f}"
        table.add_row("price", price, f"{hourly:,.2f} an hour, in the currency of --price")
    table.add_section()
    _add_bytes(table, estimate)
    return table


def _add_inputs(table: "Table", plan: "Plan") -> None:
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


def _add_pages(table: "Table", estimate: "Estimate") -> None:
    cost = estimate.cost
    slices = f"slices of {format_count(cost.parts, 'file')} ({format_size(cost.stored)})"
    measured = f"{cost.pages:,} pages measured, in {slices}"
    table.add_row("pages to read", format_number(cost.pages * estimate.scale), measured)
    share = cost.kept / cost.pages
    table.add_row("pages kept, at most", format_number(cost.kept * estimate.scale), f"{share:.1%} of those measured")


def _add_times(table: "Table", estimate: "Estimate") -> None:
    cost = estimate.cost
    for job, seconds in (("clean", cost.clean_seconds), ("dedup", cost.dedup_seconds)):
        source = f"{1000 * seconds / cost.pages:.2f} ms a page"
        table.add_row(f"{job}, CPU", format_core_time(seconds * estimate.scale), source)
    if cost.text_bytes:
        per_text = format_cost(cost.clean_seconds + cost.dedup_seconds, cost.text_bytes)
        table.add_row("both, CPU", format_core_time(estimate.cpu_seconds), f"{per_text} of text")
    cores = format_count(estimate.cores, "core")
    if estimate.bytes_per_second:
        rate = f"--bandwidth: {format_size(estimate.bytes_per_second)} a second"
        table.add_row("download", format_duration(estimate.download_seconds), rate)
    read = estimate.sizes.total / estimate.clean_seconds if estimate.clean_seconds else 0.0
    is_limited = estimate.clean_seconds == estimate.download_seconds
    source = "the limit is --bandwidth" if is_limited else f"reads {format_size(read)} a second"
    table.add_row(f"clean, {cores}", format_duration(estimate.clean_seconds), source)
    table.add_row(f"dedup, {cores}", format_duration(estimate.dedup_seconds), "after all files are cleaned")
    table.add_row(f"wall time, {cores}", format_duration(estimate.wall_seconds), "")


def _add_bytes(table: "Table", estimate: "Estimate") -> None:
    cost = estimate.cost
    source = f"{format_number(cost.rows * estimate.scale)} rows, what follows from them, and pages"
    table.add_row("shuffle", format_size(estimate.shuffle_bytes), source)
    table.add_row("work files, disk", format_size(cost.work_bytes * estimate.scale), "")
    for name, amount in cost.corpus_bytes.items():
        table.add_row(f"corpus, {name}, disk", format_size(amount * estimate.scale), "at most")
    table.add_row("disk at once", format_size(estimate.disk_bytes), "at most: work files, shuffle and corpus")


COMMAND = Command(
    PlanOptions,
    run,
    examples=("c4pipe plan CC-MAIN-2019-18 --cores 64", "c4pipe plan CC-MAIN-2025-05 --cores 64 --price 3.28"),
)
