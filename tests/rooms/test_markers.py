"""`make check` runs the tests without a marker, in an environment without large libraries."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_make_check_leaves_out_each_marker(pytestconfig: pytest.Config) -> None:
    (expression,) = re.findall(r"^UNIT = not \((.*)\)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    ours = re.findall(r'^  "(\w+): ', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert expression.split(" or ") == ours
    assert all(any(line.startswith(f"{name}: ") for line in pytestconfig.getini("markers")) for name in ours)
