"""A trained model: the wrapper of SentencePiece, and `vocab.json`, the record of the training."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt

from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.io.json_files import Digest, choice, read_json
from c4pipe.io.paths import StoragePath, read_file
from c4pipe.vocab.request import SENTINELS

MODEL, PIECES, VOCAB_FILE = "spm.model", "spm.vocab", "vocab.json"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
VOCAB_FORMAT, VOCAB_VERSION = "c4pipe vocabulary", 2

# A sentinel as a user-defined piece (type 4): SentencePiece finds it in text. A control piece (type 3) is in no text.
_BAKED_SENTINEL = re.compile(rb"((?:\xe2\x96\x81)?<extra_id_\d+>(?:\x15.{4})?\x18)\x04", re.DOTALL)

_Files = TypedDict(
    "_Files", {"spm.model": Digest, "spm.vocab": Digest, "tokenizer.json": Digest, "tokenizer_config.json": Digest}
)


class _Source(TypedDict):
    name: str


class TrainingData(TypedDict):
    """The amount of a source that a model was trained on."""

    name: str
    bytes: int
    sentences: int


class _Settings(TypedDict, total=False):
    sentinels: int


class VocabDescription(TypedDict):
    """The members of `vocab.json` that are read; docs/formats.md describes each member."""

    format: Annotated[str, choice(VOCAB_FORMAT)]
    version: Annotated[int, choice(VOCAB_VERSION)]
    sources: Sequence[_Source]
    training_data: Sequence[TrainingData]
    settings: _Settings
    sample_sha256: Digest
    sentinels: int
    files: _Files
    versions: Mapping[str, str]


def read_description(folder: StoragePath) -> VocabDescription | None:
    """Returns a folder's `vocab.json`; None if it is missing, or of another tool or version.

    Raises UsageError for a malformed file.
    """
    values = read_json(folder / VOCAB_FILE, dict) or {}
    named = isinstance(values.get("sha256"), str)  # also after an edit
    is_ours = named or (values.get("format") == VOCAB_FORMAT and values.get("version") == VOCAB_VERSION)
    return read_json(folder / VOCAB_FILE, VocabDescription) if is_ours else None


def sentinels_of(file: StoragePath) -> int:
    """Returns the number of sentinels of a model, from the `vocab.json` beside it; without that file, T5's 100."""
    description = read_description(file.parent)
    return description["settings"].get("sentinels", SENTINELS) if description else SENTINELS


def check_file(file: StoragePath, data: bytes | None = None) -> None:
    """Compares a file, or its bytes `data`, with its digest in the `vocab.json` beside it, if it has a digest there.

    Raises DamagedFileError if they differ, or if the file is missing.
    """
    description = read_description(file.parent)
    digest = description["files"].get(file.name) if description else None
    if digest is None:
        return
    again = f"copy it from elsewhere, or move {VOCAB_FILE} away and train again"
    try:
        found = hashlib.sha256(read_file(file) if data is None else data).hexdigest()
    except FileNotFoundError:
        raise DamagedFileError(f"{file} is missing, and {VOCAB_FILE} names it: {again}") from None
    if found != digest:
        raise DamagedFileError(f"{file} was changed: its SHA-256 is not that in {VOCAB_FILE}; {again}")


def sentinel_names(count: int) -> list[str]:
    """Returns a number of sentinels in the order of their ids: `<extra_id_0>` is the last one, as in T5."""
    return [f"<extra_id_{number}>" for number in reversed(range(count))]


class SentencePieceModel:
    """A SentencePiece model, in memory. Text is text for it: `<extra_id_0>` in a text never becomes a sentinel.

    Attributes:
        sha256: the SHA-256 of its file in hex.
        size: the number of its pieces.
        eos_id: the id of the end of a sequence; negative if the model has no such piece.
        unknown_id: the id of the unknown piece.
    """

    def __init__(self, data: bytes) -> None:
        """Takes the bytes of a model's file. Raises RuntimeError, in SentencePiece's words, if they are no model."""
        import sentencepiece

        as_control = _BAKED_SENTINEL.sub(b"\\1\x03", data)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=as_control)
        self.sha256 = hashlib.sha256(data).hexdigest()
        self.size: int = self._processor.get_piece_size()
        self.eos_id: int = self._processor.eos_id()
        self.unknown_id: int = self._processor.unk_id()

    def encode(self, texts: Sequence[str], threads: int = 1) -> list[npt.NDArray[np.int32]]:
        """Returns the ids of each text, of shape [tokens], without an end of sequence. -1 threads use all cores."""
        ids: list[npt.NDArray[np.int32]] = self._processor.encode(list(texts), num_threads=threads, return_type="numpy")
        return ids

    @cached_property
    def pieces(self) -> list[str]:
        """The piece of each id."""
        pieces: list[str] = self._processor.id_to_piece(list(range(self.size)))
        return pieces

    @property
    def scores(self) -> list[float]:
        """The score of each id."""
        scores: list[float] = self._processor.get_score(list(range(self.size)))
        return scores

    @property
    def control(self) -> dict[str, int]:
        """The ids of the control pieces, such as the end of a sequence, which never occur in text."""
        return {piece: number for number, piece in enumerate(self.pieces) if self._processor.is_control(number)}

    @property
    def byte_ids(self) -> list[int]:
        """The ids of the pieces that are bytes."""
        return [number for number in range(self.size) if self._processor.is_byte(number)]

    @property
    def first_ordinary(self) -> int:
        """The first id that is neither a control piece nor the unknown piece nor a byte nor unused."""
        model = self._processor
        tests = (model.is_control, model.is_unknown, model.is_byte, model.is_unused)
        return next((n for n in range(self.size) if not any(test(n) for test in tests)), self.size)

    @property
    def text_pieces(self) -> int:
        """The number of pieces that can occur in text: all pieces except control pieces and the unknown piece."""
        processor = self._processor
        return sum(not (processor.is_control(n) or processor.is_unknown(n)) for n in range(self.size))


def model_file(path: StoragePath) -> StoragePath:
    """Returns the file of a model, given that file or the folder of a vocabulary."""
    return path / MODEL if path.is_dir() else path


def load_model(file: StoragePath) -> SentencePieceModel:
    """Returns the model of a file.

    Raises UsageError if the file does not exist, or is no SentencePiece model; DamagedFileError if the
    `vocab.json` beside it has another digest of the file.
    """
    try:
        data = read_file(file)
        if not data:  # SentencePiece takes it for a model without pieces
            raise UsageError(f"{file} is no SentencePiece model: it is empty; give the folder of a vocabulary")
        check_file(file, data)
        return SentencePieceModel(data)
    except FileNotFoundError:
        raise UsageError(f"{file} does not exist: give the folder of a vocabulary, or its spm.model") from None
    except (OSError, RuntimeError):
        raise UsageError(
            f"{file} is no SentencePiece model: give the folder of a vocabulary, or its spm.model"
        ) from None
