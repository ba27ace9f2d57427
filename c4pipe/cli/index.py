"""The command `index`: the index of a finished corpus, for `--known` of later corpora."""

from dataclasses import dataclass

from c4pipe.cli.console import note
from c4pipe.cli.options import CorpusArgument, TerminalOptions, start_workers
from c4pipe.cli.parser import Command
from c4pipe.io.words import format_count
from c4pipe.runners.runner_options import RunnerOptions


@dataclass(frozen=True, kw_only=True)
class IndexOptions(TerminalOptions, RunnerOptions, CorpusArgument):
    """The options of the command."""


def run(options: IndexOptions) -> None:
    """Writes the index, and prints its numbers."""
    start_workers(options.workers, options.runner)
    from c4pipe.cli.progress import make_progress
    from c4pipe.dedup.known import HASH
    from c4pipe.jobs.index import write_index

    index = write_index(options.corpus, options, make_progress(options))
    if not options.quiet:
        counts = {kind: sum(each["rows"] for each in buckets) for kind, buckets in index["buckets"].items()}
        found = ", ".join(f"{number:,} {kind}" for kind, number in counts.items())
        size = sum(counts.values()) * HASH.itemsize
        note(f"the index of {options.corpus} has {found}: {format_count(size, 'byte')}")


COMMAND = Command(IndexOptions, run, examples=("c4pipe index corpus",))
