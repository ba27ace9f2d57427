"""ARCHITECTURE.md, "Where to add": a command, an option and a step are added to a copy of the package, and used.

test_architecture.py adds the rule, tests/corpus/test_added_format.py a format, tests/runners/test_table.py a runner.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.documents import ROOT

PACKAGE = ROOT / "c4pipe"
BUILD = ("build", ROOT / "samples" / "crawl", "--lists", ROOT / "samples" / "lists", "--workers", "1", "--output")

COMMAND = '''
"""The command `shout`: prints a word in capitals."""

from dataclasses import dataclass
from typing import Annotated

from c4pipe.cli.parser import Command
from c4pipe.io.options import Option


@dataclass(frozen=True, kw_only=True)
class ShoutOptions:
    """The options of the command."""

    word: Annotated[str, Option("a word", "WORD", positional=True)]
    times: Annotated[int, Option("how often it is printed", "N")] = 1


def run(options: ShoutOptions) -> None:
    """Prints the word."""
    print(" ".join([options.word.upper()] * options.times))


COMMAND = Command(ShoutOptions, run, examples=("c4pipe shout hello",))
'''

STEP = '''
"""A step of job 2 that counts the groups of work files."""

from collections.abc import Iterator

from c4pipe.dedup.step import DedupStep, Received, StepItem


class CountGroups(DedupStep):
    """The files of a group -> a report."""

    def run(self, received: Received) -> Iterator[StepItem]:
        """Counts the group and its files."""
        yield {"groups.read": 1, "groups.files": len(received.files)}
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, which is changed."""
    shutil.copytree(PACKAGE, tmp_path / "c4pipe", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "c4pipe"


def insert(path: Path, before: str, text: str) -> None:
    """Inserts a text before another text of a file, which has it once."""
    source = path.read_text(encoding="utf-8")
    assert source.count(before) == 1, before
    path.write_text(source.replace(before, text + before), encoding="utf-8")


def c4pipe(package: Path, *arguments: object) -> str:
    """What a command of the copy prints."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-m", "c4pipe", *map(str, arguments)]
    done = subprocess.run(command, cwd=package.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_command(package: Path) -> None:
    (package / "cli" / "shout.py").write_text(COMMAND)
    insert(package / "cli" / "main.py", '    "lists": "download', '    "shout": "print a word in capitals",\n')
    assert c4pipe(package, "shout", "hello", "--times", "2") == "HELLO HELLO\n"
    assert "print a word in capitals" in c4pipe(package, "--help")
    assert "how often it is printed" in c4pipe(package, "shout", "--help")


@pytest.mark.slow
def test_an_option(package: Path) -> None:
    """A field of the record is the whole option: of the commands, and of the Python functions."""
    records = package / "jobs" / "options.py"
    option = '    shout: Annotated[bool, Option("be loud")] = False\n\n'
    field = records.read_text().partition("class CleaningOptions")[2].partition('"""\n\n')[2].partition("\n")[0]
    insert(records, f"{field}\n", option)
    for command in ("build", "clean", "import"):
        assert "--shout" in c4pipe(package, command, "--help")
    script = "import c4pipe, sys; c4pipe.build_corpus(sys.argv[1], output='corpus', recipe='noblocklist', shout=True)"
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    python = [sys.executable, "-c", script, str(ROOT / "samples" / "crawl")]
    done = subprocess.run(python, cwd=package.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_step(package: Path, tmp_path: Path) -> None:
    (package / "dedup" / "count_groups.py").write_text(STEP)
    graph = package / "dedup" / "graph.py"
    insert(graph, "from c4pipe.dedup.finish", "from c4pipe.dedup.count_groups import CountGroups\n")
    insert(graph, '    urls = graph.add("Read URLs"', '    graph.add("Count groups", CountGroups(plan), files)\n')
    c4pipe(package, *BUILD, tmp_path / "corpus", "--quiet")
    counts = json.loads((tmp_path / "corpus" / "manifest.json").read_text())["counts"]
    assert counts["groups.files"] == 3
    assert 1 <= counts["groups.read"] <= 3
