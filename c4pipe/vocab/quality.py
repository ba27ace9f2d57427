"""How well a vocabulary cuts held-out text, in figures, beside other vocabularies. No Beam."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath
from c4pipe.vocab.sources import Reading, encoded, read

HELD_OUT_BYTES = 8_000_000
"""Text that is measured for each source, up to a page more: the pages of the smallest keys."""

_LINES_AT_ONCE = 4096


@dataclass(frozen=True)
class Figures:
    """What a vocabulary does to the held-out pages of a source.

    Attributes:
        vocabulary: the vocabulary's name.
        source: the source's name.
        pages: held-out pages that were measured.
        characters: characters of their lines, as they stand.
        words: their words: what stands between white space.
        tokens: pieces that the lines are cut into, without end marks.
        unknown: how many of these are the unknown piece.
        used: how many pieces of the vocabulary occur.
        pieces: how many pieces the vocabulary has that can occur: all but the special ones.
    """

    vocabulary: str
    source: str
    pages: int
    characters: int
    words: int
    tokens: int
    unknown: int
    used: int
    pieces: int

    @property
    def characters_per_token(self) -> float:
        """Characters that a token stands for, on average."""
        return self.characters / max(1, self.tokens)

    @property
    def tokens_per_word(self) -> float:
        """Tokens that a word is cut into, on average."""
        return self.tokens / max(1, self.words)

    @property
    def unknown_share(self) -> float:
        """The share of tokens that are unknown."""
        return self.unknown / max(1, self.tokens)

    @property
    def used_share(self) -> float:
        """The share of the vocabulary's pieces that occur."""
        return self.used / self.pieces

    def to_json(self) -> dict[str, Any]:
        """Returns the figures, and what follows from them, as JSON values."""
        shares = {
            "characters_per_token": round(self.characters_per_token, 4),
            "tokens_per_word": round(self.tokens_per_word, 4),
            "unknown_share": round(self.unknown_share, 6),
            "used_share": round(self.used_share, 4),
        }
        return {**asdict(self), **shares}


def held_out(reading: Reading) -> list[str]:
    """Returns the texts of a source's held-out pages, in the order of their keys, up to `HELD_OUT_BYTES`.

    Raises UsageError for a file that can't be read.
    """
    pages: list[tuple[int, str]] = []
    size = 0
    for file in reading.files:
        for texts, keys in read(file, reading):
            pages.extend(zip(keys.tolist(), texts, strict=True))
            size += sum(len(encoded(text)) for text in texts)
            if size > 2 * HELD_OUT_BYTES:
                pages, size = _first(pages)
    return [text for _, text in _first(pages)[0]]


def _first(pages: list[tuple[int, str]]) -> tuple[list[tuple[int, str]], int]:
    """Returns the pages of the smallest keys, as many as are to be measured, and their bytes."""
    pages, size = sorted(pages), 0
    for number, (_, text) in enumerate(pages):
        size += len(encoded(text))
        if size > HELD_OUT_BYTES:
            return pages[: number + 1], size
    return pages, size


class Vocabulary:
    """A SentencePiece model that can be measured. Raises UsageError for a file that is none."""

    def __init__(self, name: str, file: StoragePath) -> None:
        import sentencepiece

        self.name = name
        try:
            data = file.read_bytes()
            if not data:
                raise UsageError(f"{file} is no SentencePiece model: it is empty")
            self._model = sentencepiece.SentencePieceProcessor(model_proto=data)
        except FileNotFoundError:
            raise UsageError(f"{file}: there is no such file; give a SentencePiece model") from None
        except (OSError, RuntimeError) as error:
            raise UsageError(f"{file} is no SentencePiece model: {error}") from None
        size = self._model.get_piece_size()
        special = [n for n in range(size) if self._model.is_control(n) or self._model.is_unknown(n)]
        self._pieces = size - len(special)

    def measure(self, source: str, texts: Sequence[str]) -> Figures:
        """Returns the figures of a source's held-out pages; there must be some."""
        lines = [line for text in texts for each in text.split("\n") if (line := each.strip())]
        counts = np.zeros(self._model.get_piece_size(), np.int64)
        for first in range(0, len(lines), _LINES_AT_ONCE):
            ids = chain.from_iterable(self._model.encode(lines[first : first + _LINES_AT_ONCE]))
            counts += np.bincount(np.fromiter(ids, np.int64), minlength=len(counts))
        unknown = int(counts[self._model.unk_id()])
        return Figures(
            vocabulary=self.name,
            source=source,
            pages=len(texts),
            characters=sum(map(len, lines)),
            words=sum(len(line.split()) for line in lines),
            tokens=int(counts.sum()),
            unknown=unknown,
            used=int(np.count_nonzero(counts)) - bool(unknown),
            pieces=self._pieces,
        )


def name_of(file: StoragePath) -> str:
    """Returns the name of a model's file, or of its folder where all models have that one."""
    file = file.absolute()
    usual = ("spm.model", "spiece.model", "sentencepiece.model")
    return file.parent.name if file.name in usual else file.name.removesuffix(".model")
