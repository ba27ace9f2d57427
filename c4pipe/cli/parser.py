"""The parser of the command line: all commands, their arguments, and the function that runs each."""

import argparse
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from c4pipe.cli.console import endings_sentence
from c4pipe.errors import UsageError
from c4pipe.io.words import suggestion


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError and knows its own arguments.

    Attributes:
        name: the command, such as `build`; `c4pipe` for the parser of all commands.
        arguments: its arguments and options, in their order.
        commands: the parsers of the commands, by name; empty in these themselves.
        takes_runner_options: whether the command also takes options for a runner.
    """

    def __init__(self, **keywords: Any) -> None:
        self.arguments: list[argparse.Action] = []
        self.commands: dict[str, Parser] = {}
        self.takes_runner_options = False
        super().__init__(**{**keywords, "allow_abbrev": False})
        self.name = self.prog.rpartition(" ")[2]

    def add_argument(self, *arguments: Any, **keywords: Any) -> argparse.Action:
        """Adds an argument as `argparse` does."""
        action = super().add_argument(*arguments, **keywords)
        self.arguments.append(action)
        return action

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raises UsageError for a value that is none of an argument's choices."""
        if action.choices is not None and value not in action.choices:
            known = ", ".join(action.choices)
            raise UsageError(
                f"{value!r} is none of {known}{suggestion(value, action.choices)} (see {self.prog} --help)"
            )

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(f"{message} (see {self.prog} --help)")

    @property
    def option_names(self) -> list[str]:
        """The names of all options, such as `--output`."""
        return [name for action in self.arguments for name in action.option_strings]

    def takes_value(self, name: str) -> bool | None:
        """Tells whether an option takes a value; None for a name that is none of its options."""
        for action in self.arguments:
            if name in action.option_strings:
                return action.nargs != 0
        return None


def whole_number(text: str) -> int:
    """Returns the whole number that an argument names."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, such as 8") from None


def decimal_number(text: str) -> float:
    """Returns the number that an argument names."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number, such as 0.5") from None


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Attributes:
        name: what a user types.
        help: what it does, in a few words.
        add_arguments: adds its arguments to a parser.
        run: runs it with its options; returns the exit status, None for 0.
        takes_runner_options: whether it also takes options for a runner.
        examples: command lines for the help, at least one.
    """

    name: str
    help: str
    add_arguments: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int | None]
    examples: tuple[str, ...]
    takes_runner_options: bool = False


class _Version(argparse.Action):
    """Prints the version, which implementation of each kernel runs, and the versions of the libraries."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        from c4pipe.corpus.manifest import versions
        from c4pipe.native import kernels

        kinds = ", ".join(f"{name}: {kind}" for name, kind in kernels().items())
        print(f"{parser.prog} {version('c4pipe')} ({kinds})")
        print(", ".join(f"{name} {each}" for name, each in versions().items() if name != "c4pipe"))
        parser.exit()


class _HelpFormatter(argparse.HelpFormatter):
    """Keeps the lines of a text, and wraps those that are not indented."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(
            line
            if line.startswith(" ")
            else textwrap.fill(line, width, initial_indent=indent, subsequent_indent=indent)
            for line in text.splitlines()
        )


_RUNNER_OPTIONS = (
    "The options of the runner follow after --. For a Beam runner they are Beam's: --runner FlinkRunner -- "
    "--flink_master=localhost:8081 --parallelism=8. For Spark they are its settings: --runner spark -- "
    "--conf spark.executor.memory=2g"
)


def make_parser(commands: Iterable[Command], only: str | None = None) -> Parser:
    """Returns the parser of some commands; the function to run is the option `run` of what it parses.

    Args:
        commands: the commands.
        only: the one command that needs its arguments; None for all of them.
    """
    parser = Parser(
        prog="c4pipe",
        description="Builds a C4 pretraining corpus from Common Crawl WET files, as the T5 paper describes it.",
        epilog=f"c4pipe help COMMAND shows the options and an example of a command.\n{endings_sentence()}",
        formatter_class=_HelpFormatter,
    )
    parser.add_argument(
        "--version", action=_Version, help="print the versions of c4pipe and its libraries, and which kernels run"
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in commands:
        each = subparsers.add_parser(
            command.name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            epilog=_epilog(command),
            formatter_class=_HelpFormatter,
        )
        each.takes_runner_options = command.takes_runner_options
        each.set_defaults(run=command.run, log=None, runner=None, spark_master=None)
        if only in (None, command.name):
            command.add_arguments(each)
        parser.commands[command.name] = each
    return parser


def _epilog(command: Command) -> str:
    """Returns the end of a command's help: examples, options of runners, and exit statuses."""
    examples = "\n".join(f"    {example}" for example in command.examples)
    runner = f"{_RUNNER_OPTIONS}\n\n" if command.takes_runner_options else ""
    return f"Example:\n{examples}\n\n{runner}{endings_sentence()}"
