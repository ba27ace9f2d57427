"""`make` on a machine where something is missing or failed before: a sentence says so, and the next one repairs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(folder: Path, target: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", target, f"PYTHON={sys.executable}"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE")
    }  # no jobs of `make test`
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A small project with c4pipe's own Makefile and scripts, in a folder with a blank."""
    folder = tmp_path / "my clone"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    for name in ("venv", "install"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts")
    (folder / "requirements").mkdir()
    for name in ("build", "setup"):
        (folder / "requirements" / f"{name}.txt").touch()
    (folder / "pyproject.toml").write_text("not a project\n")
    return folder


@pytest.mark.slow
def test_an_environment_that_failed_half_way_is_repaired(clone: Path) -> None:
    assert make(clone, ".venv/venv.stamp").returncode == 0
    (pip,) = clone.glob(".venv/lib/python*/site-packages/pip")
    shutil.rmtree(pip)  # as if ensurepip had failed
    (clone / ".venv" / "venv.stamp").unlink()
    repaired = make(clone, ".venv/venv.stamp")
    assert repaired.returncode == 0
    assert "failed half-way: it is made anew" in repaired.stderr
    (clone / ".venv" / "kept").touch()
    again = make(clone, ".venv/venv.stamp")
    assert (again.returncode, again.stderr) == (0, "")
    for _ in range(2):  # pip reports a failure: the project file is no TOML
        failed = make(clone, ".venv/c4pipe.stamp")
        assert failed.returncode != 0
        assert "failed half-way" not in failed.stderr
    assert (clone / ".venv" / "kept").exists()
    (clone / ".venv" / "installing").touch()  # as if pip had been killed
    anew = make(clone, ".venv/c4pipe.stamp")
    assert "failed half-way: it is made anew" in anew.stderr
    assert not (clone / ".venv" / "kept").exists()


def test_an_engine_without_its_tools_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to("/bin/true")
    environment = {**os.environ, "PATH": str(tmp_path / "bin"), "C4PIPE_ENGINES": str(tmp_path / "engines")}
    script = "import sys; sys.path.insert(0, 'engines'); import fetch; fetch.fetch()"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "engines: this machine has no Maven (mvn), Go (go): install it, and run the same command again\n"
    )
