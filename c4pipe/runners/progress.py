"""Progress of a job, as events: how much is done, how fast, how long it will take. What shows them is not here.

Progress looks at what a job has written, so it is the same on every runner. The clock is read here and in the log
alone.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from c4pipe.io.paths import StoragePath

LOG = logging.getLogger("c4pipe")

_STORE_SECONDS = 10.0  # between two looks at an object store, which charges for each

State = tuple[float, str]
"""The share of the work that is done, from 0 to 1, and a few words about it."""

Facts = Mapping[str, Any]
"""Figures about a job, by name, as JSON values."""


@dataclass(frozen=True)
class ProgressEvent:
    """How far a job is at one moment.

    Attributes:
        job: the name of the job: `clean`, `dedup`, `measure` (of `plan`), `count`, `sample`, `train`, `tokens`,
            `report`, `diff`, `overlap`.
        phase: `begin` for the first event of a job, `end` for the last one (also where it failed), else `running`.
        share: the share of the work that is done, from 0 to 1.
        words: what is done, in a few words: `3 of 8 files, 71 pages, 12 pages/s`.
        facts: the same and more as JSON values; which ones depends on the job.
        seconds: the time since the job began.
        seconds_left: an estimate of the time to its end, or None as long as there is none.
        runner_job_id: the id by which the runner knows the job, or None where there is none (yet).
    """

    job: str
    phase: Literal["begin", "running", "end"]
    share: float
    words: str
    facts: Facts = field(default_factory=dict)
    seconds: float = 0.0
    seconds_left: float | None = None
    runner_job_id: str | None = None


class Progress:
    """Watches jobs, one after the other: calls a function with the progress of each, and logs when it began and ended.

    Without a function it only logs.
    """

    def __init__(
        self,
        callback: Callable[[ProgressEvent], None] | None = None,
        on_note: Callable[[str], None] | None = None,
        interval: float = 1.0,
    ) -> None:
        """Takes the functions to call.

        Args:
            callback: gets the events of a job, in a thread beside the job. If it raises an exception, that is logged
                as a warning and the job gets no more events; the job itself goes on.
            on_note: gets a sentence about the run that the user should know, in the thread of the job.
            interval: seconds between two events of a job; at least 10 where its files are in an object store.
        """
        self._callback = callback
        self._on_note = on_note
        self._interval = interval
        self._runner_job_id: str | None = None

    def note(self, text: str) -> None:
        """Logs a sentence about the run that the user should know, and passes it on."""
        LOG.warning(text)
        if self._on_note:
            self._on_note(text)

    def runs_as(self, runner_job_id: str) -> None:
        """Takes the id by which the runner knows the job; the events have it from now on."""
        LOG.info("the runner's job id: %s", runner_job_id)
        self._runner_job_id = runner_job_id

    def wait(
        self, job: str, folder: StoragePath, total: int, count: Callable[[], int]
    ) -> contextlib.AbstractContextManager[None]:
        """Watches a job that writes `total` files to a folder; `count` returns how many are written."""
        written = 0

        def look() -> State:
            nonlocal written
            written = count()
            return written / max(1, total), f"{written:,} of {total:,} files written"

        return self.show(job, folder, look, lambda: {"files": written, "files_total": total})

    @contextlib.contextmanager
    def show(
        self, job: str, folder: StoragePath, look: Callable[[], State], facts: Callable[[], Facts] = dict
    ) -> Iterator[None]:
        """Watches a job that runs inside the `with` block.

        Args:
            job: its name.
            folder: where it writes: an object store is not looked at as often as a folder of this machine.
            look: returns how far the job is. It is called in another thread; if it raises OSError, the event repeats
                what was known before.
            facts: returns the figures of the last look.
        """
        LOG.info("%s: begins", job)
        started = time.monotonic()
        self._runner_job_id = None
        try:
            with self._watched(job, folder, look, facts):
                yield
        except BaseException as error:
            LOG.info("%s: ended by %s after %.1f s", job, type(error).__name__, time.monotonic() - started)
            raise
        LOG.info("%s: done in %.1f s", job, time.monotonic() - started)

    @contextlib.contextmanager
    def _watched(
        self, job: str, folder: StoragePath, look: Callable[[], State], facts: Callable[[], Facts]
    ) -> Iterator[None]:
        if self._callback is None and not LOG.isEnabledFor(logging.INFO):  # nobody sees what a look would find
            yield
            return
        stop = threading.Event()
        interval = self._interval if isinstance(folder, Path) else max(self._interval, _STORE_SECONDS)
        events = self._events(job, look, facts, stop.wait, interval)
        thread = threading.Thread(
            target=_send, args=(events, self._callback or (lambda event: None)), name="progress", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _events(
        self,
        job: str,
        look: Callable[[], State],
        facts: Callable[[], Facts],
        wait: Callable[[float], bool],
        interval: float,
    ) -> Iterator[ProgressEvent]:
        """Yields an event at once and then one every interval; `wait` waits and tells whether the job has ended."""
        latest: State = (0.0, "")

        def safe_look() -> State:
            nonlocal latest
            with contextlib.suppress(OSError):  # the next look may succeed; an error that lasts also meets the job
                latest = look()
            return latest

        left, moment = None, 0.0  # the last estimate, and when it was made
        started, (first, words) = time.monotonic(), safe_look()
        known = first
        yield ProgressEvent(job, "begin", first, words, facts(), runner_job_id=self._runner_job_id)
        ended = False
        while not ended:
            ended = wait(interval)
            share, words = safe_look()
            seconds = time.monotonic() - started
            if share != known or ended:
                left, moment, known = seconds_left(first, share, seconds), seconds, share
            yield ProgressEvent(
                job,
                "end" if ended else "running",
                share,
                words,
                facts(),
                seconds,
                None if ended and share < 1 else _counted_down(left, seconds - moment),
                self._runner_job_id,
            )


def _send(events: Iterator[ProgressEvent], callback: Callable[[ProgressEvent], None]) -> None:
    try:
        for event in events:
            callback(event)
    except Exception as error:
        LOG.warning("progress is no longer reported: %s: %s", type(error).__name__, error, exc_info=True)


def _counted_down(left: float | None, seconds: float) -> float | None:
    """Returns an estimate of the time left that was made some seconds ago; None where it was too low.

    A job whose share grows in steps is not slower between them.
    """
    return None if left is None or left < seconds else left - seconds


def seconds_left(first: float, share: float, seconds: float) -> float | None:
    """Returns the time that the rest of a job takes at the pace so far; None where nothing was done yet.

    Args:
        first: the share of the work that was done at the start, by an earlier run.
        share: the share that is done now.
        seconds: the time since the start.
    """
    return seconds * (1 - share) / (share - first) if share > first else None
