"""Prints errors and progress to standard error, and results to standard output."""

import json
import sys
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from c4pipe.io.words import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# Rich is imported when something is printed: `c4pipe --help` answers at once.


class Ending(NamedTuple):
    """How a command ended.

    Attributes:
        outcome: two words at most, for programs.
        meaning: a few words, for people.
    """

    outcome: str
    meaning: str


MISSING, NOTHING_KEPT, STOPPED = 3, 4, 130

ENDINGS = {
    0: Ending("done", "done"),
    1: Ending("failed", "the run can't continue"),
    2: Ending("wrong usage", "wrong usage"),
    MISSING: Ending("files missing", "done, except for files or estimates that are missing"),
    NOTHING_KEPT: Ending("nothing kept", "done, and the corpus has no page"),
    STOPPED: Ending("stopped", "stopped (the same command continues from there)"),
}
"""The meaning of each exit status."""


def endings_sentence() -> str:
    """Returns all exit statuses in one sentence."""
    *most, last = (f"{status} {ending.meaning}" for status, ending in ENDINGS.items())
    return f"Exit status: {'; '.join(most)}; {last}."


def printer(file: IO[str] | None = None, width: int = 0) -> "Console":
    """Returns a console for a file (standard error by default): as wide as the terminal, or `width` in a file."""
    from c4pipe.cli.rich_console import SafeConsole

    file = file or sys.stderr
    return SafeConsole(file=file, width=None if file.isatty() else max(160, width))


def say(console: "Console", text: str) -> None:
    """Prints a line of text. Neither Rich nor the terminal takes any part of it for a command."""
    console.print(visible(text), highlight=False, markup=False, soft_wrap=True)


def new_table(**style: Any) -> "Table":
    """Returns an empty table without lines around it; `style` has what Rich's table takes."""
    from rich.table import Table

    return Table(**{"box": None, "pad_edge": False, **style})


def styled(text: str, style: str = "", **layout: Any) -> "Text":
    """Returns a text in a style of Rich. Nothing in it is a command to the terminal."""
    from rich.text import Text

    return Text(visible(text), style, **layout)


def note(text: str, as_json: bool = False) -> None:
    """Prints a sentence about the run to standard error."""
    print(json.dumps({"note": text}) if as_json else f"c4pipe: {visible(text)}", file=sys.stderr)


def print_end(status: int, error: str, as_json: bool) -> None:
    """Prints how a command ended: the error, if there is one, or a line of JSON."""
    if as_json:
        print(
            json.dumps({"outcome": ENDINGS[status].outcome, "exit_status": status, "error": error or None}),
            file=sys.stderr,
        )
    elif error:
        note(error)
