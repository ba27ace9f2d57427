"""The command `vocab`: text to a vocabulary, and its figures."""

import argparse
import sys
import time

from c4pipe.cli import arguments
from c4pipe.cli.console import printer, say
from c4pipe.cli.job_options import refuse_job_file, runner_options
from c4pipe.cli.parser import Command, Parser, decimal_number, whole_number
from c4pipe.io.words import format_count


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    arguments.add_sources(parser)
    parser.add_argument(
        "--output", type=arguments.path_or_url, metavar="DIR", required=True, help="folder for the vocabulary"
    )
    parser.add_argument(
        "--size", type=whole_number, default=32_000, metavar="N", help="number of pieces (default: 32000)"
    )
    parser.add_argument("--model", default="unigram", metavar="KIND", help="unigram or bpe (default: unigram)")
    parser.add_argument(
        "--byte-fallback", action="store_true", help="write characters that have no piece as pieces for their bytes"
    )
    parser.add_argument(
        "--normalization",
        default="nmt_nfkc",
        metavar="RULE",
        help="nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf or identity (default: nmt_nfkc)",
    )
    parser.add_argument(
        "--coverage",
        type=decimal_number,
        default=0.9995,
        metavar="SHARE",
        help="share of the characters in the text that get a piece (default: 0.9995)",
    )
    parser.add_argument(
        "--sentinels",
        type=whole_number,
        default=100,
        metavar="N",
        help="number of sentinels behind the pieces (default: 100)",
    )
    parser.add_argument(
        "--bake-sentinels", action="store_true", help="write the sentinels into spm.model, as its last pieces"
    )
    parser.add_argument(
        "--sample-bytes",
        type=whole_number,
        metavar="N",
        help="train on at most N bytes of text (default: what fits in 8 GB of memory)",
    )
    parser.add_argument(
        "--repeat", action="store_true", help="repeat the text of a source that is too small for its weight"
    )
    arguments.add_runner(parser)


def run(options: argparse.Namespace) -> None:
    """Trains a vocabulary, measures it, and prints both."""
    refuse_job_file(options, "vocab has two")

    from c4pipe.cli.progress import make_progress
    from c4pipe.cli.vocab_report import measure, model_file
    from c4pipe.vocab import job
    from c4pipe.vocab.job import SAMPLE_BYTES, VocabOptions, plan_vocab
    from c4pipe.vocab.sources import parse_source
    from c4pipe.vocab.train import Settings

    started = time.monotonic()
    sources = tuple(map(parse_source, options.sources))
    vocab_options = VocabOptions(
        sources=sources,
        output=options.output,
        settings=Settings(
            size=options.size,
            model=options.model,
            byte_fallback=options.byte_fallback,
            normalization=options.normalization,
            coverage=options.coverage,
            sentinels=options.sentinels,
            bake_sentinels=options.bake_sentinels,
        ),
        sample_bytes=SAMPLE_BYTES if options.sample_bytes is None else options.sample_bytes,
        repeat=options.repeat,
        runner=runner_options(options),
    )
    vocabulary = job.vocab(plan_vocab(vocab_options), make_progress(options))
    measure(options, sources, [model_file(options.output)], options.output)
    if not options.quiet:
        size = format_count(sum(each["bytes"] for each in vocabulary["training_data"]), "byte")
        text = f"{options.size:,} pieces from {size} of text"
        say(printer(sys.stdout), f"vocabulary: {options.output} ({text}, {time.monotonic() - started:,.1f} s)")


COMMAND = Command(
    "vocab",
    "train a SentencePiece vocabulary on text with weights",
    add_arguments,
    run,
    examples=("c4pipe vocab corpus/en:10 corpus/de:1 --output vocabulary",),
    takes_runner_options=True,
)
