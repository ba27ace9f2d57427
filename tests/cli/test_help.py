"""The help of each command: examples that are right, and the exit statuses."""

import re
import shlex
import subprocess
import sys

import pytest

from c4pipe.cli import main
from c4pipe.cli.command_line import split_command_line
from c4pipe.cli.console import EXIT_STATUSES
from c4pipe.cli.main import COMMANDS, load_command, make_parser
from tests.cli.test_progress_terminal import on_terminal
from tests.helpers.crawls import ROOT

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text("utf-8")


def help_of(command: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        main.main([*command, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_examples_that_can_be_given(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown, command = help_of([name], capsys), load_command(name)
    assert command.examples
    for example in command.examples:
        assert f"\n    {example}\n" in shown
        program, *given = shlex.split(example)
        own, others = split_command_line(make_parser(), given)
        assert (program, make_parser().parse_args(own).command, others) == ("c4pipe", name, [])


@pytest.mark.parametrize("command", [[], *([each] for each in COMMANDS)], ids=" ".join)
def test_the_exit_statuses(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(help_of(command, capsys).split())
    for status, ending in EXIT_STATUSES.items():
        assert f" {status} {ending.meaning}" in shown


def test_the_tutorial_has_the_same_statuses() -> None:
    table = TUTORIAL.partition("| status | meaning |")[2]
    assert [int(status) for status in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == list(EXIT_STATUSES)


def test_help_fits_a_terminal() -> None:
    command = [sys.executable, "-m", "c4pipe", "build", "--help"]
    shown = subprocess.run(command, env={"COLUMNS": "80"}, capture_output=True, text=True, check=True).stdout
    assert max(map(len, shown.splitlines())) <= 80


COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3[0-7]|9[0-7]|38;)[0-9;]*m")


def test_colours_can_be_switched_off(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """As https://no-color.org asks."""
    command = ["build", str(ROOT / "samples" / "crawl"), "--lists", str(ROOT / "samples" / "lists"), "--workers", "1"]
    assert COLOUR.search(on_terminal([*command, "--output", f"{tmp_path}/a"], 80))
    monkeypatch.setenv("NO_COLOR", "1")
    shown = on_terminal([*command, "--output", f"{tmp_path}/b"], 80)
    assert "100%" in shown
    assert not COLOUR.search(shown)
