"""The options of a job or command: the fields of a frozen dataclass, each annotated with its help for the user.

Name, type, default and help of an option are written once, in its field. The command line (`cli.parser`), the functions
of the Python API (`takes_options`) and docs/options.md are made from these fields.
"""

import dataclasses
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from c4pipe.io.arguments import bind_arguments

PathArgument = str | os.PathLike[str]
"""A path of this machine; as a string also a URL of an object store."""

_P = ParamSpec("_P")
_Record = TypeVar("_Record")
_Result = TypeVar("_Result")


class Option(NamedTuple):
    """The properties of an option that the command line and its help need besides name, type and default.

    Attributes:
        help: its meaning.
        metavar: the name of its value in the help.
        otherwise: the effect of leaving it out, in words; "" if the default value says it.
        flag: its name on the command line, if it differs from the name of the field.
        positional: whether it is an argument without a name.
        nargs: the number of its values, as argparse says it; "" for one.
        repeated: whether it can be given several times; the value is a sequence.
        choices: the only values; () for any.
        parse: makes the value from a text, if the type is not enough.
        names: returns the values that a shell offers.
        in_python: whether only the Python API has it.
    """

    help: str
    metavar: str = ""
    otherwise: str = ""
    flag: str = ""
    positional: bool = False
    nargs: str = ""
    repeated: bool = False
    choices: tuple[str, ...] = ()
    parse: Callable[[str], Any] | None = None
    names: Callable[[], Iterable[str]] | None = None
    in_python: bool = False


def options_of(record: Any) -> list[tuple["dataclasses.Field[Any]", Any, Option]]:
    """Returns the fields of a record that are options, each with its type and its `Option`.

    Arguments without a name come first, then own fields, then fields of its base classes from the last to the first.
    """
    fields = {field.name: field for field in dataclasses.fields(record)}
    found = []
    for field in (fields[name] for name in _names_of(record) if name in fields):
        for option in getattr(field.type, "__metadata__", ()):
            found.append((field, field.type.__origin__, option))  # type: ignore[union-attr]
    return sorted(found, key=lambda each: not each[2].positional)


def _names_of(record: type) -> list[str]:
    """Returns the names of a record's annotations in this order; a field that a class changes keeps its place."""
    inherited = [name for base in reversed(record.__bases__) for name in _names_of(base)]
    own = [name for name in inspect.get_annotations(record) if name not in inherited]
    return list(dict.fromkeys([*own, *inherited]))


def flag_of(field: "dataclasses.Field[Any]", option: Option) -> str:
    """Returns the name of an option on the command line, such as `--max-missing`."""
    return option.flag or f"--{field.name.replace('_', '-')}"


def default_of(field: "dataclasses.Field[Any]") -> Any:
    """Returns the default of an option as a user would write it, or None."""
    if field.default in (dataclasses.MISSING, None, False, (), ""):
        return None
    return ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default


def help_of(field: "dataclasses.Field[Any]", option: Option) -> str:
    """Returns the help of an option: its meaning, whether it can be repeated, and its default."""
    default, text = default_of(field), f"{option.help}{'; can be repeated' * option.repeated}"
    otherwise = option.otherwise if default is None else default
    return f"{text} (default: {otherwise})" if otherwise != "" else text


def as_strings(paths: PathArgument | Sequence[PathArgument]) -> tuple[str, ...]:
    """Returns one or several paths as strings."""
    return tuple(os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths))


def comma_separated(names: str | Sequence[str]) -> tuple[str, ...]:
    """Returns names, given as a list or as `"en,de"`."""
    return tuple(name.strip() for name in (names.split(",") if isinstance(names, str) else names))


def shared_fields(options: Any, record: Any) -> dict[str, Any]:
    """Returns the fields that options share with another record, by name."""
    names = {field.name for field in dataclasses.fields(record)}
    return {each.name: getattr(options, each.name) for each in dataclasses.fields(options) if each.name in names}


def takes_options(record: Callable[_P, _Record]) -> Callable[[Callable[[_Record], _Result]], Callable[_P, _Result]]:
    """Makes a function of a record a function of the record's fields, with their types, defaults and help.

    Arguments are checked (`bind_arguments`). In the docstring, `{options}` stands for the list of the fields.
    """

    kinds = {field.name: kind for field, kind, _ in options_of(record)}

    def decorate(function: Callable[[_Record], _Result]) -> Callable[_P, _Result]:
        signature = _make_signature(record, function.__annotations__["return"])

        @functools.wraps(function)
        def call(*arguments: _P.args, **keywords: _P.kwargs) -> _Result:
            bind_arguments(function.__name__, signature, kinds, arguments, keywords)
            return function(record(*arguments, **keywords))

        call.__doc__ = (function.__doc__ or "").replace("{options}", _write_docstring(record))
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorate


def _write_docstring(record: Any) -> str:
    """Returns the section of a docstring about the fields, with names of fields for names of options."""
    options = options_of(record)
    names = {flag_of(field, option): f"`{field.name}`" for field, _, option in options}

    def say_python(text: str) -> str:
        return re.sub(r"--[a-z][a-z-]*", lambda match: names.get(match[0], match[0]), text)

    lines = [f"        {field.name}: {say_python(help_of(field, option))}." for field, _, option in options]
    return "\n".join(["Args:", *lines])


def _make_signature(record: Any, returned: Any) -> Any:
    """Returns the signature of a function that takes the fields of a record."""
    types = {field.name: getattr(kind, "__forward_arg__", kind) for field, kind, _ in options_of(record)}
    parameters = inspect.signature(record).parameters.values()
    return inspect.Signature(
        [each.replace(annotation=types.get(each.name, each.annotation)) for each in parameters],
        return_annotation=returned,
    )
