"""The commands `vocab` and `vocab-report`: arguments to options, and what is said at the end."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from c4pipe.cli.console import note, printer, say
from c4pipe.io.atomic import write_text
from c4pipe.io.paths import StoragePath
from c4pipe.jobs.progress import Progress
from c4pipe.runners.runner import RunnerOptions
from c4pipe.vocab import pipeline
from c4pipe.vocab.options import SAMPLE_BYTES, VocabOptions
from c4pipe.vocab.quality import Figures, Vocabulary, held_out, name_of
from c4pipe.vocab.quality_view import quality_picture, quality_table
from c4pipe.vocab.sources import Source, find, labels, parse_source
from c4pipe.vocab.train import Settings

FIGURES, PICTURE = "quality.json", "quality.svg"


def train(options: argparse.Namespace) -> None:
    """Trains a vocabulary and measures it."""
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
            bake_sentinels=options.bake_sentinels,
        ),
        sample_bytes=SAMPLE_BYTES if options.sample_bytes is None else options.sample_bytes,
        repeat=options.repeat,
        engine=RunnerOptions(options.workers, options.beam, options.quiet or options.json_progress),
    )
    made = pipeline.vocab(vocab_options, Progress.of(options), lambda text: _note(options, text))
    _report(options, sources, [_model(options.output)], options.output)
    if not options.quiet:
        size = sum(each["bytes"] for each in made["training_data"])
        pieces = f"{options.size:,} pieces from {size:,} bytes of text"
        say(printer(sys.stdout), f"vocabulary: {options.output} ({pieces}, {time.monotonic() - started:,.1f} s)")


def report(options: argparse.Namespace) -> None:
    """Measures a vocabulary, beside others if they are given."""
    model = _model(options.vocabulary)
    others = [_model(each) for each in options.compare or ()]
    _report(options, tuple(map(parse_source, options.sources)), [model, *others], options.output)


def _model(path: StoragePath) -> StoragePath:
    """Returns the file of a model that is named by itself or by its folder."""
    return path / pipeline.MODEL if path.is_dir() else path


def _report(
    options: argparse.Namespace, sources: Sequence[Source], models: Sequence[StoragePath], output: StoragePath | None
) -> None:
    vocabularies = [Vocabulary(name, file) for name, file in zip(_names(models), models, strict=True)]
    figures: list[Figures] = []
    for label, source in zip(labels(sources), sources, strict=True):
        texts = held_out(find(source, held_out=True))
        if texts:
            figures += [each.measure(label, texts) for each in vocabularies]
        else:
            _note(options, f"{source.path} has no held-out page: nothing is measured on it")
    if not figures:
        return
    if not options.quiet:
        printer(sys.stdout).print(quality_table(figures))
    if output is not None:
        if isinstance(output, Path):
            output.mkdir(parents=True, exist_ok=True)
        write_text(output / FIGURES, json.dumps([each.to_json() for each in figures], indent=1) + "\n")
        write_text(output / PICTURE, quality_picture(figures))


def _names(models: Sequence[StoragePath]) -> list[str]:
    """Returns a name for each model: that of its file or folder, with a number where others have the same."""
    names = [name_of(file) for file in models]
    twice = {name for name in names if names.count(name) > 1}
    return [f"{name} ({n})" if name in twice else name for n, name in enumerate(names, 1)]


def _note(options: argparse.Namespace, text: str) -> None:
    if options.json_progress or not options.quiet:
        note(text, options.json_progress)
