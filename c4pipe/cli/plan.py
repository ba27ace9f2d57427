"""The command `plan`: what a build will take."""

import argparse
import os
import sys
from pathlib import Path

from c4pipe.cli import arguments
from c4pipe.cli.console import note, printer, say
from c4pipe.cli.exit_status import MISSING
from c4pipe.cli.job_options import clean_options
from c4pipe.cli.parser import Command, Parser, whole_number
from c4pipe.display.units import format_count
from c4pipe.errors import C4pipeError, UsageError


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    arguments.add_inputs(parser)
    arguments.add_input_kind(parser)
    arguments.add_format(parser)
    arguments.add_recipe(parser)
    parser.set_defaults(workers=1, max_missing=None, quiet=True, json_progress=False)
    parser.add_argument(
        "--cores", type=whole_number, metavar="N", help="number of cores to plan for (default: those of this machine)"
    )
    parser.add_argument(
        "--price", type=float, metavar="AMOUNT", help="price of that machine for an hour: what the build will cost"
    )
    parser.add_argument(
        "--measure",
        type=whole_number,
        default=8,
        metavar="N",
        help="number of files to measure a slice of (default: 8)",
    )


def run(options: argparse.Namespace) -> int:
    """Measures slices of some files, prints the estimates, and returns the exit status: 3 where one is missing."""
    for name, value in (("--cores", options.cores), ("--measure", options.measure)):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value}: give 1 or more")
    if options.price is not None and not 0 <= options.price < float("inf"):
        raise UsageError(f"--price {options.price}: give 0 or more")

    from c4pipe.cli.plan_table import plan_table
    from c4pipe.cli.progress import BAR_SECONDS, ProgressBar
    from c4pipe.corpus.writer import parse_formats
    from c4pipe.jobs.clean_plan import plan_clean
    from c4pipe.jobs.options import CRAWL_KINDS, check_input_kind
    from c4pipe.jobs.plan import ASSUMPTIONS, Plan, make_plan
    from c4pipe.runners.progress import Progress

    check_input_kind(options.input_kind, CRAWL_KINDS)
    formats = parse_formats(options.format)
    cores = options.cores or os.cpu_count() or 1
    on_terminal = printer().is_terminal
    progress = Progress(ProgressBar(printer()) if on_terminal else None, note, BAR_SECONDS)
    try:
        clean = plan_clean(clean_options(options, Path()), progress)
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


COMMAND = Command(
    "plan",
    "estimate time and disk space of a build from slices of a few files",
    add_arguments,
    run,
    examples=("c4pipe plan CC-MAIN-2019-18 --cores 64",),
)
