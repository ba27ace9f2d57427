"""What a vocabulary is asked to be: one frozen record, checked when it is made."""

from dataclasses import dataclass, field
from functools import cached_property

from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath
from c4pipe.runners.runner import RunnerOptions
from c4pipe.vocab.sentencepiece_model import SENTINELS
from c4pipe.vocab.sources import Reading, Source, find, labels
from c4pipe.vocab.train import Settings

SAMPLE_BYTES = 300_000_000
"""Text that SentencePiece takes in 8 GB of memory, measured (docs/vocabulary.md)."""


@dataclass(frozen=True)
class VocabOptions:
    """Job 3. All that can be wrong with it is found when it is made (UsageError), but for too little text.

    Attributes:
        sources: text, with weights.
        output: the folder for the vocabulary.
        settings: what kind of vocabulary.
        sample_bytes: bytes of text to train on, at most.
        repeat: whether text of which there is too little for its weight is repeated.
        engine: what to take the sample with.
    """

    sources: tuple[Source, ...]
    output: StoragePath
    settings: Settings = field(default_factory=Settings)
    sample_bytes: int = SAMPLE_BYTES
    repeat: bool = False
    engine: RunnerOptions = field(default_factory=RunnerOptions)

    def __post_init__(self) -> None:
        if self.sample_bytes < 1000:
            raise UsageError(f"--sample-bytes {self.sample_bytes}: give at least 1000 bytes of text")
        if self.output.exists() and not self.output.is_dir():
            raise UsageError(f"--output {self.output} is a file: give a folder")
        if not self.sources:
            raise UsageError("no source is given: name text to train on, as in corpus/en:10 corpus/de:1")
        _ = self.labels, self.readings

    @cached_property
    def labels(self) -> list[str]:
        """A short name for each source."""
        return labels(self.sources)

    @cached_property
    def readings(self) -> list[Reading]:
        """How each source's pages are read, without those that are held out."""
        return [find(source) for source in self.sources]

    @cached_property
    def weights(self) -> list[float]:
        """The weight of each source."""
        return [source.weight for source in self.sources]

    @property
    def sentinels(self) -> int:
        """How many sentinels the model's file holds."""
        return SENTINELS if self.settings.bake_sentinels else 0
