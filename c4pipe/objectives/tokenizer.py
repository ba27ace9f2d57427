"""Text to token ids, by a SentencePiece model."""

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.io import StoragePath
from c4pipe.objectives.denoise import Ids
from c4pipe.objectives.rows import Mask, Rows, starts_of
from c4pipe.vocab import SENTINELS, load_model

_CLOSING = "\"')]”’»"


class Tokenizer:
    """A SentencePiece model with T5's sentinels, which are in the model's file or behind its pieces.

    Attributes:
        ids: the ids with a meaning of their own.
        sha256: the SHA-256 of the model's file in hex.
    """

    def __init__(self, model: StoragePath) -> None:
        """Loads a model.

        Args:
            model: the model's file, such as the `spm.model` that `c4pipe vocab` writes.

        Raises UsageError where it is no SentencePiece model, or has no piece for the end of a sequence.
        """
        self._model = load_model(model)
        self.sha256 = self._model.sha256
        if self._model.eos_id < 0:
            raise UsageError(f"{model} has no piece for the end of a sequence: train a model with c4pipe vocab")
        size = self._model.size
        has_sentinels = self._model.pieces[-1] == "<extra_id_0>"
        self.ids = Ids(size if has_sentinels else size + SENTINELS, SENTINELS, eos=self._model.eos_id)

    def encode(self, texts: Sequence[str]) -> Rows:
        """Returns the ids of texts, one row for each, without an end of sequence. It uses one core."""
        ids = self._model.encode(texts)
        starts = starts_of([len(row) for row in ids])
        return Rows(np.fromiter(itertools.chain.from_iterable(ids), np.int32, int(starts[-1])), starts)

    @cached_property
    def word_starts(self) -> Mask:
        """Whether each id begins a word, of shape [ids]."""
        return np.array([piece.startswith("▁") for piece in self._pieces])

    @cached_property
    def sentence_ends(self) -> Mask:
        """Whether each id ends with a full stop, question mark or exclamation mark, of shape [ids]."""
        return np.array([piece.rstrip(_CLOSING).endswith((".", "?", "!")) for piece in self._pieces])

    @property
    def _pieces(self) -> list[str]:
        return self._model.pieces + [""] * (self.ids.size - self._model.size)
