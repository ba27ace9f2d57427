"""The command `tokens`: how many tokens a corpus has, and a subset of it with a given number of tokens."""

import argparse
import sys

from c4pipe.cli import arguments
from c4pipe.cli.console import printer, say
from c4pipe.cli.job_options import runner_options
from c4pipe.cli.parser import Command, Parser
from c4pipe.display import format_count


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument("corpus", metavar="CORPUS", help="folder of a finished corpus, or of one of its languages")
    parser.add_argument(
        "--vocab",
        metavar="MODEL",
        required=True,
        help="the vocabulary to count with: its folder, or the file of a SentencePiece model",
    )
    parser.add_argument(
        "--budget-subset",
        metavar="TOKENS",
        help="also write a list of the first documents that have this many tokens together, such as 2^29",
    )
    parser.add_argument(
        "--training-tokens",
        metavar="TOKENS",
        default="2^35",
        help="tokens of the planned training; the command says how often it reads the subset (default: 2^35)",
    )
    arguments.add_runner(parser)


def run(options: argparse.Namespace) -> None:
    """Counts the tokens of a corpus, writes a subset if it is asked for, and prints both."""
    from c4pipe.cli.progress import make_progress
    from c4pipe.cli.tokens_table import tokens_table
    from c4pipe.io import storage_path
    from c4pipe.tokens import count, subset
    from c4pipe.vocab import MODEL

    corpus, model = storage_path(options.corpus), storage_path(options.vocab)
    model = model / MODEL if model.is_dir() else model
    wanted = options.budget_subset
    size = subset.parse_tokens("--budget-subset", wanted) if wanted is not None else None
    training = subset.parse_tokens("--training-tokens", options.training_tokens)
    train = subset.open_one_language(corpus) if size is not None else None  # checked before the tokens are counted
    counts = count.count(corpus, model, runner_options(options), make_progress(options))
    written = subset.write_subset(train, model, counts, size) if train and size else None
    if options.quiet:
        return
    console = printer(sys.stdout)
    console.print(tokens_table(counts))
    if written:
        content = f"{format_count(written.documents, 'document')}, {format_count(written.tokens, 'token')}"
        say(console, f"subset: {written.file} ({content})")
        times = format_count(written.epochs(training), "time")
        say(console, f"a training of {training:,} tokens reads it {times}, the last time perhaps in part")


COMMAND = Command(
    "tokens",
    "count the tokens of a corpus, and list a subset of it to train on",
    add_arguments,
    run,
    examples=("c4pipe tokens corpus --vocab vocabulary --budget-subset 2^29",),
    takes_runner_options=True,
)
