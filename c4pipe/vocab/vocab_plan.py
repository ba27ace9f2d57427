"""The plan of job 3: the files of each source, and what makes the vocabulary this one."""

from dataclasses import asdict, dataclass
from typing import Any

from c4pipe.corpus.manifest import MANIFEST
from c4pipe.errors import UsageError
from c4pipe.runners.runner import check_runner
from c4pipe.vocab.options import VocabOptions
from c4pipe.vocab.sources import Reading, find_pages, source_labels

_LEAST_BYTES = 1000


@dataclass(frozen=True)
class VocabPlan:
    """What job 3 has to do.

    Attributes:
        options: what the user asked for.
        labels: a short name for each source.
        readings: how the pages of each source are read, without those that are held out.
    """

    options: VocabOptions
    labels: tuple[str, ...]
    readings: tuple[Reading, ...]

    @property
    def weights(self) -> list[float]:
        """The weight of each source."""
        return [source.weight for source in self.options.sources]

    @property
    def wanted_bytes(self) -> list[int]:
        """How many bytes of the sample each source has by its weight, if it has enough text."""
        weights = self.weights
        return [int(self.options.sample_bytes * weight / sum(weights)) for weight in weights]

    @property
    def sentinels(self) -> int:
        """How many sentinels the model's file holds."""
        settings = self.options.settings
        return settings.sentinels if settings.bake_sentinels else 0

    @property
    def identity(self) -> dict[str, Any]:
        """What makes the vocabulary this one, as JSON values."""
        return {
            "sources": [
                {"name": label, "weight": weight, "content": reading.content}
                for label, weight, reading in zip(self.labels, self.weights, self.readings, strict=True)
            ],
            "sample_bytes": self.options.sample_bytes,
            "repeat": self.options.repeat,
            "settings": asdict(self.options.settings),
        }


def plan_vocab(options: VocabOptions) -> VocabPlan:
    """Checks the options of job 3, and looks up the files of the sources. Changes nothing.

    Raises UsageError for an option that can't be met; whether there is enough text is not known yet.
    """
    check_runner(options.runner)
    if options.sample_bytes < _LEAST_BYTES:
        raise UsageError(f"--sample-bytes {options.sample_bytes}: give at least {_LEAST_BYTES} bytes of text")
    if options.output.exists() and not options.output.is_dir():
        raise UsageError(f"--output {options.output} is a file: give a folder")
    if (options.output / MANIFEST).exists():
        raise UsageError(f"--output {options.output} is a corpus: give another folder, such as {options.output}-vocab")
    if not options.sources:
        raise UsageError("no source is given: name text to train on, as in corpus/en:10 corpus/de:1")
    return VocabPlan(options, tuple(source_labels(options.sources)), tuple(map(find_pages, options.sources)))
