"""The command `clean`: job 1 alone."""

import time
from dataclasses import dataclass

from c4pipe.cli.console import say
from c4pipe.cli.options import TerminalOptions, start_workers
from c4pipe.cli.outcome import print_funnel, report_missing, report_nothing_kept
from c4pipe.cli.parser import Command
from c4pipe.jobs.options import CleanOptions


@dataclass(frozen=True, kw_only=True)
class CleanCommandOptions(TerminalOptions, CleanOptions):
    """The options of the command."""


def run(options: CleanCommandOptions) -> int:
    """Runs job 1, prints its funnel, and returns the exit status."""
    start_workers(options.workers, options.runner, options.input_names)
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.clean import clean
    from c4pipe.jobs.clean_plan import plan_clean

    started = time.monotonic()
    progress = make_progress(options)
    plan = plan_clean(options, progress)
    counts = clean(plan, progress)
    if not options.quiet:
        print_funnel(plan.recipe, counts)
        say(f"work files: {options.folder} ({time.monotonic() - started:,.1f} s)")
    report_nothing_kept(options, plan.recipe, counts)  # no error: other work folders of the corpus may have pages
    return report_missing(options, plan.missing(), options.max_missing)


COMMAND = Command(CleanCommandOptions, run, examples=("c4pipe clean CC-MAIN-2019-18 --files 0:100 --work work",))
