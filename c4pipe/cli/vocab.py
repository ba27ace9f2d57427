"""The command `vocab`: text to a vocabulary, and its figures."""

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.console import printer, say
from c4pipe.cli.options import SourceOptions, TerminalOptions, path_or_url, refuse_job_file
from c4pipe.cli.parser import Command
from c4pipe.io.options import Option
from c4pipe.io.words import format_count
from c4pipe.runners.runner_options import RunnerOptions

if TYPE_CHECKING:
    from c4pipe.io.paths import StoragePath


@dataclass(frozen=True, kw_only=True)
class _TrainingOptions(SourceOptions):
    output: Annotated["StoragePath", Option("folder for the vocabulary", "DIR", parse=path_or_url)]
    size: Annotated[int, Option("number of pieces", "N")] = 32_000
    model: Annotated[str, Option("unigram or bpe", "KIND")] = "unigram"
    byte_fallback: Annotated[bool, Option("write characters that have no piece as pieces for their bytes")] = False
    normalization: Annotated[str, Option("nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf or identity", "RULE")] = "nmt_nfkc"
    coverage: Annotated[float, Option("share of the characters in the text that get a piece", "SHARE")] = 0.9995
    sentinels: Annotated[int, Option("number of sentinels behind the pieces", "N")] = 100
    bake_sentinels: Annotated[bool, Option("write the sentinels into spm.model, as its last pieces")] = False
    sample_bytes: Annotated[
        int | None, Option("train on at most N bytes of text", "N", otherwise="what fits in 8 GB of memory")
    ] = None
    repeat: Annotated[bool, Option("repeat the text of a source that is too small for its weight")] = False


@dataclass(frozen=True, kw_only=True)
class VocabCommandOptions(TerminalOptions, RunnerOptions, _TrainingOptions):
    """The options of the command."""


def run(options: VocabCommandOptions) -> None:
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
        runner=options,
    )
    vocabulary = job.vocab(plan_vocab(vocab_options), make_progress(options))
    measure(options, sources, [model_file(options.output)], options.output)
    if not options.quiet:
        size = format_count(sum(each["bytes"] for each in vocabulary["training_data"]), "byte")
        text = f"{options.size:,} pieces from {size} of text"
        say(printer(sys.stdout), f"vocabulary: {options.output} ({text}, {time.monotonic() - started:,.1f} s)")


COMMAND = Command(VocabCommandOptions, run, examples=("c4pipe vocab corpus/en:10 corpus/de:1 --output vocabulary",))
