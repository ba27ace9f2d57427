"""Progress of a job: a bar on a terminal, plain lines elsewhere. It looks at what is done, on any engine."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from c4pipe.errors import UsageError
from c4pipe.storage import Place, names
from c4pipe.work_folder import headers

_LOOK_SECONDS = 0.5
_STORE_SECONDS = 10.0  # between looks at a store, which are paid for
_LINE_SECONDS = 15.0

State = tuple[float, str]
"""The share of the work that is done, and how it is said."""


class Progress:
    """Shows how far a job is; `quiet` shows nothing."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet

    def watch(self, job: str, folder: Place, sizes: Mapping[str, int]) -> contextlib.AbstractContextManager[None]:
        """Shows the work files that appear in a folder, given their names, and the size of the WET file of each."""
        pages: dict[str, int] = {}

        def count() -> int:
            # One look at the folder: a look at each file would take most of a core where there are 72,000.
            new = sorted(names(folder) & sizes.keys() - pages.keys())
            with contextlib.suppress(UsageError):  # one was moved away: the job itself will tell
                for name, header in zip(new, headers(folder / each for each in new), strict=True):
                    pages[name] = header.counts.get("pages.read", 0)
            return sum(pages.values())

        before, started = count(), time.monotonic()

        def look() -> State:
            number = count()
            rate = (number - before) / (time.monotonic() - started)
            done = sum(sizes[name] for name in pages) / max(1, sum(sizes.values()))
            return done, f"{len(pages):,} of {len(sizes):,} files, {number:,} pages, {rate:,.0f} pages/s"

        return self.show(job, folder, look)

    def wait(
        self, job: str, folder: Place, total: int, count: Callable[[], int]
    ) -> contextlib.AbstractContextManager[None]:
        """Shows how many of `total` files are written to a folder, as `count` counts them."""

        def look() -> State:
            done = count()
            return done / max(1, total), f"{done:,} of {total:,} files written"

        return self.show(job, folder, look)

    @contextlib.contextmanager
    def show(self, job: str, folder: Place, look: Callable[[], State]) -> Iterator[None]:
        """Shows what `look` says, which looks at a folder."""
        if self._quiet:
            yield
            return
        latest: State = (0.0, "")

        def safely() -> State:
            nonlocal latest
            with contextlib.suppress(OSError):  # the next look may tell more; the job meets what does not pass
                latest = look()
            return latest

        stop = threading.Event()
        shown = self._bar if self._console.is_terminal else self._lines
        every = _LOOK_SECONDS if isinstance(folder, Path) else _STORE_SECONDS
        thread = threading.Thread(target=shown, args=(job, safely, stop, every), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _bar(self, job: str, look: Callable[[], State], stop: threading.Event, every: float) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.fields[said]}"))
        with Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self._console) as bar:
            task = bar.add_task(job, total=1.0, said="")
            while True:
                last = stop.wait(every)
                done, said = look()
                bar.update(task, completed=done, said=said)
                if last:
                    return

    def _lines(self, job: str, look: Callable[[], State], stop: threading.Event, every: float) -> None:
        started = time.monotonic()
        while True:
            last = stop.wait(max(every, _LINE_SECONDS))
            done, said = look()
            seconds = time.monotonic() - started
            left = f", {seconds / done - seconds:,.0f} s left" if done and not last else ""
            self._console.print(f"{job}: {said}, {seconds:,.0f} s{left}", highlight=False, soft_wrap=True)
            if last:
                return
