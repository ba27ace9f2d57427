"""Progress as events: the pace, the end, and the job id of a runner."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.io.paths import RemotePath
from c4pipe.runners.beam_runner import _job_id
from c4pipe.runners.events import Progress, ProgressEvent, Status, seconds_left
from c4pipe.runners.runner import run_job
from c4pipe.runners.runner_options import RunnerOptions


class Clock:
    """Stands in for the clock, and for the event that ends a job: each wait takes the time it asks for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, waits: int) -> None:
        self.now, self.waits, self.asked = 100.0, waits, list[float]()
        monkeypatch.setattr("c4pipe.runners.events.time.monotonic", lambda: self.now)

    def wait(self, seconds: float) -> bool:
        self.asked.append(seconds)
        self.now += seconds
        self.waits -= 1
        return self.waits <= 0


def events_of(clock: Clock, look: Callable[[], Status], interval: float = 1.0) -> list[ProgressEvent]:
    """The events of a job that ends when the clock does."""
    return list(Progress()._events("clean", look, clock.wait, interval))


shares = st.integers(0, 10**6).map(lambda part: part / 10**6)


@given(shares, shares, st.floats(0.001, 1e6))
def test_time_left_is_by_the_pace_since_the_start(first: float, done: float, seconds: float) -> None:
    left = seconds_left(first, done, seconds)
    if done <= first:
        assert left is None
    else:
        assert left is not None
        assert left * (done - first) == pytest.approx(seconds * (1 - done))


def test_what_an_earlier_run_did_is_no_pace_of_this_one() -> None:
    assert seconds_left(0.5, 0.75, 10.0) == 10.0
    assert seconds_left(0.0, 0.75, 30.0) == 10.0
    assert seconds_left(0.5, 0.5, 10.0) is None


def test_events_come_at_the_start_every_interval_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, waits=3)
    shares = iter([0.2, 0.4, 0.6, 1.0])
    begin, first, second, end = events_of(clock, lambda: Status(next(shares), "some", {"files": 3}), 15.0)
    assert begin == ProgressEvent("clean", "begin", 0.2, "some", {"files": 3})
    assert first == ProgressEvent("clean", "running", 0.4, "some", {"files": 3}, 15.0, first.seconds_left)
    assert first.seconds_left == pytest.approx(45.0)
    assert second.seconds == 30.0
    assert second.seconds_left == pytest.approx(30.0)
    assert (end.phase, end.seconds, end.seconds_left) == ("end", 45.0, 0.0)
    assert clock.asked == [15.0] * 3


def test_a_job_that_failed_has_no_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.0, 0.5, 0.5])
    *_, running, end = events_of(Clock(monkeypatch, waits=2), lambda: Status(next(shares), "some"))
    assert (running.seconds_left, running.phase) == (1.0, "running")
    assert (end.seconds_left, end.phase, end.share) == (None, "end", 0.5)


def test_the_time_left_falls_between_steps_of_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.0, 0.0, 0.25, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.0])
    events = events_of(Clock(monkeypatch, waits=12), lambda: Status(next(shares), "some"))
    # at 2 s a quarter is done, at 5 s the half; from 11 s on, it takes longer than that pace
    assert [event.seconds_left for event in events] == [None, None, 6, 5, 4, 5, 4, 3, 2, 1, 0, None, 0]


def test_a_look_that_fails_repeats_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.1, None, 0.3])

    def look() -> Status:
        share = next(shares)
        if share is None:
            raise OSError("the store is busy")
        return Status(share, "some")

    assert [event.share for event in events_of(Clock(monkeypatch, waits=2), look)] == [0.1, 0.1, 0.3]


@pytest.mark.parametrize(
    ("folder", "interval"), [(Path("/here"), 0.5), (RemotePath("s3://bucket/x"), 10.0)], ids=["this machine", "a store"]
)
def test_a_store_is_looked_at_less_often(
    folder: Path | RemotePath, interval: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float | None] = []

    def wait(self: threading.Event, timeout: float | None = None) -> bool:
        if threading.current_thread().name != "progress":
            return bool(before(self, timeout))
        asked.append(timeout)
        return True

    before = threading.Event.wait
    monkeypatch.setattr(threading.Event, "wait", wait)
    with Progress(lambda event: None, interval=0.5).show("clean", folder, lambda: Status(1.0, "")):
        pass
    assert asked == [interval]


def test_the_callback_gets_the_events_of_a_job(tmp_path: Path) -> None:
    events: list[ProgressEvent] = []
    progress = Progress(events.append, interval=0.01)
    with progress.wait("dedup", tmp_path, 4, lambda: len(list(tmp_path.iterdir()))):
        for name in "ab":
            (tmp_path / name).touch()
            count = len(events)
            while len(events) < count + 2:
                time.sleep(0.01)
        progress.runs_as("job-7")
    assert [events[0].phase, events[-1].phase] == ["begin", "end"]
    assert {event.phase for event in events[1:-1]} == {"running"}
    assert [event.share for event in events] == sorted(event.share for event in events)
    last = events[-1]
    assert (last.job, last.share, last.words, last.runner_job_id) == ("dedup", 0.5, "2 of 4 files written", "job-7")
    assert last.facts == {"files": 2, "files_total": 4}
    with progress.wait("next", tmp_path, 2, lambda: 2):
        pass
    assert (events[-1].job, events[-1].share, events[-1].runner_job_id) == ("next", 1.0, None)


def test_a_callback_that_fails_is_logged_and_the_job_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    calls = []

    def callback(event: ProgressEvent) -> None:
        calls.append(event)
        raise ValueError("no such window")

    done = False
    with Progress(callback, interval=0.01).show("clean", tmp_path, lambda: Status(0.5, "")):
        time.sleep(0.1)
        done = True
    assert done
    assert len(calls) == 1
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "progress is no longer reported: ValueError: no such window"


def test_without_a_callback_nothing_is_looked_at(tmp_path: Path) -> None:
    def look() -> Status:
        raise AssertionError("it looked")

    before = threading.active_count()
    with Progress().show("clean", tmp_path, look):
        assert threading.active_count() == before


def test_notes_go_to_their_callback_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    notes: list[str] = []
    Progress(on_note=notes.append).note("two files are missing")
    Progress().note("three files are missing")
    assert notes == ["two files are missing"]
    assert caplog.messages == ["two files are missing", "three files are missing"]


# The job id of a runner


class OfDataflow:
    def job_id(self) -> str:
        return "2030-01-01_00_00_00-1"


class OfAJobServer:
    _job_id = "c4pipe-1"


class OfDataflowBeforeItIsKnown:
    def job_id(self) -> None:
        return None


@pytest.mark.parametrize(
    ("result", "job"),
    [
        (OfDataflow(), "2030-01-01_00_00_00-1"),
        (OfAJobServer(), "c4pipe-1"),
        (OfDataflowBeforeItIsKnown(), None),
        (object(), None),
    ],
)
def test_the_id_of_a_job(result: object, job: str | None) -> None:
    assert _job_id(result) == job


def test_the_results_of_beam_have_what_is_looked_for() -> None:
    from apache_beam.runners.dataflow import dataflow_runner as dataflow
    from apache_beam.runners.portability import portable_runner as portable

    assert callable(dataflow.DataflowPipelineResult.job_id)
    result = portable.PipelineResult.__new__(portable.PipelineResult)
    result._job_id = "one"
    assert _job_id(result) == "one"


def test_a_runner_that_gives_a_job_id_has_it_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    import apache_beam as beam

    class Result(OfDataflow):
        def wait_until_finish(self) -> None:
            assert told == ["2030-01-01_00_00_00-1"], "it is told before the job ends"

    told: list[str] = []
    progress = Progress()
    monkeypatch.setattr(progress, "runs_as", told.append)
    monkeypatch.setattr(beam.Pipeline, "run", lambda self: Result())
    run_job(lambda flow: None, RunnerOptions(runner="FlinkRunner"), 1, progress)
    assert told == ["2030-01-01_00_00_00-1"]
