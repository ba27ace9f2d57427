"""The output of a command: errors and progress on standard error, results on standard output."""

import io
import json
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TextIO

from c4pipe.errors import C4pipeError
from c4pipe.io.words import error_reason, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# Rich is imported when something is printed: `c4pipe --help` answers at once.


class Ending(NamedTuple):
    """How a command ended: two words at most, for programs, and a few words, for people."""

    outcome: str
    meaning: str


MISSING, NOTHING_KEPT, NOT_AT_END, STOPPED = 3, 4, 5, 130

EXIT_STATUSES = {
    0: Ending("done", "done"),
    1: Ending("failed", "the run can't continue"),
    2: Ending("wrong usage", "wrong usage"),
    MISSING: Ending("files missing", "done, except for files or estimates that are missing"),
    NOTHING_KEPT: Ending("nothing kept", "done, and the corpus has no page"),
    NOT_AT_END: Ending("not at its end", "the run is not at its end (c4pipe status alone)"),
    STOPPED: Ending("stopped", "stopped (the same command continues from there)"),
}
"""The meaning of each exit status."""


def endings_sentence() -> str:
    """Returns all exit statuses in one sentence."""
    *most, last = (f"{status} {ending.meaning}" for status, ending in EXIT_STATUSES.items())
    return f"Exit status: {'; '.join(most)}; {last}."


class _Output(io.FileIO):
    """Standard output or standard error. After the first error, nothing more is written to it.

    A run ends if its results can't be written, and goes on if its progress can't.
    """

    _failed = False

    def write(self, data: Any) -> int:
        """Writes bytes. Raises C4pipeError, once, for standard output; without words if its reader has ended."""
        if self._failed:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._failed = True
            if self.fileno() == _STDERR:
                return len(data)
            ended = isinstance(error, BrokenPipeError)
            raise C4pipeError("" if ended else f"standard output can't be written: {error_reason(error)}") from error


_STDOUT, _STDERR = 1, 2


def open_streams() -> None:
    """Makes the standard streams of this process usable, before anything is printed.

    A closed stream becomes /dev/null: otherwise, the next file that is opened would take its number. Characters that
    the encoding of a stream lacks are written as escapes, such as `\\u2026`.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = _text_stream(_STDOUT, sys.stdout), _text_stream(_STDERR, sys.stderr)


def _text_stream(number: int, before: TextIO | None) -> TextIO:
    """Returns a stream with the encoding of Python's own stream."""
    os.set_blocking(number, True)  # otherwise a full pipe is an error
    raw = _Output(number, "wb", closefd=False)
    by_line = number == _STDERR or raw.isatty() or getattr(before, "write_through", False)  # which python -u sets
    encoding = before.encoding if before else "utf-8"
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=by_line)


def printer(file: IO[str] | None = None, width: int = 160) -> "Console":
    """Returns a console for a file (default: standard error), as wide as its terminal, or `width` wide."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class SafeConsole(Console):
        """Rich's own styles and cursor movements reach the terminal, codes in a text do not."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            """Yields the pieces of what is printed, each text of them safe to show."""
            for segment in super().render(renderable, options):
                text, style, control = segment
                yield segment if control or text.isprintable() else Segment(visible(text, keep="\n"), style)

    file = file or sys.stderr
    return SafeConsole(file=file, width=None if file.isatty() else width)


def say(text: str, file: IO[str] | None = None) -> None:
    """Prints a line of text to a file (default: standard output). The terminal takes no part of it for a command."""
    print(_wrapped(visible(text), file or sys.stdout), file=file, flush=True)


def _wrapped(text: str, file: IO[str]) -> str:
    """Wraps a text for a terminal, between words: a path is never cut."""
    if not file.isatty():
        return text
    width = os.get_terminal_size(file.fileno()).columns or 80
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def new_table(*columns: str, numbers: Sequence[str] = (), **style: Any) -> "Table":
    """Returns an empty table without lines around it.

    Args:
        columns: the names of columns of text. Only the last one is wrapped if the table is too wide.
        numbers: the names of the columns of numbers, which follow.
        style: further arguments for Rich's table.
    """
    from rich.table import Table

    table = Table(**{"box": None, "pad_edge": False, **style})
    for each in columns:
        table.add_column(each, no_wrap=each != columns[-1], overflow="fold")
    for each in numbers:
        table.add_column(each, justify="right", no_wrap=True)
    return table


def styled(text: str, style: str = "", **layout: Any) -> "Text":
    """Returns a text in a style of Rich, without characters that a terminal would obey."""
    from rich.text import Text

    return Text(visible(text), style, **layout)


def note(text: str, as_json: bool = False) -> None:
    """Prints a sentence about the run to standard error."""
    print(json.dumps({"note": text}) if as_json else _wrapped(f"c4pipe: {visible(text)}", sys.stderr), file=sys.stderr)


def print_end(status: int, error: str, as_json: bool) -> None:
    """Prints the end of a command: its error, or a line of JSON."""
    if as_json:
        print(
            json.dumps({"outcome": EXIT_STATUSES[status].outcome, "exit_status": status, "error": error or None}),
            file=sys.stderr,
        )
    elif error:
        note(error)
