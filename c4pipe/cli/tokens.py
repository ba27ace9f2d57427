"""The command `tokens`: its arguments, and what is said of the counts."""

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from c4pipe.cli.console import printer, say

if TYPE_CHECKING:
    from rich.table import Table

# The rest is imported when it runs: the parser of all commands has these arguments.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument("corpus", metavar="CORPUS", help="folder of a finished corpus, or of one of its languages")
    parser.add_argument(
        "--vocab", metavar="MODEL", required=True, help="the vocabulary to count with: its folder, or a model's file"
    )
    parser.add_argument(
        "--take", metavar="TOKENS", help="also list the first documents with so many tokens, such as 2^29, to train on"
    )
    parser.add_argument(
        "--budget", metavar="TOKENS", default="2^35", help="tokens of the training that a take is for (default: 2^35)"
    )


def run(options: argparse.Namespace) -> None:
    """Counts the tokens of a corpus, writes a take if it is asked for, and prints both."""
    from c4pipe.cli.progress import make_progress
    from c4pipe.io.paths import storage_path
    from c4pipe.runners.runner import RunnerOptions
    from c4pipe.tokens import count, subset
    from c4pipe.vocab.pipeline import MODEL

    corpus, model = storage_path(options.corpus), storage_path(options.vocab)
    model = model / MODEL if model.is_dir() else model
    size = subset.parse_tokens("--take", options.take) if options.take is not None else None
    budget = subset.parse_tokens("--budget", options.budget)
    train = subset.find_train(corpus) if size is not None else None  # before the work of counting
    engine = RunnerOptions(options.workers, options.beam, options.quiet)
    counted = count.count(corpus, model, engine, make_progress(options))
    take = subset.write_take(train, model, counted, size) if train and size else None
    if options.quiet:
        return
    console = printer(sys.stdout)
    console.print(tokens_table(counted))
    if take:
        say(console, f"take: {take.file} ({take.documents:,} documents, {take.tokens:,} tokens)")
        say(console, f"{budget:,} tokens read it {take.epochs(budget):,} times, the last time perhaps in part")


def tokens_table(counted: Mapping[str, Any]) -> "Table":
    """Returns the totals of `tokens.json` as a table."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("language")
    table.add_column("split")
    for name in ("documents", "tokens"):
        table.add_column(name, justify="right")
    for language, splits in counted["totals"].items():
        for split, total in splits.items():
            table.add_row(language, split, f"{total['documents']:,}", f"{total['tokens']:,}")
    return table
