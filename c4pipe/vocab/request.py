"""The options of job 3, `vocab`: the text, and the kind of the vocabulary. Making a record reads no file."""

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any
from unicodedata import normalize

from c4pipe.errors import UsageError
from c4pipe.io.options import Option, PathArgument, as_strings, shared_fields
from c4pipe.runners.runner_options import RunnerOptions

if TYPE_CHECKING:
    from c4pipe.io.paths import StoragePath
    from c4pipe.vocab.sources import TrainingText

MODELS = ("unigram", "bpe")
NORMALIZATIONS = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")
"""The normalization rules that are built into SentencePiece."""

SENTINELS = 100
"""The number of T5's sentinels (paper, section 3.1.4, and `extra_ids` of seqio and Transformers)."""

SAMPLE_BYTES = 300_000_000
"""Bytes of text that SentencePiece can train on with 8 GB of memory, measured (docs/vocabulary.md)."""

SENTENCE_BYTES = 4192
"""The longest sentence that SentencePiece takes (its `max_sentence_length`); it ignores longer ones."""

_THREADS = 16  # the default of SentencePiece; fixed, because the model depends on it
_MOST_SENTINELS = 100_000
NEWEST = ("split_digits", "user_symbols")
"""The settings that `vocab.json` has only if they are used: older vocabularies lack them."""

_NO_SYMBOL = re.compile(r"\s|▁|^(?:<pad>|</s>|<unk>|<extra_id_\d+>|<0x[0-9A-F]{2}>)$")


@dataclass(frozen=True)
class SourceOptions:
    """The text of a vocabulary."""

    sources: Annotated[
        PathArgument | Sequence[PathArgument],
        Option(
            "text with a weight, such as corpus/en:10: a language of a corpus, or a file or folder of Parquet, JSON "
            "Lines or plain text",
            "SOURCE",
            positional=True,
            nargs="+",
        ),
    ]

    @property
    def weighted_sources(self) -> "tuple[TrainingText, ...]":
        """The text, with weights. Raises UsageError for an impossible weight."""
        from c4pipe.vocab.sources import parse_source

        return tuple(map(parse_source, as_strings(self.sources)))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The kind of a vocabulary. Raises UsageError for impossible values.

    The defaults are the paper's: 32,000 pieces (section 3.1.3) of a unigram model (it cites Kudo 2018), and 100
    sentinels (section 3.1.4). Normalization and coverage have SentencePiece's own defaults.
    """

    size: Annotated[int, Option("number of pieces", "N")] = 32_000
    model: Annotated[str, Option("unigram or bpe", "KIND")] = "unigram"
    byte_fallback: Annotated[bool, Option("write characters that have no piece as pieces for their bytes")] = False
    normalization: Annotated[str, Option("nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf or identity", "RULE")] = "nmt_nfkc"
    coverage: Annotated[float, Option("share of the characters in the text that get a piece", "SHARE")] = 0.9995
    sentinels: Annotated[int, Option("number of sentinels after the pieces", "N")] = SENTINELS
    bake_sentinels: Annotated[bool, Option("write the sentinels into spm.model, as its last pieces")] = False
    split_digits: Annotated[bool, Option("make each digit a piece of its own")] = False
    user_symbols: Annotated[
        Sequence[str], Option("text that is always one piece, such as '<|user|>'", "TEXT", repeated=True)
    ] = ()

    def __post_init__(self) -> None:
        if self.size < 8:
            raise UsageError(f"--size {self.size}: give at least 8 pieces; T5's vocabulary has 32000")
        if self.model not in MODELS:
            raise UsageError(f"--model {self.model}: give {' or '.join(MODELS)}")
        if self.normalization not in NORMALIZATIONS:
            raise UsageError(f"--normalization {self.normalization}: give one of {', '.join(NORMALIZATIONS)}")
        if not 0.9 <= self.coverage <= 1:
            raise UsageError(f"--coverage {self.coverage}: give a share from 0.9 to 1 of the text's characters")
        if not 0 <= self.sentinels <= _MOST_SENTINELS:
            raise UsageError(f"--sentinels {self.sentinels}: give 0 to {_MOST_SENTINELS:,}; T5 has {SENTINELS}")
        for symbol in self.user_symbols:
            usual = symbol if self.normalization == "identity" else normalize("NFKC", symbol)
            usual = usual.casefold() if self.normalization.endswith("_cf") else usual
            if symbol != usual or not symbol or _NO_SYMBOL.search(symbol):
                raise UsageError(
                    f"--user-symbols {symbol!r}: give a text without blanks that normalization leaves as it is, and "
                    "that is no special piece"
                )

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as JSON values; settings in `NEWEST` only if they are used."""
        values = {**asdict(self), "user_symbols": list(self.user_symbols)}
        return {name: value for name, value in values.items() if value or name not in NEWEST}

    def parameters(self) -> dict[str, Any]:
        """Returns the parameters of SentencePiece's trainer, also defaults that matter."""
        return {
            "model_type": self.model,
            "vocab_size": self.size,
            "byte_fallback": self.byte_fallback,
            "normalization_rule_name": self.normalization,
            "character_coverage": self.coverage,
            # the ids of T5, which seqio and Transformers rely on
            "pad_id": 0,
            "eos_id": 1,
            "unk_id": 2,
            "bos_id": -1,
            "max_sentence_length": SENTENCE_BYTES,
            "input_sentence_size": 0,  # all of them
            "shuffle_input_sentence": False,
            "num_threads": _THREADS,
            **({"split_digits": True} if self.split_digits else {}),
            **({"user_defined_symbols": list(self.user_symbols)} if self.user_symbols else {}),
        }


@dataclass(frozen=True, kw_only=True)
class VocabOptions(RunnerOptions, Settings, SourceOptions):
    """Job 3: text to a vocabulary. `plan_vocab` checks it."""

    output: Annotated[PathArgument, Option("folder for the vocabulary", "DIR")]
    sample_bytes: Annotated[
        int | None, Option("train on at most N bytes of text", "N", otherwise="what fits in 8 GB of memory")
    ] = None
    repeat: Annotated[bool, Option("repeat the text of a source that is too small for its weight")] = False
    temperature: Annotated[
        float | None,
        Option(
            "give each language of the corpora the weight of its documents to the power of 1 / T, such as 3.33 (mT5)",
            "T",
            otherwise="the weights of the sources",
        ),
    ] = None

    @property
    def folder(self) -> "StoragePath":
        """The folder for the vocabulary."""
        from c4pipe.io.paths import storage_path

        return storage_path(os.fspath(self.output))

    @property
    def most_bytes(self) -> int:
        """Bytes of text to train on, at most."""
        return SAMPLE_BYTES if self.sample_bytes is None else self.sample_bytes

    @property
    def settings(self) -> Settings:
        """The kind of the vocabulary. Raises UsageError for impossible values."""
        return Settings(**shared_fields(self, Settings))
