"""Each module of the room can be the first that is imported: none needs another one that needs it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path.stem for path in (ROOT / "c4pipe" / "io").glob("[a-z]*.py"))


@pytest.mark.slow
def test_any_module_can_be_the_first() -> None:
    failed = {}
    for name in MODULES:
        command = [sys.executable, "-c", f"import c4pipe.io.{name}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            failed[name] = done.stderr.splitlines()[-1]
    assert failed == {}
