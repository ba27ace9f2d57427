"""Writes docs/options.md, the reference page of all commands and options, from the parser of the command line."""

import argparse
from collections import Counter
from pathlib import Path

from c4pipe.cli.console import endings_sentence
from c4pipe.cli.main import make_parser
from c4pipe.cli.parser import Parser

PAGE = Path(__file__).resolve().parents[1] / "docs" / "options.md"

_HEAD = """\
# Options

<!-- `python scripts/make_options_page.py` writes this page from the command line's own help. Do not edit it here. -->

This page has every command and every option. `c4pipe COMMAND --help` prints the same in the terminal.

`c4pipe --version` prints the version, for each kernel whether it runs compiled or in Python, and the versions of the
libraries. `c4pipe help COMMAND` is `c4pipe COMMAND --help`. `NO_COLOR=1` switches colours off.

{endings}

[Install](install.md#on-the-path) says how a shell completes commands, options, recipes and formats.
"""

_SHARED = """\
## Options of several commands

These options mean the same in each command that has them. The section of a command names them, and has only its others.
"""

_RUNNER = """\
With `--runner`, the options of the runner follow after `--`. For a Beam runner, they are Beam's:
`c4pipe build ... --runner FlinkRunner -- --flink_master=localhost:8081 --parallelism=8`.
For Spark, they are its settings: `c4pipe build ... --runner spark -- --conf spark.executor.memory=2g`.
For Slurm (`build`, `clean`, `import`, `rebuild`), they are the options of `sbatch`:
`c4pipe build ... --runner slurm -- --partition=cpu --time=4:00:00`.
"""

_TABLE = "| argument or option | default | description |\n|---|---|---|\n"


def options_page() -> str:
    """Returns the page `docs/options.md` in Markdown: the same text for the same parser."""
    commands = make_parser().commands.values()
    commands_of_row = Counter(_row(action) for parser in commands for action in _options(parser))
    shared = [row for row, commands_with_it in commands_of_row.items() if commands_with_it > 1]
    head = _HEAD.format(endings=endings_sentence())
    return "\n".join([head, _SHARED, _TABLE + "".join(shared), _RUNNER, *(_section(each, shared) for each in commands)])


def _options(parser: Parser) -> list[argparse.Action]:
    return [action for action in parser.arguments if action.option_strings and action.dest != "help"]


def _section(parser: Parser, shared: list[str]) -> str:
    """Returns the section of a command: the rows that no other command has, and the names of its shared options."""
    assert parser.command
    arguments = [action for action in parser.arguments if not action.option_strings]
    required = [_option(action) for action in _options(parser) if action.required]
    examples = "\n".join(f"    {example}" for example in parser.command.examples)
    usage = " ".join(["c4pipe", parser.name, *map(_argument, arguments), *required])
    own = [*map(_row, arguments), *(row for row in map(_row, _options(parser)) if row not in shared)]
    others = [f"`{action.option_strings[0]}`" for action in _options(parser) if _row(action) in shared]
    blocks = [
        f"## c4pipe {parser.name}\n",
        f"{parser.description}\n",
        f"    {usage}\n",
        f"Example:\n\n{examples}\n",
        _TABLE + "".join(own),
    ]
    if others:
        blocks.append(f"[Shared](#options-of-several-commands): {', '.join(others)}.\n")
    return "\n".join(blocks)


def _argument(action: argparse.Action) -> str:
    """Returns a positional argument as a usage line has it, such as `INPUT ...`."""
    name = "|".join(action.choices) if action.choices else str(action.metavar)
    forms = {"*": f"[{name} ...]", "+": f"{name} ...", "?": f"[{name}]"}
    return forms.get(str(action.nargs), name)


def _option(action: argparse.Action) -> str:
    name = ", ".join(action.option_strings)
    return name if action.nargs == 0 else f"{name} {action.metavar}"


def _row(action: argparse.Action) -> str:
    name = _option(action) if action.option_strings else _argument(action)
    is_needed = action.required if action.option_strings else action.nargs not in ("*", "?")
    default = "must be given" if is_needed else _default(action)
    text = (action.help or "").partition(" (default: ")[0]
    return f"| `{_escape(name)}` | {default} | {_escape(text)} |\n"


def _default(action: argparse.Action) -> str:
    """Returns the default, as its value or in the words of the help; nothing for a switch."""
    if action.nargs == 0:
        return ""
    words = (action.help or "").partition(" (default: ")[2].removesuffix(")")
    return _escape(words) if action.default is None else f"`{action.default}`"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(options_page(), encoding="utf-8")
