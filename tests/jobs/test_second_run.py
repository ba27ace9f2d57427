"""A command that is run again, when its result is complete; and files that are added to a corpus as the error says."""

import re
import shlex
from pathlib import Path

import pytest

from c4pipe.cli import main
from tests.helpers.crawls import LISTS, SAMPLES

LISTED = ["--lists", str(LISTS), "--workers", "1"]


def run(*arguments: object) -> int:
    return main.main([str(each) for each in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the first results of all commands."""
    folder = tmp_path_factory.mktemp("second")
    for command in commands(folder).values():
        assert run(*command, "--quiet") == 0
    return folder


def commands(folder: Path) -> dict[str, list[object]]:
    vocab = ["--vocab", folder / "vocabulary" / "spm.model", "--workers", "1"]
    build = ["build", *SAMPLES, *LISTED, "--output", folder / "corpus"]
    (folder / "text.txt").write_text("One text.\n")
    return {
        "corpus": build,
        "text": ["import", folder / "text.txt", "--output", folder / "text", "--workers", "1"],
        "work": ["clean", *SAMPLES, *LISTED, "--work", folder / "work"],
        "other": ["dedup", folder / "work", "--output", folder / "other", "--workers", "1"],
        "vocabulary/spm.model": ["vocab", folder / "corpus" / "en", "--output", folder / "vocabulary", "--size", "300"],
        "corpus/tokens.json": ["tokens", folder / "corpus" / "en", *vocab],
        "files": ["tokens", folder / "corpus" / "en", *vocab, "--format", "megatron", "--output", folder / "files"],
    }


def times(path: Path) -> dict[Path, int]:
    """When a file, or each file of a folder, was written; without the locks."""
    files = [each for each in (path, *path.rglob("*")) if each.is_file() and each.name != ".lock"]
    return {each: each.stat().st_mtime_ns for each in files}


@pytest.mark.parametrize("result", commands(Path("/tmp")))
def test_the_second_run_says_that_nothing_was_done(
    folder: Path, result: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = commands(folder)[result]
    before = times(folder / result)
    capsys.readouterr()
    assert run(*command) == 0
    (line,) = [each for each in capsys.readouterr().err.splitlines() if "complete already" in each]
    said = r"c4pipe: (\S+) is complete already, and nothing was done: to make it again, (give another|move it away)"
    found = re.match(said, line)
    assert found
    assert found[1] == str(folder / result)
    assert run(*command, "--quiet") == 0
    assert "complete already" not in capsys.readouterr().err
    assert times(folder / result) == before


def test_files_are_added_to_a_corpus_as_the_error_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, whole = tmp_path / "corpus", tmp_path / "whole"
    assert run("build", *SAMPLES[:2], *LISTED, "--output", corpus, "--quiet") == 0
    assert run("build", *SAMPLES, *LISTED, "--output", whole, "--quiet") == 0
    assert run("build", *SAMPLES, *LISTED, "--output", corpus, "--quiet") == 2
    advice = capsys.readouterr().err.partition("to add files to it, run ")[2]
    found = re.match(r"c4pipe (clean) on them with another --work folder, and c4pipe (dedup) on (\S+) and ", advice)
    assert found
    assert run(found[1], *SAMPLES[2:], *LISTED, "--work", tmp_path / "work", "--quiet") == 0
    added = [*shlex.split(found[3]), tmp_path / "work", "--output", tmp_path / "added"]
    assert run(found[2], *added, "--workers", "1", "--quiet") == 0
    names = [path.relative_to(whole) for path in (whole / "en").iterdir()]
    assert names
    assert all((tmp_path / "added" / name).read_bytes() == (whole / name).read_bytes() for name in names)
