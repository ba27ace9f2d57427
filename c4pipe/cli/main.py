"""The command line: reads the arguments, runs the command, prints how it ended."""

import atexit
import contextlib
import logging
import os
import sys
from collections.abc import Sequence

from c4pipe.cli import (
    build,
    clean,
    dedup,
    diff,
    explain,
    import_text,
    lists,
    overlap,
    plan,
    recipes,
    report,
    tokens,
    vocab,
    vocab_report,
)
from c4pipe.cli.command_line import parse_command_line
from c4pipe.cli.console import STOPPED, note, print_end
from c4pipe.cli.parser import Parser
from c4pipe.cli.parser import make_parser as make_parser_of
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.words import error_reason
from c4pipe.jobs.logs import log_to
from c4pipe.runners.worker import lighten

# A command imports what needs Beam, NumPy, Arrow or Rich when it runs, so that `c4pipe --help` answers at once.

COMMANDS = (
    build.COMMAND,
    clean.COMMAND,
    dedup.COMMAND,
    import_text.COMMAND,
    vocab.COMMAND,
    vocab_report.COMMAND,
    tokens.COMMAND,
    diff.COMMAND,
    overlap.COMMAND,
    report.COMMAND,
    plan.COMMAND,
    explain.COMMAND,
    recipes.COMMAND,
    lists.COMMAND,
)
"""All commands, in the order of the help."""


def run() -> int:
    """Runs the command of this process: `main` in a process of its own, which can do little else after that."""
    lighten()
    ended: list[int] = []
    atexit.register(_exit_at_once, ended)  # before others do: so it is called after them
    ended.append(main())
    return ended[0]


def _exit_at_once(ended: Sequence[int]) -> None:
    """Ends the process without freeing all objects one by one, which would take 0.02 seconds after a build.

    Does nothing where no command has ended, or where the rest of its output can't be written: Python says so then.
    """
    with contextlib.suppress(OSError, ValueError):
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        for status in ended:
            os._exit(status)


def main(given: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status.

    Args:
        given: the arguments; those of this process by default.

    Returns 0, 1 where the command can't go on, 2 for wrong usage, 3 where files are missing, 4
    where no page was kept, 130 where it was stopped.
    """
    given = list(sys.argv[1:] if given is None else given)
    # Messages of libraries are not printed: what a user needs to know is printed by c4pipe, errors are raised.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        parser = make_parser(given)
        _complete(parser)
        given = _help_of(parser, given)
        options = parse_command_line(parser, given)
        with log_to(options.log, given, lambda text: note(text, "--json-progress" in given)):
            status, error = int(options.run(options) or 0), ""
    except C4pipeError as raised:
        status, error = raised.exit_status, str(raised)
    except BrokenPipeError:  # the reader of our output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status, error = 1, ""
    except OSError as raised:
        status, error = 1, error_reason(raised, with_path=True)
    except KeyboardInterrupt:
        status, error = STOPPED, "stopped; the same command continues from here"
    print_end(status, error, as_json="--json-progress" in given)
    return status


def make_parser(given: Sequence[str] = ()) -> Parser:
    """Returns the parser of all commands; where the arguments name a command, only that one has its options."""
    names = {command.name for command in COMMANDS}
    return make_parser_of(COMMANDS, next((each for each in given if each in names), None))


def _help_of(parser: Parser, given: list[str]) -> list[str]:
    """Returns `build --help` for `help build`. Without a command, prints the help, and raises UsageError."""
    if given[:1] == ["help"]:
        return [*given[1:2], "--help"]
    if not given:
        parser.print_help()
        raise UsageError("no COMMAND is given: name one, such as c4pipe build")
    return given


def _complete(parser: Parser) -> None:
    """Answers a shell that asks for completions, and ends the process; does nothing for any other caller."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)


if __name__ == "__main__":
    sys.exit(run())
