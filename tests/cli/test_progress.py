"""Progress on standard error: a bar on a terminal, lines elsewhere, JSON for programs."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from c4pipe.cli import main
from c4pipe.cli.options import TerminalOptions
from c4pipe.cli.progress import ProgressBar, make_progress, show_json, show_lines
from c4pipe.corpus import manifest
from c4pipe.jobs.clean import NOT_COMPILED
from c4pipe.runners.events import Progress, ProgressEvent, Status
from tests.helpers.commands import heed_interrupts
from tests.helpers.logs import log_records
from tests.helpers.web import serve
from tests.helpers.web_data import crawl_to_interrupt

ROOT = Path(__file__).resolve().parents[2]
CRAWL = ROOT / "samples" / "crawl"
LISTS = ["--lists", str(ROOT / "samples" / "lists")]
BUILD = ["build", str(CRAWL), *LISTS, "--workers", "1"]
C4PIPE = [sys.executable, "-m", "c4pipe"]

EVENTS = [
    ProgressEvent("clean", "begin", 0.25, "1 of 4 files", {"files": 1}),
    ProgressEvent("clean", "running", 0.5, "2 of 4 files", {"files": 2}, 15.04, 15.04),
    ProgressEvent("clean", "end", 1.0, "4 of 4 files", {"files": 4}, 45.0, 0.0, "2030-01-01_00"),
]


def test_lines_have_the_time_left() -> None:
    file = io.StringIO()
    show = show_lines(file)
    for event in EVENTS:
        show(event)
    assert file.getvalue().splitlines() == [
        "clean: 2 of 4 files, 15 s, 15 s left",
        "clean: 4 of 4 files, job 2030-01-01_00, 45 s",
    ]


def test_lines_obey_nothing_that_a_runner_says() -> None:
    file = io.StringIO()
    show_lines(file)(ProgressEvent("clean", "end", 1.0, "[red]", runner_job_id="a\x1b[2J"))
    assert file.getvalue() == "clean: [red], job a\ufffd[2J, 0 s\n"


def test_objects_have_the_facts() -> None:
    file = io.StringIO()
    show = show_json(file)
    for event in EVENTS:
        show(event)
    assert [json.loads(line) for line in file.getvalue().splitlines()] == [
        {"job": "clean", "share": 0.5, "seconds": 15.0, "seconds_left": 15.0, "runner_job_id": None, "files": 2},
        {"job": "clean", "share": 1.0, "seconds": 45, "seconds_left": 0, "runner_job_id": "2030-01-01_00", "files": 4},
    ]


def test_each_job_has_a_bar_of_its_own(tmp_path: Path) -> None:
    file = io.StringIO()
    progress = Progress(ProgressBar(Console(file=file, width=200, force_terminal=True)))
    with progress.show("clean", tmp_path, lambda: Status(0.5, "12 pages, dropped: [x] 25%")):
        progress.runs_as("2030-01-01_00")
    with progress.show("dedup", tmp_path, lambda: Status(0.5, "1 of 2 files written")):
        pass
    shown = file.getvalue()
    assert "12 pages, dropped: [x] 25%, job 2030-01-01_00" in shown
    assert "1 of 2 files written" in shown.partition("dedup")[2]
    assert "job" not in shown.partition("dedup")[2]


@pytest.mark.parametrize(("terminal", "bar"), [(True, True), (False, False)])
def test_what_shows_progress_by_the_options(
    terminal: bool, bar: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    for quiet, as_json in ((False, False), (True, False), (False, True), (True, True)):
        progress = make_progress(TerminalOptions(quiet=quiet, json_progress=as_json))
        with progress.show("clean", tmp_path, lambda: Status(1.0, "all done")):
            pass
        shown = stderr.getvalue()
        stderr.truncate(0)
        stderr.seek(0)
        if as_json:
            assert json.loads(shown)["share"] == 1.0
        elif quiet:
            assert shown == ""
        else:
            assert "all done" in shown
            assert ("\x1b[" in shown) == bar


# Real runs


def test_json_for_programs(tmp_path: Path) -> None:
    done = subprocess.run(
        [*C4PIPE, *BUILD, "--output", str(tmp_path / "c"), "--json-progress"], capture_output=True, text=True
    )
    *lines, end = [json.loads(line) for line in done.stderr.splitlines() if NOT_COMPILED not in line]
    assert end == {"outcome": "done", "exit_status": 0, "error": None}
    assert [line["job"] for line in lines] == sorted(line["job"] for line in lines)  # clean, then dedup
    clean = [line for line in lines if line["job"] == "clean"][-1]
    made = manifest.read_manifest(tmp_path / "c")
    assert made is not None
    start = "pages.dropped."
    counted = {name.removeprefix(start): n for name, n in made["counts"].items() if name.startswith(start)}
    assert clean["drops"] == {
        rule: n for rule, n in counted.items() if rule not in ("stale_capture", "few_sentences_left")
    }
    assert (clean["share"], clean["files"], clean["files_total"], clean["pages"]) == (1, 3, 3, 71)
    assert clean["seconds_left"] == 0
    assert 71 / clean["pages_per_second"] == pytest.approx(clean["seconds"], rel=0.5, abs=0.05)  # rounded to 0.1
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
    assert all_but["note"].startswith("complete except for 1 file;")
    assert end == {"outcome": "files missing", "exit_status": 3, "error": None}
    assert ("WARNING", gone["note"]) in log_records(log)


def test_json_and_log_of_a_run_that_is_stopped(tmp_path: Path, largest_data: Path) -> None:
    log, work = tmp_path / "log", tmp_path / "w"
    lists = ["--lists", str(largest_data / "lists"), "--workers", "1"]
    inputs = crawl_to_interrupt(largest_data, [largest_data / "pages"], tmp_path / "crawl")
    command = ["clean", *map(str, inputs), *lists, "--work", str(work), "--json-progress", "--log", str(log)]
    process = subprocess.Popen(
        [*C4PIPE, *command], stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_interrupts
    )
    while not list(work.glob(".*.parquet.*.tmp")):
        assert process.poll() is None, "it ended before it could be stopped"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, printed = process.communicate()
    assert process.returncode == 130
    end = json.loads(printed.splitlines()[-1])
    assert (end["outcome"], end["exit_status"]) == ("stopped", 130)
    assert "the same command continues from here" in end["error"]
    assert log_records(log)[-1] == ("WARNING", "stopped")
    assert "clean: ended by KeyboardInterrupt" in log.read_text()


def test_json_of_the_other_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command that takes a while has progress as JSON, and nothing else on standard error."""
    corpus, vocabulary = str(tmp_path / "c"), str(tmp_path / "v")
    assert main.main([*BUILD, "--output", corpus, "--quiet"]) == 0
    (tmp_path / "c" / "report.json").unlink()
    commands = {
        "report": ["report", corpus, "--workers", "1"],
        "diff": ["diff", corpus, corpus],
        "train": ["vocab", f"{corpus}/en", "--output", vocabulary, "--size", "300", "--workers", "1"],
        "tokens": ["tokens", corpus, "--vocab", vocabulary, "--workers", "1"],
    }
    capsys.readouterr()
    for job, command in commands.items():
        assert main.main([*command, "--json-progress"]) == 0
        *lines, end = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
        assert end == {"outcome": "done", "exit_status": 0, "error": None}
        least = 0.9 if job == "train" else 1.0  # SentencePiece does not say how far it is: its share is an estimate
        assert [line for line in lines if line.get("job") == job][-1]["share"] >= least, job
