"""The command `recipes`: the rules of a recipe, or several recipes side by side."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.console import new_table, printer, styled
from c4pipe.cli.parser import Command
from c4pipe.io.options import Option
from c4pipe.jobs.options import recipe_names

if TYPE_CHECKING:
    from rich.table import Table

    from c4pipe.filters.rule import Rule
    from c4pipe.recipes.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class RecipesOptions:
    """The options of the command."""

    names: Annotated[
        Sequence[str],
        Option(
            "a recipe, or the path of a TOML file",
            "NAME",
            otherwise="all recipes",
            positional=True,
            nargs="*",
            names=recipe_names,
        ),
    ] = ()


def run(options: RecipesOptions) -> None:
    """Prints the rules of one recipe, or several recipes side by side."""
    from c4pipe.recipes.presets import RECIPES, find_recipe

    recipes = [find_recipe(name) for name in options.names] or list(RECIPES.values())
    console = printer(sys.stdout, comparison_width(recipes))
    tables = [rules_table(recipes[0])] if len(recipes) == 1 else comparison_tables(recipes, console.width)
    for table in (names_table(recipes), *tables):
        console.print(table)
        console.print()


_RULE_WIDTH = 25  # columns of a rule's name, and two of space
_RECIPE_WIDTH = 12


def rules_table(recipe: "Recipe") -> "Table":
    """Returns the rules of a recipe, their parameters and sources, in the order of evaluation."""
    table = new_table(padding=(0, 2, 0, 0))
    for column in ("stage", "rule", "what it does", "source"):
        table.add_column(column, overflow="fold", no_wrap=column in ("stage", "rule"))
    stage = ""
    for now, rule in recipe.rules():
        table.add_row("" if now == stage else now, rule.name, styled(rule.sentence), rule.source)
        stage = now
    return table


def names_table(recipes: Iterable["Recipe"]) -> "Table":
    """Returns a table with a line for each recipe and its description."""
    table = new_table(show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for recipe in recipes:
        table.add_row(styled(recipe.name), styled(recipe.description))
    return table


def comparison_tables(recipes: Sequence["Recipe"], width: int) -> Iterator["Table"]:
    """Yields recipes side by side, in as many tables as it takes on a terminal of `width` columns.

    For each rule, the tables show the stage at which a recipe applies it, and the parameters below. A parameter with
    the same value in all recipes that have the rule is not shown: `rules_table` shows it.
    """
    fitting = max(1, (width - _RULE_WIDTH) // (_RECIPE_WIDTH + 2))
    count = -(-len(recipes) // fitting)
    size = -(-len(recipes) // count)
    for first in range(0, len(recipes), size):
        yield _comparison(recipes, slice(first, first + size))


def comparison_width(recipes: Sequence["Recipe"]) -> int:
    """Returns the columns that all recipes take in one table."""
    return _RULE_WIDTH + (_RECIPE_WIDTH + 2) * len(recipes)


def _comparison(recipes: Sequence["Recipe"], shown: slice) -> "Table":
    from rich.markup import escape

    from c4pipe.filters.rule import parameter_names
    from c4pipe.filters.rules import RULES

    table = new_table(padding=(0, 2, 0, 0))
    table.add_column("rule", no_wrap=True, width=_RULE_WIDTH - 2)
    for recipe in recipes[shown]:
        table.add_column(escape(recipe.name).replace("-", "-\n"), overflow="fold", width=_RECIPE_WIDTH)
    stages = [_stages(recipe) for recipe in recipes]
    own = {rule.name: type(rule) for recipe in recipes for _, rule in recipe.rules()}
    for kind in {**RULES, **own}.values():
        if not any(kind.name in each for each in stages):
            continue
        table.add_row(kind.name, *(each.get(kind.name, "") for each in stages[shown]))
        rules = [recipe.find(kind) for recipe in recipes]
        for name in parameter_names(kind):
            values = [_value(rule, name) for rule in rules]
            if len({value for value in values if value is not None}) > 1:
                table.add_row(f"  {name}", *(styled(value or "") for value in values[shown]), style="dim")
    return table


def _stages(recipe: "Recipe") -> dict[str, str]:
    """Returns the stages of each rule: most rules have one."""
    stages: dict[str, str] = {}
    for stage, rule in recipe.rules():
        stages[rule.name] = f"{stages[rule.name]}, {stage}" if rule.name in stages else stage
    return stages


def _value(rule: "Rule | None", name: str) -> str | None:
    from c4pipe.filters.rule import parameter_text

    if rule is None:
        return None
    value = rule.parameters[name]
    if isinstance(value, tuple) and len(value) > 8:
        return f"{len(value)} of them"
    return parameter_text(value)


COMMAND = Command(RecipesOptions, run, examples=("c4pipe recipes c4",))
