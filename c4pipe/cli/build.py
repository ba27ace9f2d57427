"""The command `build`: WET files to a corpus."""

import argparse
import time

from c4pipe.cli import arguments
from c4pipe.cli.job_options import annotate, clean_options, keep_dropped, refuse_job_file, start_workers
from c4pipe.cli.outcome import corpus_status, print_corpus
from c4pipe.cli.parser import Command, Parser


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    arguments.add_inputs(parser)
    arguments.add_input_kind(parser)
    arguments.add_missing(parser)
    arguments.add_corpus(parser)
    arguments.add_work(parser, required=False)
    arguments.add_recipe(parser)
    arguments.add_keep_dropped(parser)
    arguments.add_annotate(parser)
    arguments.add_runner(parser)


def run(options: argparse.Namespace) -> int:
    """Runs both jobs, prints the funnel, and returns the exit status."""
    start_workers(options, options.inputs)
    from c4pipe.clean.work_folder import WORK_FOLDER
    from c4pipe.cli.progress import make_progress
    from c4pipe.corpus.writer import parse_formats
    from c4pipe.jobs.build import build, plan_build
    from c4pipe.jobs.options import BuildOptions

    started = time.monotonic()
    refuse_job_file(options, "build has two: use clean, then dedup")
    work = options.work or options.output / WORK_FOLDER
    clean = clean_options(options, work, keep_dropped(options, options.output), annotate(options))
    progress = make_progress(options)
    plan = plan_build(BuildOptions(clean, options.output, parse_formats(options.format), options.shards), progress)
    manifest = build(plan, progress)
    print_corpus(options, manifest, time.monotonic() - started)
    return corpus_status(options, manifest, options.max_missing)


COMMAND = Command(
    "build",
    "make a corpus from WET files: clean, then dedup",
    add_arguments,
    run,
    examples=("c4pipe build CC-MAIN-2019-18 --files 0:100 --output corpus",),
    takes_runner_options=True,
)
