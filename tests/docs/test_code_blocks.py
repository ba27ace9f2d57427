"""Every code block of the documentation is run, here or by the test that is named here, or listed in not_run.py."""

import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from c4pipe.read.mix_file import read_mix
from c4pipe.recipes.presets import find_recipe
from tests.docs.not_run import NOT_RUN
from tests.helpers.doc_examples import expected_lines, python_blocks
from tests.helpers.documents import PAGES, ROOT, code_blocks, indented_commands, page

GENERATED = {"docs/options.md"}
"""tests/cli/test_help.py gives the commands of this page to the parser; tests/cli/test_options_page.py compares it."""

RUN_BY = {
    "ARCHITECTURE.md": "tests/docs/test_code_blocks.py",
    "README.md": "tests/docs/test_readme.py",
    "docs/formats.md": "tests/docs/test_readme.py",
    "docs/beam.md": "tests/beam/test_beam_page.py",
    "docs/import.md": "tests/jobs/test_import.py",
    "docs/own_rules.md": "tests/recipes/test_own_rules.py",
    "docs/near_duplicates.md": "tests/dedup/test_near_copies.py",
    "docs/objectives.md": "tests/objectives/test_packing.py",
    "docs/api.md": "tests/api/test_python_api_page.py",
    "docs/training.md": "tests/read/test_read_adapters.py",
    "docs/choose_limits.md": "tests/docs/test_code_blocks.py",
    "docs/token_files.md": "tests/docs/test_code_blocks.py",
    "docs/mixing.md": "tests/docs/test_code_blocks.py",
    "docs/tutorial.md": "tests/docs/test_code_blocks.py",
    "docs/vocabulary.md": "tests/vocab/test_vocab_consumers.py",
}
"""The test that runs all Python blocks of a page."""

AFTER_TUTORIAL = (
    *(
        "docs/explain.md",
        "docs/languages.md",
        "docs/known_corpora.md",
        "docs/overlap.md",
        "docs/recipes.md",
        "docs/choose_limits.md",
        "docs/training.md",
    ),
    *("docs/token_files.md", "docs/mixing.md", "docs/own_rules.md", "samples/README.md", "AGENTS.md"),
)
"""Pages whose commands are for a user who has followed the tutorial: they use its corpora."""

FENCES = {"", "python", "text", "toml"}
"""What blocks in fences are: Python is run, text is output, TOML is a recipe. Commands are indented."""

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$|((?:^    [^\n]*\n)+)", re.DOTALL | re.MULTILINE)

TUTORIAL = page("docs/tutorial.md")
NAMES = [name for name in (path.relative_to(ROOT).as_posix() for path in PAGES) if name not in GENERATED]


def reasons(name: str, code: str) -> list[str]:
    """Why a command or a block of a page is not run."""
    return [why for pages, codes, why in NOT_RUN if fnmatchcase(name, pages) and fnmatchcase(code, codes)]


def commands(name: str) -> list[str]:
    """The commands of a page that are run."""
    return [command for command in indented_commands(page(name)) if not reasons(name, command)]


def blocks(name: str) -> list[str]:
    """The blocks of Python of a page that are run."""
    return [code for code in code_blocks(page(name), "python") if not reasons(name, code)]


@pytest.mark.parametrize("name", NAMES)
def test_every_block_is_run_or_listed(name: str) -> None:
    assert set(re.findall(r"^ *```(\w*)$", page(name), re.MULTILINE)) <= FENCES
    if name not in {"README.md", "docs/tutorial.md", *AFTER_TUTORIAL}:
        assert commands(name) == []
    if blocks(name):
        assert Path(name).name in (ROOT / RUN_BY[name]).read_text()
    assert bool(blocks(name)) == (name in RUN_BY)


def test_every_exception_has_its_block() -> None:
    found = {
        (name, code) for name in NAMES for code in [*indented_commands(page(name)), *code_blocks(page(name), "python")]
    }
    for pages, codes, _ in NOT_RUN:
        assert any(fnmatchcase(name, pages) and fnmatchcase(code, codes) for name, code in found), (pages, codes)


@pytest.mark.parametrize("name", [name for name in NAMES if code_blocks(page(name), "toml")])
def test_recipes_that_are_shown_can_be_read(name: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "own_rules" / "my_rules.py", tmp_path)
    for shown in code_blocks(page(name), "toml"):
        (tmp_path / "my.toml").write_text(shown)
        if "[[sources]]" in shown:
            assert read_mix(tmp_path / "my.toml").sources
            continue
        assert find_recipe(str(tmp_path / "my.toml")).name == "my"


# What is run


def test_the_imports_of_the_architecture() -> None:
    (code,) = blocks("ARCHITECTURE.md")
    names: dict[str, object] = {}
    exec(compile(code, "ARCHITECTURE.md", "exec"), names)
    assert {"open_corpus", "publish"} <= names.keys()


def run(folder: Path, command: str) -> str:
    """What a command prints in a user's folder, where `c4pipe` and `python` are those of this Python."""
    environment = {**os.environ, "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    environment.pop("XDG_CACHE_HOME", None)
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def steps(text: str) -> list[tuple[list[str], str | None]]:
    """The blocks of commands of a page, each with the output that is shown before the next one."""
    found: list[tuple[list[str], str | None]] = []
    for language, fenced, indented in _BLOCK.findall(text):
        if indented:
            found.append((indented_commands(indented), None))
        elif language == "text":
            found[-1] = (found[-1][0], fenced)
    return found


def assert_shown(shown: str, printed: str) -> None:
    """The lines that are shown are printed, in this order. `...` stands for any lines, `…` for the end of a line.

    A terminal cuts long lines, and output that goes to a program has them whole.
    """
    rest = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    for chunk in filter(None, re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)):
        found = re.search(re.escape(chunk).replace("…", ".*"), rest)
        assert found, f"not printed:\n{chunk}"
        rest = rest[found.end() :]


def followed(name: str, folder: Path, printed: dict[str, str]) -> None:
    """Gives the commands of a page that were not given before, and compares what they print with the page."""
    for block, shown in steps(page(name)):
        wanted = [command for command in block if not reasons(name, command)]
        for command in wanted:
            if command not in printed:
                printed[command] = run(folder, command)
        if wanted and shown:
            assert_shown(shown, "".join(printed[command] for command in wanted))


@pytest.mark.slow
def test_the_tutorial_and_the_pages_for_those_who_followed_it(tmp_path: Path) -> None:
    """One test, so that one process gives all commands: the later pages use what the tutorial's commands wrote."""
    for name in ("samples", "examples", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    (tmp_path / "my.toml").write_text(*code_blocks(TUTORIAL, "toml"))
    (mix,) = (shown for shown in code_blocks(page("docs/training.md"), "text") if "[[sources]]" in shown)
    (tmp_path / "mix.toml").write_text(mix)
    (tmp_path / "web-sums.toml").write_text(*code_blocks(page("docs/mixing.md"), "toml"))
    (tmp_path / "sums.py").write_text(python_blocks(ROOT / "docs" / "mixing.md")[0])
    run(tmp_path, "python sums.py")
    printed: dict[str, str] = {}
    followed("docs/tutorial.md", tmp_path, printed)
    (code,) = python_blocks(ROOT / "docs" / "tutorial.md")
    (tmp_path / "read.py").write_text(code)
    assert run(tmp_path, "python read.py").splitlines() == expected_lines(code)
    for name in AFTER_TUTORIAL:
        assert commands(name)
        followed(name, tmp_path, printed)
    for name in ("choose_limits.md", "token_files.md", "mixing.md"):  # of what the commands of these pages wrote
        for code in python_blocks(ROOT / "docs" / name):
            (tmp_path / "block.py").write_text(code)
            assert run(tmp_path, "python block.py").splitlines() == expected_lines(code)


def test_outputs_are_shown_behind_their_commands() -> None:
    outputs = [shown for _, shown in steps(TUTORIAL) if shown]
    assert len(outputs) == TUTORIAL.count("```text") == 4
    assert_shown("b\n...\ne…\n", "a\nb  \nc\neight\n")
    with pytest.raises(AssertionError, match="not printed"):
        assert_shown("b\n...\na\n", "a\nb\nc\n")


@pytest.mark.slow
def test_the_commands_for_a_users_own_files(tmp_path: Path) -> None:
    (tmp_path / "crawl").symlink_to(ROOT / "samples" / "crawl")
    shutil.copytree(ROOT / "samples" / "lists", tmp_path / ".cache" / "c4pipe" / "lists")  # as after `lists fetch`
    (command,) = commands("README.md")
    assert re.sub(r"\s+", " ", command) in {re.sub(r"\s+", " ", each) for each in indented_commands(TUTORIAL)}
    assert "pages kept" in run(tmp_path, command)
    assert (tmp_path / "corpus" / "manifest.json").exists()
