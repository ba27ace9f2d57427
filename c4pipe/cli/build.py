"""The command `build`: WET files to a corpus."""

import time
from dataclasses import dataclass

from c4pipe.cli.options import TerminalOptions, refuse_job_file, start_workers
from c4pipe.cli.outcome import corpus_status, print_corpus
from c4pipe.cli.parser import Command
from c4pipe.jobs.options import BuildOptions


@dataclass(frozen=True, kw_only=True)
class BuildCommandOptions(TerminalOptions, BuildOptions):
    """The options of the command."""


def run(options: BuildCommandOptions) -> int:
    """Runs both jobs, prints the funnel, and returns the exit status."""
    start_workers(options.workers, options.runner, options.input_names)
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.build import build

    started = time.monotonic()
    refuse_job_file(options, "build has two: use clean, then dedup")
    progress = make_progress(options)
    manifest = build(options, progress)
    if not options.quiet:
        print_corpus(options.folder, manifest, time.monotonic() - started, progress)
    return corpus_status(options, manifest, options.max_missing)


COMMAND = Command(BuildCommandOptions, run, examples=("c4pipe build CC-MAIN-2019-18 --files 0:100 --output corpus",))
