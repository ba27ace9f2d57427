"""By its markers, each test belongs to `make check`, `make test`, `make test-all`, scripts/torch or scripts/slurm."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.machine import MARKED

ROOT = Path(__file__).resolve().parents[2]
OURS = re.findall(r'^  "(\w+): ', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)


def test_each_marker_is_left_to_one_target(pytestconfig: pytest.Config) -> None:
    makefile = (ROOT / "Makefile").read_text()
    left = [re.findall(rf"^{name} = (.*)$", makefile, re.MULTILINE)[0] for name in ("LARGE", "MORE", "OTHERS")]
    markers = [marker for each in left for marker in each.split(" or ")]
    assert sorted(markers) == sorted({*OURS} - {"needs"})
    assert all(any(line.startswith(f"{name}: ") for line in pytestconfig.getini("markers")) for name in OURS)


def test_each_marker_that_names_a_need_is_one() -> None:
    """A test with another marker is never skipped: it needs no more than the environment of `make check`."""
    assert set(MARKED) == {*OURS} - {"needs", "beam", "optional", "slow"}


def test_only_the_table_skips_for_what_a_machine_lacks() -> None:
    """So the last lines of a test run name it, and C4PIPE_ALL=1 makes it an error."""
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    found = {path.name for path in tests if re.search(r"importorskip\(|skipif\(.*which\(", path.read_text())}
    assert found == set()


def run_without_a_compiler(cache: Path, **variables: str) -> list[str]:
    """Runs tests that need a C compiler, and returns the last lines."""
    command = [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={cache}", "tests/io/test_no_locks.py"]
    given = {name: value for name, value in os.environ.items() if name != "C4PIPE_EARLIER"}
    environment = {**given, "CC": "no-compiler", **variables}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[-3:]


@pytest.mark.slow
def test_what_was_not_tried_is_told_or_is_an_error(tmp_path: Path) -> None:
    for earlier, number in (({}, 15), ({"C4PIPE_EARLIER": "1"}, 30)):
        _, title, line = run_without_a_compiler(tmp_path, C4PIPE_ALL="0", **earlier)
        assert title == "Tests that were not tried, because this machine lacks something, and how to get it:"
        assert line == f"   {number} without a C compiler: apt install gcc libc6-dev"
    assert "15 errors" in run_without_a_compiler(tmp_path, C4PIPE_ALL="1")[-1]
