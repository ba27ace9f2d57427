"""The command `takedown`: writes a corpus again, without the pages of a list."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.console import note
from c4pipe.cli.options import CorpusArgument, TerminalOptions, path_or_url
from c4pipe.cli.parser import Command
from c4pipe.errors import UsageError
from c4pipe.io.options import Option
from c4pipe.io.words import format_count
from c4pipe.runners.runner_options import RunnerOptions, WorkerOptions

if TYPE_CHECKING:
    from c4pipe.io.paths import StoragePath


def _files_option(of: str) -> Option:
    return Option(f"leave out the pages of these {of}", "FILE", repeated=True, parse=Path)


@dataclass(frozen=True, kw_only=True)
class TakedownOptions(TerminalOptions, WorkerOptions, CorpusArgument):
    """The options of the command."""

    urls: Annotated[Sequence[Path], _files_option("URLs: a file with one on each line")] = ()
    domains: Annotated[
        Sequence[Path], _files_option("hosts and their subdomains: a file with a host, or host with a path, a line")
    ] = ()
    output: Annotated[
        "StoragePath | None",
        Option("new folder for the corpus: a path, or a URL with s3://, gs:// or hdfs://", "DIR", parse=path_or_url),
    ] = None
    in_place: Annotated[bool, Option("replace the files of the corpus itself that have such pages")] = False


def run(options: TakedownOptions) -> None:
    """Writes the corpus again. Raises UsageError for a list or a folder that can't be used."""
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.takedown import takedown

    given = [(kind, paths) for kind, paths in (("urls", options.urls), ("domains", options.domains)) if paths]
    if len(given) != 1:
        raise UsageError("name the pages to leave out with --urls FILE or with --domains FILE, one of the two")
    if (options.output is None) != options.in_place:
        raise UsageError(
            "name a new folder with --output DIR, or replace files of the corpus with --in-place, one of the two"
        )
    runner = RunnerOptions(workers=options.workers)
    manifest, taken_down = takedown(options.corpus, options.output, *given[0], runner, make_progress(options))
    if not options.quiet:
        pages = format_count(manifest["counts"]["pages.kept"], "page")
        left_out = f"; {format_count(taken_down, 'page')} left out by this takedown" if taken_down else ""
        note(f"{options.output or options.corpus} has {pages}{left_out}")


COMMAND = Command(
    TakedownOptions,
    run,
    examples=(
        "c4pipe takedown corpus --domains opted-out.txt --output corpus-2",
        "c4pipe takedown corpus --urls urls.txt --in-place",
    ),
)
