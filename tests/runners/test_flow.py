"""A job is the same on this machine's processes and on Beam; nothing is lost, a failure says what happened."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.testing import test_pipeline
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.errors import C4pipeError
from c4pipe.runners import local_flow
from c4pipe.runners.beam_runner import BeamFlow
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.local_flow import LocalFlow, Workers
from c4pipe.runners.runner import run_job
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.worker import cpu_seconds, initialise_worker
from c4pipe.runners.worker_pool import _LightProcess
from tests.helpers.flows import oracle, words

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text("ab ", max_size=12), max_size=6))
def test_this_machine_does_what_the_graph_says(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("flow")
    with LocalFlow(1) as flow:
        words(texts, folder)(flow)
    assert [file.read_text() for file in folder.iterdir()] == [oracle(texts)]


@pytest.mark.beam
def test_processes_and_beam_do_the_same(tmp_path: Path) -> None:
    texts = ["a b a", "", "b c", "dd a"]
    for name in ("processes", "beam"):
        (tmp_path / name).mkdir()
    with LocalFlow(2) as flow:
        words(texts, tmp_path / "processes")(flow)
    with test_pipeline.TestPipeline(runner=FnApiRunner()) as pipeline:
        words(texts, tmp_path / "beam")(BeamFlow(pipeline))
    for name in ("processes", "beam"):
        assert [file.read_text() for file in (tmp_path / name).iterdir()] == [oracle(texts)]


class Number(Step):
    """A number, with its process."""

    outputs = ("numbers",)

    def process(self, element: int) -> Iterable[tuple[str, Any]]:
        time.sleep(0.02)
        yield "numbers", (element % 7, (element, os.getpid()))


def test_nothing_is_lost_between_processes(tmp_path: Path) -> None:
    with LocalFlow(2) as flow:
        numbers = flow.map("Number", flow.create("Numbers", range(100)), Number())
        groups = flow.group_by_key("Group", numbers["numbers"])
    assert sorted(number for _, some in groups for number, _ in some) == list(range(100))
    assert all(number % 7 == key for key, some in groups for number, _ in some)
    processes = Counter(process for _, some in groups for _, process in some)
    assert len(processes) == 2
    assert os.getpid() not in processes


def _processes(workers: Workers, count: int) -> set[int]:
    with LocalFlow(count, workers) as flow:
        numbers = flow.map("Number", flow.create("Numbers", range(20)), Number())["numbers"]
    return {process for _, some in flow.group_by_key("Group", numbers) for _, process in some}


def test_jobs_that_follow_each_other_share_their_processes() -> None:
    with Workers() as workers:
        first = _processes(workers, 2)
        assert _processes(workers, 2) == first
        last = _processes(workers, 3)
    assert all(_has_ended(process) for process in (*first, *last))


def _has_ended(process: int) -> bool:
    for _ in range(200):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_the_sum_of_a_fold_is_worked_on_in_this_process() -> None:
    with LocalFlow(2) as flow:
        total = flow.combine("Add up", flow.create("Numbers", [1, 2, 4]), sum)
        ((_, ((number, process),)),) = flow.group_by_key("Group", flow.map("Number", total, Number())["numbers"])
    assert (number, process) == (7, os.getpid())


class Count(Step):
    """Takes processor time."""

    def process(self, element: int) -> Iterable[tuple[str, Any]]:
        begin = time.process_time()
        while time.process_time() < begin + 0.2:
            pass
        return ()


@pytest.mark.parametrize("count", [1, 2])
def test_processor_time_of_workers_is_counted(count: int) -> None:
    before = cpu_seconds()
    with LocalFlow(count) as flow:
        flow.map("Count", flow.create("Numbers", range(4)), Count())
    assert 0.8 <= cpu_seconds() - before < 6  # the processes import first, which takes seconds on a slow machine


class Meet(Step):
    """Waits for another step that runs at the same time."""

    def __init__(self, own: Path, other: Path) -> None:
        self._own, self._other = own, other

    def process(self, element: int) -> Iterable[tuple[str, Any]]:
        self._own.touch()
        for _ in range(600):
            if self._other.exists():
                return ()
            time.sleep(0.05)
        raise TimeoutError("the other step does not run")


def test_steps_that_do_not_wait_for_each_other_run_at_the_same_time(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with LocalFlow(2) as flow:
        flow.map("One", flow.create("First", [1]), Meet(one, other))
        flow.map("Other", flow.create("Second", [1]), Meet(other, one))


def test_a_failure_is_raised_where_nobody_uses_the_outputs() -> None:
    flow = LocalFlow(2)
    with pytest.raises(OSError, match="No space left"), flow:
        _fail_unseen(flow)


def _fail_unseen(flow: LocalFlow) -> None:
    assert list(flow.map("Number", flow.create("Numbers", [1]), Number())) == ["numbers"]
    flow.map("Fail", flow.create("Zero", [0]), Fail("full"))
    assert len(list(flow.map("Number", flow.create("Numbers", [1]), Number())["numbers"])) == 1


class Opened(Step):
    """Tells what was set up and closed, in a file of its process."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def _say(self, what: str) -> None:
        with (self._log / str(os.getpid())).open("a") as file:
            file.write(f"{what} ")

    def setup(self) -> None:
        self._say("up")

    def process(self, element: int) -> Iterable[tuple[str, Any]]:
        self._say(str(element))
        return ()

    def teardown(self) -> None:
        self._say("down")


def test_a_step_is_set_up_once_in_a_process(tmp_path: Path) -> None:
    with LocalFlow(1) as flow:
        for name in ("First", "Second"):
            flow.map(name, flow.create("Elements", [1, 2, 3]), Opened(tmp_path))
    assert (tmp_path / str(os.getpid())).read_text() == "up 1 2 3 down up 1 2 3 down "


class Fail(Step):
    """Fails with some, and waits with the others."""

    def __init__(self, how: str) -> None:
        self._how = how

    def process(self, element: int) -> Iterable[tuple[str, Any]]:
        if element:
            time.sleep(60)
        if self._how == "full":
            raise OSError(28, "No space left on device", "/corpus/en")
        os.kill(os.getpid(), signal.SIGKILL)
        return ()


@pytest.mark.parametrize(
    ("workers", "how", "says"),
    [
        (1, "full", r"^/corpus/en: no space left on device$"),
        (2, "full", r"^/corpus/en: no space left on device$"),
        (2, "killed", r"^a worker process was killed, perhaps because memory ran out: .* --workers"),
    ],
)
def test_a_failed_step_is_one_sentence_and_ends_the_others(workers: int, how: str, says: str) -> None:
    started = time.monotonic()
    with pytest.raises(C4pipeError, match=says):
        run_job(lambda flow: _do(flow, Fail(how)), RunnerOptions(workers=workers), tasks=2)
    assert time.monotonic() - started < 30  # not the minute of the other


def _sleep() -> None:
    time.sleep(60)


def test_a_failed_job_ends_its_own_workers_alone() -> None:
    """Not the other processes that the user's program has started, before the job or while it runs."""
    context = multiprocessing.get_context("spawn")
    before, during = context.Process(target=_sleep), context.Process(target=_sleep)
    foreign = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    before.start()
    try:
        with pytest.raises(OSError, match="No space left"):
            _start_and_fail(during)
        children = multiprocessing.active_children()
        assert {each.pid for each in children} == {before.pid, during.pid}, "the workers are ended, the others are not"
        assert foreign.poll() is None
    finally:
        for process in (before, during):
            process.kill()
            process.join()
        foreign.kill()
        foreign.wait()


def _begin_the_first_late(environment: dict[str, str]) -> None:
    with contextlib.suppress(FileExistsError):
        Path(environment["C4PIPE_TEST_FIRST"]).touch(exist_ok=False)
        time.sleep(5)
    initialise_worker(environment)


def test_the_last_worker_to_start_is_watched_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its death ends the job at once, not when another worker has something to tell."""
    monkeypatch.setattr("c4pipe.runners.worker_pool.initialise_worker", _begin_the_first_late)
    monkeypatch.setenv("C4PIPE_TEST_FIRST", str(tmp_path / "first"))
    start = _LightProcess.start

    def start_late(process: _LightProcess) -> None:
        time.sleep(0.5)  # the pool looks meanwhile which workers to watch
        start(process)

    monkeypatch.setattr(_LightProcess, "start", start_late)
    started = time.monotonic()
    with pytest.raises(C4pipeError, match="a worker process was killed"):
        run_job(lambda flow: _do(flow, Fail("killed")), RunnerOptions(workers=2), tasks=2)
    assert time.monotonic() - started < 40


def _start_and_fail(process: multiprocessing.process.BaseProcess) -> None:
    with LocalFlow(2) as flow:
        process.start()
        _do(flow, Fail("full"))


def _do(flow: Flow, step: Step) -> None:
    flow.map("Step", flow.create("Elements", [0, 1]), step)


def test_no_more_processes_than_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def flow(count: int, workers: Workers | None) -> LocalFlow:
        assert workers is None
        asked.append(count)
        return LocalFlow(1)

    monkeypatch.setattr(local_flow, "LocalFlow", flow)
    for workers, tasks in ((8, 3), (2, 3), (1, 3), (4, 0)):
        run_job(lambda flow: None, RunnerOptions(workers=workers), tasks)
    assert asked == [3, 2, 1, 1]
