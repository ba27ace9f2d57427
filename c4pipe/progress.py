"""Progress of a job: a bar on a terminal, plain lines elsewhere. It looks at what is done, on any engine."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from c4pipe.errors import UsageError
from c4pipe.work import read_header

_LOOK_SECONDS = 0.5
_LINE_SECONDS = 15.0

State = tuple[float, str]
"""The share of the work that is done, and how it is said."""


class Progress:
    """Shows how far a job is; `quiet` shows nothing."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet

    def watch(self, job: str, sizes: Mapping[Path, int]) -> contextlib.AbstractContextManager[None]:
        """Shows the work files that appear, given the size of the WET file of each."""
        pages: dict[Path, int] = {}

        expected = {path.name: path for path in sizes}

        def count() -> int:
            # One look at each folder: a look at each file would take most of a core where there are 72,000.
            there = {entry.name for folder in {path.parent for path in sizes} for entry in os.scandir(folder)}
            for name in there & expected.keys() - {path.name for path in pages}:
                with contextlib.suppress(UsageError):  # it was moved away: the job itself will tell
                    pages[expected[name]] = read_header(expected[name]).counts.get("pages.read", 0)
            return sum(pages.values())

        before, started = count(), time.monotonic()

        def look() -> State:
            number = count()
            rate = (number - before) / (time.monotonic() - started)
            done = sum(sizes[path] for path in pages) / max(1, sum(sizes.values()))
            return done, f"{len(pages):,} of {len(sizes):,} files, {number:,} pages, {rate:,.0f} pages/s"

        return self._show(job, look)

    def wait(self, job: str, total: int, count: Callable[[], int]) -> contextlib.AbstractContextManager[None]:
        """Shows how many of `total` files are written."""

        def look() -> State:
            done = count()
            return done / max(1, total), f"{done:,} of {total:,} files written"

        return self._show(job, look)

    @contextlib.contextmanager
    def _show(self, job: str, look: Callable[[], State]) -> Iterator[None]:
        if self._quiet:
            yield
            return
        stop = threading.Event()
        show = self._bar if self._console.is_terminal else self._lines
        thread = threading.Thread(target=show, args=(job, look, stop), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _bar(self, job: str, look: Callable[[], State], stop: threading.Event) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
        with Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self._console) as bar:
            task = bar.add_task(job, total=1.0, said="")
            while True:
                last = stop.wait(_LOOK_SECONDS)
                done, said = look()
                bar.update(task, completed=done, said=said)
                if last:
                    return

    def _lines(self, job: str, look: Callable[[], State], stop: threading.Event) -> None:
        started = time.monotonic()
        while True:
            last = stop.wait(_LINE_SECONDS)
            done, said = look()
            seconds = time.monotonic() - started
            left = f", {seconds / done - seconds:,.0f} s left" if done and not last else ""
            self._console.print(f"{job}: {said}, {seconds:,.0f} s{left}", highlight=False, soft_wrap=True)
            if last:
                return
