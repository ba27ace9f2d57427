"""The command `status`: how far a run is, and which files failed, with the reasons."""

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.console import MISSING, NOT_AT_END, new_table, printer, say
from c4pipe.cli.options import readable_path
from c4pipe.cli.parser import Command
from c4pipe.io.options import Option, PathArgument

if TYPE_CHECKING:
    from c4pipe.jobs.status import RunStatus


@dataclass(frozen=True, kw_only=True)
class StatusCommandOptions:
    """The options of the command."""

    folder: Annotated[PathArgument, Option("the --output or the --work folder of a run", "FOLDER", positional=True)]
    json: Annotated[bool, Option("print JSON instead of a table")] = False


def run(options: StatusCommandOptions) -> int:
    """Prints how far the run is, and returns the exit status."""
    from c4pipe.jobs.status import run_status

    status = run_status(readable_path(str(options.folder)))
    if options.json:
        print(json.dumps({**vars(status), "files_total": status.files_total or None}))
    else:
        _print_table(status)
    at_end = MISSING if status.files.get("missing") else 0
    return {"stopped": 1, "complete": at_end}.get(status.state, NOT_AT_END)


def _print_table(status: "RunStatus") -> None:
    table = new_table("", numbers=("",), show_header=False)
    for state, number in status.files.items():
        if number or state == "done":
            total = status.files_total if state == "done" else 0
            of = f" of {total:,} ({number / total:.0%})" if total else ""
            table.add_row(f"files {state}", f"{number:,}{of}")
    printer(sys.stdout).print(table)
    for sentence in status.sentences:
        say(sentence)


COMMAND = Command(StatusCommandOptions, run, examples=("c4pipe status corpus", "c4pipe status corpus --json"))
