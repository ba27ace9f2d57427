"""The power goes at any rename of any job: no file that has its name is empty, and the same command completes the rest.

The disk of these tests drops all that was not fsynced (`tests.helpers.power_cuts`), as ext4 may.
"""

import shutil
from pathlib import Path

import pytest

from c4pipe.cli import main
from tests.helpers.crawls import LISTS, SAMPLES, files_of
from tests.helpers.power_cuts import record

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("compiler"),
]

INPUTS = [*map(str, SAMPLES), "--lists", str(LISTS)]
JOBS = {"clean": 8, "dedup": 14, "vocab": 9, "tokens": 4, "token files": 13}
"""The jobs, and the fewest renames of each."""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what each job needs: work files, a corpus of them, and a vocabulary of that."""
    folder = tmp_path_factory.mktemp("done")
    for job in ("clean", "dedup", "vocab"):
        assert main.main([*arguments(job, folder, folder / job), "--quiet"]) == 0
    return folder


def arguments(job: str, done: Path, target: Path) -> list[str]:
    """The command of a job that writes to a folder, given the folder with what it needs."""
    model = str(done / "vocab" / "spm.model")
    commands = {
        "clean": [*INPUTS, "--work"],
        "dedup": [str(done / "clean"), "--shards", "2", "--output"],
        "vocab": [str(done / "dedup" / "en"), "--size", "100", "--output"],
        "tokens": ["--vocab", model],
        "token files": [str(done / "dedup"), "--vocab", model, "--format", "megatron", "--output"],
    }
    return [job.replace("token files", "tokens"), *commands[job], str(target), "--workers", "1"]


@pytest.mark.parametrize("job", JOBS)
def test_a_cut_at_any_rename_loses_nothing(job: str, done: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    if job == "tokens":
        shutil.copytree(done / "dedup", target)
    disk = record(target, tmp_path / "copies", *arguments(job, done, target))
    assert len(disk.cuts) >= JOBS[job]
    assert disk.empty == []
    assert disk.waiting == set(), "renamed, and the folder was not fsynced until the end"
    whole = files_of(target)
    for renamed, copy in disk.cuts:
        assert main.main([*arguments(job, done, copy), "--quiet"]) == 0, renamed
        left = files_of(copy)
        left.pop("spm.log", None)  # has times in it
        assert left == {name: data for name, data in whole.items() if name != "spm.log"}, renamed
    print(f"\n{len(disk.cuts)} cuts of {job}")
