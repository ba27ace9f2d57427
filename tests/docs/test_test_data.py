"""The files of tests/data: where each is from, and that a script writes it."""

import re
import subprocess
import sys
from pathlib import Path

from tests.helpers.web_data import SHIPPED

ROOT = Path(__file__).resolve().parents[2]


def test_every_file_has_its_source_in_the_readme() -> None:
    text = (SHIPPED / "README.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    patterns = [pattern for row in rows for pattern in re.findall(r"`([^`]+)`", row)]
    files = {path for path in SHIPPED.rglob("*") if path.is_file() and path.parent.name != "licences"}
    named = {path for pattern in patterns for path in SHIPPED.glob(pattern)}
    assert files - named == {SHIPPED / "README.md"}
    assert all(list(SHIPPED.glob(pattern)) for pattern in patterns)
    licences = {path.relative_to(SHIPPED).as_posix() for path in (SHIPPED / "licences").iterdir()}
    assert licences == {name for name in re.findall(r"`([^`]+)`", text) if name.startswith("licences/")}
    for name, count in re.findall(r"(\w+) \((\d+)\)", text.partition("source/own")[2].partition("\n")[0]):
        code = {"English": "en", "German": "de", "French": "fr", "Spanish": "es", "Romanian": "ro"}[name]
        source = (SHIPPED / "source" / f"own.{code}.txt").read_text(encoding="utf-8")
        assert source.count("==== page\n") == int(count)


def test_the_files_are_what_the_script_writes() -> None:
    command = [sys.executable, "scripts/make_test_data.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_data_is_small() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()) < 2_500_000
