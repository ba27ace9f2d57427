"""The command `dedup`: job 2 alone."""

import argparse
import time

from c4pipe.cli import arguments
from c4pipe.cli.job_options import dedup_options, start_workers
from c4pipe.cli.outcome import corpus_status, print_corpus
from c4pipe.cli.parser import Command, Parser


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "work", nargs="+", type=arguments.path_or_url, metavar="WORK", help="work folders that clean has written"
    )
    arguments.add_corpus(parser)
    arguments.add_keep_dropped(parser)
    arguments.add_runner(parser)


def run(options: argparse.Namespace) -> int:
    """Runs job 2, prints the funnel, and returns the exit status."""
    start_workers(options)
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.dedup import dedup, plan_dedup

    started = time.monotonic()
    manifest = dedup(plan_dedup(dedup_options(options, options.work)), make_progress(options))
    print_corpus(options, manifest, time.monotonic() - started)
    return corpus_status(options, manifest, None)


COMMAND = Command(
    "dedup",
    "job 2: make a corpus without duplicates from work folders",
    add_arguments,
    run,
    examples=("c4pipe dedup work-april work-may --output corpus",),
    takes_runner_options=True,
)
