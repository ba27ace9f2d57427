"""What a test needs of this machine: one table, and one policy where it is missing.

A test that needs something has a marker (`@pytest.mark.needs("compiler")`, or one of `MARKED`), or calls `library`. If
it is missing, the test is skipped with the reason, and the last lines of a test run say how many tests were not tried
and what to install for them. With C4PIPE_ALL=1, it is an error.
"""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from c4pipe.native import langdetect_kernel, text_kernel
from tests.helpers.browser import find_browser
from tests.helpers.slurm_cluster import SYSTEM_PATH, missing_programs

ROOT = Path(__file__).resolve().parents[2]
ALL = "C4PIPE_ALL"
"""The environment variable that makes a missing thing an error."""


class Need(NamedTuple):
    """What a test can need.

    Attributes:
        is_here: tells whether this machine has it.
        name: it, in words.
        install: how to get it, in words.
    """

    is_here: Callable[[], bool]
    name: str
    install: str


def _has(*programs: str) -> Callable[[], bool]:
    return lambda: all(shutil.which(program, path=SYSTEM_PATH) for program in programs)


def _can_mount() -> bool:
    command = ["unshare", "--mount", "true"]
    return _has("unshare")() and not subprocess.run(command, check=False, capture_output=True).returncode


def library_need(module: str, install: str = "make test-all") -> Need:
    """Returns the need of a library, by the name of its module."""
    return Need(lambda: importlib.util.find_spec(module) is not None, f"the library {module}", install)


def _torch() -> str:
    """How to get PyTorch, or why scripts/torch could not."""
    reason = ROOT / ".venv" / "no-torch.txt"
    return reason.read_text().strip() if reason.exists() else "scripts/torch"


NEEDS = {
    "java": Need(_has("java"), "Java", "apt install openjdk-17-jre-headless"),
    "compiler": Need(_has(os.environ.get("CC", "cc")), "a C compiler", "apt install gcc libc6-dev"),
    "headers": Need(Path(sysconfig.get_paths()["include"], "Python.h").exists, "Python.h", "apt install python3-dev"),
    "extensions": Need(
        lambda: None not in (text_kernel, langdetect_kernel),
        "the C extensions of c4pipe",
        "apt install gcc libc6-dev python3-dev, then make setup",
    ),
    "root": Need(lambda: os.geteuid() == 0, "the rights of root", "run the command as root"),
    "mounts": Need(_can_mount, "the right to mount folders (unshare)", "run the command outside of a container"),
    "slurm": Need(lambda: not missing_programs(), "Slurm", "scripts/system-packages, as root on Debian"),
    "chromium": Need(lambda: find_browser() is not None, "Chromium", "apt install chromium"),
    "setpriv": Need(_has("setpriv"), "setpriv", "apt install util-linux"),
    "pgrep": Need(_has("pgrep"), "pgrep", "apt install procps"),
    "sha256sum": Need(_has("sha256sum"), "sha256sum", "apt install coreutils"),
    "torch": library_need("torch", _torch())._replace(name="PyTorch"),
}
MARKED = {
    "browser": [NEEDS["chromium"]],
    "consumers": [library_need("datasets")],
    "docs": [library_need("mkdocs")],
    "examples": [library_need("jax")],
    "languages": [library_need("spacy", "make test")],
    "ray": [library_need("ray")],
    "slurm": [NEEDS["root"], NEEDS["slurm"], NEEDS["mounts"]],
    "spark": [NEEDS["java"], library_need("pyspark", "make test")],
    "stores": [library_need("moto", "make test")],
    "tensorflow": [library_need("tensorflow")],
    "torch": [NEEDS["torch"]],
    "torch_current": [
        library_need("torchtitan", "scripts/torch --current"),
        library_need("accelerate", "scripts/torch --current"),
    ],
    "tune": [library_need("marimo")],
}
"""The needs of the markers that pyproject.toml describes; a library stands for all of its extra."""
PREFIX = "this machine lacks "
_COUNTS = "c4pipe/not_tried"


def require(*needs: Need) -> None:
    """Skips the test, or the module that is imported, if this machine lacks one of these."""
    for need in needs:
        if not need.is_here():
            lack(need)


def library(module: str, install: str = "make test-all") -> Any:
    """Imports a module; skips the test, or the module that is imported, if it is missing."""
    require(library_need(module.partition(".")[0], install))
    return importlib.import_module(module)


def lack(need: Need) -> None:
    """Skips a test for what this machine lacks; with C4PIPE_ALL=1, it fails."""
    reason = f"{PREFIX}{need.name}: {need.install}"
    if os.environ.get(ALL) == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def check_markers(item: pytest.Item) -> None:
    """Skips a test whose markers name something that this machine lacks."""
    for mark in item.iter_markers():
        require(*(map(NEEDS.__getitem__, mark.args) if mark.name == "needs" else MARKED.get(mark.name, ())))


def not_tried(config: pytest.Config) -> list[str]:
    """Returns the lines that end a test run: for each thing that is missing, the number of tests and what to install.

    With C4PIPE_EARLIER, which `make test` sets, they count the run before, too: `make check`.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    cache = getattr(config, "cache", None)  # missing with -p no:cacheprovider
    if cache is None or reporter is None or hasattr(config, "workerinput"):
        return []
    reports = [report.longrepr for report in reporter.stats.get("skipped", []) if isinstance(report.longrepr, tuple)]
    counts = Counter(reason.partition(PREFIX)[2] for _, _, reason in reports if PREFIX in reason)
    if "C4PIPE_EARLIER" in os.environ:
        counts += Counter(cache.get(_COUNTS, {}))
    cache.set(_COUNTS, counts)
    lines = [f"  {count:3} without {thing}" for thing, count in sorted(counts.items())]
    return (
        ["Tests that were not tried, because this machine lacks something, and how to get it:", *lines] if lines else []
    )
