"""The command line: reads the arguments, runs the command, prints its end."""

import atexit
import contextlib
import contextvars
import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from c4pipe.cli.command_line import parse_command_line
from c4pipe.cli.console import STOPPED, note, open_streams, print_end
from c4pipe.cli.parser import Command, Parser, build_parser
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.downloads import SHOW_WAIT
from c4pipe.io.words import error_reason
from c4pipe.jobs.logs import log_to
from c4pipe.runners.worker import is_limit, lighten, limit_error

COMMANDS = {
    "build": "make a corpus from WET files: clean, then dedup",
    "clean": "job 1: write a work file with the pages to keep, for each WET file",
    "dedup": "job 2: make a corpus without duplicates from work folders",
    "add": "add the pages of work folders to a finished corpus, without pages and spans that it already has",
    "index": "write the index of a corpus, by which later corpora leave out what it has (--known)",
    "status": "show how far a run is: files done, running, failed or missing, and why",
    "import": "make a corpus from other text: Parquet, JSON Lines, plain text",
    "vocab": "train a SentencePiece vocabulary on text with weights",
    "vocab-report": "measure vocabularies on held-out pages",
    "tokens": "count the tokens of a corpus, list a subset of it to train on, or write all token ids for a trainer",
    "diff": "compare two corpora: counts, pages and examples",
    "overlap": "find the pages of a corpus that share text with evaluation sets",
    "report": "write report.html of a corpus",
    "rebuild": "build a corpus again from its manifest, and compare all digests",
    "takedown": "write a corpus again without the pages of a list of URLs or hosts",
    "plan": "estimate time and disk space of a build from slices of a few files",
    "explain": "show why a page is kept or dropped: the verdict of every rule",
    "recipes": "show the rules of a recipe, compare recipes, or show what each rule drops",
    "tune": "choose the limits of rules by looking: a page with sliders about an annotated folder",
    "lists": "download lists, models and test sets, show them, or make the list of robots.txt files",
}
"""All commands, in the order of the help, each with a few words about it."""

# The module of a command is imported when the command is named, and Beam, NumPy, Arrow or Rich when it runs, so that
# `c4pipe --help` answers at once.


def load_command(name: str) -> Command[Any]:
    """Returns a command."""
    module = {"import": "import_text"}.get(name, name.replace("-", "_"))
    return cast(Command[Any], import_module(f"c4pipe.cli.{module}").COMMAND)


def run() -> int:
    """Runs `main` in its own process, which can do little else after that."""
    open_streams()
    lighten()
    ended: list[int] = []
    atexit.register(_exit_at_once, ended)  # registered before all others, so it is called after them
    ended.append(main())
    return ended[0]


def _exit_at_once(ended: Sequence[int]) -> None:
    """Ends the process without freeing all objects one by one, which would take 0.02 seconds after a build.

    Does nothing if no command has ended, or if the rest of its output can't be written: then Python reports the error.
    """
    with contextlib.suppress(OSError, ValueError):
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        for status in ended:
            os._exit(status)


def main(given: Sequence[str] | None = None) -> int:
    """Runs the command of some arguments, by default of this process, and returns its exit status (`EXIT_STATUSES`)."""
    given = list(sys.argv[1:] if given is None else given)

    def run_command() -> int:
        _answer_shell()
        parser = make_parser(given)
        command, options = parse_command_line(parser, _expand_help(parser, given))
        _check_current_folder()
        if not options.get("quiet"):
            SHOW_WAIT.set(lambda wait: note(f"waits: {wait}", "--json-progress" in given))
        with log_to(options.get("log"), given, lambda text: note(text, "--json-progress" in given)):
            return int(command.run(command.options(**options)) or 0)

    return contextvars.copy_context().run(run_to_end, run_command, "--json-progress" in given)


def run_to_end(run_command: Callable[[], int], as_json: bool = False) -> int:
    """Runs a function, prints its end, and returns the exit status. An error that a user can meet is one sentence."""
    # Messages of libraries are not printed: c4pipe prints the important messages itself, and errors are raised.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        status, error = run_command(), ""
        sys.stdout.flush()  # raises C4pipeError if it can't be written
    except C4pipeError as raised:
        status, error = raised.exit_status, str(raised)
    except (OSError, MemoryError, RuntimeError, ImportError) as raised:
        if is_limit(raised):
            status, error = 1, str(limit_error(raised))
        elif isinstance(raised, OSError):
            status, error = 1, error_reason(raised, with_path=True)
        else:
            raise
    except KeyboardInterrupt:
        status, error = STOPPED, "stopped; the same command continues from here"
    print_end(status, error, as_json)
    return status


def _check_current_folder() -> None:
    """Raises UsageError if the current folder was deleted: paths and new processes need it."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the current folder was deleted: change to another folder, and run the command there"
        ) from None


def make_parser(given: Sequence[str] | None = None) -> Parser:
    """Returns the parser of all commands. Only the first command among the arguments has its options; every command if
    `given` is None. Arguments that begin with a command need no parsers of the others, which take 4 milliseconds.
    """
    if given and given[0] in COMMANDS:
        return build_parser({given[0]: COMMANDS[given[0]]}, {given[0]: load_command(given[0])})
    named = list(COMMANDS) if given is None else [each for each in given if each in COMMANDS][:1]
    return build_parser(COMMANDS, {name: load_command(name) for name in named})


def _expand_help(parser: Parser, given: list[str]) -> list[str]:
    """Returns `build --help` for `help build`. Without a command, prints the help, and raises UsageError."""
    if given[:1] == ["help"]:
        return [*given[1:2], "--help"]
    if not given:
        parser.print_help()
        raise UsageError("no COMMAND is given: name one, such as c4pipe build")
    return given


def _answer_shell() -> None:
    """Answers a shell that asks for completions, and ends the process."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(make_parser(os.environ.get("COMP_LINE", "").split()))


if __name__ == "__main__":
    sys.exit(run())
