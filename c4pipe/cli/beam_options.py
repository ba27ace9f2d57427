"""A command line with options of two: what c4pipe does not know goes to Beam; what neither knows is an error."""

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from c4pipe.errors import UsageError


def split_arguments(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits a command line into c4pipe's arguments and Beam's options with their values.

    Raises UsageError, with similar names, for an option that neither knows.
    """
    known = _options(parser)
    beam_takes_value: dict[str, bool] | None = None
    own: list[str] = []
    beam: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        name = argument.partition("=")[0]
        if not argument.startswith("--") or argument == "--" or name in known:
            own.append(argument)
            if name in known and known[name] and "=" not in argument:
                own.extend(_next(waiting))
            continue
        beam_takes_value = _beam_options() if beam_takes_value is None else beam_takes_value
        if name not in beam_takes_value:
            similar = get_close_matches(name, [*known, *beam_takes_value], n=3)
            hint = f"; similar: {', '.join(similar)}" if similar else ""
            raise UsageError(f"neither c4pipe nor Beam knows the option {name}{hint} (see c4pipe --help)")
        beam.append(argument)
        if beam_takes_value[name] and "=" not in argument:
            beam.extend(_next(waiting))
    return own, beam


def _next(waiting: Any) -> list[str]:
    value = next(waiting, None)
    return [] if value is None else [value]


def _options(parser: argparse.ArgumentParser) -> dict[str, bool]:
    """Returns every option of a parser and its commands, with whether it takes a value."""
    options = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                options.update(_options(command))
        for name in action.option_strings:
            options[name] = action.nargs != 0
    return options


def _beam_options() -> dict[str, bool]:
    from apache_beam.options.pipeline_options import PipelineOptions

    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    # Beam has no public list of its options; each group of them adds its own to a parser.
    for group in PipelineOptions.__subclasses__():
        add: Any = getattr(group, "_add_argparse_args", None)
        if add is not None:
            parser.conflict_handler = "resolve"
            parser.add_value_provider_argument = parser.add_argument  # type: ignore[attr-defined]
            add(parser)
    return {"--runner": True, **_options(parser)}
