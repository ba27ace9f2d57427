"""Writes what docs/rules.md has from the rule table and the recipes: the lists, the rows of tables, and the order.

The text between is written by hand, and so is the last cell of a row. A rule without a section or a row gets none: its
text has to be written first.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from c4pipe.filters.rule import choices, parameter_text  # noqa: E402 - also in a clone that is not installed
from c4pipe.filters.rules import RULES  # noqa: E402
from c4pipe.recipes.presets import RECIPES  # noqa: E402
from c4pipe.recipes.recipe import STAGES  # noqa: E402

PAGE = ROOT / "docs" / "rules.md"
SECTION = re.compile(r"(^### `(\w+)`\n\n)((?:- .*\n)*)\n*", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \|.*\| (.*) \|$", re.MULTILINE)
ORDER = re.compile(r"^\| stage \|.*\n(?:\|.*\n)+", re.MULTILINE)


def rules_page(page: str) -> str:
    """Returns the page with its lists, its rows of rules and its table of stages as the code has them."""
    listed = SECTION.sub(lambda match: match[1] + "".join(f"- {item}\n" for item in _items(match[2])) + "\n", page)
    rows = ROW.sub(lambda match: _row(match[1], match[2]) if match[1] in RULES else match[0], listed)
    return ORDER.sub(lambda _: "".join(_stage_rows()), rows)


def _items(name: str) -> Iterator[str]:
    rule = RULES[name]()
    yield "Does: " + rule.sentence
    if rule.parameters:
        yield "Parameters: " + "; ".join(_parameter(name, each) for each in rule.parameters)
    yield f"Recipes: {_recipes(name)}"
    yield f"Source: {rule.source}"


def _row(name: str, note: str) -> str:
    """A rule as a row; what stands in the last cell is written by hand."""
    rule = RULES[name]()
    parameters = "; ".join(_parameter(name, each) for each in rule.parameters) or "none"
    return f"| `{name}` | {rule.sentence} | {parameters} | {_recipes(name)} | {note} |"


def _parameter(name: str, parameter: str) -> str:
    """A parameter with its value in `c4`, its value in `tfds` if it differs, and the other values, if they are few."""
    value = RULES[name]().parameters[parameter]
    in_tfds = RECIPES["tfds"].need(RULES[name]).parameters.get(parameter, value)
    others = tuple(each for each in choices(RULES[name], parameter) if each != value)
    texts = [f"`{parameter}` = {worded(value)}"]
    if in_tfds != value:
        texts.append(f"(`tfds`: {worded(in_tfds)})")
    if others:
        texts.append(f"or {worded(others)}")
    return " ".join(texts)


def _recipes(name: str) -> str:
    """The recipes that have a rule; those that have it not, where they are fewer."""
    without = [recipe.name for recipe in RECIPES.values() if not recipe.has(name)]
    having = [recipe for recipe in RECIPES if recipe not in without]
    if len(without) < len(having):
        return " but ".join(["all", *([_quoted(without)] if without else [])])
    return _quoted(having) or "none; a recipe file switches it on"


def _quoted(names: list[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)


def worded(value: Any) -> str:
    """A parameter's value in Markdown."""
    if isinstance(value, tuple):
        return ", ".join(map(worded, value)) or "none"
    return f"`{value}`" if isinstance(value, str) else parameter_text(value)


def _stage_rows() -> Iterator[str]:
    yield "| stage | what it looks at | `c4` | `tfds` |\n|---|---|---|---|\n"
    for stage, looks_at in STAGES.items():
        yield f"| {stage} | {looks_at} | {_rules_of('c4', stage)} | {_rules_of('tfds', stage)} |\n"


def _rules_of(recipe: str, stage: str) -> str:
    rules: Any = getattr(RECIPES[recipe], stage)
    return _quoted([rule.name for rule in rules]) or "none"


if __name__ == "__main__":
    PAGE.write_text(rules_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
