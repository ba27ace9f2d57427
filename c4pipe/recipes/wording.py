"""The values of a recipe's parameters as text."""

from typing import Any

from c4pipe.recipes.recipe import Step


def parameter_text(value: Any) -> str:
    """Returns a parameter's value for readers: `yes`, `1,000`, `"a", "b"`, `none` for an empty list."""
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_quote, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _quote(value: Any) -> str:
    return f"'{value}'" if '"' in str(value) else f'"{value}"'


def describe_step(step: Step) -> str:
    """Returns what a rule does, with the values of its parameters in the sentence."""
    return step.definition.does.format(**{name: parameter_text(value) for name, value in step.parameters.items()})
