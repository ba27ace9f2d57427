"""The scripts of examples/arrays, run as a job array runs them, and the corpus of one build."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.crawls import LISTS, ROOT, files_of, made_crawl
from tests.helpers.s3 import store_of
from tests.helpers.web import serve

pytestmark = pytest.mark.slow

INDICES = ("SLURM_ARRAY_TASK_ID", "AWS_BATCH_JOB_ARRAY_INDEX", "BATCH_TASK_INDEX", "JOB_COMPLETION_INDEX")
SLICES = ["files.txt", "2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a crawl of five files and their list, whose last line has no end."""
    for name, data in made_crawl(5).items():
        path = tmp_path / "crawls" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    files = sorted((tmp_path / "crawls").rglob("*.wet.gz"))
    (tmp_path / "files.txt").write_text("\n".join(str(path.relative_to(tmp_path)) for path in files))
    return tmp_path


def run(folder: Path, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command in a folder, where `c4pipe` is that of this Python, as a scheduler that sets some variables."""
    environment = {name: value for name, value in os.environ.items() if name not in INDICES}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}",
        "PYTHONPATH": str(ROOT),
        **variables,
    }
    return subprocess.run(command, cwd=folder, env=environment | variables, capture_output=True, text=True, timeout=120)


def clean(
    folder: Path, variable: str, index: int, work: str = "work", **more: str
) -> "subprocess.CompletedProcess[str]":
    script = ["sh", str(ROOT / "examples" / "arrays" / "clean.sh"), *SLICES, work, "--lists", str(LISTS)]
    return run(folder, *script, "--workers", "1", **{variable: str(index)})


def dedup(folder: Path, work: str = "work", output: str = "corpus") -> "subprocess.CompletedProcess[str]":
    script = ["sh", str(ROOT / "examples" / "arrays" / "dedup.sh"), *SLICES, work, "--output", output]
    return run(folder, *script, SLURM_CPUS_PER_TASK="1")


def corpus_of_one_build(folder: Path) -> dict[str, bytes]:
    options = ["--lists", str(LISTS), "--workers", "1", "--work", "one-work", "--output", "one"]
    assert run(folder, "c4pipe", "build", "@files.txt", *options).returncode == 0
    return files_of(folder / "one")


def test_an_array_and_one_dedup_give_the_corpus_of_one_build(folder: Path) -> None:
    for index, variable in enumerate(INDICES[:3]):
        assert clean(folder, variable, index).returncode == 0
    beyond = clean(folder, INDICES[3], 3)
    assert (beyond.returncode, beyond.stdout) == (0, "task 3: nothing to do, because files.txt ends before line 7\n")
    work_files = [path.relative_to(folder / "work").parts for path in sorted((folder / "work").glob("*/*.parquet"))]
    assert [name for name, _ in work_files] == ["00000", "00000", "00001", "00001", "00002"]

    done = dedup(folder)
    assert done.returncode == 0, done.stderr
    assert files_of(folder / "corpus") == corpus_of_one_build(folder)


def test_dedup_waits_for_tasks_that_failed_and_they_go_on(folder: Path) -> None:
    for index in (0, 1):
        assert clean(folder, INDICES[0], index).returncode == 0
    (kept, lost) = sorted((folder / "work" / "00001").glob("*.parquet"))
    lost.rename(lost.with_name(f".{lost.name}.1-2.tmp"))  # as if the task had been killed while it wrote the file
    written = kept.stat()

    refused = dedup(folder)
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "task 1: work/00001 has 1 of 2 files",
        "task 2: work/00002 has 0 of 1 files",
        "no corpus was written: run these tasks again, in Slurm with --array=1,2",
    ]
    assert not (folder / "corpus").exists()

    for index in (1, 2):
        assert clean(folder, INDICES[0], index).returncode == 0
    again = kept.stat()
    assert (again.st_ino, again.st_mtime_ns) == (written.st_ino, written.st_mtime_ns)  # it was not cleaned again
    assert dedup(folder).returncode == 0
    assert files_of(folder / "corpus") == corpus_of_one_build(folder)


def test_a_task_fails_when_c4pipe_fails(folder: Path) -> None:
    shutil.rmtree(folder / "crawls")
    done = clean(folder, INDICES[0], 0)
    assert done.returncode == 2
    assert "there is no such file or folder" in done.stderr


def test_without_an_index_nothing_is_cleaned(folder: Path) -> None:
    done = clean(folder, "NO_INDEX", 0)
    assert done.returncode != 0
    assert "this is not a task of an array: no variable has its index" in done.stderr
    assert not (folder / "work").exists()


def test_a_file_that_is_missing_fails_its_task_and_is_in_the_manifest(folder: Path) -> None:
    names = (folder / "files.txt").read_text().splitlines()
    with serve({name: (folder / name).read_bytes() for name in names[1:]}) as web:
        (folder / "files.txt").write_text("".join(f"{web.url}/{name}\n" for name in names))
        assert [clean(folder, INDICES[0], index).returncode for index in (0, 1, 2)] == [3, 0, 0]
    assert dedup(folder).returncode == 3
    manifest = json.loads((folder / "corpus" / "manifest.json").read_text())
    assert [values["name"] for values in manifest["missing"]] == ["00000.warc.wet.gz"]


def test_work_folders_in_a_store(folder: Path, moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with store_of(moto, {"bucket/other": b"x"}, monkeypatch) as store:
        for index in (0, 1):
            assert clean(folder, INDICES[1], index, "s3://bucket/work").returncode == 0
        refused = dedup(folder, "s3://bucket/work")
        assert refused.returncode == 2
        assert "s3://bucket/work/00002 is not a work folder" in refused.stderr
        assert clean(folder, INDICES[1], 2, "s3://bucket/work").returncode == 0
        done = dedup(folder, "s3://bucket/work")
        assert done.returncode == 0, done.stderr
        assert "whether each task is complete is not checked here" in done.stderr
        assert "work/00002/00004.warc.wet.gz.parquet" in store.keys("bucket")
    assert files_of(folder / "corpus") == corpus_of_one_build(folder)
