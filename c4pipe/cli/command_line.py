"""A command line with the options of two programs: of c4pipe, and after `--` of the runner."""

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from c4pipe.cli.parser import Command, Parser, given_options
from c4pipe.errors import UsageError
from c4pipe.io.words import suggestion
from c4pipe.runners.table import find_runner

_SIMILAR = 0.7  # from 0 to 1


def parse_command_line(parser: Parser, given: Sequence[str]) -> tuple[Command[Any], dict[str, Any]]:
    """Returns a command and its options; the options of the runner are in the field that the runner names.

    Raises UsageError, with similar names, for an unknown option.
    """
    own, others = split_command_line(parser, given)
    arguments = parser.parse_args(own)
    command = parser.commands[arguments.command].command
    assert command is not None
    options = given_options(command, arguments)
    if others:
        runner = find_runner(options.get("runner"))
        options[runner.options] = runner.read_options(others)
    return command, options


def split_command_line(parser: Parser, given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits a command line at `--` into arguments of c4pipe and options of the runner.

    Raises UsageError, with similar names, for an unknown option.
    """
    command = next((parser.commands[each] for each in given if each in parser.commands), None)
    if command is None:
        if given and not given[0].startswith("-"):
            known = ", ".join(parser.commands)
            raise UsageError(f"there is no command {given[0]!r}, but {known}{suggestion(given[0], parser.commands)}")
        if given and given[0].partition("=")[0] not in parser.option_names:
            raise UsageError(f"{given[0]}: give the command first, as in c4pipe build (see {parser.prog} --help)")
        return list(given), []
    end = given.index("--") if "--" in given else len(given)
    own, others = list(given[:end]), list(given[end + 1 :])
    values = iter(own)
    for argument in values:
        name, equals, _ = argument.partition("=")
        takes_value = command.takes_value(name)
        if name.startswith("--") and takes_value is None:
            _refuse_option(command, name)
        if takes_value and not equals:
            next(values, None)
    if others:
        _check_runner_options(command, own, others)
    return own, others


def _refuse_option(command: Parser, name: str) -> NoReturn:
    names = command.option_names
    alike = "--work" if name == "--output" else name
    similar = [each for each in names if each.startswith(name)] or get_close_matches(alike, names, 3, _SIMILAR)
    hint = f"; similar: {', '.join(similar)}" if similar else ""
    if command.takes_runner_options and not similar:
        hint = "; the options of a runner stand after --, as in --runner NAME -- OPTIONS"
    raise UsageError(f"{command.name} has no option {name}{hint} (see {command.prog} --help)")


def _check_runner_options(command: Parser, own: Sequence[str], others: Sequence[str]) -> None:
    """Raises UsageError for options of c4pipe after `--`, unless only the runner itself knows its options."""
    if not command.takes_runner_options:
        raise UsageError(f"{command.name} takes no options for a runner: leave out {others[0]} and the -- before it")
    named = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    named.add_argument("--runner", nargs="?")
    if find_runner(named.parse_known_args(own)[0].runner).options == "runner_options":
        return
    for name in (argument.partition("=")[0] for argument in others):
        if name.startswith("--") and command.takes_value(name) is not None:
            raise UsageError(f"{name} is an option of c4pipe: give it before the --")
