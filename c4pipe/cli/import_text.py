"""The command `import`: text of any origin to a corpus."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from c4pipe.cli.console import note
from c4pipe.cli.options import TerminalOptions, refuse_job_file, start_workers
from c4pipe.cli.outcome import corpus_status, print_corpus
from c4pipe.cli.parser import Command
from c4pipe.io.words import format_count, short
from c4pipe.jobs.options import ImportOptions


@dataclass(frozen=True, kw_only=True)
class ImportCommandOptions(TerminalOptions, ImportOptions):
    """The options of the command."""


def run(options: ImportCommandOptions) -> int:
    """Imports the text, prints the funnel and what could not be read, and returns the exit status."""
    start_workers(options.workers, options.runner, options.input_names)
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.build import build

    started = time.monotonic()
    refuse_job_file(options, "import has two: leave it out")
    progress = make_progress(options)
    manifest = build(options, progress)
    if not options.quiet:
        print_corpus(options.folder, manifest, time.monotonic() - started, progress)
    note_damage(options, manifest)
    return corpus_status(options, manifest, options.max_missing)


_SHOWN = 3


def note_damage(options: ImportCommandOptions, manifest: Mapping[str, Any]) -> None:
    """Prints the first damage in the files of a corpus, each with its file and row, and how much there is of each kind.

    Args:
        options: of the command; the work folder lists the damage.
        manifest: of the corpus.
    """
    from c4pipe.clean.quarantine import read_quarantine
    from c4pipe.wet.damage import DAMAGE

    counts = {kind: number for kind in DAMAGE if (number := manifest["counts"].get(f"damage.{kind}", 0))}
    if not counts:
        return
    for each in read_quarantine(options.work_folder, _SHOWN):
        row = f", row {each['row']:,}" if each.get("row") else ""
        what = DAMAGE.get(each["kind"], each["kind"])
        note(f"damaged: {short(each['file'], 200)}{row}: {what}", options.json_progress)
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts.items())
    places = format_count(sum(counts.values()), "place")
    note(
        f"{places} of the files could not be read as they are ({kinds}): report.html counts them, and the files "
        f"{options.work_folder}/*.quarantine.jsonl list them",
        options.json_progress,
    )


COMMAND = Command(
    ImportCommandOptions,
    run,
    examples=(
        "c4pipe import wikipedia/*.parquet --output corpus",
        "c4pipe import books/ --output corpus",
        "c4pipe import reviews.jsonl.zst --text-column body --url-column id --output corpus",
    ),
)
