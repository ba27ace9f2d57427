"""Where the pages are that tests read: tests/data, which is part of the project, and real ones beside the project."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "tests" / "data"
REAL = ROOT.parent / "shared" / "data"
"""Real pages, which may not be part of the project: a folder of the same form as tests/data."""

Value = TypeVar("Value")


def folders() -> dict[str, Path]:
    """The folders that are there, by name."""
    return {"shipped": SHIPPED} | ({"real": REAL} if REAL.is_dir() else {})


def largest() -> Path:
    """The real pages where they are there, or else those of the project."""
    return list(folders().values())[-1]


def by_data(folder: Path, *, shipped: Value, real: Value) -> Value:
    """What a test expects of a folder: each has its own figures."""
    return {SHIPPED: shipped, REAL: real}[folder]


def documents_file(folder: Path) -> Path:
    """The file of finished C4 documents: released ones, or those that TensorFlow Datasets makes of tests/data."""
    (path,) = (folder / "c4").glob("*.jsonl")
    return path


def crawl_to_interrupt(folder: Path, inputs: Iterable[Path], target: Path) -> list[Path]:
    """WET files that take long enough to be stopped in the middle.

    The real ones do as they are. Those of the project are written many times over into `target`.
    """
    files = [path for each in inputs for path in ([each] if each.is_file() else sorted(each.glob("*.wet.gz")))]
    if folder == REAL:
        return files
    target.mkdir()
    for number in range(6):
        for path in files:
            shutil.copy(path, target / f"{number:02}-{path.name}")
    return sorted(target.iterdir())
