"""The command `clean`: job 1 alone."""

import argparse
import sys
import time

from c4pipe.cli import arguments
from c4pipe.cli.console import printer, say
from c4pipe.cli.job_options import annotate, clean_options, keep_dropped, start_workers
from c4pipe.cli.outcome import report_missing, report_nothing_kept
from c4pipe.cli.parser import Command, Parser


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    arguments.add_inputs(parser)
    arguments.add_input_kind(parser)
    arguments.add_missing(parser)
    arguments.add_work(parser, required=True)
    arguments.add_recipe(parser)
    arguments.add_keep_dropped(parser)
    arguments.add_annotate(parser)
    arguments.add_runner(parser)


def run(options: argparse.Namespace) -> int:
    """Runs job 1, prints its funnel, and returns the exit status."""
    start_workers(options, options.inputs)
    from c4pipe.clean import missing
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.clean import clean, plan_clean

    started = time.monotonic()
    progress = make_progress(options)
    dropped = keep_dropped(options, options.work)
    plan = plan_clean(clean_options(options, options.work, dropped, annotate(options)), progress)
    counts = clean(plan, progress)
    if not options.quiet:
        from c4pipe.cli.outcome import funnel_table

        console = printer(sys.stdout)
        console.print(funnel_table(plan.recipe, counts))
        say(console, f"work files: {options.work} ({time.monotonic() - started:,.1f} s)")
    report_nothing_kept(options, plan.recipe, counts)  # no error: other work folders of the corpus may have pages
    return report_missing(options, missing.missing_files([options.work]), options.max_missing)


COMMAND = Command(
    "clean",
    "job 1: write a work file with the pages to keep, for each WET file",
    add_arguments,
    run,
    examples=("c4pipe clean CC-MAIN-2019-18 --files 0:100 --work work",),
    takes_runner_options=True,
)
