"""Text to token ids, by a SentencePiece model."""

import hashlib
import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath
from c4pipe.objectives.denoise import Ids
from c4pipe.objectives.rows import Mask, Rows, starts_of
from c4pipe.vocab.train import SENTINELS

_CLOSING = "\"')]”’»"


class Tokenizer:
    """A SentencePiece model, with T5's sentinels behind its pieces or among them (docs/vocabulary.md).

    Attributes:
        ids: the ids that mean something.
        sha256: of the model's file.
    """

    def __init__(self, model: StoragePath) -> None:
        """Loads the model's file. Raises UsageError where it has no piece for the end of a sequence."""
        import sentencepiece

        data = model.read_bytes()
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=data)
        self.sha256 = hashlib.sha256(data).hexdigest()
        if self._processor.eos_id() < 0:
            raise UsageError(f"{model} has no piece for the end of a sequence: train one with c4pipe vocab")
        pieces = self._processor.get_piece_size()
        baked = self._processor.piece_to_id("<extra_id_0>") == pieces - 1
        self.ids = Ids(pieces if baked else pieces + SENTINELS, SENTINELS, eos=self._processor.eos_id())

    def encode(self, texts: Sequence[str]) -> Rows:
        """Returns the ids of texts, a row for each, without an end of sequence; on one core."""
        ids: list[list[int]] = self._processor.encode(list(texts), num_threads=1)
        starts = starts_of([len(row) for row in ids])
        return Rows(np.fromiter(itertools.chain.from_iterable(ids), np.int32, int(starts[-1])), starts)

    @cached_property
    def word_starts(self) -> Mask:
        """For each id, whether it begins a word, of shape [ids]."""
        return np.array([piece.startswith("▁") for piece in self._pieces])

    @cached_property
    def sentence_ends(self) -> Mask:
        """For each id, whether it ends in a full stop, question mark or exclamation mark, of shape [ids]."""
        return np.array([piece.rstrip(_CLOSING).endswith((".", "?", "!")) for piece in self._pieces])

    @property
    def _pieces(self) -> list[str]:
        count = self._processor.get_piece_size()
        pieces: list[str] = self._processor.id_to_piece(list(range(count)))
        return pieces + [""] * (self.ids.size - count)
