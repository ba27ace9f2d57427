"""The command `status`: how far a run is, and which files failed, with the reasons."""

import sys
from dataclasses import dataclass
from typing import Annotated

from c4pipe.cli.console import MISSING, new_table, printer, say
from c4pipe.cli.options import readable_path
from c4pipe.cli.parser import Command
from c4pipe.io.options import Option, PathArgument


@dataclass(frozen=True, kw_only=True)
class StatusCommandOptions:
    """The options of the command."""

    folder: Annotated[PathArgument, Option("the --output or the --work folder of a run", "FOLDER", positional=True)]


def run(options: StatusCommandOptions) -> int:
    """Prints how far the run is, and returns the exit status: 1 if it has stopped, 3 if files are missing."""
    from c4pipe.jobs.status import run_status

    status = run_status(readable_path(str(options.folder)))
    console = printer(sys.stdout)
    table = new_table("", numbers=("",), show_header=False)
    for state, number in status.files.items():
        if number or state == "done":
            of = f" of {status.planned:,} ({number / status.planned:.0%})" if status.planned and state == "done" else ""
            table.add_row(f"files {state}", f"{number:,}{of}")
    console.print(table)
    for sentence in status.sentences:
        say(console, sentence)
    return 1 if status.stopped else MISSING if status.files.get("missing") else 0


COMMAND = Command(StatusCommandOptions, run, examples=("c4pipe status corpus",))
