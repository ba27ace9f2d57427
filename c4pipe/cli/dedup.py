"""The command `dedup`: job 2 alone."""

import time
from dataclasses import dataclass

from c4pipe.cli.options import TerminalOptions, refuse_job_file, start_workers
from c4pipe.cli.outcome import corpus_status, print_corpus
from c4pipe.cli.parser import Command
from c4pipe.jobs.options import DedupOptions


@dataclass(frozen=True, kw_only=True)
class DedupCommandOptions(TerminalOptions, DedupOptions):
    """The options of the command."""


def run(options: DedupCommandOptions) -> int:
    """Runs job 2, prints the funnel, and returns the exit status."""
    if options.index:
        refuse_job_file(options.beam, "dedup --index has two")
    start_workers(options.workers, options.runner)
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.dedup import dedup
    from c4pipe.jobs.dedup_plan import plan_dedup

    started = time.monotonic()
    progress = make_progress(options)
    manifest = dedup(plan_dedup(options), progress)
    if not options.quiet:
        print_corpus(options.folder, manifest, time.monotonic() - started, progress)
    return corpus_status(options, manifest, None, "clean it again, or delete its *.missing.json in the work folder")


COMMAND = Command(DedupCommandOptions, run, examples=("c4pipe dedup work-april work-may --output corpus",))
