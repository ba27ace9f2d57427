"""The parser of the command line: all commands, with the options of their records."""

import argparse
import dataclasses
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar, get_args, get_origin

from c4pipe.cli.console import endings_sentence
from c4pipe.errors import UsageError
from c4pipe.io.options import Option, default_of, flag_of, help_of, options_of
from c4pipe.io.words import suggestion
from c4pipe.runners.runner_options import RunnerOptions


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError and knows its own arguments.

    Attributes:
        name: the command, such as `build`; `c4pipe` for the parser of all commands.
        arguments: the arguments and options, in order.
        commands: the parsers of the commands, by name; empty in the parser of a command.
        command: the command; None in the parser of all commands.
    """

    def __init__(self, **keywords: Any) -> None:
        self.arguments: list[argparse.Action] = []
        self.commands: dict[str, Parser] = {}
        self.command: Command[Any] | None = None
        super().__init__(**{**keywords, "allow_abbrev": False})
        self.name = self.prog.rpartition(" ")[2]

    def add_argument(self, *arguments: Any, **keywords: Any) -> argparse.Action:
        """Adds an argument as `argparse` does."""
        action = super().add_argument(*arguments, **keywords)
        self.arguments.append(action)
        return action

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raises UsageError unless a value is one of the choices."""
        if action.choices is not None and value not in action.choices:
            known = ", ".join(action.choices)
            raise UsageError(
                f"{value!r} is none of {known}{suggestion(value, action.choices)} (see {self.prog} --help)"
            )

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(f"{message} (see {self.prog} --help)")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Ends the process after the help. Raises C4pipeError if it can't be written."""
        sys.stdout.flush()
        super().exit(status, message)

    @property
    def takes_runner_options(self) -> bool:
        """Whether the command also takes options for a runner."""
        return self.command is not None and self.command.takes_runner_options

    @property
    def option_names(self) -> list[str]:
        """The names of all options, such as `--output`."""
        return [name for action in self.arguments for name in action.option_strings]

    def takes_value(self, name: str) -> bool | None:
        """Tells whether an option takes a value; None for an unknown option."""
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


class _StoreOnce(argparse.Action):
    """Stores the value of an option. A second list is joined to the first one; any other second value is an error."""

    def __call__(self, parser: object, namespace: argparse.Namespace, value: Any, flag: str | None = None) -> None:
        given = vars(namespace).setdefault("options given", {})
        if self.dest in given:
            if not isinstance(value, list | tuple):
                raise UsageError(f"{flag} is given twice: give it once")
            value = [*given[self.dest], *value]
        given[self.dest] = value
        setattr(namespace, self.dest, value)


Options = TypeVar("Options")


@dataclass(frozen=True)
class Command(Generic[Options]):
    """A command of the command line.

    Attributes:
        options: the record of its options (`io.options`).
        run: runs the command; returns the exit status, None for 0.
        examples: command lines for the help, at least one.
    """

    options: type[Options]
    run: Callable[[Options], int | None]
    examples: tuple[str, ...]

    @property
    def takes_runner_options(self) -> bool:
        """Whether the command also takes options for a runner."""
        return issubclass(self.options, RunnerOptions)


def add_options(parser: Parser, record: type) -> None:
    """Adds the options of a record to a parser."""
    for field, kind, option in options_of(record):
        if option.in_python:
            continue
        keywords: dict[str, Any] = {"help": help_of(field, option)}
        if field.default is False:
            keywords["action"] = "store_true"
        else:
            keywords |= {"default": default_of(field), "type": option.parse or _parser_of(kind, option)}
            keywords |= {"choices": option.choices} if option.choices else {"metavar": option.metavar}
            if option.nargs:
                keywords["nargs"] = option.nargs
            if not option.positional:
                keywords["action"] = "append" if option.repeated else _StoreOnce
        if option.positional:
            action = parser.add_argument(field.name, **keywords)
        else:
            required = field.default is dataclasses.MISSING
            action = parser.add_argument(flag_of(field, option), dest=field.name, required=required, **keywords)
        if option.names:
            action.completer = _completer(option.names)  # type: ignore[attr-defined]  # argcomplete looks for it


def _parser_of(kind: Any, option: Option) -> Callable[[str], Any]:
    """Returns the function from a text to the value of an option: of its type, or a sequence from `8,13`."""
    kinds = get_args(kind) or (kind,)
    parse = whole_number if int in kinds else decimal_number if float in kinds else str
    is_list = any(get_origin(each) is Sequence for each in (kind, *get_args(kind)))
    if is_list and not (option.nargs or option.repeated):
        return lambda text: tuple(map(parse, text.split(",")))
    return parse


def _completer(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    def complete(prefix: str, **_: object) -> list[str]:
        return [name for name in names() if name.startswith(prefix)]

    return complete


def given_options(command: Command[Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of a command that are given or have a default, by name of the field."""
    names = {field.name for field, _, _ in options_of(command.options)}
    return {name: value for name, value in vars(arguments).items() if name in names and value is not None}


class _Version(argparse.Action):
    """Prints the versions of c4pipe and its libraries, and the implementation of each kernel."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        from c4pipe.io.versions import versions
        from c4pipe.native import kernels

        kinds = ", ".join(f"{name}: {kind}" for name, kind in kernels().items())
        print(f"{parser.prog} {version('c4pipe')} ({kinds})")
        print(", ".join(f"{name} {each}" for name, each in versions().items() if name != "c4pipe"))
        parser.exit()


class _HelpFormatter(argparse.HelpFormatter):
    """Keeps the line ends of a text, and wraps the lines without indentation."""

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
    "--conf spark.executor.memory=2g. For Slurm (build, clean, import, rebuild) they are those of sbatch: --runner "
    "slurm -- --partition=cpu --time=4:00:00"
)


def build_parser(helps: Mapping[str, str], commands: Mapping[str, Command[Any]]) -> Parser:
    """Returns the parser of all commands, given a few words about each, and the commands that need their options."""
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
    for name, text in helps.items():
        command = commands.get(name)
        each = subparsers.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=_epilog(command) if command else None,
            formatter_class=_HelpFormatter,
        )
        parser.commands[name] = each
        if command:
            each.command = command
            add_options(each, command.options)
    return parser


def _epilog(command: Command[Any]) -> str:
    """Returns the end of a help: examples, options of runners, and exit statuses."""
    examples = "\n".join(f"    {example}" for example in command.examples)
    runner = f"{_RUNNER_OPTIONS}\n\n" if command.takes_runner_options else ""
    return f"Example:\n{examples}\n\n{runner}{endings_sentence()}"
