"""What a user asks of a vocabulary: one plain record. To make it reads nothing and opens nothing."""

from dataclasses import dataclass, field

from c4pipe.io.paths import StoragePath
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.vocab.sources import Source
from c4pipe.vocab.train import Settings

SAMPLE_BYTES = 300_000_000
"""Bytes of text that SentencePiece can train on with 8 GB of memory, measured (docs/vocabulary.md)."""


@dataclass(frozen=True)
class VocabOptions:
    """Job 3: text to a vocabulary. `plan_vocab` checks it.

    Attributes:
        sources: text, with weights.
        output: the folder for the vocabulary.
        settings: what kind of vocabulary.
        sample_bytes: bytes of text to train on, at most.
        repeat: whether the text of a source is repeated if there is too little of it for its weight.
        runner: what counts the text and takes the sample.
    """

    sources: tuple[Source, ...]
    output: StoragePath
    settings: Settings = field(default_factory=Settings)
    sample_bytes: int = SAMPLE_BYTES
    repeat: bool = False
    runner: RunnerOptions = field(default_factory=RunnerOptions)
