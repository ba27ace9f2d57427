"""docs/options.md is what the parser says: no option is missing, none is explained in two ways."""

from pathlib import Path

import pytest

from c4pipe.cli.main import COMMANDS, make_parser
from scripts.make_options_page import options_page

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "options.md").read_text("utf-8")


def test_the_page_is_up_to_date() -> None:
    assert options_page() == PAGE, "run: python scripts/make_options_page.py"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_each_command_has_its_arguments_and_options(name: str) -> None:
    section = PAGE.partition(f"\n## c4pipe {name}\n")[2].partition("\n## ")[0]
    rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    parser = make_parser().commands[name]
    options = {row.split()[0] for row in rows if row.startswith("-")}
    assert options == set(parser.option_names) - {"-h", "--help"}
    assert len(rows) == len(parser.arguments) - 1  # but --help
    for action in parser.arguments:
        if action.default not in (None, False, "==SUPPRESS=="):
            (row,) = [
                line for line in section.splitlines() if f"`{action.option_strings[0]} " in line and "| `" in line
            ]
            assert f"| `{action.default}` |" in row


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_words_the_default_that_applies(name: str) -> None:
    for action in make_parser().commands[name].arguments:
        if action.option_strings and action.default not in (None, False, "==SUPPRESS=="):
            assert action.help is not None
            assert action.help.endswith(f"(default: {action.default})")


def test_the_page_has_no_other_command() -> None:
    assert [line.removeprefix("## c4pipe ") for line in PAGE.splitlines() if line.startswith("## ")] == [*COMMANDS]
