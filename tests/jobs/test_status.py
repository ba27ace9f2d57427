"""`c4pipe status` of runs on this machine. tests/jobs/test_slurm.py has runs on Slurm."""

import json
import os
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import get_args

import pytest

from c4pipe import build_corpus
from c4pipe.cli.main import main
from c4pipe.corpus.manifest import read_manifest
from c4pipe.io.json_files import write_checked_json
from c4pipe.io.lock import only_run
from c4pipe.jobs.dedup_plan import CorpusPlan, plan_dedup
from c4pipe.jobs.options import BuildOptions
from c4pipe.jobs.status import RunStatus, State, run_status
from tests.helpers.crawls import LISTS, SAMPLES
from tests.helpers.documents import code_blocks, first_quotes, page, quoted, section
from tests.helpers.s3 import store_of


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    inputs = [str(path) for path in SAMPLES]
    output = tmp_path / "corpus"
    assert main(["build", *inputs, "--lists", str(LISTS), "--output", str(output), "--workers", "1", "--quiet"]) == 0
    return output


def status(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    capsys.readouterr()
    code = main(["status", str(folder)])
    return code, [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_run_is_complete_or_stopped_or_at_work(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = status(corpus, capsys)
    assert code == 0
    assert lines == ["files done 3", f"{corpus} is a complete corpus: 38 pages in 2 files"]
    (corpus / "manifest.json").unlink()
    (corpus / "_work" / f"{SAMPLES[1].name}.parquet").unlink()
    for folder in (corpus, corpus / "_work"):
        code, lines = status(folder, capsys)
        assert code == 1
        assert lines == [
            "files done 2 of 3 (67%)",
            f"{folder} has no run at work: the command that made it continues from here",
        ]
        with only_run(corpus / "_work"):
            code, lines = status(folder, capsys)
        assert code == 5
        assert lines[0] == "files done 2 of 3 (67%)"
        assert lines[1].startswith("clean runs: process ")
    with only_run(corpus):
        assert status(corpus, capsys)[1][1].startswith("dedup runs: process ")
        (corpus / "_work").rename(corpus.parent / "work")  # as of dedup, or with --work
        code, (line,) = status(corpus, capsys)
        assert code == 5
        assert line.startswith("dedup runs: process ")


def test_build_is_at_work_between_its_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that waits would take a gap for the end."""
    looks, work = list[RunStatus](), tmp_path / "corpus" / "_work"

    def look_and_plan(options: BuildOptions, inputs: set[str]) -> CorpusPlan:
        looks.extend(map(run_status, (work.parent, work)))
        return plan_dedup(options, inputs)

    monkeypatch.setattr("c4pipe.jobs.dedup.plan_dedup", look_and_plan)
    build_corpus(SAMPLES[0], output=work.parent, lists=LISTS, workers=1)
    assert [look.state for look in looks] == ["running", "running"]
    assert all(look.sentences[-1].startswith("the command runs: process ") for look in looks)


def test_a_run_that_ends_during_the_first_look(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([None, read_manifest(corpus)])
    monkeypatch.setattr("c4pipe.jobs.status.read_manifest", lambda folder: next(looks))
    assert run_status(corpus).state == "complete"


def test_status_for_programs(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In docs/formats.md and in an example of docs/batch_systems.md."""

    def look() -> tuple[int, dict[str, object]]:
        capsys.readouterr()
        return main(["status", str(corpus), "--json"]), json.loads(capsys.readouterr().out)

    sentences = [f"{corpus} is a complete corpus: 38 pages in 2 files"]
    members = {"state": "complete", "files": {"done": 3, "missing": 0}, "files_total": None, "sentences": sentences}
    assert look() == (0, members)
    text = section(page("docs/formats.md"), "Status")
    assert first_quotes(text) == set(members)
    assert quoted(text.partition("| `state` |")[2].partition("\n")[0]) == list(get_args(State))
    (corpus / "manifest.json").unlink()
    code, values = look()
    assert (code, values["state"], values["files_total"]) == (1, "stopped", 3)
    with only_run(corpus):
        code, values = look()
    assert (code, values["state"]) == (5, "running")


def test_a_script_waits(corpus: Path) -> None:
    """With the line of docs/reliability.md."""
    (line,) = code_blocks(section(page("docs/reliability.md"), "Wait for a run"), "text")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with only_run(corpus):
        (corpus / "manifest.json").rename(corpus / "later")
        script = ["bash", "-c", line.replace("sleep 60", "echo waits; read")]
        process = subprocess.Popen(script, cwd=corpus.parent, env=environment, stdin=PIPE, stdout=PIPE, text=True)
        assert process.stdout
        assert "waits\n" in iter(process.stdout.readline, "")
        (corpus / "later").rename(corpus / "manifest.json")
    assert "is a complete corpus" in process.communicate("\n", timeout=60)[0]
    assert process.returncode == 0


def test_a_store_does_not_say_whether_a_run_is_at_work(
    corpus: Path, moto: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [path for path in (corpus / "_work").iterdir() if path.is_file()]
    with store_of(moto, {f"bucket/c/_work/{path.name}": path.read_bytes() for path in files}, monkeypatch):
        capsys.readouterr()
        assert main(["status", "s3://bucket/c"]) == 5
        assert "s3://bucket/c is not complete, and a store does not say" in capsys.readouterr().out
        assert main(["status", "s3://bucket/c/_work"]) == 0


def test_a_work_folder_is_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = tmp_path / "work"
    command = ["clean", str(SAMPLES[0]), "--lists", str(LISTS), "--workers", "1", "--quiet", "--work", str(work)]
    assert main(command) == 0
    assert status(work, capsys) == (0, ["files done 1 of 1 (100%)", f"{work} is complete"])
    (work / "files.json").unlink()  # as in folders of earlier versions
    assert status(work, capsys)[0] == 1


def test_missing_files_have_their_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.wet"
    bad.write_bytes(b"no record")
    command = ["build", str(SAMPLES[0]), str(bad), "--lists", str(LISTS), "--workers", "1", "--quiet"]
    assert main([*command, "--output", str(tmp_path / "corpus")]) == 3
    code, lines = status(tmp_path / "corpus", capsys)
    assert code == 3
    assert lines[:2] == ["files done 1", "files missing 1"]
    assert "bad.wet has no " in lines[2]


def test_a_folder_of_no_run_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "samples" / "lists").mkdir(parents=True)
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "shard.parquet").touch()
    for folder in (tmp_path, tmp_path / "nowhere", tmp_path / "samples", tmp_path / "en"):
        assert main(["status", str(folder)]) == 2
        assert capsys.readouterr().err == (
            f"c4pipe: {folder} is the folder of no run: give the --output or the --work folder of one\n"
        )


def test_slurm_that_does_not_answer_is_not_stopped(submitted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (submitted.parents[2] / "squeue").write_text("#!/bin/sh\necho down >&2; exit 1\n")
    code, lines = status(submitted.parents[1], capsys)
    assert (code, lines[0]) == (5, "files not done 1")
    assert lines[-1].startswith("which tasks are queued or run is not known: ")


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A submission of one file to a Slurm that knows no job."""
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    folder = tmp_path / "work" / "_slurm" / "001"
    folder.mkdir(parents=True)
    write_tasks(folder)
    (folder / "clean-0.sh").touch()
    return folder


def write_tasks(folder: Path, **values: object) -> None:
    tasks = {"files": ["a.wet"], "tasks": [[0]], "output": "", "accepts_missing": False, **values}
    write_checked_json(folder / "tasks.json", tasks)


def test_names_that_no_submission_has(submitted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (submitted / "clean-x.sh").touch()
    (submitted / "clean-\u00b2.sh").touch()
    (submitted.parent / "\u00b2").mkdir()
    code, lines = status(submitted.parents[1], capsys)
    assert (code, lines) == (
        1,
        [
            "files failed 1",
            "a.wet: its task was cancelled before it began (clean-0_0.log)",
            "the command that submitted it submits what is left",
        ],
    )


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("pipe", "its log can't be read: it is a pipe or a device, and no file"),
        ("device", "its log can't be read: it is a pipe or a device, and no file"),
        ("folder", "its log can't be read: is a directory"),
        ("", "it went wrong"),
    ],
)
def test_the_log_of_a_task(kind: str, reason: str, submitted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = submitted / "clean-0_0.log"
    make = {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": Path.mkdir}
    make.get(kind, lambda path: path.write_text("it went wrong\nc4pipe: status 1\n"))(log)
    assert status(submitted.parents[1], capsys)[1][1] == f"a.wet: {reason} (clean-0_0.log)"


def test_a_task_without_its_file(submitted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tasks(submitted, tasks=[[99]])
    assert main(["status", str(submitted.parents[1])]) == 2
    said = f"c4pipe: {submitted}/tasks.json has a task without its file: delete that folder\n"
    assert capsys.readouterr().err == said


def test_another_corpus_is_not_opened(submitted: Path, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """tests/jobs/test_slurm.py has a run with another output."""
    write_tasks(submitted, output=str(corpus))
    code, lines = status(submitted.parents[1], capsys)
    assert code == 1
    assert not any("38 pages" in line for line in lines)


def test_a_lock_that_is_a_pipe(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (corpus / "manifest.json").unlink()
    os.mkfifo(corpus / "_work" / ".lock")
    assert status(corpus, capsys)[0] == 1


@pytest.mark.parametrize("files", [5, [5], [["a"]], None])
def test_a_list_of_files_that_c4pipe_does_not_write(
    files: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_checked_json(tmp_path / "files.json", {"files": files})
    assert main(["status", str(tmp_path)]) == 2
    assert "is the folder of no run" in capsys.readouterr().err
