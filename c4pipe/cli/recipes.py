"""The command `recipes`: names of recipes, their rules, or the number of pages that each rule drops."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from c4pipe.cli.console import new_table, printer, say, styled
from c4pipe.cli.options import readable_path
from c4pipe.cli.parser import Command
from c4pipe.errors import UsageError
from c4pipe.io.options import Option
from c4pipe.jobs.options import recipe_names

if TYPE_CHECKING:
    from rich.table import Table

    from c4pipe.filters.rule import Rule
    from c4pipe.inspect.rule_drops import RuleDrops
    from c4pipe.io.paths import StoragePath
    from c4pipe.recipes.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class RecipesOptions:
    """The options of the command."""

    names: Annotated[
        Sequence[str],
        Option(
            "a recipe, or the path of a TOML file",
            "NAME",
            otherwise="the list of recipes",
            positional=True,
            nargs="*",
            names=recipe_names,
        ),
    ] = ()
    cost: Annotated[
        "StoragePath | None",
        Option(
            "instead of recipes: an annotated folder. Shows how many of its pages each rule of its recipe drops, alone "
            "and together with others",
            "ANNOTATED",
            parse=readable_path,
        ),
    ] = None


def run(options: RecipesOptions) -> None:
    """Prints names or rules of recipes, or the drops of an annotated folder. Raises UsageError for an unknown recipe
    and a folder that is not annotated.
    """
    if options.cost is not None:
        _print_drops(options, options.cost)
        return

    from c4pipe.recipes.presets import RECIPES, find_recipe

    if not options.names:
        console = printer(sys.stdout)
        console.print(names_table(RECIPES.values(), no_wrap=True))
        console.print()
        say("c4pipe recipes NAME... shows the rules of a recipe, or several recipes side by side")
        return
    recipes = [find_recipe(name) for name in options.names]
    console = printer(sys.stdout, 100)
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
        table.add_row("" if now == stage else now, rule.name, styled(recipe.sentence(rule)), rule.source)
        stage = now
    return table


def names_table(recipes: Iterable["Recipe"], no_wrap: bool = False) -> "Table":
    """Returns the names and descriptions of recipes."""
    table = new_table(show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="ellipsis" if no_wrap else "fold", no_wrap=no_wrap)
    for recipe in recipes:
        table.add_row(styled(recipe.name), styled(recipe.description))
    return table


def comparison_tables(recipes: Sequence["Recipe"], width: int) -> Iterator["Table"]:
    """Yields tables with recipes side by side, for a terminal of `width` columns.

    They show the stages of each rule, and its parameters that differ: `rules_table` shows all parameters.
    """
    fitting = max(1, (width - _RULE_WIDTH) // (_RECIPE_WIDTH + 2))
    count = -(-len(recipes) // fitting)
    size = -(-len(recipes) // count)
    for first in range(0, len(recipes), size):
        yield _compare(recipes, slice(first, first + size))


def _compare(recipes: Sequence["Recipe"], shown: slice) -> "Table":
    from rich.markup import escape

    from c4pipe.filters.rule import parameter_names
    from c4pipe.filters.rules import RULES

    table = new_table(padding=(0, 2, 0, 0))
    table.add_column("rule", no_wrap=True, width=_RULE_WIDTH - 2)
    for recipe in recipes[shown]:
        table.add_column(escape(recipe.name).replace("-", "-\n"), overflow="fold", width=_RECIPE_WIDTH)
    stages = [_find_stages(recipe) for recipe in recipes]
    own = {rule.name: type(rule) for recipe in recipes for _, rule in recipe.rules()}
    for kind in {**RULES, **own}.values():
        if not any(kind.name in each for each in stages):
            continue
        table.add_row(kind.name, *(each.get(kind.name, "") for each in stages[shown]))
        rules = [recipe.find(kind) for recipe in recipes]
        for name in parameter_names(kind):
            values = [
                "by language" if recipe.is_by_language(kind.name, name) else _show_value(rule, name)
                for recipe, rule in zip(recipes, rules, strict=True)
            ]
            if len({value for value in values if value is not None}) > 1:
                table.add_row(f"  {name}", *(styled(value or "") for value in values[shown]), style="dim")
    return table


def _find_stages(recipe: "Recipe") -> dict[str, str]:
    """Returns the stages of each rule, by its name: most rules have one."""
    stages: dict[str, str] = {}
    for stage, rule in recipe.rules():
        stages[rule.name] = f"{stages[rule.name]}, {stage}" if rule.name in stages else stage
    return stages


def _show_value(rule: "Rule | None", name: str) -> str | None:
    from c4pipe.filters.rule import parameter_text

    if rule is None:
        return None
    value = rule.parameters[name]
    if isinstance(value, tuple) and len(value) > 8:
        return f"{len(value)} of them"
    return parameter_text(value)


def _print_drops(options: RecipesOptions, folder: "StoragePath") -> None:
    """Prints the number of pages of an annotated folder that each rule drops."""
    from c4pipe.clean.annotated_folder import open_annotated
    from c4pipe.inspect.rule_drops import count_rule_drops
    from c4pipe.io.words import format_count

    if options.names:
        raise UsageError(f"--cost: the folder {folder} has its own recipe: leave out {options.names[0]}")
    annotated = open_annotated(folder)
    drops = count_rule_drops(annotated)
    console = printer(sys.stdout)
    files = format_count(len(annotated.paths), "file")
    say(f"recipe {annotated.recipe.name}: {format_count(annotated.pages, 'page')} in {files} of {folder}")
    for table in cost_tables(drops):
        console.print()
        console.print(table)
    console.print()
    for line in _COST_NOTES:
        say(line)


_COST_NOTES = (
    "dropped: pages that the rule drops, even if a rule before it drops them",
    "alone: pages that no other rule drops",
    "first: pages that no rule before it drops, as build counts them",
    "also drop: of 100 pages that the rule drops, so many are dropped by each of these rules, too; 0 is left out",
)


def cost_tables(drops: "RuleDrops") -> Iterator["Table"]:
    """Yields the tables of pages by page rule, of dropped or edited lines by line rule, and of overlaps of rules."""
    from c4pipe.corpus.funnel import percent

    wide: Any = {"padding": (0, 2, 0, 0)}
    pages = new_table("rule", numbers=("dropped", "%", "alone", "first"), **wide)
    any_rule = sum(drops.first.values())
    rows = [(rule, dropped, drops.alone[rule], drops.first[rule]) for rule, dropped in drops.dropped.items()]
    for rule, dropped, alone, first in (*rows, ("any rule", any_rule, sum(drops.alone.values()), any_rule)):
        pages.add_row(rule, f"{dropped:,}", percent(dropped, drops.pages), f"{alone:,}", f"{first:,}")
    yield pages
    if drops.lines:
        lines = new_table("line rule", numbers=("lines", "%"), **wide)
        for rule, changed in drops.lines.items():
            lines.add_row(rule, f"{changed:,}", percent(changed, drops.lines_read))
        yield lines
    overlap = new_table("rule", "also drop", **wide)
    for rule, others in drops.overlap().items():
        overlap.add_row(rule, ", ".join(f"{other} {share}" for other, share in others.items()) or "-")
    yield overlap


COMMAND = Command(RecipesOptions, run, examples=("c4pipe recipes c4", "c4pipe recipes --cost annotated"))
