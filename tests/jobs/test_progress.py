"""Progress and the log: what people and programs are told of a job while it runs and when it ends."""

import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.errors import JobWritten, UsageError
from c4pipe.jobs.logs import LOG, log_to
from c4pipe.jobs.progress import Progress, drops, said_drops, seconds_left
from c4pipe.runners.runner import RunnerOptions, _job_id, run
from tests.helpers.web import serve

ROOT = Path(__file__).resolve().parents[2]
CRAWL = ROOT / "samples" / "crawl"
LISTS = ["--lists", str(ROOT / "samples" / "lists")]
BUILD = ["build", str(CRAWL), *LISTS, "--workers", "1"]
C4PIPE = [sys.executable, "-m", "c4pipe"]

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING|ERROR) (.*)")


class Clock:
    """Stands in for the clock of a Progress, and for the event that ends it: each wait takes the time it asks for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, waits: int) -> None:
        self.now, self.waits, self.asked = 100.0, waits, list[float]()
        monkeypatch.setattr("c4pipe.jobs.progress.time.monotonic", lambda: self.now)

    def wait(self, seconds: float) -> bool:
        self.asked.append(seconds)
        self.now += seconds
        self.waits -= 1
        return self.waits <= 0


def shown(
    clock: Clock, look: Callable[[], tuple[float, str]], as_json: bool = False, every: float = 0.5, **facts: Any
) -> str:
    """What a job shows that ends when the clock does."""
    file = io.StringIO()
    told = Progress(Console(file=file, width=200), as_json=as_json)
    show = told._objects if as_json else told._lines
    show("clean", look, clock, every, lambda: facts)  # type: ignore[arg-type]
    return file.getvalue()


# What is said

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


def test_drops_by_rule_the_most_first() -> None:
    counts = {"pages.read": 200, "pages.dropped.b": 10, "pages.dropped.a": 10, "pages.dropped.z": 30, "lines.left": 9}
    assert list(drops(counts).items()) == [("z", 30), ("a", 10), ("b", 10)]
    assert said_drops({**counts, "pages.dropped.few": 1}) == ", dropped: z 15%, a 5%, b 5%"
    assert said_drops({"pages.read": 9, "pages.dropped.a": 0}) == ""
    assert said_drops({}) == ""


def test_lines_come_every_fifteen_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, waits=3)
    shares = iter([0.2, 0.4, 0.6, 1.0])
    printed = shown(clock, lambda: (next(shares), "some"))
    assert printed.splitlines() == ["clean: some, 15 s, 45 s left", "clean: some, 30 s, 30 s left", "clean: some, 45 s"]
    assert clock.asked == [15.0] * 3


@pytest.mark.parametrize(("every", "asked"), [(0.5, 1.0), (10.0, 10.0)], ids=["this machine", "a store"])
def test_objects_come_every_second_or_look_at_a_store(
    every: float, asked: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, waits=2)
    shares = iter([0.0, 0.5, 0.5])
    printed = shown(clock, lambda: (next(shares), "some"), as_json=True, every=every, files=3)
    first, last = map(json.loads, printed.splitlines())
    told = {"job": "clean", "share": 0.5, "engine_job": None, "files": 3}
    assert first == {**told, "seconds": asked, "seconds_left": asked}
    assert last == {**told, "seconds": 2 * asked, "seconds_left": None}  # it ended there, by an error
    assert clock.asked == [asked] * 2


def test_the_bar_has_the_drops_and_the_job_of_the_engine(tmp_path: Path) -> None:
    file = io.StringIO()
    told = Progress(Console(file=file, width=200, force_terminal=True))
    with told.show("clean", tmp_path, lambda: (0.5, "12 pages" + said_drops({"pages.read": 4, "pages.dropped.x": 1}))):
        told.runs_as("2030-01-01_00")
    assert "12 pages, dropped: x 25%, job 2030-01-01_00" in file.getvalue()


def test_quiet_shows_nothing_and_looks_at_nothing(tmp_path: Path) -> None:
    def look() -> tuple[float, str]:
        raise AssertionError("it looked")

    file = io.StringIO()
    before = threading.active_count()
    with Progress(Console(file=file), quiet=True).show("clean", tmp_path, look):
        assert threading.active_count() == before
    assert file.getvalue() == ""


# The engine's job


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


@pytest.mark.beam
def test_the_results_of_beam_have_what_is_looked_for() -> None:
    from apache_beam.runners.dataflow import dataflow_runner
    from apache_beam.runners.portability import portable_runner

    assert callable(dataflow_runner.DataflowPipelineResult.job_id)
    result = portable_runner.PipelineResult.__new__(portable_runner.PipelineResult)
    result._job_id = "one"
    assert _job_id(result) == "one"


@pytest.mark.beam
def test_an_engine_that_gives_an_id_has_it_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import apache_beam as beam

    class Result(OfDataflow):
        def wait_until_finish(self) -> None:
            assert told == ["2030-01-01_00_00_00-1"], "it is told before the job ends"

    told: list[str] = []
    monkeypatch.setattr(beam.Pipeline, "run", lambda self: Result())
    run(lambda flow: None, RunnerOptions(beam=("--runner=FlinkRunner",), quiet=True), 1, told.append)
    assert told == ["2030-01-01_00_00_00-1"]


# Real runs


def test_json_for_programs(tmp_path: Path) -> None:
    done = subprocess.run(
        [*C4PIPE, *BUILD, "--output", str(tmp_path / "c"), "--json-progress"], capture_output=True, text=True
    )
    *lines, end = [json.loads(line) for line in done.stderr.splitlines()]
    assert end == {"outcome": "done", "exit_status": 0, "error": None}
    assert [line["job"] for line in lines] == sorted(line["job"] for line in lines)  # clean, then dedup
    clean = [line for line in lines if line["job"] == "clean"][-1]
    made = manifest.read(tmp_path / "c")
    assert made is not None
    start = "pages.dropped."
    counted = {name.removeprefix(start): n for name, n in made["counts"].items() if name.startswith(start)}
    assert clean["drops"] == {
        rule: n for rule, n in counted.items() if rule not in ("stale_capture", "few_sentences_left")
    }
    assert (clean["share"], clean["files"], clean["files_total"], clean["pages"]) == (1, 3, 3, 71)
    assert clean["seconds_left"] == 0
    assert clean["pages_per_second"] == pytest.approx(71 / clean["seconds"], rel=0.5)
    assert (lines[-1]["job"], lines[-1]["share"], lines[-1]["files"], lines[-1]["files_total"]) == ("dedup", 1, 2, 2)
    assert "pages kept" in done.stdout


def test_json_of_a_quiet_run_has_nothing_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*BUILD, "--output", str(tmp_path / "c"), "--json-progress", "--quiet"]
    assert main.main(command) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [*map(json.loads, printed.err.splitlines())][-1]["outcome"] == "done"


@pytest.mark.parametrize(
    ("arguments", "status", "outcome", "says"),
    [
        (["build", str(ROOT / "LICENSE"), *LISTS], 1, "failed", "no page was found"),
        (["build", str(CRAWL), *LISTS, "--recipe", "c5"], 2, "wrong usage", "c5"),
        (["build", str(CRAWL), "--outptu", "x"], 2, "wrong usage", "--outptu"),
    ],
)
def test_json_of_an_error(
    arguments: list[str],
    status: int,
    outcome: str,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    more = ["--json-progress", "--workers", "1", "--output", str(tmp_path / "c")]
    assert main.main([*arguments, *more]) == status
    end = [json.loads(line) for line in capsys.readouterr().err.splitlines()][-1]
    assert (end["exit_status"], end["outcome"]) == (status, outcome)
    assert says in end["error"]


def test_missing_files_are_told_and_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    with serve({"crawl/a.warc.wet.gz": next(CRAWL.iterdir()).read_bytes()}) as web:
        urls = [f"{web.url}/crawl/{name}.warc.wet.gz" for name in ("a", "b")]
        command = ["clean", *urls, *LISTS, "--work", str(tmp_path / "w"), "--workers", "1", "--json-progress"]
        assert main.main([*command, "--log", str(log)]) == 3
    *_, gone, all_but, end = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert gone["note"].startswith(f"missing: {urls[1]}")
    assert all_but["note"].startswith("complete but for 1 files")
    assert end == {"outcome": "files missing", "exit_status": 3, "error": None}
    assert ("WARNING", gone["note"]) in records(log)


def heed_interrupts() -> None:
    """For a process whose parents run in a shell's background, where interrupts are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_json_and_log_of_a_run_that_is_stopped(tmp_path: Path, shared_data: Path) -> None:
    log, work = tmp_path / "log", tmp_path / "w"
    lists = ["--lists", str(shared_data / "lists"), "--workers", "1"]
    command = ["clean", str(shared_data / "pages"), *lists, "--work", str(work), "--json-progress", "--log", str(log)]
    process = subprocess.Popen(
        [*C4PIPE, *command], stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_interrupts
    )
    while not list(work.glob(".*.tmp")):
        assert process.poll() is None, "it ended before it could be stopped"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, printed = process.communicate()
    assert process.returncode == 130
    end = json.loads(printed.splitlines()[-1])
    assert (end["outcome"], end["exit_status"]) == ("stopped", 130)
    assert "the same command goes on from here" in end["error"]
    assert records(log)[-1] == ("WARNING", "stopped")
    assert "clean: ended by KeyboardInterrupt" in log.read_text()


# The log


def records(log: Path) -> list[tuple[str, str]]:
    """The level and message of each record; a traceback belongs to the record before it."""
    found: list[tuple[str, str]] = []
    for line in log.read_text().splitlines():
        match = STAMP.fullmatch(line)
        if match:
            found.append((match[1], match[2]))
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}")
    return found


def test_the_log_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, output = tmp_path / "log", tmp_path / "c"
    command = [*BUILD, "--output", str(output), "--quiet", "--log", str(log)]
    assert main.main(command) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")
    made = manifest.read(output)
    assert made is not None
    found = records(log)
    versions = " ".join(f"{name}={version}" for name, version in made["made_with"].items())
    assert found[0] == ("INFO", f"versions: {versions}")
    assert found[1] == ("INFO", f"command: c4pipe {' '.join(command)}")
    messages = [re.sub(r"[\d.]+ s$", "N s", message) for _, message in found]
    stages = [message for message in messages if message.endswith(("begins", " N s", "ended"))]
    begun = ["clean: begins", "clean: done in N s", "dedup: begins", "dedup: done in N s", "ended"]
    assert stages == begun
    (damage,) = [message for level, message in found if level == "WARNING"]
    assert damage == (
        "SAMPLE-20300101000000-00001.warc.wet.gz is damaged: "
        "damage.bad_length=1 damage.gzip_corrupt=1 damage.not_utf8=1"
    )
    counts = " ".join(f"{name}={number}" for name, number in made["counts"].items())
    assert ("INFO", f"dedup: {counts}") in found
    assert any(message.startswith("clean: ") and "pages.read=71" in message for message in messages)
    # once more: what is there stays there, in the log too
    assert main.main(command) == 0
    assert records(log)[: len(found)] == found
    assert [message for _, message in records(log)[len(found) :]].count("ended") == 1


def test_the_log_of_an_error_has_its_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    command = ["clean", str(ROOT / "LICENSE"), *LISTS, "--work", str(tmp_path / "w"), "--quiet", "--log", str(log)]
    assert main.main(command) == 1
    assert capsys.readouterr().err == "c4pipe: no page was found in the input file: are these WET files?\n"
    level, message = records(log)[-1]
    assert level == "ERROR"
    assert message.startswith("C4pipeError: no page was found in the input file: are these WET files?\nTraceback")
    assert 'pipeline.py"' in message


def test_what_is_logged(tmp_path: Path) -> None:
    """What c4pipe does, and warnings of libraries; not what they do."""
    log = tmp_path / "log"
    with log_to(log, ["clean", "a b"]):
        LOG.info("one")
        logging.getLogger("another").info("not told")
        logging.getLogger("another").warning("told")
        logging.getLogger("apache_beam.runners.worker.x").info("not told")
    assert [message for _, message in records(log)][1:] == ["command: c4pipe clean 'a b'", "one", "told", "ended"]
    assert LOG.level == logging.NOTSET
    logging.getLogger("c4pipe").warning("too late")
    assert "too late" not in log.read_text()


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--log .*nowhere/log can't be written"), log_to(tmp_path / "nowhere/log", []):
        pass


def test_a_job_that_was_written_to_a_file_is_no_error(tmp_path: Path) -> None:
    with pytest.raises(JobWritten), log_to(tmp_path / "log", []):
        raise JobWritten("the job is in x.jar")
    assert records(tmp_path / "log")[-1] == ("INFO", "the job is in x.jar")
