"""The command `overlap`: what a corpus shares with examples of evaluation sets."""

import argparse
import sys
from pathlib import Path

from c4pipe.cli import arguments
from c4pipe.cli.console import printer
from c4pipe.cli.parser import Command, Parser, whole_number


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument("corpus", metavar="CORPUS", help="folder of a finished corpus, or of one of its languages")
    parser.add_argument(
        "--against",
        nargs="+",
        type=Path,
        required=True,
        metavar="FILE",
        help="examples to search for: JSON Lines (.jsonl, .ndjson, .json) or plain text, one on each line, gzipped or "
        "not; or Parquet (.parquet), one in each row",
    )
    parser.add_argument(
        "--fields",
        type=_names,
        metavar="NAME,...",
        help="the fields of JSON Lines, or columns, to take (default: all texts of a line or row)",
    )
    parser.add_argument(
        "--ngrams",
        type=_numbers,
        default="8,13",
        metavar="N,...",
        help="how many words an n-gram has; several sizes are counted apart (default: 8,13)",
    )
    parser.add_argument(
        "--max-pages",
        type=whole_number,
        default=10,
        metavar="N",
        help="ignore n-grams that are on more than N pages (default: 10)",
    )
    parser.add_argument(
        "--output",
        type=arguments.path_or_url,
        metavar="FILE",
        help="write all matches to this file: .parquet, .jsonl or .jsonl.gz",
    )
    arguments.add_workers(parser)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(whole_number, text.split(",")))


def run(options: argparse.Namespace) -> None:
    """Searches a corpus for examples, and prints how many of them it has and on which pages."""
    from c4pipe.cli.overlap_table import overlap_lines
    from c4pipe.cli.progress import make_progress
    from c4pipe.inspect.overlap import OverlapOptions, overlap

    found = overlap(
        OverlapOptions(
            corpus=options.corpus,
            against=tuple(options.against),
            ngrams=options.ngrams,
            fields=options.fields or (),
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


COMMAND = Command(
    "overlap",
    "find the pages of a corpus that share text with evaluation sets",
    add_arguments,
    run,
    examples=("c4pipe overlap corpus --against wsc.jsonl --fields text --output matches.parquet",),
)
