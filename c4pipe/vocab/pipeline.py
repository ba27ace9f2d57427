"""Job 3, composed: text is counted, a sample of it is taken, SentencePiece is trained."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from c4pipe.clean.work_folder import clear_abandoned
from c4pipe.errors import LostDataError, UsageError
from c4pipe.io.atomic import AtomicFile, read_json, write_bytes, write_text
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath, file_sizes, names, remove_tree
from c4pipe.jobs.progress import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner import run, spill_folder
from c4pipe.vocab import sample, train
from c4pipe.vocab.options import VocabOptions
from c4pipe.vocab.sample import Counts, Portion
from c4pipe.vocab.sources import first_files
from c4pipe.vocab.steps import count_text, write_sample

SAMPLE = "_sample"
"""The folder, inside the output, where the sample is until the vocabulary is complete."""

MODEL, PIECES, LOG, NAME = "spm.model", "spm.vocab", "spm.log", "vocab.json"
VERSION = 2

_OF = "of.json"  # in the sample's folder: what it is a sample of
_NONE: Counts = np.zeros(sample.BINS, np.int64)


def vocab(options: VocabOptions, progress: Progress, say: Callable[[str], None]) -> dict[str, Any]:
    """Trains a vocabulary, and returns what `vocab.json` says of it; one that is complete already is left as it is.

    Args:
        options: what is asked for.
        progress: shows how far it is.
        say: is told where there is too little text.

    Raises UsageError where a source has no page, the text is too small for the size, or the output holds another
    vocabulary; LostDataError where the sample is not what was counted.
    """
    with only_run(options.output):
        asked = _asked(options)
        made = read_json(options.output / NAME)
        if made is not None:
            if made.get("version") != VERSION:
                raise UsageError(
                    f"{options.output / NAME} has version {made.get('version')}, and this c4pipe writes version "
                    f"{VERSION}: give another folder; the model in {options.output} can still be used"
                )
            if any(made.get(key) != value for key, value in asked.items()):
                raise UsageError(f"{options.output} holds a vocabulary of other text or settings: give another folder")
            return made
        clear_abandoned(options.output)
        portions = _take_sample(options, asked, progress, say)
        return _train(options, asked, portions, progress)


def _asked(options: VocabOptions) -> dict[str, Any]:
    """Returns what makes a vocabulary this one, as JSON values."""
    parts = zip(options.labels, options.weights, options.readings, strict=True)
    sources = [{"name": label, "weight": weight, "content": reading.content} for label, weight, reading in parts]
    return {
        "sources": sources,
        "sample_bytes": options.sample_bytes,
        "repeat": options.repeat,
        "settings": asdict(options.settings),
    }


def _take_sample(
    options: VocabOptions, asked: Mapping[str, Any], progress: Progress, say: Callable[[str], None]
) -> list[Portion]:
    """Writes the sample's parts, those that are not there yet, and returns what is taken of each source."""
    folder = options.output.absolute() / SAMPLE  # a worker may run in any folder
    of = {key: asked[key] for key in ("sources", "sample_bytes", "repeat")}
    if read_json(folder / _OF) != of:  # what is there is of another sample
        remove_tree(folder)
        if isinstance(folder, Path):
            folder.mkdir()
        write_text(folder / _OF, json.dumps(of))
    clear_abandoned(folder)
    counts, files = _count(options, folder, progress)
    portions = _portions(options, counts, say)
    sizes = {
        sample.part_name(source, part): size
        for source, portion in enumerate(portions)
        for part, (_, size) in enumerate(portion.parts)
        if size
    }
    if file_sizes(folder, "part-*") != sizes:
        _write_parts(options, portions, files, folder, progress, len(sizes))
        wrong = sizes.items() ^ file_sizes(folder, "part-*").items()
        if wrong:
            name = min(wrong)[0]
            raise LostDataError(f"the sample is not what was counted: {name} should have {sizes.get(name, 0):,} bytes")
    return portions


def _count(
    options: VocabOptions, folder: StoragePath, progress: Progress
) -> tuple[list[Counts], list[tuple[StoragePath, ...]]]:
    """Returns the text of each source by bin, and the files that it was counted in: enough for the sample, or all."""
    wanted = [int(options.sample_bytes * weight / sum(options.weights)) for weight in options.weights]
    files = [first_files(reading, size) for reading, size in zip(options.readings, wanted, strict=True)]
    while True:
        _count_files(options, files, folder, progress)
        counts = [
            sum((sample.decode_counts((folder / _count_name(source, n)).read_bytes()) for n in range(len(some))), _NONE)
            for source, some in enumerate(files)
        ]
        enough = [
            sum(each.tolist()) >= size or some == reading.files
            for each, size, some, reading in zip(counts, wanted, files, options.readings, strict=True)
        ]
        if all(enough):
            return counts, files
        files = [
            some if done else reading.files for done, some, reading in zip(enough, files, options.readings, strict=True)
        ]


def _count_files(
    options: VocabOptions, files: Sequence[Sequence[StoragePath]], folder: StoragePath, progress: Progress
) -> None:
    there = names(folder)
    tasks = [
        (source, str(file.absolute()), str(folder / name))
        for source, some in enumerate(files)
        for number, file in enumerate(some)
        if (name := _count_name(source, number)) not in there
    ]

    def graph(flow: Flow) -> None:
        count_text(flow, tasks, options.readings)

    total = sum(map(len, files))
    if tasks:
        with progress.wait("count", folder, total, lambda: sum(name.startswith("count-") for name in names(folder))):
            run(graph, options.engine, len(tasks), progress.runs_as)
    there = names(folder)
    lost = [target for *_, target in tasks if target.rpartition("/")[2] not in there]
    if lost:
        raise LostDataError(f"the engine ended without counting {len(lost)} of {total} files")


def _count_name(source: int, number: int) -> str:
    return f"count-{source:03}-{number:05}.json"


def _portions(options: VocabOptions, counts: Sequence[Counts], say: Callable[[str], None]) -> list[Portion]:
    """Returns what to take of each source. Raises UsageError for one without text."""
    sizes = [int(each.sum()) for each in counts]
    for source, size in zip(options.sources, sizes, strict=True):
        if not size:
            raise UsageError(f"{source.path} has no page to train on: leave it out, or give other text for it")
    total = sample.total_bytes(sizes, options.weights, options.sample_bytes, options.repeat)
    takes = [int(total * weight / sum(options.weights)) for weight in options.weights]
    for line in _short(options, sizes, takes):
        say(line)
    return [sample.portion(*each) for each in zip(options.labels, counts, takes, strict=True)]


def _short(options: VocabOptions, sizes: Sequence[int], takes: Sequence[int]) -> Iterator[str]:
    """Yields what is to be said where a source has too little text for its weight."""
    for label, size, take, weight in zip(options.labels, sizes, takes, options.weights, strict=True):
        asked = int(options.sample_bytes * weight / sum(options.weights))
        if take > size:
            yield f"{label} has {size:,} bytes of text, its weight asks for {take:,}: taken {take / size:.1f} times"
        elif take >= size - 1 and size < asked:  # the others shrink along
            more = "" if len(sizes) == 1 else f"; more text of {label}, a smaller weight or --repeat makes it larger"
            yield (
                f"{label} has {size:,} bytes of text, its weight asks for {asked:,}: "
                f"the sample has {sum(takes):,} bytes instead of {options.sample_bytes:,}{more}"
            )


def _write_parts(
    options: VocabOptions,
    portions: Sequence[Portion],
    files: Sequence[Sequence[StoragePath]],
    folder: StoragePath,
    progress: Progress,
    total: int,
) -> None:
    tasks = [(source, str(file.absolute())) for source, some in enumerate(files) for file in some]

    def graph(flow: Flow) -> None:
        write_sample(flow, tasks, options.readings, portions, folder, spill)

    def written() -> int:
        return sum(name.startswith("part-") for name in names(folder))

    with spill_folder(options.engine, folder) as spill, progress.wait("sample", folder, total, written):
        run(graph, options.engine, len(tasks), progress.runs_as)


def _train(
    options: VocabOptions, asked: Mapping[str, Any], portions: Sequence[Portion], progress: Progress
) -> dict[str, Any]:
    """Trains the model on the sample, and writes all files of the vocabulary, `vocab.json` last."""
    output = options.output
    parameters = options.settings.parameters()
    model, log = AtomicFile(output / MODEL), AtomicFile(output / LOG)
    task = {
        "folder": str(output.absolute() / SAMPLE),
        "portions": [portion.to_json() for portion in portions],
        "parameters": parameters,
        "sentinels": options.sentinels,
        "target": str(model.path.absolute()),
    }
    size = options.settings.size
    try:
        with progress.show("train", log.path.parent, lambda: train.state(log.path, size)):
            answer = train.run(task, log.path)
        data = model.path.read_bytes()
        model.publish()
    finally:
        model.discard()
        if log.path.exists():
            log.publish()
    pieces = train.pieces_text(data).encode()
    write_bytes(output / PIECES, pieces)
    made = {
        "format": "c4pipe vocabulary",
        "version": VERSION,
        **asked,
        "training_data": [
            {"name": portion.label, "bytes": portion.take, "sentences": sentences}
            for portion, sentences in zip(portions, answer["sentences"], strict=True)
        ],
        "sample_sha256": answer["sha256"],
        "parameters": parameters,
        "sentinels": options.sentinels,
        "files": {MODEL: sha256(data).hexdigest(), PIECES: sha256(pieces).hexdigest()},
        "versions": {"c4pipe": version("c4pipe"), "sentencepiece": version("sentencepiece")},
    }
    write_text(output / NAME, json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    remove_tree(output / SAMPLE)
    return made
