"""The command `diff`: the differences between two corpora."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.console import new_table, printer, styled
from c4pipe.cli.options import LogOptions, readable_path
from c4pipe.cli.parser import Command
from c4pipe.errors import UsageError
from c4pipe.io.options import Option

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from c4pipe.inspect.diff import Diff
    from c4pipe.io.paths import StoragePath


@dataclass(frozen=True, kw_only=True)
class DiffOptions(LogOptions):
    """The options of the command."""

    first: Annotated[
        "StoragePath", Option("folder of a finished corpus", "FIRST", positional=True, parse=readable_path)
    ]
    second: Annotated["StoragePath", Option("folder of another one", "SECOND", positional=True, parse=readable_path)]
    examples: Annotated[int, Option("number of example pages of each kind", "N")] = 3
    json: Annotated[bool, Option("print JSON instead of tables")] = False


def run(options: DiffOptions) -> None:
    """Compares two corpora and prints the differences. Raises UsageError if one is not finished or can't be read."""
    if options.examples < 0:
        raise UsageError(f"--examples {options.examples}: give the number of pages to show of each kind, 0 or more")

    from c4pipe.cli.progress import make_progress
    from c4pipe.corpus.opened import open_corpus
    from c4pipe.inspect.diff import compare
    from c4pipe.runners.events import Status

    first, second = open_corpus(options.first), open_corpus(options.second)
    pages_read: list[int] = []
    total = first.pages + second.pages

    def look() -> Status:
        done = sum(pages_read)
        return Status(done / max(1, total), f"{done:,} of {total:,} pages read", {"pages": done})

    with make_progress(options).show("diff", Path(), look):
        diff = compare(first, second, options.examples, pages_read.append)
    if options.json:
        print(json.dumps(diff.to_json(), indent=1))
        return
    console = printer(sys.stdout)
    for line in (*heads(diff), "", counts_table(diff), "", pages_table(diff), *example_lines(diff)):
        console.print(line)


_KINDS = {
    "only_first": "only in the first",
    "only_second": "only in the second",
    "other_text": "in both, with other text",
    "other_columns": "in both, with other columns",
}
_WIDTH = 80


def heads(diff: "Diff") -> Iterator["Text"]:
    """Yields a line for each corpus: folder, recipe, languages, and the extractor of text from HTML."""
    for side, corpus in zip(("first", "second"), diff.corpora, strict=True):
        languages = corpus.recipe.languages
        words = ", ".join(languages) if len(languages) <= 8 else f"{len(languages)} languages"
        text = f"; text by {corpus.recipe.extraction}" if corpus.recipe.extraction else ""
        yield styled(f"{side + ':':8}{corpus.path} (recipe {corpus.recipe.name}; {words}{text})", "bold")


def counts_table(diff: "Diff") -> "Table":
    """Returns the counters side by side; `-` if a recipe lacks the rule."""
    from c4pipe.inspect.diff import split_name

    table = new_table("", numbers=("first", "second", "difference"))
    for name, (first, second) in diff.counts.items():
        label = _label(diff, *split_name(name))
        if label:
            style = "" if label.startswith(" ") else "bold"
            numbers = ("-" if number is None else f"{number:,}" for number in (first, second))
            change = (second or 0) - (first or 0)
            shown = styled(f"{change:+,}", "green" if change > 0 else "red") if change else styled("0", "dim")
            table.add_row(styled(label, style), *numbers, shown)
    return table


def _label(diff: "Diff", what: str, rest: str) -> str:
    """Returns the label of a counter; "" if the table leaves it out."""
    if what == "pages.kept" and rest:
        many = any(len(corpus.recipe.languages) > 1 for corpus in diff.corpora)
        return f"  of these in {rest}" if many else ""
    from c4pipe.corpus.funnel import unit_name
    from c4pipe.inspect.diff import COUNTERS

    units = sorted({unit_name(corpus.recipe) for corpus in diff.corpora})
    return COUNTERS.get(what, "").format(rest, units=" or ".join(units))


def pages_table(diff: "Diff") -> "Table":
    """Returns the numbers of pages in one corpus, in both, and in both with other text."""
    table = new_table("", numbers=("pages",))
    for kind in diff.kinds:
        table.add_row(_KINDS[kind], f"{diff.pages[kind]:,}")
    table.add_row("in both, with the same text", f"{diff.pages['same_text']:,}")
    return table


def example_lines(diff: "Diff", width: int = _WIDTH) -> Iterator["Text"]:
    """Yields the examples, in lines of at most `width` columns."""
    for kind in diff.kinds:
        if diff.examples[kind]:
            yield styled("")
            yield styled(f"{_KINDS[kind]}: {len(diff.examples[kind]):,} of {diff.pages[kind]:,} pages", "bold")
        for example in diff.examples[kind]:
            lines = [(f"  {example.url}", "cyan")]
            if kind == "other_text":
                lines.append((f"    line {example.line:,}", "dim"))
            if example.first is not None:
                lines.append((f"    - {example.first}", "red"))
            if example.second is not None:
                lines.append((f"    + {example.second}", "green"))
            for text, style in lines:
                line = styled(text, style)
                line.truncate(width, overflow="ellipsis")
                yield line


COMMAND = Command(DiffOptions, run, examples=("c4pipe diff corpus corpus-of-my-recipe",))
