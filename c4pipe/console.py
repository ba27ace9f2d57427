"""What is printed, and where: errors and progress to standard error, results to standard output."""

import sys
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def printer(file: IO[str] | None = None, width: int = 0) -> "Console":
    """Returns what prints to a file (standard error by default), as wide as the terminal or, in a file, as needed."""
    from rich.console import Console  # here: `c4pipe --help` answers at once

    file = file or sys.stderr
    return Console(file=file, width=None if file.isatty() else max(160, width))


def say(to: "Console", text: str) -> None:
    """Prints a line as it stands."""
    to.print(text, highlight=False, markup=False, soft_wrap=True)


def note(text: str) -> None:
    """Prints a word about the run, as errors are printed."""
    print(f"c4pipe: {text}", file=sys.stderr)
