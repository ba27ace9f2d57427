"""The Dockerfile: what it may copy, and what its last stage is. scripts/try_image.py runs its instructions."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.try_image import context, stages

ROOT = Path(__file__).resolve().parents[2]
STAGES = stages((ROOT / "Dockerfile").read_text())
COPIED = ("c4pipe", "LICENSE", "README.md", "pyproject.toml", "scripts/c4pipe-boot")
LOCKS = tuple(f"requirements/{name}.txt" for name in ("build", "local", "setup"))


def test_docker_gets_the_files_of_the_package_and_nothing_that_was_built(tmp_path: Path) -> None:
    for name in (*COPIED, *LOCKS, ".dockerignore", "CHANGELOG.md", "scripts/install", "requirements/test.txt"):
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    for name in (
        ".git/config",
        ".venv/bin/python",
        "c4pipe/io/__pycache__/a.pyc",
        "c4pipe/native/a.so",
        "build/c4pipe/a",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    tracked = subprocess.run(
        ["git", "ls-files", *COPIED, *LOCKS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        pytest.skip("this is no clone")
    assert set(tracked.stdout.split()) - set(context(tmp_path)) == set()
    assert {
        name for name in context(tmp_path) if not (ROOT / name).is_file() or name.endswith((".so", ".pyc"))
    } == set()
    assert {Path(name).parts[0] for name in context(tmp_path)} == {
        *(name.partition("/")[0] for name in (*COPIED, *LOCKS)),
    }


def test_the_last_image_runs_c4pipe_as_a_user_without_rights() -> None:
    assert [stage.name for stage in STAGES] == ["package", "environment", "worker", ""]
    last = STAGES[-1]
    assert int(last.last("USER")) > 0  # a number: Kubernetes can't check a name for runAsNonRoot
    assert json.loads(last.last("ENTRYPOINT")) == ["c4pipe"]
    assert last.last("VOLUME") == last.last("WORKDIR") == "/data"
    copied = [given for name, given in last.steps if name == "COPY"]
    assert copied == ["--from=environment /opt/c4pipe /opt/c4pipe"]


def test_an_instruction_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="ADD is not known here"):
        stages("FROM ${BASE}\nADD https://example.com /\n")
