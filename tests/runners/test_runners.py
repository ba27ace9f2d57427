"""Which engine runs a job, and a failure that says what happened."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

from c4pipe.errors import C4pipeError, JobWritten
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.local_flow import LocalFlow
from c4pipe.runners.runner import failure, run_job
from c4pipe.runners.runner_options import RunnerOptions


def test_failure_finds_the_cause_in_nested_tracebacks() -> None:
    text = (
        "Traceback (most recent call last):\n  File x\nValueError: first\n\nDuring handling ...\n"
        "OSError: [Errno 2] No such file: 'a.wet' [while running 'Clean/Clean WET file-ptransform-12']\n\n"
    )
    assert str(failure(RuntimeError(text))) == "a.wet: no such file"
    assert str(failure(RuntimeError(""))) == "no message (RuntimeError)"


class Write(Step):
    """Writes a file."""

    def process(self, element: str) -> Iterable[tuple[str, Any]]:
        Path(element).write_text("done")
        return ()


def test_no_runner_is_this_machine(tmp_path: Path) -> None:
    def graph(flow: Flow) -> None:
        assert isinstance(flow, LocalFlow)
        flow.map("Write", flow.create("One", [str(tmp_path / "done")]), Write())

    run_job(graph, RunnerOptions(), tasks=1)
    assert (tmp_path / "done").read_text() == "done"


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
    assert told.stdout == f"{moved}/python -m c4pipe.runners.beam_boot --id 1\n"


def test_a_file_of_a_job_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert JobWritten("the job is in clean.jar").exit_status == 0
    monkeypatch.setattr(beam.Pipeline, "run", lambda self: self)
    monkeypatch.setattr(beam.Pipeline, "wait_until_finish", lambda self: None, raising=False)
    with pytest.raises(JobWritten, match=r"the job is in clean\.jar"):
        run_job(
            lambda flow: None,
            RunnerOptions(runner="FlinkRunner", beam=("--output_executable_path=clean.jar",)),
            tasks=1,
        )


@pytest.mark.parametrize("raised", [RuntimeError("the connection to Spark is broken"), C4pipeError("Spark has ended")])
def test_an_error_while_ctrl_c_is_handled_is_ctrl_c(raised: Exception) -> None:
    def graph(flow: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise raised

    with pytest.raises(KeyboardInterrupt):
        run_job(graph, RunnerOptions(workers=1), 1)
