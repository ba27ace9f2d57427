"""The one wrapper of a SentencePiece model: it loads the model's file and gives the errors of a bad one."""

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath
from c4pipe.vocab.description import check_file


def sentinel_names(count: int) -> list[str]:
    """Returns a number of sentinels in the order of their ids: `<extra_id_0>` is the last one, as in T5."""
    return [f"<extra_id_{number}>" for number in reversed(range(count))]


class SentencePieceModel:
    """A SentencePiece model, in memory.

    Attributes:
        sha256: the SHA-256 of its file in hex.
        size: the number of its pieces.
        eos_id: the id of the end of a sequence; negative where the model has no such piece.
        unknown_id: the id of the unknown piece.
    """

    def __init__(self, data: bytes) -> None:
        """Takes the bytes of a model's file. Raises RuntimeError, in SentencePiece's words, where they are none."""
        import sentencepiece

        self._processor = sentencepiece.SentencePieceProcessor(model_proto=data)
        self.sha256 = hashlib.sha256(data).hexdigest()
        self.size: int = self._processor.get_piece_size()
        self.eos_id: int = self._processor.eos_id()
        self.unknown_id: int = self._processor.unk_id()

    def encode(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Returns the ids of each text, without an end of sequence. With `threads=-1` it uses all cores."""
        ids: list[list[int]] = self._processor.encode(list(texts), num_threads=threads)
        return ids

    def encode_arrays(self, texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
        """Returns the ids of each text, of shape [tokens], without an end of sequence. It uses one core."""
        ids: list[npt.NDArray[np.int32]] = self._processor.encode(list(texts), num_threads=1, return_type="numpy")
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
    def first_ordinary(self) -> int:
        """The first id that is neither a control piece nor the unknown piece nor a byte nor unused."""
        model = self._processor
        tests = (model.is_control, model.is_unknown, model.is_byte, model.is_unused)
        return next((n for n in range(self.size) if not any(test(n) for test in tests)), self.size)

    @property
    def text_pieces(self) -> int:
        """The number of pieces that can occur in text: all but control pieces and the unknown piece."""
        processor = self._processor
        return sum(not (processor.is_control(n) or processor.is_unknown(n)) for n in range(self.size))


def load_model(file: StoragePath) -> SentencePieceModel:
    """Returns the model of a file.

    Raises UsageError where the file does not exist, or is no SentencePiece model; DamagedFileError where the
    `vocab.json` beside it has another digest of the file.
    """
    try:
        data = file.read_bytes()
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
