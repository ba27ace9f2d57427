"""The command `diff`: how two corpora differ."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from c4pipe.cli import arguments
from c4pipe.cli.console import printer
from c4pipe.cli.parser import Command, Parser, whole_number
from c4pipe.errors import UsageError

if TYPE_CHECKING:
    from c4pipe.runners.progress import State


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument("first", type=arguments.path_or_url, metavar="FIRST", help="folder of a finished corpus")
    parser.add_argument("second", type=arguments.path_or_url, metavar="SECOND", help="folder of another one")
    parser.add_argument(
        "--examples",
        type=whole_number,
        default=3,
        metavar="N",
        help="number of example pages of each kind (default: 3)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments.add_log(parser)
    parser.set_defaults(quiet=False)


def run(options: argparse.Namespace) -> None:
    """Compares two corpora and prints the difference. Raises UsageError where one is not finished or can't be read."""
    if options.examples < 0:
        raise UsageError(f"--examples {options.examples}: give the number of pages to show of each kind, 0 or more")

    from c4pipe.cli.diff_view import counts_table, example_lines, heads, pages_table
    from c4pipe.cli.progress import make_progress
    from c4pipe.corpus.opened import open_corpus
    from c4pipe.inspect.diff import compare

    first, second = open_corpus(options.first), open_corpus(options.second)
    pages_read: list[int] = []
    total = first.pages + second.pages

    def look() -> "State":
        return sum(pages_read) / max(1, total), f"{sum(pages_read):,} of {total:,} pages read"

    with make_progress(options).show("diff", Path(), look, lambda: {"pages": sum(pages_read)}):
        diff = compare(first, second, options.examples, pages_read.append)
    if options.json:
        print(json.dumps(diff.to_json(), indent=1))
        return
    console = printer(sys.stdout)
    for line in (*heads(diff), "", counts_table(diff), "", pages_table(diff), *example_lines(diff)):
        console.print(line)


COMMAND = Command(
    "diff",
    "compare two corpora: counts, pages and examples",
    add_arguments,
    run,
    examples=("c4pipe diff corpus corpus-of-my-recipe",),
)
