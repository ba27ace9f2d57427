"""Folders of file systems without flock: a corpus is built there without a lock and without a cache."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.helpers.web import serve

pytestmark = pytest.mark.needs("compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("c") / "no_locks.so"
    source = ROOT / "tests" / "helpers" / "no_locks.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, source], check=True)
    return path


@pytest.fixture(params=["ENOLCK", "ENOSYS", "EOPNOTSUPP"])
def environment(request: pytest.FixtureRequest, library: Path) -> dict[str, str]:
    number = str(getattr(errno, request.param))
    return {**os.environ, "PYTHONPATH": str(ROOT), "LD_PRELOAD": str(library), "FLOCK_ERRNO": number}


def run(environment: dict[str, str], *command: object) -> "subprocess.CompletedProcess[str]":
    given = [sys.executable, *map(str, command)]
    return subprocess.run(given, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_corpus_is_built_and_nothing_is_cached(environment: dict[str, str], tmp_path: Path) -> None:
    source = next((ROOT / "samples" / "crawl").glob("*-00000.warc.wet.gz"))
    lists, cache, output = ROOT / "samples" / "lists", tmp_path / "cache", tmp_path / "corpus"
    with serve({source.name: source.read_bytes()}) as web:
        url = f"{web.url}/{source.name}"
        options = ["--lists", lists, "--cache", cache, "--output", output, "--workers", "1"]
        done = run(environment, "-m", "c4pipe", "build", url, *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"--cache {cache}: its file system has no locks") == 1
    assert list(cache.iterdir()) == []
    assert not [path for path in output.rglob("*") if ".lock" in path.name]
