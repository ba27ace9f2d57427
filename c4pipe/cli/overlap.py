"""The command `overlap`: text that a corpus shares with examples of evaluation sets."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from c4pipe.cli.console import new_table, printer, styled
from c4pipe.cli.options import TerminalOptions
from c4pipe.cli.parser import Command
from c4pipe.inspect.options import OverlapOptions
from c4pipe.io.words import format_count

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from c4pipe.inspect.overlap import Overlap
    from c4pipe.io.paths import StoragePath


@dataclass(frozen=True, kw_only=True)
class OverlapCommandOptions(TerminalOptions, OverlapOptions):
    """The options of the command."""


def run(options: OverlapCommandOptions) -> None:
    """Searches a corpus for examples, and prints the numbers of examples and their pages."""
    from c4pipe.cli.progress import make_progress
    from c4pipe.inspect.overlap import overlap

    found = overlap(options, make_progress(options))
    if not options.quiet:
        console = printer(sys.stdout)
        for line in overlap_lines(found, options.max_pages, options.matches_file):
            console.print(line)


_WIDTH = 80


def overlap_lines(overlap: "Overlap", max_pages: int, output: "StoragePath | None") -> "Iterator[RenderableType]":
    """Yields the lines and tables about an overlap. N-grams on more than `max_pages` pages were ignored."""
    yield _files_table(overlap)
    yield styled("long enough: the example has an n-gram; at 70 %: at least that share of its", "dim")
    yield styled("n-grams is in the corpus", "dim")
    for size, count in overlap.common.items():
        if count:
            words = f"on more than {format_count(max_pages, 'page')}"
            yield styled(f"ignored: {format_count(count, 'n-gram')} of {format_count(size, 'word')}, {words}")
    if overlap.matches:
        yield styled("")
        yield _pages_table(overlap)
    if output is not None:
        yield styled(f"{format_count(len(overlap.matches), 'match', 'matches')}: {output}")


def _files_table(overlap: "Overlap") -> "Table":
    numbers = ("n", "examples", "long enough", "found", "at 70 %", "pages")
    table = new_table("file", numbers=numbers, padding=(0, 2, 0, 0))
    table.columns[0].max_width = 24
    for each in overlap.files:
        counts = (each.ngram, each.examples, each.searched, each.found, each.contaminated, each.pages)
        table.add_row(styled(each.file), *(f"{count:,}" for count in counts))
    return table


def _pages_table(overlap: "Overlap") -> "Table":
    table = new_table(numbers=("examples",), padding=(0, 2, 0, 0))
    table.add_column("page")
    for url, examples in overlap.top_pages(10):
        shown = styled(url, no_wrap=True)
        shown.truncate(_WIDTH - 12, overflow="ellipsis")
        table.add_row(f"{examples:,}", shown)
    return table


COMMAND = Command(
    OverlapCommandOptions,
    run,
    examples=("c4pipe overlap corpus --against wsc.jsonl --fields text --output matches.parquet",),
)
