"""The command `build`: WET files to a corpus."""

from dataclasses import dataclass

from c4pipe.cli.options import TerminalOptions
from c4pipe.cli.outcome import corpus_status, make_corpus
from c4pipe.cli.parser import Command
from c4pipe.jobs.options import BuildOptions


@dataclass(frozen=True, kw_only=True)
class BuildCommandOptions(TerminalOptions, BuildOptions):
    """The options of the command."""


def run(options: BuildCommandOptions) -> int:
    """Runs both jobs, prints the funnel, and returns the exit status."""
    manifest = make_corpus(options, options)
    return corpus_status(options, manifest, options.max_missing)


COMMAND = Command(BuildCommandOptions, run, examples=("c4pipe build CC-MAIN-2019-18 --files 0:100 --output corpus",))
