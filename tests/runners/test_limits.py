"""Limits of the system on memory, open files, processes and sizes of files: a whole corpus, or one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from c4pipe.runners.worker import is_limit, limit_error
from tests.helpers.crawls import LISTS
from tests.helpers.machine import NEEDS, require

ROOT = Path(__file__).resolve().parents[2]
CRAWL = LISTS.parent / "crawl"
SECONDS = 120  # a command that hangs takes longer, also on a busy machine
AS_NOBODY = "setpriv --reuid=65534 --clear-groups --inh-caps=-all,{0} --ambient-caps=-all,{0}".format(
    "+dac_override,+dac_read_search"
).split()
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have other limits")


def limited(limit: str, command: str, *more: object) -> subprocess.CompletedProcess[str]:
    """Runs c4pipe below a limit of Bash's ulimit. Root has no limit on processes, so another user runs it."""
    user = AS_NOBODY if limit.startswith("-u") and os.geteuid() == 0 else []
    line = f'ulimit {limit}; exec "$0" -m c4pipe {command} "$@"'
    return subprocess.run(
        [*user, "bash", "-c", line, sys.executable, *map(str, more)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


LIMITS = ["-v 1250000", "-v 900000", "-n 26", "-n 16", "-u 26", "-u 14", "-f 1", "-f 24"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> object:
    output = tmp_path_factory.mktemp("whole") / "corpus"
    limited("-c 0", "build", CRAWL, "--lists", LISTS, "--output", output).check_returncode()
    return json.loads((output / "manifest.json").read_text())["shards"]


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS)
def test_a_build_below_a_limit(tmp_path: Path, shards: object, limit: str) -> None:
    if limit.startswith("-u") and os.geteuid() == 0:
        require(NEEDS["setpriv"])
    tmp_path.chmod(0o777)
    for folder in (tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(folder.stat().st_mode | 0o011)
    done = limited(limit, "build --workers 2", CRAWL, "--lists", LISTS, "--output", tmp_path / "corpus")
    manifest = tmp_path / "corpus" / "manifest.json"
    assert manifest.exists() == (done.returncode == 0)
    if manifest.exists():
        assert json.loads(manifest.read_text())["shards"] == shards
        return
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("c4pipe: ")
    assert ("ile too large" if limit.startswith("-f") else "too low for this run") in last


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (MemoryError(), "memory ran out"),
        (OSError(24, "Too many open files", "a"), "too many open files"),
        (BlockingIOError(11, "Resource temporarily unavailable"), "resource temporarily unavailable"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
        (ImportError("numpy.so: failed to map segment from shared object"), "memory ran out"),
    ],
)
def test_what_a_limit_is(error: Exception, why: str) -> None:
    assert is_limit(error)
    assert f"({why})" in str(limit_error(error))


@pytest.mark.parametrize("error", [OSError(2, "No such file"), RuntimeError("stopped"), ImportError("no such module")])
def test_what_is_no_limit(error: Exception) -> None:
    assert not is_limit(error)
