"""By its markers, each test belongs to `make check`, `make test`, `make test-all`, scripts/torch or scripts/slurm."""

import re
from pathlib import Path

import pytest

from tests.helpers.machine import MARKED, NEEDS

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
    assert NEEDS["compiler"].install.startswith("apt install")
