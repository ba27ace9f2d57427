"""A command line with the options of two programs: c4pipe's own, and those of the runner."""

from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, NoReturn

from c4pipe.cli.parser import Command, Parser, given_options
from c4pipe.errors import UsageError
from c4pipe.io.words import suggestion
from c4pipe.runners.table import find_runner

_MISTYPED = 0.75  # similarity, from 0 to 1


def parse_command_line(parser: Parser, given: Sequence[str]) -> tuple[Command[Any], dict[str, Any]]:
    """Returns a command and its options, those for the runner in the field that the runner names.

    Raises UsageError, with similar names, for an option that neither c4pipe nor the runner knows.
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
    """Splits a command line into c4pipe's arguments and the options for the runner, with their values.

    The options for the runner are all options after `--`, and, for a runner of Beam, the options before it that only
    Beam knows: Beam, whose import takes long, is asked for no other runner. Raises UsageError for an option that
    neither knows.
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
    before, after = list(given[:end]), list(given[end + 1 :])
    runner = _runner(before) if command.takes_runner_options else None
    is_beam = runner is not None and find_runner(runner).options == "beam"
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
        if not is_beam or _is_mistyped(command, name):
            _refuse(command, argument, names_runner=runner is not None)
        beam.append(argument)
        if _beam_takes_value(command, argument, before):
            beam.append(before.pop(0))
    if after and not command.takes_runner_options:
        raise UsageError(f"{command.name} takes no options for a runner: leave out {after[0]} and the -- before it")
    if after and (is_beam or runner is None):
        _check_is_not_own(command, after)
    if after and is_beam and find_spec("apache_beam"):  # without it, the check of the runner says so
        _check_is_known(command, after)
    return own, [*beam, *after]


def _runner(arguments: Sequence[str]) -> str | None:
    """Returns the value of `--runner`; None where there is none."""
    runner: str | None = None
    for argument, following in zip(arguments, [*arguments[1:], None], strict=True):
        name, equals, value = argument.partition("=")
        if name == "--runner":
            runner = value if equals else following
    return runner


def _is_mistyped(command: Parser, name: str) -> bool:
    """Tells whether an option looks like an option of the command: then Beam is not asked.

    Beam's options have low lines between their words.
    """
    names = command.option_names
    is_like = any(each.startswith(name) for each in names) or get_close_matches(name, names, 1, _MISTYPED)
    return "_" not in name and bool(is_like)


def _beam_takes_value(command: Parser, argument: str, following: Sequence[str]) -> bool:
    """Tells whether an option that the command does not know takes the next argument. Raises UsageError: see above."""
    if find_spec("apache_beam") is None:
        _refuse(command, argument)
    from c4pipe.runners.beam_options import BeamOptions

    options = BeamOptions()
    has_value = "=" in argument or not following or following[0].startswith("-")
    rest = options.unknown([argument] if has_value else [argument, following[0]])
    if argument in rest:
        _refuse(command, argument, options.names)
    return not has_value and not rest


def _check_is_not_own(command: Parser, given: Sequence[str]) -> None:
    for argument in given:
        if argument.startswith("--") and command.takes_value(argument.partition("=")[0]) is not None:
            _refuse(command, argument)


def _check_is_known(command: Parser, given: Sequence[str]) -> None:
    from c4pipe.runners.beam_options import BeamOptions

    options = BeamOptions()
    for argument in options.unknown(given):
        _refuse(command, argument, options.names)


def _refuse(command: Parser, argument: str, beam_names: Sequence[str] = (), names_runner: bool = True) -> NoReturn:
    name = argument.partition("=")[0]
    if command.takes_value(name) is not None:
        raise UsageError(f"{name} is an option of c4pipe: give it before the --")
    if name == "--conf" and command.takes_runner_options:
        raise UsageError("--conf is an option of Spark: give it after --, and --runner spark before")
    similar = get_close_matches("--work" if name == "--output" else name, [*command.option_names, *beam_names], n=3)
    hint = f"; similar: {', '.join(similar)}" if similar else ""
    if command.takes_runner_options and not names_runner and not _is_mistyped(command, name):
        hint += "; an option of a runner needs --runner"
    who = "neither c4pipe nor Beam has" if beam_names else f"{command.name} has no"
    raise UsageError(f"{who} option {name}{hint} (see {command.prog} --help)".replace("has option", "has the option"))
