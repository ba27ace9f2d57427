"""Progress on standard error: a bar on a terminal, else a line every 15 seconds, or JSON lines for programs."""

import json
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

from c4pipe.cli.console import note, printer
from c4pipe.cli.options import Shown
from c4pipe.io.words import format_clock, visible
from c4pipe.runners.events import Progress, ProgressEvent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

BAR_SECONDS = 0.5
"""Seconds between two updates of a bar."""

_JSON_SECONDS = 1.0
_LINE_SECONDS = 15.0
_GAPS = 4  # columns between the five of a bar


def make_progress(options: Shown) -> Progress:
    """Returns the progress of a command, by its options `--quiet` and `--json-progress`."""
    if options.json_progress:
        return Progress(show_json(sys.stderr), lambda text: note(text, as_json=True), _JSON_SECONDS)
    if options.quiet:
        return Progress()
    if sys.stderr.isatty():
        return Progress(ProgressBar(printer()), note, BAR_SECONDS)
    return Progress(show_lines(sys.stderr), note, _LINE_SECONDS)


class ProgressBar:
    """Shows a bar for each job on a terminal, with the time left and as many words as fit."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __call__(self, event: ProgressEvent) -> None:
        """Shows an event. The first event of a job starts its bar, the last one ends it."""
        if self._bar is None or self._task is None:
            self._bar = self._make_bar()
            self._task = self._bar.add_task(event.job, total=1.0, clock="", words="")
            self._bar.start()
        clock = _clock(event)
        room = self._console.width - len(event.job) - self._bar_width - len("100%") - len(clock) - _GAPS
        self._bar.update(self._task, completed=event.share, clock=clock, words=fitted(_words(event), room))
        if event.phase == "end":
            self._bar.stop()
            self._bar = self._task = None

    @property
    def _bar_width(self) -> int:
        return min(30, max(10, self._console.width // 5))

    def _make_bar(self) -> "Bar":
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        return Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(self._bar_width),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[clock]}", style="cyan", markup=False),
            TextColumn("{task.fields[words]}", markup=False),
            console=self._console,
        )


def fitted(words: str, room: int) -> str:
    """Cuts a text at a comma so that it fits into a number of columns."""
    while len(words) > room and words:
        words = words.rpartition(", ")[0]
    return words


def _clock(event: ProgressEvent) -> str:
    """Returns the time left; the time since the start if the job has ended or the time left is unknown."""
    if event.phase == "end":
        return format_clock(event.seconds)
    left = event.seconds_left
    return f"{format_clock(event.seconds) if left is None else f'{format_clock(left)} left':<12}"


def show_lines(file: IO[str]) -> Callable[[ProgressEvent], None]:
    """Returns a function that prints an event as a line of text; the first event of a job prints nothing."""

    def show(event: ProgressEvent) -> None:
        if event.phase == "begin":
            return
        left = f", {event.seconds_left:,.0f} s left" if event.seconds_left and event.share < 1 else ""
        print(f"{event.job}: {_words(event)}, {event.seconds:,.0f} s{left}", file=file, flush=True)

    return show


def show_json(file: IO[str]) -> Callable[[ProgressEvent], None]:
    """Returns a function that prints an event as a line of JSON; the first event of a job prints nothing."""

    def show(event: ProgressEvent) -> None:
        if event.phase == "begin":
            return
        values = {
            "job": event.job,
            "share": round(event.share, 4),
            "seconds": round(event.seconds, 1),
            "seconds_left": None if event.seconds_left is None else round(event.seconds_left, 1),
            "runner_job_id": event.runner_job_id,
            **event.facts,
        }
        print(json.dumps(values), file=file, flush=True)

    return show


def _words(event: ProgressEvent) -> str:
    return visible(event.words + (f", job {event.runner_job_id}" if event.runner_job_id else ""))
