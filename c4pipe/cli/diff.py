"""The command `diff`: arguments to two corpora, and what is said of them."""

import argparse
import json
import sys
from pathlib import Path

from c4pipe.cli.console import printer
from c4pipe.cli.diff_view import counts_table, example_lines, heads, pages_table
from c4pipe.corpus.corpus import open_corpus
from c4pipe.diff.compare import compare
from c4pipe.errors import UsageError
from c4pipe.jobs.progress import Progress, State


def run(options: argparse.Namespace) -> None:
    """Compares two corpora and prints the difference. Raises UsageError where one is not finished or can't be read."""
    if options.examples < 0:
        raise UsageError(f"--examples {options.examples}: give how many pages to show of each kind, 0 or more")
    first, second = open_corpus(options.first), open_corpus(options.second)
    read: list[int] = []
    total = first.pages + second.pages

    def look() -> State:
        return sum(read) / max(1, total), f"{sum(read):,} of {total:,} pages read"

    with Progress(printer()).show("diff", Path(), look):
        diff = compare(first, second, options.examples, read.append)
    if options.json:
        print(json.dumps(diff.to_json(), indent=1))
        return
    console = printer(sys.stdout)
    for shown in (*heads(diff), "", counts_table(diff), "", pages_table(diff), *example_lines(diff)):
        console.print(shown)
