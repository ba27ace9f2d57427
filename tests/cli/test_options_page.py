"""docs/options.md is what the parser says: no option is missing, none is explained in two ways."""

import re
from pathlib import Path

import pytest

from c4pipe.cli.main import COMMANDS, make_parser
from scripts.make_options_page import options_page

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "options.md").read_text("utf-8")


def test_the_page_is_up_to_date() -> None:
    assert options_page() == PAGE, "run: python scripts/make_options_page.py"


def rows_of(heading: str) -> dict[str, str]:
    """The rows of a section's table, by the argument or the first name of the option."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    names = [row.split("`")[1] for row in rows]
    return {
        name.split()[0].rstrip(",") if name.startswith("-") else name: row
        for name, row in zip(names, rows, strict=True)
    }


@pytest.mark.parametrize("name", list(COMMANDS))
def test_each_command_has_its_arguments_and_options(name: str) -> None:
    own, shared = rows_of(f"c4pipe {name}"), rows_of("Options of several commands")
    named = re.findall(r"`(--[\w-]+)`", PAGE.partition(f"\n## c4pipe {name}\n")[2].partition("\n## ")[0])
    others = [each for each in named if each not in own]
    parser = make_parser().commands[name]
    options = [*(each for each in own if each.startswith("-")), *others]
    assert sorted(options) == sorted(set(parser.option_names) - {"-h", "--help"})
    assert len(own) + len(others) == len(parser.arguments) - 1  # but --help
    for action in parser.arguments:
        if action.default not in (None, False, "==SUPPRESS=="):
            option = action.option_strings[0]
            assert f"| `{action.default}` |" in (own | {each: shared[each] for each in others})[option]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_words_the_default_that_applies(name: str) -> None:
    for action in make_parser().commands[name].arguments:
        if action.option_strings and action.default not in (None, False, "==SUPPRESS=="):
            assert action.help is not None
            assert action.help.endswith(f"(default: {action.default})")


def test_the_page_has_no_other_command() -> None:
    assert re.findall(r"^## c4pipe (.+)$", PAGE, re.MULTILINE) == [*COMMANDS]
