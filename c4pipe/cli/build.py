"""The command `build`: WET files to a corpus. `import` runs the same jobs."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from c4pipe.cli.options import TerminalOptions, start_workers
from c4pipe.cli.outcome import corpus_status, print_corpus
from c4pipe.cli.parser import Command
from c4pipe.jobs.options import BuildOptions

if TYPE_CHECKING:
    from c4pipe.cli.import_text import ImportCommandOptions
    from c4pipe.corpus.manifest import Manifest


@dataclass(frozen=True, kw_only=True)
class BuildCommandOptions(TerminalOptions, BuildOptions):
    """The options of the command."""


def run(options: BuildCommandOptions) -> int:
    """Runs both jobs, prints the funnel, and returns the exit status."""
    return corpus_status(options, make_corpus(options), options.max_missing)


def make_corpus(options: "BuildCommandOptions | ImportCommandOptions") -> "Manifest":
    """Runs both jobs, prints the funnel, and returns the manifest of the corpus."""
    start_workers(options.workers, options.runner, options.input_names)
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.build import build

    started = time.monotonic()
    progress = make_progress(options)
    manifest = build(options, progress)
    if not options.quiet:
        print_corpus(options.folder, manifest, time.monotonic() - started, progress)
    return manifest


COMMAND = Command(BuildCommandOptions, run, examples=("c4pipe build CC-MAIN-2019-18 --files 0:100 --output corpus",))
