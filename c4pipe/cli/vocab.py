"""The command `vocab`: text to a vocabulary, and its figures."""

import time
from dataclasses import dataclass

from c4pipe.cli.console import say
from c4pipe.cli.options import TerminalOptions, refuse_job_file
from c4pipe.cli.parser import Command
from c4pipe.io.words import format_count
from c4pipe.vocab.request import VocabOptions


@dataclass(frozen=True, kw_only=True)
class VocabCommandOptions(TerminalOptions, VocabOptions):
    """The options of the command."""


def run(options: VocabCommandOptions) -> None:
    """Trains a vocabulary, measures it, and prints both."""
    refuse_job_file(options.beam, "vocab has two")
    from c4pipe.cli.progress import make_progress
    from c4pipe.cli.vocab_report import measure
    from c4pipe.vocab import job
    from c4pipe.vocab.model import model_file

    started = time.monotonic()
    progress = make_progress(options)
    plan = job.plan_vocab(options, progress)
    vocabulary = job.vocab(plan, progress)
    measure(options, plan.sources, [model_file(options.folder)], options.folder)
    if not options.quiet:
        size = format_count(sum(each["bytes"] for each in vocabulary["training_data"]), "byte")
        text = f"{options.size:,} pieces from {size} of text"
        say(f"vocabulary: {options.folder} ({text}, {time.monotonic() - started:,.1f} s)")


COMMAND = Command(VocabCommandOptions, run, examples=("c4pipe vocab corpus/en:10 corpus/de:1 --output vocabulary",))
