"""Progress of a job: a bar on a terminal, plain lines elsewhere, JSON for programs. It looks at what is done, on any
engine; the clock is nowhere but here and in the log."""

import argparse
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from c4pipe.clean.work_folder import headers
from c4pipe.cli.console import note, printer
from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath, names
from c4pipe.jobs.logs import LOG

_LOOK_SECONDS = 0.5
_STORE_SECONDS = 10.0  # between looks at a store, which are paid for
_JSON_SECONDS = 1.0
_LINE_SECONDS = 15.0
_MOST_DROPS = 3  # rules that a person is told of

_DROPPED = "pages.dropped."

State = tuple[float, str]
"""The share of the work that is done, and how it is said."""

Facts = dict[str, Any]
"""What a program is told beside the share, as JSON values."""


class Progress:
    """Shows how far a job is, and logs when it began and ended."""

    def __init__(self, console: Console, quiet: bool = False, as_json: bool = False) -> None:
        """Takes where to show it; `quiet` shows nothing, `as_json` a line of JSON at a time, also if it is quiet."""
        self._console = console
        self._quiet = quiet
        self._as_json = as_json
        self._engine_job: str | None = None

    @classmethod
    def of(cls, options: argparse.Namespace) -> "Progress":
        """Returns what shows progress as the options of a command ask for it."""
        return cls(printer(), options.quiet, options.json_progress)

    def note(self, text: str) -> None:
        """Says something about the run that the user should know, and logs it."""
        LOG.warning(text)
        if self._as_json or not self._quiet:
            note(text, self._as_json)

    def runs_as(self, engine_job: str) -> None:
        """Shows from now on by what id the engine knows the job."""
        LOG.info("the engine's job: %s", engine_job)
        self._engine_job = engine_job

    def watch(self, job: str, folder: StoragePath, sizes: Mapping[str, int]) -> contextlib.AbstractContextManager[None]:
        """Shows the work files that appear in a folder, given their names, and the size of the WET file of each."""
        seen = set[str]()
        counts = Counter[str]()

        def count() -> int:
            # One look at the folder: a look at each file would take most of a core where there are 72,000.
            new = sorted(names(folder) & sizes.keys() - seen)
            with contextlib.suppress(UsageError):  # one was moved away: the job itself will tell
                for name, header in zip(new, headers(folder / each for each in new), strict=True):
                    seen.add(name)
                    counts.update(header.counts)
            return counts["pages.read"]

        before, started = count(), time.monotonic()

        def rate() -> float:
            return (counts["pages.read"] - before) / max(0.001, time.monotonic() - started)

        def look() -> State:
            pages = count()
            done = sum(sizes[name] for name in seen) / max(1, sum(sizes.values()))
            said = f"{len(seen):,} of {len(sizes):,} files, {pages:,} pages, {rate():,.0f} pages/s"
            return done, said + said_drops(counts)

        def facts() -> Facts:
            pages = {"pages": counts["pages.read"], "pages_per_second": round(rate(), 1)}
            return {"files": len(seen), "files_total": len(sizes), **pages, "drops": drops(counts)}

        return self.show(job, folder, look, facts)

    def wait(
        self, job: str, folder: StoragePath, total: int, count: Callable[[], int]
    ) -> contextlib.AbstractContextManager[None]:
        """Shows how many of `total` files are written to a folder, as `count` counts them."""
        done = 0

        def look() -> State:
            nonlocal done
            done = count()
            return done / max(1, total), f"{done:,} of {total:,} files written"

        return self.show(job, folder, look, lambda: {"files": done, "files_total": total})

    @contextlib.contextmanager
    def show(
        self, job: str, folder: StoragePath, look: Callable[[], State], facts: Callable[[], Facts] = dict
    ) -> Iterator[None]:
        """Shows what `look` says, which looks at a folder; to a program also the facts that it found there."""
        LOG.info("%s: begins", job)
        started = time.monotonic()
        self._engine_job = None
        try:
            with self._shown(job, folder, look, facts):
                yield
        except BaseException as error:
            LOG.info("%s: ended by %s after %.1f s", job, type(error).__name__, time.monotonic() - started)
            raise
        LOG.info("%s: done in %.1f s", job, time.monotonic() - started)

    @contextlib.contextmanager
    def _shown(
        self, job: str, folder: StoragePath, look: Callable[[], State], facts: Callable[[], Facts]
    ) -> Iterator[None]:
        if self._quiet and not self._as_json:
            yield
            return
        latest: State = (0.0, "")

        def safely() -> State:
            nonlocal latest
            with contextlib.suppress(OSError):  # the next look may tell more; the job meets what does not pass
                done, said = look()
                latest = done, said + (f", job {self._engine_job}" if self._engine_job else "")
            return latest

        stop = threading.Event()
        every = _LOOK_SECONDS if isinstance(folder, Path) else _STORE_SECONDS
        if self._as_json:
            shown: Callable[..., None] = self._objects
        else:
            shown = self._bar if self._console.is_terminal else self._lines
        arguments = (job, safely, stop, every, facts)
        thread = threading.Thread(target=shown, args=arguments, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _bar(
        self, job: str, look: Callable[[], State], stop: threading.Event, every: float, _: Callable[[], Facts]
    ) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.fields[said]}"))
        done, said = look()
        with Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self._console) as bar:
            task = bar.add_task(job, total=1.0, completed=done, said=said)  # type: ignore[arg-type]
            while True:
                last = stop.wait(every)
                done, said = look()
                bar.update(task, completed=done, said=said)
                if last:
                    return

    def _lines(
        self, job: str, look: Callable[[], State], stop: threading.Event, every: float, _: Callable[[], Facts]
    ) -> None:
        for done, said, seconds, left in _paced(look, stop, max(every, _LINE_SECONDS)):
            time_left = f", {left:,.0f} s left" if left and done < 1 else ""
            self._console.print(f"{job}: {said}, {seconds:,.0f} s{time_left}", highlight=False, soft_wrap=True)

    def _objects(
        self, job: str, look: Callable[[], State], stop: threading.Event, every: float, facts: Callable[[], Facts]
    ) -> None:
        for done, _, seconds, left in _paced(look, stop, max(every, _JSON_SECONDS)):
            values = {
                "job": job,
                "share": round(done, 4),
                "seconds": round(seconds, 1),
                "seconds_left": None if left is None else round(left, 1),
                "engine_job": self._engine_job,
                **facts(),
            }
            print(json.dumps(values), file=self._console.file, flush=True)


def _paced(
    look: Callable[[], State], stop: threading.Event, every: float
) -> Iterator[tuple[float, str, float, float | None]]:
    """Yields (share done, how it is said, seconds since the start, seconds left) every so often, and at the end."""
    started, first = time.monotonic(), look()[0]
    last = False
    while not last:
        last = stop.wait(every)
        done, said = look()
        seconds = time.monotonic() - started
        yield done, said, seconds, None if last and done < 1 else seconds_left(first, done, seconds)


def seconds_left(first: float, done: float, seconds: float) -> float | None:
    """Returns how long it will take from here, at the pace so far; None where nothing was done yet.

    Args:
        first: the share that was done at the start, by an earlier run.
        done: the share that is done now.
        seconds: the time since the start.
    """
    return seconds * (1 - done) / (done - first) if done > first else None


def drops(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns how many pages each rule dropped, by rule, the most first."""
    found = {name.removeprefix(_DROPPED): n for name, n in counts.items() if name.startswith(_DROPPED) and n}
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def said_drops(counts: Mapping[str, int]) -> str:
    """Returns the rules that dropped most pages, with their share of the pages read: `, dropped: language 61%`."""
    most = list(drops(counts).items())[:_MOST_DROPS]
    told = ", ".join(f"{rule} {number / counts['pages.read']:.0%}" for rule, number in most)
    return f", dropped: {told}" if told else ""
