"""The command `import`: text of any origin to a corpus."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from c4pipe.cli.console import note
from c4pipe.cli.options import TerminalOptions
from c4pipe.cli.outcome import corpus_status, make_corpus
from c4pipe.cli.parser import Command
from c4pipe.io.words import format_count, short
from c4pipe.jobs.options import ImportOptions


@dataclass(frozen=True, kw_only=True)
class ImportCommandOptions(TerminalOptions, ImportOptions):
    """The options of the command."""


def run(options: ImportCommandOptions) -> int:
    """Imports the text, prints the funnel and the damage, and returns the exit status."""
    manifest = make_corpus(options, options)
    note_damage(options, manifest)
    return corpus_status(options, manifest, options.max_missing)


def note_damage(options: ImportCommandOptions, manifest: Mapping[str, Any]) -> None:
    """Prints the first three damaged places, each with its file and row, and the number of places of each kind."""
    from c4pipe.clean.quarantine import read_quarantine
    from c4pipe.wet.damage import DAMAGE

    counts = {kind: number for kind in DAMAGE if (number := manifest["counts"].get(f"damage.{kind}", 0))}
    if not counts:
        return
    for each in read_quarantine(options.work_folder, 3):
        row = f", row {each['row']:,}" if each.get("row") else ""
        damage = DAMAGE.get(each["kind"], each["kind"])
        note(f"damaged: {short(each['file'], 200)}{row}: {damage}", options.json_progress)
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
