"""The command `overlap`: what a corpus shares with examples of evaluation sets."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.console import new_table, printer, styled
from c4pipe.cli.options import TerminalOptions, path_or_url
from c4pipe.cli.parser import Command, whole_number
from c4pipe.io.options import Option
from c4pipe.io.words import format_count
from c4pipe.runners.runner_options import WorkerOptions

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from c4pipe.inspect.overlap import Overlap
    from c4pipe.io.paths import StoragePath


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(whole_number, text.split(",")))


@dataclass(frozen=True, kw_only=True)
class _ExampleOptions:
    corpus: Annotated[str, Option("folder of a finished corpus, or of one of its languages", "CORPUS", positional=True)]
    against: Annotated[
        Sequence[Path],
        Option(
            "examples to search for: JSON Lines (.jsonl, .ndjson, .json) or plain text, one on each line, gzipped or "
            "not; or Parquet (.parquet), one in each row",
            "FILE",
            nargs="+",
            parse=Path,
        ),
    ]
    fields: Annotated[
        tuple[str, ...],
        Option(
            "the fields of JSON Lines, or columns, to take",
            "NAME,...",
            otherwise="all texts of a line or row",
            parse=_names,
        ),
    ] = ()
    ngrams: Annotated[
        tuple[int, ...],
        Option("how many words an n-gram has; several sizes are counted apart", "N,...", parse=_numbers),
    ] = (8, 13)
    max_pages: Annotated[int, Option("ignore n-grams that are on more than N pages", "N")] = 10
    output: Annotated[
        "StoragePath | None",
        Option("write all matches to this file: .parquet, .jsonl or .jsonl.gz", "FILE", parse=path_or_url),
    ] = None


@dataclass(frozen=True, kw_only=True)
class OverlapCommandOptions(TerminalOptions, WorkerOptions, _ExampleOptions):
    """The options of the command."""


def run(options: OverlapCommandOptions) -> None:
    """Searches a corpus for examples, and prints how many of them it has and on which pages."""
    from c4pipe.cli.progress import make_progress
    from c4pipe.inspect.overlap import OverlapOptions, overlap

    found = overlap(
        OverlapOptions(
            corpus=options.corpus,
            against=tuple(options.against),
            ngrams=options.ngrams,
            fields=options.fields,
            max_pages=options.max_pages,
            output=options.output,
            workers=options.workers,
        ),
        make_progress(options),
    )
    if not options.quiet:
        console = printer(sys.stdout)
        for line in overlap_lines(found, options.max_pages, options.output):
            console.print(line)


_TOP = 10  # pages
_WIDTH = 80


def overlap_lines(overlap: "Overlap", max_pages: int, output: "StoragePath | None") -> "Iterator[RenderableType]":
    """Yields what to print about an overlap.

    Args:
        overlap: what was found.
        max_pages: the most pages on which an n-gram could be without being ignored.
        output: the file of the matches; None where there is none.
    """
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
    table = new_table(padding=(0, 2, 0, 0))
    table.add_column("file", overflow="fold", max_width=24)
    for head in ("n", "examples", "long enough", "found", "at 70 %", "pages"):
        table.add_column(head, justify="right", no_wrap=True)
    for each in overlap.files:
        counts = (each.ngram, each.examples, each.searched, each.found, each.contaminated, each.pages)
        table.add_row(styled(each.file), *(f"{count:,}" for count in counts))
    return table


def _pages_table(overlap: "Overlap") -> "Table":
    table = new_table(padding=(0, 2, 0, 0))
    table.add_column("examples", justify="right", no_wrap=True)
    table.add_column("page")
    for url, examples in overlap.top_pages(_TOP):
        shown = styled(url, no_wrap=True)
        shown.truncate(_WIDTH - 12, overflow="ellipsis")
        table.add_row(f"{examples:,}", shown)
    return table


COMMAND = Command(
    OverlapCommandOptions,
    run,
    examples=("c4pipe overlap corpus --against wsc.jsonl --fields text --output matches.parquet",),
)
