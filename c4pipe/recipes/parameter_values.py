"""Which values a parameter of a rule can have: in a user's recipe file, and in the recipe of a file that is read."""

from typing import Any

from c4pipe.io.words import suggestion
from c4pipe.recipes.rule import Rule

_AT_LEAST_ONE = ("size", "one_in", "ngram", "min_ngrams", "bands", "rows")
_MOST = 2**31 - 1  # of a whole number
_LOWER = ("lorem_ipsum", "javascript", "policy")


def parameter_value(rule: Rule, name: str, value: Any) -> Any:
    """Returns the value of a rule's parameter, given as TOML or JSON has it; a list becomes a tuple.

    Raises ValueError, with the allowed values, for any other value, and for a parameter that the rule does not have.
    """
    if name not in rule.parameters:
        known = ", ".join(rule.parameters)
        raise ValueError(
            f"rule {rule.name} has no parameter {name!r}; it has {known or 'none'}" + suggestion(name, rule.parameters)
        )
    entry = f"[{rule.name}] {name} = {value!r}"
    expected = rule.parameters[name]
    if name in rule.choices:
        if value not in rule.choices[name]:
            raise ValueError(f"{entry}: choose from {', '.join(map(repr, rule.choices[name]))}")
        return value
    if isinstance(expected, tuple):
        return _texts(rule, name, value, entry)
    if isinstance(expected, bool):
        return _checked(value, isinstance(value, bool), f"{entry}: write true or false")
    if isinstance(expected, float):
        most = 1 if expected <= 1 else _MOST
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most
        return float(_checked(value, number, f"{entry}: give a number from 0 to {most:,}"))
    least = 1 if name in _AT_LEAST_ONE else 0
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
    _checked(value, whole, f"{entry}: give a whole number of at least {least}")
    return _checked(value, value <= _MOST, f"{entry}: give a whole number of at most {_MOST}")


def _checked(value: Any, holds: bool, message: str) -> Any:
    if not holds:
        raise ValueError(message)
    return value


def _texts(rule: Rule, name: str, value: Any, entry: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError(f"{entry}: give a list of texts, such as {list(rule.parameters[name])!r}")
    if rule.name in _LOWER and any(each != each.lower() for each in value):
        raise ValueError(f"{entry}: the search ignores case, so write it in lower case")
    return tuple(value)
