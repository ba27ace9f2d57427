"""The command `rebuild`: a corpus from its manifest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from c4pipe.cli.options import TerminalOptions, refuse_job_file
from c4pipe.cli.parser import Command
from c4pipe.io.options import Option, shared_fields
from c4pipe.io.words import format_count
from c4pipe.jobs.options import BuildOptions, DownloadOptions, KnownOptions, ListOptions
from c4pipe.runners.runner_options import RunnerOptions


@dataclass(frozen=True, kw_only=True)
class RebuildOptions(TerminalOptions, RunnerOptions, DownloadOptions, KnownOptions, ListOptions):
    """The options of the command."""

    manifest: Annotated[str, Option("manifest.json of a corpus: a path or a URL", "MANIFEST", positional=True)]
    inputs: Annotated[
        Sequence[str],
        Option("where its inputs are, as INPUT of build", "INPUT", "the crawls and URLs of the manifest", nargs="+"),
    ] = ()
    output: Annotated[str, Option("folder for the corpus: a path, or a URL with s3://, gs:// or hdfs://", "DIR")]
    any_versions: Annotated[
        bool, Option("go on although Python or a library has another version, which can change the corpus")
    ] = False


def run(options: RebuildOptions) -> None:
    """Builds the corpus again, and prints that it is the same. Raises C4pipeError if it differs."""
    refuse_job_file(options.beam, "rebuild has two")
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.rebuild import rebuild

    given = shared_fields(options, BuildOptions)
    made = rebuild(options.manifest, given, options.any_versions, make_progress(options))
    if not options.quiet:
        shards, pages = format_count(len(made["shards"]), "shard"), format_count(made["counts"]["pages.kept"], "page")
        print(f"same corpus: {shards}, {pages}, all digests equal")


COMMAND = Command(RebuildOptions, run, examples=("c4pipe rebuild corpus/manifest.json --inputs crawl/ --output again",))
