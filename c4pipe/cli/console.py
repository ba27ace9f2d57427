"""What is printed, and where: errors and progress to standard error, results to standard output."""

import json
import sys
from typing import IO, TYPE_CHECKING

from c4pipe.cli.exit_status import ENDINGS
from c4pipe.display.safe_text import visible

if TYPE_CHECKING:
    from rich.console import Console


def printer(file: IO[str] | None = None, width: int = 0) -> "Console":
    """Returns a console for a file (standard error by default): as wide as the terminal, or `width` in a file."""
    from c4pipe.cli.safe_console import SafeConsole  # here: `c4pipe --help` answers at once

    file = file or sys.stderr
    return SafeConsole(file=file, width=None if file.isatty() else max(160, width))


def say(console: "Console", text: str) -> None:
    """Prints a line of text. Nothing in it is a command: not to Rich, not to the terminal."""
    console.print(visible(text), highlight=False, markup=False, soft_wrap=True)


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
