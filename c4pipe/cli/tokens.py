"""The command `tokens`: its arguments, and what it prints."""

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
        "--budget-subset",
        metavar="TOKENS",
        help="also write a subset for training: the first documents with this number of tokens, such as 2^29",
    )
    parser.add_argument(
        "--training-tokens",
        metavar="TOKENS",
        default="2^35",
        help="tokens of a training on the subset, to print its number of epochs (default: 2^35)",
    )


def run(options: argparse.Namespace) -> None:
    """Counts the tokens of a corpus, writes a token-budget subset if it is asked for, and prints both."""
    from c4pipe.io.paths import storage_path
    from c4pipe.jobs.progress import Progress
    from c4pipe.runners.runner import RunnerOptions
    from c4pipe.tokens import count, subset
    from c4pipe.vocab.pipeline import MODEL

    corpus, model = storage_path(options.corpus), storage_path(options.vocab)
    model = model / MODEL if model.is_dir() else model
    asked = options.budget_subset
    size = subset.parse_tokens("--budget-subset", asked) if asked is not None else None
    training_tokens = subset.parse_tokens("--training-tokens", options.training_tokens)
    language = subset.open_one_language(corpus) if size is not None else None  # checked before the tokens are counted
    engine = RunnerOptions(options.workers, options.beam, options.quiet or options.json_progress)
    counted = count.count(corpus, model, engine, Progress.of(options))
    written = subset.write_subset(language, model, counted, size) if language and size else None
    if options.quiet:
        return
    console = printer(sys.stdout)
    console.print(tokens_table(counted))
    if written:
        say(console, f"subset: {written.file} ({written.documents:,} documents, {written.tokens:,} tokens)")
        epochs = written.epochs(training_tokens)
        say(
            console, f"a training on {training_tokens:,} tokens has {epochs:,} epochs of it; the last can be incomplete"
        )


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
