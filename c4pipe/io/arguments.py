"""The arguments of users' calls: a wrong name or type is reported in one sentence, before any work."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from c4pipe.errors import UsageError
from c4pipe.io.words import short, suggestion

_P = ParamSpec("_P")
_Result = TypeVar("_Result")

_SHOWN = 60  # characters of a wrong value
_WORDS = {str: "a str", int: "an int", float: "a number", bool: "True or False", NoneType: "None"}


def checks_arguments(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """Makes a function or method check its arguments by their annotations (`bind_arguments`)."""
    signature = inspect.signature(function)

    @functools.cache
    def kinds() -> dict[str, Any]:
        return get_type_hints(function)

    @functools.wraps(function)
    def call(*arguments: _P.args, **keywords: _P.kwargs) -> _Result:
        bind_arguments(function.__qualname__.removesuffix(".__init__"), signature, kinds(), arguments, keywords)
        return function(*arguments, **keywords)

    return call


def bind_arguments(
    name: str,
    signature: inspect.Signature,
    kinds: Mapping[str, Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> None:
    """Checks the arguments of a call, given the type of each parameter; a parameter without a type takes any value.

    Raises TypeError if an argument is missing or unknown, and UsageError for a value of another type.
    """
    known = [each for each in signature.parameters if each != "self"]
    for keyword in keywords:
        if keyword not in known:
            near = suggestion(keyword, known) or f"; it has {', '.join(known)}"
            raise TypeError(f"{name}() has no argument {keyword!r}{near}")
    try:
        bound = signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise TypeError(f"{name}(): {error}; it has {', '.join(known)}") from None
    for each, value in bound.arguments.items():
        if each in kinds and not _fits(value, kinds[each]):
            words = list(dict.fromkeys(_words(kinds[each])))
            given = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
            example = f", such as [{value!r}]" if isinstance(value, str) and "a list of str" in given else ""
            raise UsageError(f"{each}={short(repr(value), _SHOWN)}: give {given}{example}")


def _fits(value: Any, kind: Any) -> bool:
    """Tells whether a value has a type. An unknown type fits all values."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inside)
    if kind is bool:
        return type(value).__name__ in ("bool", "bool_")  # also NumPy's
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if origin in (Sequence, list, tuple):
        if isinstance(value, str | bytes | os.PathLike | Mapping) or not isinstance(value, Iterable):
            return False
        return not isinstance(value, Sequence) or all(_fits(each, inside[0]) for each in value)
    checked = origin or kind
    if not isinstance(checked, type) or getattr(checked, "_is_protocol", False):
        return True
    return isinstance(value, checked)


def _words(kind: Any) -> list[str]:
    """Returns the words for a type, and for each type of a union."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return [word for each in inside for word in _words(each)]
    if origin in (Sequence, list, tuple):
        return [f"a list of {' or '.join(word.partition(' ')[2] for word in dict.fromkeys(_words(inside[0])))}"]
    checked = origin or kind
    if not isinstance(checked, type) or checked.__name__.endswith(("Path", "PathLike")):
        return ["a path"]
    article = "an" if checked.__name__[0] in "AEIO" else "a"
    return [_WORDS.get(checked, f"{article} {checked.__name__}")]
