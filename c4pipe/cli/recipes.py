"""The command `recipes`: names of recipes, the rules of one, several side by side, or what the rules of one cost."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.console import new_table, printer, say, styled
from c4pipe.cli.options import path_or_url, readable_path
from c4pipe.cli.parser import Command
from c4pipe.errors import UsageError
from c4pipe.io.options import Option
from c4pipe.jobs.options import ListOptions, recipe_names

if TYPE_CHECKING:
    from rich.table import Table

    from c4pipe.filters.rule import Rule
    from c4pipe.inspect.rule_cost import RuleDrops, RuleTimes
    from c4pipe.io.paths import StoragePath
    from c4pipe.recipes.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class _CostOptions(ListOptions):
    cost: Annotated[
        "StoragePath | None",
        Option(
            "instead of recipes: an annotated folder. Shows how many of its pages each rule of its recipe drops, alone "
            "and together with others, and how long each rule takes",
            "ANNOTATED",
            parse=readable_path,
        ),
    ] = None
    output: Annotated[
        "StoragePath | None",
        Option(
            "with --cost: also write this page, with a heat map of the rules that drop the same pages",
            "FILE.html",
            parse=path_or_url,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RecipesOptions(_CostOptions):
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


def run(options: RecipesOptions) -> None:
    """Prints names of recipes, the rules of one, several side by side, or what the rules of an annotated folder cost.

    Raises UsageError for an unknown recipe, a folder that is not annotated, and lists that are not those of its run.
    """
    if options.cost is not None:
        _show_cost(options, options.cost)
        return
    for name in ("lists", "links", "language_model", "output"):
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')} is for --cost: give --cost too, or leave it out")

    from c4pipe.recipes.presets import RECIPES, find_recipe

    if not options.names:
        console = printer(sys.stdout)
        console.print(names_table(RECIPES.values(), no_wrap=True))
        console.print()
        say(console, "c4pipe recipes NAME... shows the rules of a recipe, or several recipes side by side")
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
    """Returns a table with a line for each recipe and its description."""
    table = new_table(show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="ellipsis" if no_wrap else "fold", no_wrap=no_wrap)
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
            values = [
                "by language" if recipe.is_by_language(kind.name, name) else _value(rule, name)
                for recipe, rule in zip(recipes, rules, strict=True)
            ]
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


def _show_cost(options: RecipesOptions, folder: "StoragePath") -> None:
    """Prints how many pages of an annotated folder each rule drops, and how long it takes."""
    from c4pipe.clean.annotated_folder import open_annotated
    from c4pipe.inspect.rule_cost import count_drops, measure_times, sample_pages
    from c4pipe.inspect.rule_cost_page import render_cost
    from c4pipe.io.atomic import check_output, write_text
    from c4pipe.io.words import format_count
    from c4pipe.recipes.choose import ListedRecipe

    if options.names:
        raise UsageError(f"--cost: the folder {folder} has its own recipe: leave out {options.names[0]}")
    if options.output is not None:
        if not str(options.output).endswith(".html"):
            raise UsageError(f"--output {options.output}: the page is HTML: give a name that ends in .html")
        check_output(options.output)
    annotated = open_annotated(folder)
    listed = ListedRecipe.gather(annotated.recipe, options.lists, options.links, options.language_model)
    if listed.fingerprint != annotated.fingerprint:
        raise UsageError(f"{folder} was annotated with other lists: give the options of that run, such as --lists")
    drops = count_drops(annotated)
    times = measure_times(listed.recipe, listed.lists, sample_pages(annotated))
    console = printer(sys.stdout)
    files = format_count(len(annotated.paths), "file")
    say(console, f"recipe {annotated.recipe.name}: {format_count(annotated.pages, 'page')} in {files} of {folder}")
    console.print()
    console.print(drops_table(drops, times))
    console.print()
    if drops.lines:
        console.print(lines_table(drops, times))
        console.print()
    for line in _COST_NOTES:
        say(console, line.format(pages=format_count(times.pages, "page")))
    overlap = overlap_table(drops)
    console.print()
    if console.measure(overlap, options=console.options.update(max_width=1000)).maximum <= console.width:
        say(console, "Of 100 pages that a rule drops, the rule with the number drops so many, too:")
        console.print(overlap)
    else:
        say(console, "The table of rules that drop the same pages is too wide here: see --output.")
    if options.output is not None:
        write_text(options.output, render_cost(annotated.recipe, drops, times))
        say(console, f"page: {options.output}")


_COST_NOTES = (
    "dropped: pages that the rule drops, also where a rule before it drops them",
    "alone: pages that no other rule drops",
    "first: pages that no rule before it drops, as build counts them",
    "µs: microseconds a page on one core of this machine, measured on {pages}",
    "shared: what several rules need, such as the words of a page",
)


def drops_table(drops: "RuleDrops", times: "RuleTimes") -> "Table":
    """Returns a table with a line for each page rule: the pages that it drops, and its time."""
    table = new_table(padding=(0, 2, 0, 0))
    table.add_column("rule", no_wrap=True)
    for column in ("dropped", "%", "alone", "first", "µs"):
        table.add_column(column, justify="right", no_wrap=True)
    total = sum(times.by_rule[rule] for rule in drops.rules) + times.shared
    any_rule = sum(drops.first.values())
    rows = [(rule, drops.dropped[rule], drops.alone[rule], drops.first[rule]) for rule in drops.rules]
    for rule, *counts in rows:
        table.add_row(rule, *_shown(counts, drops.pages), f"{times.by_rule[rule]:,.1f}")
    table.add_row("shared", "", "", "", "", f"{times.shared:,.1f}")
    table.add_row("any rule", *_shown([any_rule, sum(drops.alone.values()), any_rule], drops.pages), f"{total:,.1f}")
    return table


def _shown(counts: Sequence[int], pages: int) -> list[str]:
    """Returns numbers of pages, with the share of the first in all pages behind it."""
    from c4pipe.corpus.funnel import percent

    dropped, *others = (f"{count:,}" for count in counts)
    return [dropped, percent(counts[0], pages), *others]


def lines_table(drops: "RuleDrops", times: "RuleTimes") -> "Table":
    """Returns a table with a line for each line rule: the lines that it drops or changes, and its time."""
    from c4pipe.corpus.funnel import percent

    table = new_table(padding=(0, 2, 0, 0))
    table.add_column("line rule", no_wrap=True)
    for column in ("lines", "%", "µs"):
        table.add_column(column, justify="right", no_wrap=True)
    for rule, lines in drops.lines.items():
        table.add_row(rule, f"{lines:,}", percent(lines, drops.lines_read), f"{times.by_rule[rule]:,.1f}")
    return table


def overlap_table(drops: "RuleDrops") -> "Table":
    """Returns a table that says of each two rules how many of 100 pages that the first drops the second drops, too."""
    overlap = drops.overlap()
    table = new_table(padding=(0, 1, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("rule", no_wrap=True)
    for number in range(1, len(overlap) + 1):
        table.add_column(str(number), justify="right", no_wrap=True, min_width=3)
    for number, (rule, row) in enumerate(overlap.items(), 1):
        cells = ("-" if column == number else str(share) for column, share in enumerate(row, 1))
        table.add_row(str(number), rule, *cells)
    return table


COMMAND = Command(
    RecipesOptions, run, examples=("c4pipe recipes c4", "c4pipe recipes --cost annotated --lists samples/lists")
)
