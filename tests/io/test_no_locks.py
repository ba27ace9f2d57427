"""Folders of file systems without flock: one run at a time, what a killed run leaves, and no cache."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from c4pipe.io import lock
from tests.conftest import ROOT
from tests.helpers.web import serve

pytestmark = pytest.mark.needs("compiler")

HOLD = """
import sys, time
from pathlib import Path
from c4pipe.io.lock import only_run
with only_run(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""
LOCK = """
import sys
from pathlib import Path
from c4pipe.errors import UsageError
from c4pipe.io.lock import only_run
try:
    with only_run(Path(sys.argv[1])):
        print(*sorted(path.name for path in Path(sys.argv[1]).iterdir()))
except UsageError as error:
    print(error)
"""
CRITICAL = """(Path(sys.argv[1]) / "one").mkdir()
        __import__("time").sleep(0.2)
        (Path(sys.argv[1]) / "one").rmdir()
        print("alone")"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("c") / "no_locks.so"
    source = ROOT / "tests" / "helpers" / "no_locks.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, source], check=True)
    return path


@pytest.fixture(params=["ENOLCK", "ENOSYS", "EOPNOTSUPP"])
def environment(request: pytest.FixtureRequest, library: Path) -> dict[str, str]:
    number = str(getattr(errno, request.param))
    return {**os.environ, "PYTHONPATH": str(ROOT), "LD_PRELOAD": str(library), "FLOCK_ERRNO": number}


def run(environment: dict[str, str], *command: object) -> "subprocess.CompletedProcess[str]":
    given = [sys.executable, *map(str, command)]
    return subprocess.run(given, env=environment, capture_output=True, text=True, check=False)


def test_one_run_at_a_time_and_a_killed_one_is_no_obstacle(environment: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        told = run(environment, "-c", LOCK, tmp_path).stdout
        assert told.startswith(f"another run of c4pipe (process {process.pid} on ")
        assert f"or delete {tmp_path}/.lock if it has ended" in told
        process.kill()
    assert (tmp_path / ".lock").exists()
    assert run(environment, "-c", LOCK, tmp_path).stdout == ".lock\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "is_stale"),
    [
        ({}, True),
        ({0: "process 1 on another-machine"}, False),
        ({1: "another id of a machine"}, False),
        ({2: "another start"}, True),
        ({1: "", 2: "another start"}, False),
        ({3: "pid:[1]"}, False),
    ],
)
def test_only_a_lock_of_an_ended_process_is_stale(change: dict[int, str], is_stale: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    own = ["id", *lock._identify_machine()[1:]]
    lines = [f"process {process.pid} on {os.uname().nodename}", *own]
    lines = [change.get(number, line) for number, line in enumerate(lines)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lock, "_identify_machine", lambda: (change.get(1, "id") and "id", *own[1:]))
        assert lock._has_ended("\n".join(lines)) == is_stale
        assert not lock._has_ended("\n".join([f"process {os.getpid()} on {os.uname().nodename}", *own]))
        assert not lock._has_ended("")


@pytest.mark.slow
def test_a_corpus_is_built_and_nothing_is_cached(environment: dict[str, str], tmp_path: Path) -> None:
    source = next((ROOT / "samples" / "crawl").glob("*-00000.warc.wet.gz"))
    lists, cache, output = ROOT / "samples" / "lists", tmp_path / "cache", tmp_path / "corpus"
    with serve({source.name: source.read_bytes()}) as web:
        url = f"{web.url}/{source.name}"
        options = ["--lists", lists, "--cache", cache, "--output", output, "--workers", "1"]
        done = run(environment, "-m", "c4pipe", "build", url, *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"--cache {cache}: its file system has no locks") == 1
    assert list(cache.iterdir()) == []
    assert not [path for path in output.rglob("*") if ".lock" in path.name]


def test_many_runs_at_once_do_not_meet(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text(
        "\n".join(("process 999999999 on " + os.uname().nodename, *lock._identify_machine()))
    )
    text = LOCK.replace("print(*sorted(path.name for path in Path(sys.argv[1]).iterdir()))", CRITICAL)
    command = [sys.executable, "-c", text, str(tmp_path)]
    runs = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    told = [each.communicate()[0] for each in runs]
    assert all(each == "alone\n" or "is at work" in each for each in told), told
    assert "alone\n" in told
