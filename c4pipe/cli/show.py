"""The commands that show what c4pipe has: `recipes` and `lists`."""

import argparse
import sys

from c4pipe.cli.console import printer
from c4pipe.cli.recipe_table import comparison_tables, comparison_width, names_table, rules_table
from c4pipe.recipes import pinned_lists as all_lists
from c4pipe.recipes.presets import RECIPES, find_recipe


def recipes(options: argparse.Namespace) -> None:
    """Prints the rules of a recipe, or several recipes side by side."""
    shown = [find_recipe(name) for name in options.names] or list(RECIPES.values())
    console = printer(sys.stdout, comparison_width(shown))
    tables = [rules_table(shown[0])] if len(shown) == 1 else comparison_tables(shown, console.width)
    for table in (names_table(shown), *tables):
        console.print(table)
        console.print()


def lists(options: argparse.Namespace) -> None:
    """Fetches the lists, or prints which are there."""
    folder = options.lists or all_lists.cache_dir()
    if options.action == "fetch":
        source = options.source or all_lists.SOURCE
        count = all_lists.fetch(folder, source, report=lambda line: print(line, file=sys.stderr))
        print(f"{count} lists fetched, {len(all_lists.PINNED) - count} were there: {folder}")
        return
    print(folder)
    for pinned, status in all_lists.show(folder):
        print(f"  {status:13}  {pinned.path:42}  {pinned.commit[:8]}  {pinned.sha256[:12]}")
