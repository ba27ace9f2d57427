"""Job 3, `vocab`: counts the text of the sources, takes a sample of it, and trains SentencePiece on the sample."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from typing import Any, cast

import numpy as np

from c4pipe.corpus.manifest import MANIFEST
from c4pipe.errors import LostDataError, UsageError
from c4pipe.io import json_files
from c4pipe.io.atomic import AtomicFile, clear_abandoned, write_bytes
from c4pipe.io.lock import only_run
from c4pipe.io.options import takes_options
from c4pipe.io.paths import StoragePath, check_is_folder, file_sizes, list_names, read_file, remove_tree
from c4pipe.io.streams import InputPath
from c4pipe.io.words import format_count, short_repr
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner import check_runner, run_job, spill_folder
from c4pipe.runners.scan import Scan, prepare_folder
from c4pipe.vocab import sample, train
from c4pipe.vocab.model import (
    MODEL,
    PIECES,
    VOCAB_FILE,
    VOCAB_FORMAT,
    VOCAB_VERSION,
    VocabDescription,
    check_file,
    read_description,
)
from c4pipe.vocab.request import Settings, VocabOptions
from c4pipe.vocab.sample import BINS, BytesByBin, CountText, write_sample
from c4pipe.vocab.sources import Reading, TrainingText, by_temperature, find_reading, first_files, source_labels
from c4pipe.vocab.tokenizer_files import tokenizer_files
from c4pipe.vocab.train import Portion, part_name

SAMPLE_FOLDER = "_sample"
"""The folder, inside the output, that holds the sample until the vocabulary is complete."""

TRAINER_LOG = "spm.log"

_LEAST_BYTES = 1000
_PARTS = "parts.json"  # in the sample's folder: the SHA-256 of each part, once all are written

_SourceFiles = Sequence[Sequence[InputPath]]
"""Files of each source."""


@dataclass(frozen=True)
class VocabPlan:
    """The plan of job 3. `labels` are short names of the sources; `readings` are without held-out pages."""

    options: VocabOptions
    settings: Settings
    sources: tuple[TrainingText, ...]
    labels: tuple[str, ...]
    readings: tuple[Reading, ...]

    @property
    def weights(self) -> list[float]:
        """The weight of each source."""
        return [source.weight for source in self.sources]

    @property
    def wanted_bytes(self) -> list[int]:
        """The bytes of each source in the sample by its weight, if it has enough text."""
        weights = self.weights
        return [int(self.options.most_bytes * weight / sum(weights)) for weight in weights]

    @property
    def sentinels(self) -> int:
        """The number of sentinels in the model's file."""
        return self.settings.sentinels if self.settings.bake_sentinels else 0

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of the vocabulary, as JSON values."""
        return {
            "sources": [
                {"name": label, "weight": weight, "content": reading.content}
                for label, weight, reading in zip(self.labels, self.weights, self.readings, strict=True)
            ],
            "sample_bytes": self.options.most_bytes,
            "repeat": self.options.repeat,
            "settings": self.settings.to_json(),
        }


def plan_vocab(options: VocabOptions, progress: Progress | None = None) -> VocabPlan:
    """Checks the options of job 3, and finds the files of the sources. Changes nothing. The size of the text is unknown
    yet. Raises UsageError for an option that can't be met.
    """
    sources, settings, output = options.weighted_sources, options.settings, options.folder
    check_runner(options)
    if options.most_bytes < _LEAST_BYTES:
        raise UsageError(f"--sample-bytes {options.most_bytes}: give at least {_LEAST_BYTES} bytes of text")
    check_is_folder("--output", output)
    if (output / MANIFEST).exists():
        raise UsageError(f"--output {output} is a corpus: give another folder, such as {output}-vocab")
    if not sources:
        raise UsageError("no source is given: name text to train on, as in corpus/en:10 corpus/de:1")
    if options.temperature is not None:
        sources = by_temperature(sources, options.temperature)
    readings = tuple(find_reading(source, on_note=(progress or Progress()).note) for source in sources)
    return VocabPlan(options, settings, sources, tuple(source_labels(sources)), readings)


@dataclass(frozen=True)
class TrainedVocabulary:
    """A vocabulary, as `train_vocabulary` leaves it.

    Attributes:
        path: its folder.
        description: the content of its `vocab.json`: sources, settings, training data and digests of the files.
    """

    path: StoragePath
    description: Mapping[str, Any]

    def __repr__(self) -> str:
        return short_repr(self, self.path)

    @property
    def model(self) -> StoragePath:
        """The file of the SentencePiece model."""
        return self.path / MODEL


@takes_options(VocabOptions)
def train_vocabulary(options: VocabOptions) -> TrainedVocabulary:
    """Trains a SentencePiece vocabulary. The command `c4pipe vocab`, without the figures that it measures at the end.

    The same call after an interruption goes on from there; after its end, it returns the finished vocabulary at once.

    {options}

    Raises UsageError for an argument that can't be met, or if there is too little text for that many pieces;
    C4pipeError if the training can't go on.
    """
    progress = Progress(options.progress)
    return TrainedVocabulary(options.folder, vocab(plan_vocab(options, progress), progress))


def vocab(plan: VocabPlan, progress: Progress) -> VocabDescription:
    """Trains a vocabulary, and returns the content of its `vocab.json`. A complete vocabulary stays as it is.

    Raises UsageError if a source has no page, if there is too little text for that many pieces, or if the output holds
    another vocabulary; DamagedFileError if its files were changed; LostDataError if the sample differs from the counts.
    """
    output = plan.options.folder
    with only_run(output):
        identity = plan.identity
        values = json_files.read_json(output / VOCAB_FILE, dict)
        if values is not None:
            if values.get("format") != VOCAB_FORMAT:
                raise UsageError(f"{output / VOCAB_FILE} is no description of a c4pipe vocabulary: give another folder")
            if values.get("version") != VOCAB_VERSION:
                raise UsageError(
                    f"{output / VOCAB_FILE} has version {values.get('version')}, and this c4pipe writes version "
                    f"{VOCAB_VERSION}: give another folder; the model in {output} can still be used"
                )
            existing = read_description(output)
            assert existing  # it is of this format and version
            if other := json_files.find_difference({name: existing.get(name) for name in identity}, identity, ""):
                place, there, now = other
                raise UsageError(
                    f"{output} holds a vocabulary of other text or settings ({place}: {json_files.shown(there)} there, "
                    f"{json_files.shown(now)} now): give another folder"
                )
            for name in existing["files"]:
                check_file(output / name)
            remove_tree(output / SAMPLE_FOLDER)  # left by a run that was stopped at its very end
            progress.note_complete(output / MODEL, "give another --output, or delete its folder")
            return existing
        clear_abandoned(output)
        portions = _take_sample(plan, progress)
        return _train(plan, portions, progress)


def _take_sample(plan: VocabPlan, progress: Progress) -> list[Portion]:
    """Writes the missing files of the sample, and returns the portion of each source."""
    folder = plan.options.folder.absolute() / SAMPLE_FOLDER  # a worker may run in any folder
    identity = {key: plan.identity[key] for key in ("sources", "sample_bytes", "repeat")}
    prepare_folder(folder, identity)
    counts, files = _count(plan, folder, progress)
    portions = _portions(plan, counts, progress)
    sizes = {
        part_name(source, part): size
        for source, portion in enumerate(portions)
        for part, (_, size) in enumerate(portion.parts)
        if size
    }
    digests = json_files.read_intact_json(folder / _PARTS, dict)
    if digests is None or file_sizes(folder, "part-*") != sizes or digests != _digests(folder):
        _write_parts(plan, portions, files, folder, progress, len(sizes))
        wrong = sizes.items() ^ file_sizes(folder, "part-*").items()
        if wrong:
            name = min(wrong)[0]
            raise LostDataError(f"the sample is not what was counted: {name} should have {sizes.get(name, 0):,} bytes")
        json_files.write_checked_json(folder / _PARTS, _digests(folder))
    return portions


def _digests(folder: StoragePath) -> dict[str, str]:
    """Returns the SHA-256 of each part of the sample, by name."""
    names = sorted(file_sizes(folder, "part-*"))
    return {name: sha256(read_file(folder / name, sys.maxsize)).hexdigest() for name in names}


def _count(plan: VocabPlan, folder: StoragePath, progress: Progress) -> tuple[list[BytesByBin], _SourceFiles]:
    """Returns the text of each source by bin, and the counted files: enough for the sample, or all."""
    wanted = plan.wanted_bytes
    files = [first_files(reading, size) for reading, size in zip(plan.readings, wanted, strict=True)]
    counts = _count_files(plan, files, folder, progress)
    short = [int(each.sum()) < size for each, size in zip(counts, wanted, strict=True)]
    more = [reading.files if short[n] else files[n] for n, reading in enumerate(plan.readings)]
    return (counts, files) if more == files else (_count_files(plan, more, folder, progress), more)


def _count_files(plan: VocabPlan, files: _SourceFiles, folder: StoragePath, progress: Progress) -> list[BytesByBin]:
    """Writes the missing counts of files, and returns the text of each source by bin."""
    items = {
        f"count-{source:03}-{number:05}.json": (source, str(file.absolute()))
        for source, files_of_source in enumerate(files)
        for number, file in enumerate(files_of_source)
    }
    scan = Scan(
        "Count text",
        CountText(plan.readings),
        folder,
        items,
    )
    scan.run(plan.options, progress, "count")
    counts: list[BytesByBin] = [np.zeros(BINS, np.int64) for _ in files]
    for (source, path), (counted, no_text) in zip(items.values(), scan.parts(), strict=True):
        counts[source] += counted
        if no_text:
            progress.note(f"{path}: {format_count(no_text, 'row')} without a text, left out (no_text)")
    return counts


def _portions(plan: VocabPlan, counts: Sequence[BytesByBin], progress: Progress) -> list[Portion]:
    """Returns the portion of each source. Raises UsageError for a source without text."""
    options = plan.options
    sizes = [int(each.sum()) for each in counts]
    for source, size in zip(plan.sources, sizes, strict=True):
        if not size:
            raise UsageError(f"{source.path} has no page to train on: leave it out, or give other text for it")
    total = sample.total_bytes(sizes, plan.weights, options.most_bytes, options.repeat)
    taken = [int(total * weight / sum(plan.weights)) for weight in plan.weights]
    for note in _shortages(plan, sizes, taken):
        progress.note(note)
    return [sample.portion(*each) for each in zip(plan.labels, counts, taken, strict=True)]


def _shortages(plan: VocabPlan, sizes: Sequence[int], taken: Sequence[int]) -> Iterator[str]:
    """Yields a note for each source that has too little text for its weight."""
    for label, size, bytes_taken, wanted in zip(plan.labels, sizes, taken, plan.wanted_bytes, strict=True):
        if bytes_taken > size:
            times = bytes_taken / size
            yield f"{label} has {size:,} bytes of text, its weight asks for {bytes_taken:,}: taken {times:.1f} times"
        elif bytes_taken >= size - 1 and size < wanted:  # the portions of the other sources shrink with it
            more = "" if len(sizes) == 1 else f"; more text of {label}, a smaller weight or --repeat makes it larger"
            yield (
                f"{label} has {size:,} bytes of text, its weight asks for {wanted:,}: "
                f"the sample has {sum(taken):,} bytes instead of {plan.options.most_bytes:,}{more}"
            )


def _write_parts(
    plan: VocabPlan,
    portions: Sequence[Portion],
    files: _SourceFiles,
    folder: StoragePath,
    progress: Progress,
    total: int,
) -> None:
    """Writes the `total` files of the sample."""
    tasks = [(source, str(file.absolute())) for source, each in enumerate(files) for file in each]

    def graph(flow: Flow) -> None:
        write_sample(flow, tasks, plan.readings, portions, folder, spill)

    def written() -> int:
        return sum(name.startswith("part-") for name in list_names(folder))

    with spill_folder(plan.options, folder) as spill, progress.wait("sample", folder, total, written):
        run_job(graph, plan.options, len(tasks), progress)


def _train(plan: VocabPlan, portions: Sequence[Portion], progress: Progress) -> VocabDescription:
    """Trains the model on the sample, and writes all files of the vocabulary, `vocab.json` last."""
    output, settings = plan.options.folder, plan.settings
    model, log = AtomicFile(output / MODEL), AtomicFile(output / TRAINER_LOG)
    task = {
        "folder": str(output.absolute() / SAMPLE_FOLDER),
        "digests": json_files.read_checked_json(output / SAMPLE_FOLDER / _PARTS, dict),
        "portions": [asdict(portion) for portion in portions],
        "parameters": settings.parameters(),
        "sentinels": plan.sentinels,
        "target": str(model.path.absolute()),
    }
    try:
        with progress.show("train", log.path.parent, lambda: train.status(log.path, settings.size)):
            answer = train.run_trainer(task, log.path)
        data = model.path.read_bytes()
        model.publish()
    finally:
        model.discard()
        if log.path.exists():
            log.publish()
    others = {PIECES: train.pieces_text(data).encode(), **tokenizer_files(data, settings.sentinels)}
    for name, content in others.items():
        write_bytes(output / name, content)
    values = {
        "format": VOCAB_FORMAT,
        "version": VOCAB_VERSION,
        **plan.identity,
        "training_data": [
            {"name": portion.label, "bytes": portion.take, "sentences": sentences}
            for portion, sentences in zip(portions, answer["sentences"], strict=True)
        ],
        "sample_sha256": answer["sha256"],
        "parameters": settings.parameters(),
        "sentinels": plan.sentinels,
        "files": {name: sha256(content).hexdigest() for name, content in {MODEL: data, **others}.items()},
        "versions": {name: version(name) for name in ("c4pipe", "sentencepiece")},
    }
    description = json_files.write_json(output / VOCAB_FILE, cast(VocabDescription, values))
    remove_tree(output / SAMPLE_FOLDER)
    return description
