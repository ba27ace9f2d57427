"""Text to token ids, by a SentencePiece model."""

import itertools
import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.io.arguments import checks_arguments
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.io.words import short_repr
from c4pipe.objectives.denoise import Ids
from c4pipe.objectives.rows import TokenMask, TokenRows
from c4pipe.text.scripts.facts import SCRIPTS
from c4pipe.vocab.model import MODEL, load_model, sentinels_of

_CLOSING = "\"')]”’»」』"
_WORD_START = re.compile(f"[▁\u0f00-\u0fff{''.join(script.letters for script in SCRIPTS.values())}]")
"""The first character of a piece that begins a word: a blank, or a letter of Tibetan or another script that has no
blanks between words. BERT's tokenizer puts blanks around Chinese letters."""
_SENTENCE_ENDS = (".", "?", "!", *(mark for script in SCRIPTS.values() for mark in script.ends if mark != ";"))


class Tokenizer:
    """A SentencePiece model with T5's sentinels, which are in the model's file or after its pieces.

    Attributes:
        ids: the special ids.
        sha256: the SHA-256 of the model's file in hex.
    """

    @checks_arguments
    def __init__(self, model: str | StoragePath, sentinels: int | None = None) -> None:
        """Loads a model.

        Args:
            model: the folder of a vocabulary, or the model's file, such as `spm.model` in it, or that of T5 or mT5.
            sentinels: the number of sentinels after the pieces of a file without sentinels; None for the number in the
                `vocab.json` beside the file (`c4pipe vocab --sentinels`), or T5's 100. A file that ends with sentinels
                has its own number.

        Raises UsageError if the file is no SentencePiece model, has no piece for the end of a sequence, or has another
        number of sentinels.
        """
        model = storage_path(model) if isinstance(model, str) else model
        model = model / MODEL if model.is_dir() else model
        self._model = load_model(model)
        self.sha256 = self._model.sha256
        if self._model.eos_id < 0:
            raise UsageError(f"{model} has no piece for the end of a sequence: train a model with c4pipe vocab")
        in_file = _sentinels_at_end(self._model.pieces)
        if in_file and sentinels not in (None, in_file):
            raise UsageError(
                f"{model} has {in_file} sentinels, and sentinels={sentinels}: leave it out, or give a model without any"
            )
        count = in_file or (sentinels_of(model) if sentinels is None else sentinels)
        size = self._model.size + (0 if in_file else count)
        self.ids = Ids(size, count, eos=self._model.eos_id, first=self._model.first_ordinary)

    def __repr__(self) -> str:
        return short_repr(self, f"{self.ids.size:,} ids", f"sha256 {self.sha256[:12]}")

    def encode(self, texts: Sequence[str]) -> TokenRows:
        """Returns the ids of texts, one row for each, without an end of sequence. It uses one core."""
        return TokenRows.of(self._model.encode(texts))

    @cached_property
    def word_starts(self) -> TokenMask:
        """Whether each id begins a word, of shape [ids]. In scripts without blanks, each piece is a word."""
        return np.array([_WORD_START.match(piece) is not None for piece in self._pieces])

    @cached_property
    def sentence_ends(self) -> TokenMask:
        """Whether each id ends with a mark that ends a sentence in some script, but the Greek `;`, of shape [ids]."""
        return np.array([piece.rstrip(_CLOSING).endswith(_SENTENCE_ENDS) for piece in self._pieces])

    @property
    def _pieces(self) -> list[str]:
        return self._model.pieces + [""] * (self.ids.size - self._model.size)


def _sentinels_at_end(pieces: Sequence[str]) -> int:
    """Returns the number of sentinels that end a vocabulary: `<extra_id_1>`, `<extra_id_0>`.

    The models of T5 and mT5 have `▁` before each of them, as their trainer took them for words.
    """
    names = (piece.removeprefix("▁") for piece in reversed(pieces))
    matches = (name == f"<extra_id_{number}>" for number, name in enumerate(names))
    return sum(1 for _ in itertools.takewhile(bool, matches))
