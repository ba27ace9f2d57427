"""The command `add`: more pages for a finished corpus."""

import time
from dataclasses import dataclass

from c4pipe.cli.options import TerminalOptions, refuse_job_file, start_workers
from c4pipe.cli.outcome import corpus_status, print_outcome
from c4pipe.cli.parser import Command
from c4pipe.io.words import format_count
from c4pipe.jobs.options import AddOptions


@dataclass(frozen=True, kw_only=True)
class AddCommandOptions(TerminalOptions, AddOptions):
    """The options of the command."""


def run(options: AddCommandOptions) -> int:
    """Adds the pages, prints the funnel of the new part, and returns the exit status."""
    refuse_job_file(options.beam, "add has two")
    start_workers(options.workers, options.runner)
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.add import add

    started = time.monotonic()
    progress = make_progress(options)
    part, whole = add(options, progress)
    if not options.quiet:
        pages = format_count(whole["counts"].get("pages.kept", 0), "page")
        parts = format_count(len(whole.get("parts", [whole])), "part")
        outcome = f"corpus: {options.folder} has {pages} in {parts} ({time.monotonic() - started:,.1f} s)"
        print_outcome(options.folder, part, outcome, progress)
    return corpus_status(options, part, None, "clean it again into another work folder, and add that one")


COMMAND = Command(AddCommandOptions, run, examples=("c4pipe add corpus work-may",))
