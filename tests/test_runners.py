"""The local runner loses nothing between its processes, and a failure says what happened."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import worker_handlers

from c4pipe.errors import C4pipeError, JobWritten, UsageError
from c4pipe.options import Engine
from c4pipe.runners import failure, run

ELEMENTS = 300_000


@pytest.fixture(autouse=True)
def functions_of_this_file_in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def _payloads(start: int) -> Iterator[tuple[int, bytes]]:
    for number in range(start, start + ELEMENTS // 10):
        yield number % 97, b"x" * 500


def _write(count: int, path: str) -> None:
    Path(path).write_text(str(count))


def test_nothing_is_lost_between_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Beam's default of 1,000 ms loses elements now and then; 1 ms does so at once, if the runner does not cure it.
    monkeypatch.setattr(worker_handlers, "DATA_BUFFER_TIME_LIMIT_MS", 1)
    result = tmp_path / "count"

    def construct(pipeline: beam.Pipeline) -> None:
        payloads = (
            pipeline
            | "Starts" >> beam.Create(range(0, ELEMENTS, ELEMENTS // 10))
            | "Spread" >> beam.Reshuffle()
            | "Payloads" >> beam.FlatMap(_payloads)
        )
        # What waits for a side input made of itself crosses from stage to stage as it is, in many pieces.
        largest = payloads | "Numbers" >> beam.Map(lambda pair: pair[0]) | "Largest" >> beam.CombineGlobally(max)
        _ = (
            payloads
            | "Wait" >> beam.Map(lambda pair, largest: pair[0] <= largest, beam.pvalue.AsSingleton(largest))
            | "Count" >> beam.combiners.Count.Globally()
            | "Write" >> beam.Map(_write, str(result))
        )

    run(construct, Engine(workers=2), tasks=2)
    assert int(result.read_text()) == ELEMENTS
    assert worker_handlers.DATA_BUFFER_TIME_LIMIT_MS == 1  # put back for others


def _fail(_: int) -> None:
    raise OSError(28, "No space left on device", "/corpus/en")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failed_step_is_one_sentence(workers: int) -> None:
    def construct(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "Numbers" >> beam.Create([1, 2]) | "Spread" >> beam.Reshuffle() | "Fail" >> beam.Map(_fail)

    with pytest.raises(C4pipeError, match=r"^\[Errno 28\] No space left on device: '/corpus/en' \(OSError\)$"):
        run(construct, Engine(workers=workers), tasks=2)


def test_failure_finds_the_cause_in_nested_tracebacks() -> None:
    text = (
        "Traceback (most recent call last):\n  File x\nValueError: first\n\nDuring handling ...\n"
        "OSError: [Errno 2] No such file: 'a.wet' [while running 'Clean/Clean WET file-ptransform-12']\n\n"
    )
    assert str(failure(RuntimeError(text))) == "[Errno 2] No such file: 'a.wet' (OSError)"
    assert str(failure(RuntimeError(""))) == "no message (RuntimeError)"


def test_workers_is_refused_where_it_would_do_nothing() -> None:
    with pytest.raises(UsageError, match="--workers 3 is for this machine; FlinkRunner"):
        run(lambda pipeline: None, Engine(workers=3, beam=("--runner", "FlinkRunner")), tasks=1)


@pytest.mark.parametrize("name", ["LocalRunner", "DirectRunner", "FnApiRunner"])
def test_names_of_this_machine(name: str, tmp_path: Path) -> None:
    def construct(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "One" >> beam.Create([1]) | "Write" >> beam.Map(_write, str(tmp_path / "done"))

    run(construct, Engine(beam=(f"--runner={name}",)), tasks=1)
    assert (tmp_path / "done").read_text() == "1"


def test_the_script_that_starts_workers_finds_its_python(tmp_path: Path) -> None:
    """By its own place, not by PATH or by a path written into it: an environment can be packed and moved."""
    script = Path(sys.executable).parent / "c4pipe-boot"
    help = subprocess.run([script, "--help"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True)
    assert "--provision_endpoint" in help.stdout
    moved = tmp_path / "moved" / "bin"
    moved.mkdir(parents=True)
    (moved / "c4pipe-boot").write_bytes(script.read_bytes())
    (moved / "c4pipe-boot").chmod(0o755)
    (moved / "python").write_text('#!/bin/sh\necho "$0 $*"\n')
    (moved / "python").chmod(0o755)
    told = subprocess.run([moved / "c4pipe-boot", "--id", "1"], capture_output=True, text=True, check=True)
    assert told.stdout == f"{moved}/python -m c4pipe.boot --id 1\n"


def test_a_file_of_a_job_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    error = JobWritten("the job is in clean.jar")
    assert error.exit_status == 0
    with pytest.raises(JobWritten):
        run(lambda pipeline: None, Engine(beam=("--output_executable_path=clean.jar",)), tasks=1)
