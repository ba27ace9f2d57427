"""The command `recipes`: the rules of a recipe, or several recipes side by side."""

import argparse
import sys

from c4pipe.cli.arguments import complete_recipe
from c4pipe.cli.console import printer
from c4pipe.cli.parser import Command, Parser


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a recipe, or the path of a TOML file (default: all recipes)"
    ).completer = complete_recipe  # type: ignore[attr-defined]


def run(options: argparse.Namespace) -> None:
    """Prints the rules of one recipe, or several recipes side by side."""
    from c4pipe.cli.recipe_table import comparison_tables, comparison_width, names_table, rules_table
    from c4pipe.recipes.presets import RECIPES, find_recipe

    recipes = [find_recipe(name) for name in options.names] or list(RECIPES.values())
    console = printer(sys.stdout, comparison_width(recipes))
    tables = [rules_table(recipes[0])] if len(recipes) == 1 else comparison_tables(recipes, console.width)
    for table in (names_table(recipes), *tables):
        console.print(table)
        console.print()


COMMAND = Command(
    "recipes", "show the rules of a recipe, or compare recipes", add_arguments, run, examples=("c4pipe recipes c4",)
)
