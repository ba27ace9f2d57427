"""Vocabularies as a function, for Python: `c4pipe.train_vocabulary`. Its arguments are the options of the command."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.runners.progress import Progress, ProgressEvent
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.vocab.description import MODEL, SENTINELS
from c4pipe.vocab.options import SAMPLE_BYTES, VocabOptions
from c4pipe.vocab.pipeline import vocab
from c4pipe.vocab.sources import parse_source
from c4pipe.vocab.train import Settings
from c4pipe.vocab.vocab_plan import plan_vocab


@dataclass(frozen=True)
class TrainedVocabulary:
    """A vocabulary, as `train_vocabulary` leaves it.

    Attributes:
        path: its folder.
        description: the content of its `vocab.json`: sources, settings, training data and digests of the files.
    """

    path: StoragePath
    description: Mapping[str, Any]

    @property
    def model(self) -> StoragePath:
        """The file of the SentencePiece model."""
        return self.path / MODEL


def train_vocabulary(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    output: str | os.PathLike[str],
    size: int = 32_000,
    model: str = "unigram",
    byte_fallback: bool = False,
    normalization: str = "nmt_nfkc",
    coverage: float = 0.9995,
    sentinels: int = SENTINELS,
    bake_sentinels: bool = False,
    sample_bytes: int = SAMPLE_BYTES,
    repeat: bool = False,
    runner: str | None = None,
    workers: int | None = None,
    spark_master: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    beam: Sequence[str] = (),
    progress: Callable[[ProgressEvent], None] | None = None,
) -> TrainedVocabulary:
    """Trains a SentencePiece vocabulary. The command `c4pipe vocab`, without the figures that it measures at the end.

    The same call after an interruption goes on from there; after its end, it returns the finished vocabulary at once.

    Args:
        sources: text and its weight, as `"corpus/en:10"`: a language's folder of a corpus, or Parquet, JSON Lines or
            plain text, a file or a folder. Without a weight, 1.
        output: the folder for the vocabulary.
        size: pieces, without sentinels.
        model: `unigram` or `bpe`.
        byte_fallback: whether a character without a piece becomes bytes instead of the unknown piece.
        normalization: `nmt_nfkc`, `nfkc`, `nmt_nfkc_cf`, `nfkc_cf` or `identity`.
        coverage: the share of the text's characters that get a piece, from 0.9 to 1.
        sentinels: the number of sentinels behind the pieces, as in T5: `<extra_id_0>` is the last id.
        bake_sentinels: whether the model's file has the sentinels as its last pieces.
        sample_bytes: bytes of text to train on, at most.
        repeat: whether the text of a source is repeated if there is too little of it for its weight.
        runner: what reads the text: None for this machine, `spark`, or a runner of Apache Beam, such as `FlinkRunner`.
        workers: processes on this machine that read the text; None for one a core.
        spark_master: with `runner="spark"`: the master, such as `local[2]`; None for Spark's own setting.
        spark_conf: with `runner="spark"`: settings of Spark, such as `{"spark.executor.memory": "2g"}`.
        beam: with a runner of Beam: its options, such as `["--parallelism=8"]`.
        progress: is called about once a second with a `ProgressEvent`, in a thread of its own.

    Raises UsageError for an argument that can't be met, or if there is too little text for that many pieces;
    C4pipeError if the training can't go on.
    """
    folder = storage_path(os.fspath(output))
    paths = [sources] if isinstance(sources, str | os.PathLike) else sources
    options = VocabOptions(
        sources=tuple(parse_source(os.fspath(path)) for path in paths),
        output=folder,
        settings=Settings(size, model, byte_fallback, normalization, coverage, sentinels, bake_sentinels),
        sample_bytes=sample_bytes,
        repeat=repeat,
        runner=RunnerOptions.of_arguments(runner, workers, spark_master, spark_conf, beam),
    )
    return TrainedVocabulary(folder, vocab(plan_vocab(options), Progress(progress)))
