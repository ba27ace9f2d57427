"""A command line with the options of two programs: c4pipe's own, and those of the Beam runner."""

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from c4pipe.cli.parser import Parser
from c4pipe.errors import UsageError


def parse_command_line(parser: Parser, given: Sequence[str]) -> argparse.Namespace:
    """Returns the options of a command; `beam` among them are the options for the runner (with `--runner` itself).

    Raises UsageError, with similar names, for an option that neither c4pipe nor Beam knows.
    """
    own, beam = split_command_line(parser, given)
    options = parser.parse_args(own)
    runner = getattr(options, "runner", None)
    options.beam = (*((f"--runner={runner}",) if runner is not None else ()), *beam)
    if beam:
        from c4pipe.runners import RunnerOptions, is_local

        if is_local(RunnerOptions(beam=options.beam)):
            raise UsageError(f"{beam[0]} is an option of another runner than this machine: name it with --runner")
    return options


def split_command_line(parser: Parser, given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits a command line into c4pipe's arguments and the options for the runner, with their values.

    The options for the runner are those after `--`, and those before it that Beam knows and the command does not.
    Raises UsageError for an option that neither knows.
    """
    command = next((parser.commands[each] for each in given if each in parser.commands), None)
    if command is None:
        return list(given), []  # the parser says what is wrong
    end = given.index("--") if "--" in given else len(given)
    before, after = list(given[:end]), list(given[end + 1 :])
    own: list[str] = []
    beam: list[str] = []
    while before:
        argument = before.pop(0)
        name = argument.partition("=")[0]
        takes_value = command.takes_value(name)
        if not name.startswith("--") or takes_value is not None:
            own.append(argument)
            if takes_value and "=" not in argument:
                own += before[:1]
                del before[:1]
            continue
        beam.append(argument)
        if _beam_takes_value(command, argument, before):
            beam.append(before.pop(0))
    if after:
        _check_runner_options(command, after)
    return own, [*beam, *after]


def _beam_takes_value(command: Parser, argument: str, following: Sequence[str]) -> bool:
    """Tells whether an option that the command does not know takes the next argument. Raises UsageError: see above."""
    if not command.takes_runner_options:
        _refuse(command, argument)
    from c4pipe.runners import BeamOptions

    options = BeamOptions()
    has_value = "=" in argument or not following or following[0].startswith("-")
    rest = options.unknown([argument] if has_value else [argument, following[0]])
    if argument in rest:
        _refuse(command, argument, options.names)
    return not has_value and not rest


def _check_runner_options(command: Parser, given: Sequence[str]) -> None:
    if not command.takes_runner_options:
        raise UsageError(f"{command.name} takes no options for a runner: leave out {given[0]} and the -- before it")
    from c4pipe.runners import BeamOptions

    options = BeamOptions()
    for argument in options.unknown(given):
        _refuse(command, argument, options.names)


def _refuse(command: Parser, argument: str, beam_names: Sequence[str] = ()) -> NoReturn:
    name = argument.partition("=")[0]
    if command.takes_value(name) is not None:
        raise UsageError(f"{name} is an option of c4pipe: give it before the --")
    similar = get_close_matches(name, [*command.option_names, *beam_names], n=3)
    hint = f"; similar: {', '.join(similar)}" if similar else ""
    who = "neither c4pipe nor Beam has" if beam_names else f"{command.name} has no"
    raise UsageError(f"{who} option {name}{hint} (see {command.prog} --help)".replace("has option", "has the option"))
