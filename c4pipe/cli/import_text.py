"""The command `import`: text of any origin to a corpus."""

import argparse
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from c4pipe.cli import arguments
from c4pipe.cli.console import note
from c4pipe.cli.job_options import keep_dropped, refuse_job_file, start_workers, text_options
from c4pipe.cli.outcome import corpus_status, print_corpus
from c4pipe.cli.parser import Command, Parser
from c4pipe.io.words import format_count, short

if TYPE_CHECKING:
    from c4pipe.io.paths import StoragePath


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    arguments.add_text_inputs(parser)
    arguments.add_missing(parser)
    arguments.add_corpus(parser)
    arguments.add_work(parser, required=False)
    arguments.add_recipe(parser, default="as-is")
    arguments.add_keep_dropped(parser)
    arguments.add_runner(parser)


def run(options: argparse.Namespace) -> int:
    """Imports the text, prints the funnel and what could not be read, and returns the exit status."""
    start_workers(options, options.inputs)
    from c4pipe.clean.work_folder import WORK_FOLDER
    from c4pipe.cli.progress import make_progress
    from c4pipe.corpus.writer import parse_formats
    from c4pipe.jobs.build import build, plan_build
    from c4pipe.jobs.options import BuildOptions

    started = time.monotonic()
    refuse_job_file(options, "import has two: leave it out")
    work = options.work or options.output / WORK_FOLDER
    clean = text_options(options, work, keep_dropped(options, options.output))
    progress = make_progress(options)
    plan = plan_build(BuildOptions(clean, options.output, parse_formats(options.format), options.shards), progress)
    manifest = build(plan, progress)
    print_corpus(options, manifest, time.monotonic() - started)
    note_damage(options, manifest, work)
    return corpus_status(options, manifest, options.max_missing)


_SHOWN = 3


def note_damage(options: argparse.Namespace, manifest: Mapping[str, Any], work: "StoragePath") -> None:
    """Prints the first damage in the files of a corpus, each with its file and row, and how much there is of each kind.

    Args:
        options: of the command.
        manifest: of the corpus.
        work: the work folder, which lists the damage.
    """
    from c4pipe.wet.damage import DAMAGE, read_quarantine

    counts = {kind: number for kind in DAMAGE if (number := manifest["counts"].get(f"damage.{kind}", 0))}
    if not counts:
        return
    for each in read_quarantine(work, _SHOWN):
        row = f", row {each['row']:,}" if each.get("row") else ""
        what = DAMAGE.get(each["kind"], each["kind"])
        note(f"damaged: {short(each['file'], 200)}{row}: {what}", options.json_progress)
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts.items())
    places = format_count(sum(counts.values()), "place")
    note(
        f"{places} of the files could not be read as they are ({kinds}): report.html counts them, and the files "
        f"{work}/*.quarantine.jsonl list them",
        options.json_progress,
    )


COMMAND = Command(
    "import",
    "make a corpus from other text: Parquet, JSON Lines, plain text",
    add_arguments,
    run,
    examples=(
        "c4pipe import wikipedia/*.parquet --output corpus",
        "c4pipe import books/ --output corpus",
        "c4pipe import reviews.jsonl.zst --text-column body --url-column id --output corpus",
    ),
    takes_runner_options=True,
)
