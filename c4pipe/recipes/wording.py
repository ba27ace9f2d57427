"""Values of parameters as a reader expects them."""

from typing import Any

from c4pipe.recipes.recipe import Step


def say(value: Any) -> str:
    """Returns the value of a parameter as a reader expects it."""
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_quote, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _quote(value: Any) -> str:
    return f"'{value}'" if '"' in str(value) else f'"{value}"'


def describe(step: Step) -> str:
    """Returns what a rule does, with the values of its parameters in the sentence."""
    return step.definition.does.format(**{name: say(value) for name, value in step.parameters.items()})
