"""Progress on standard error: a bar on a terminal, a line every 15 seconds elsewhere, JSON lines for programs."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

from c4pipe.cli.console import note, printer
from c4pipe.display import visible
from c4pipe.runners import Progress, ProgressEvent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichBar
    from rich.progress import TaskID

_BAR_SECONDS = 0.5
_JSON_SECONDS = 1.0
_LINE_SECONDS = 15.0


def make_progress(options: argparse.Namespace) -> Progress:
    """Returns the progress of a command, shown as its options `--quiet` and `--json-progress` ask for."""
    if options.json_progress:
        return Progress(show_json(sys.stderr), lambda text: note(text, as_json=True), _JSON_SECONDS)
    if options.quiet:
        return Progress()
    console = printer()
    if console.is_terminal:
        return Progress(ProgressBar(console), note, _BAR_SECONDS)
    return Progress(show_lines(console), note, _LINE_SECONDS)


class ProgressBar:
    """Shows a bar for each job on a terminal."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._bar: RichBar | None = None
        self._task: TaskID | None = None

    def __call__(self, event: ProgressEvent) -> None:
        """Shows an event: the first one of a job starts its bar, the last one ends it."""
        words = _words(event)
        if self._bar is None or self._task is None:
            self._bar = self._make_bar()
            self._task = self._bar.add_task(event.job, total=1.0, words=words)
            self._bar.start()
        self._bar.update(self._task, completed=event.share, words=words)
        if event.phase == "end":
            self._bar.stop()
            self._bar = self._task = None

    def _make_bar(self) -> "RichBar":
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichBar

        return RichBar(
            TextColumn("{task.description}", markup=False),
            BarColumn(20),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
        )


def show_lines(console: "Console") -> Callable[[ProgressEvent], None]:
    """Returns a function that prints an event as a line of text; the first event of a job prints nothing."""

    def show(event: ProgressEvent) -> None:
        if event.phase == "begin":
            return
        left = f", {event.seconds_left:,.0f} s left" if event.seconds_left and event.share < 1 else ""
        line = f"{event.job}: {_words(event)}, {event.seconds:,.0f} s{left}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)

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
