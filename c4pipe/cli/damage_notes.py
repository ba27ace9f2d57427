"""What `import` prints about text that could not be read as it is."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from c4pipe.cli.console import note
from c4pipe.display.excerpts import short
from c4pipe.display.units import format_count

if TYPE_CHECKING:
    from c4pipe.io.paths import StoragePath

_SHOWN = 3


def note_damage(options: argparse.Namespace, manifest: Mapping[str, Any], work: "StoragePath") -> None:
    """Prints the first damage in the files of a corpus, each with its file and row, and how much there is of each kind.

    Args:
        options: of the command.
        manifest: of the corpus.
        work: the work folder, which lists the damage.
    """
    from c4pipe.wet.damage import DAMAGE
    from c4pipe.wet.quarantine import read_quarantine

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
