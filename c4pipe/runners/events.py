"""The progress of a job: its begin and end, its share, its id at the runner, and notes, for all who listen.

Listeners are a bar, lines of JSON, a user's own function and the log. Progress looks at the files that a job has
written, so it works alike on every runner.
"""

import contextlib
import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from c4pipe.errors import UsageError, hide_secrets
from c4pipe.io.log import LOG
from c4pipe.io.paths import StoragePath
from c4pipe.io.words import format_clock, visible

_STORE_SECONDS = 10.0  # between two looks at an object store, which charges for each look

Facts = Mapping[str, Any]
"""Figures about a job, by name, as JSON values."""


class Status(NamedTuple):
    """How far a job is.

    Attributes:
        share: the share of the work that is done, from 0 to 1.
        words: a few words about it.
        facts: figures.
    """

    share: float
    words: str
    facts: Facts = MappingProxyType({})


@dataclass(frozen=True)
class ProgressEvent:
    """How far a job is at one moment.

    Attributes:
        job: the name of the job: `clean`, `dedup`, `measure` (of `plan`), `count`, `sample`, `train`, `tokens`,
            `report`, `diff`, `overlap`, `index`, `opt-outs`.
        phase: `begin` for the first event of a job, `end` for the last one (also if it failed), else `running`.
        share: the share of the work that is done, from 0 to 1.
        words: what is done, in a few words: `3 of 8 files, 71 pages, 12 pages/s`.
        facts: these and further figures as JSON values; the names depend on the job.
        seconds: the time since the job began.
        seconds_left: an estimate of the time to its end, or None if there is no estimate yet.
        runner_job_id: the runner's id of the job, or None if there is no id (yet).
    """

    job: str
    phase: Literal["begin", "running", "end"]
    share: float
    words: str
    facts: Facts = field(default_factory=dict)
    seconds: float = 0.0
    seconds_left: float | None = None
    runner_job_id: str | None = None


ProgressCallback = Callable[[ProgressEvent], None] | bool | None
"""The receiver of the events of a job: a function, True for a bar, or None."""


def show_bar(event: ProgressEvent) -> None:
    """Shows an event as a bar on a line of standard error, which a terminal or a notebook overwrites."""
    done, left = round(20 * event.share), event.seconds_left
    clock = f"{format_clock(event.seconds)}" if left is None or event.phase == "end" else f"{format_clock(left)} left"
    line = f"{event.job:8} [{'#' * done:.<20}] {event.share:4.0%} {clock}, {visible(event.words)}"
    width = shutil.get_terminal_size().columns - 1
    end = "\n" if event.phase == "end" else ""
    print(f"\r{line[:width]:{width}}", end=end, file=sys.stderr, flush=True)


class Progress:
    """Watches jobs, one after the other: calls a function with the progress of each, and logs when it began and ended.

    Without a function it only logs.

    Attributes:
        seconds: the time from the begin of the job to the latest look at it, for speeds.
        did_nothing: whether a job found its result complete.
    """

    def __init__(
        self,
        callback: ProgressCallback = None,
        on_note: Callable[[str], None] | None = None,
        interval: float = 1.0,
    ) -> None:
        """Takes the functions to call.

        Args:
            callback: gets the events of a job, in a thread beside the job; True for `show_bar`. If it raises an
                exception, that is logged as a warning and the job gets no more events; the job itself goes on.
            on_note: gets sentences about the run for the user, in the thread of the job or beside it.
            interval: seconds between two events of a job; at least 10 if its files are in an object store.

        Raises UsageError for a callback that can't be called.
        """
        if not (callback is None or isinstance(callback, bool) or callable(callback)):
            raise UsageError(f"progress={callback!r}: give a function, or True for a bar")
        self._callback = show_bar if callback is True else callback or None
        self._on_note = on_note
        self._interval = interval
        self._runner_job_id: str | None = None
        self.seconds = 0.0
        self.did_nothing = False

    def note(self, text: str) -> None:
        """Logs a sentence about the run for the user, and passes it on."""
        text = hide_secrets(text)
        LOG.warning(text)
        if self._on_note:
            self._on_note(text)

    def note_wait(self, wait: object) -> None:
        """Notes that the run waits for a server."""
        self.note(f"waits: {wait}")

    def note_complete(self, result: StoragePath, again: str = "give another --output, or delete it") -> None:
        """Notes that a job did nothing, because its result exists; `again` says how to make it again."""
        self.did_nothing = True
        self.note(f"{result} is complete already, and nothing was done: to make it again, {again}")

    def runs_as(self, runner_job_id: str) -> None:
        """Takes the id by which the runner knows the job; the events have it from now on."""
        LOG.info("the runner's job id: %s", runner_job_id)
        self._runner_job_id = runner_job_id

    def wait(
        self, job: str, folder: StoragePath, total: int, count: Callable[[], int]
    ) -> contextlib.AbstractContextManager[None]:
        """Watches a job that writes `total` files to a folder; `count` returns how many are written."""

        def look() -> Status:
            written = count()
            facts = {"files": written, "files_total": total}
            return Status(written / max(1, total), f"{written:,} of {total:,} files written", facts)

        return self.show(job, folder, look)

    @contextlib.contextmanager
    def show(self, job: str, folder: StoragePath, look: Callable[[], Status]) -> Iterator[None]:
        """Watches a job that runs inside the `with` block.

        Args:
            job: its name.
            folder: the folder that it writes. A folder in an object store is read less often than a folder of this
                machine.
            look: returns the status of the job. Another thread calls it; after an OSError, the event repeats the last
                known values.
        """
        LOG.info("%s: begins", job)
        started, how, stop = time.monotonic(), "done in", threading.Event()
        self._runner_job_id = None
        interval = self._interval if isinstance(folder, Path) else max(self._interval, _STORE_SECONDS)
        events = self._events(job, look, stop.wait, interval)
        watch = threading.Thread(target=_send, args=(events, self._callback), name="progress", daemon=True)
        try:
            if self._callback or LOG.isEnabledFor(logging.INFO):  # otherwise nobody would see the result of a look
                watch.start()
            yield
        except BaseException as error:
            how = f"ended by {type(error).__name__} after"
            raise
        finally:
            stop.set()
            if watch.ident is not None:
                watch.join()
            LOG.info("%s: %s %.1f s", job, how, time.monotonic() - started)

    def _events(
        self, job: str, look: Callable[[], Status], wait: Callable[[float], bool], interval: float
    ) -> Iterator[ProgressEvent]:
        """Yields an event at once and then one every interval; `wait` waits and tells whether the job has ended."""
        latest = Status(0.0, "")

        def safe_look() -> Status:
            nonlocal latest
            with contextlib.suppress(OSError):  # the next look may succeed; the job itself reports a lasting error
                latest = look()
            return latest

        left, moment = None, 0.0  # the last estimate, and when it was made
        started, self.seconds = time.monotonic(), 0.0
        first = safe_look()
        known = first.share
        yield ProgressEvent(job, "begin", first.share, first.words, dict(first.facts), 0.0, None, self._runner_job_id)
        ended = False
        while not ended:
            ended = wait(interval)
            self.seconds = seconds = time.monotonic() - started  # the clock is read once for an event
            status = safe_look()
            if status.share != known or ended:
                left, moment, known = seconds_left(first.share, status.share, seconds), seconds, status.share
            estimate = None if ended and status.share < 1 else _counted_down(left, seconds - moment)
            phase: Literal["running", "end"] = "end" if ended else "running"
            facts = dict(status.facts)
            yield ProgressEvent(job, phase, status.share, status.words, facts, seconds, estimate, self._runner_job_id)


def _send(events: Iterator[ProgressEvent], callback: Callable[[ProgressEvent], None] | None) -> None:
    try:
        for event in events:
            if callback:
                callback(event)
    except Exception as error:
        LOG.warning("progress is no longer reported: %s: %s", type(error).__name__, error, exc_info=True)


def _counted_down(left: float | None, seconds: float) -> float | None:
    """Returns the time left by an estimate that is some seconds old; None if the estimate was too low.

    A job whose share grows in steps is not slower between them.
    """
    return None if left is None or left < seconds else left - seconds


def seconds_left(first: float, share: float, seconds: float) -> float | None:
    """Returns the time that the rest of a job takes at the pace so far; None if no work is done yet.

    Args:
        first: the share of the work that was done at the start, by an earlier run.
        share: the share that is done now.
        seconds: the time since the start.
    """
    return seconds * (1 - share) / (share - first) if share > first else None
