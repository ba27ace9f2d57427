"""Measures the pieces of held-out text, to compare vocabularies."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from c4pipe.io.paths import StoragePath
from c4pipe.io.words import short_repr
from c4pipe.text.scripts.facts import unspaced
from c4pipe.vocab.model import load_model
from c4pipe.vocab.sources import Reading, read

HELD_OUT_BYTES = 8_000_000
"""The bytes of text of each source that are measured: the pages with the smallest keys. The last page is whole."""

_LINES_AT_ONCE = 4096


@dataclass(frozen=True)
class Figures:
    """The figures of a vocabulary on the held-out pages of a source.

    Attributes:
        vocabulary: the name of the vocabulary.
        source: the name of the source.
        pages: the number of held-out pages that were measured.
        characters: the number of characters of their lines, before normalization.
        words: the number of their words, which are separated by white space.
        tokens: the number of tokens of their lines, without ends of sequences.
        unknown: the number of these tokens that are the unknown piece.
        bytes: the number of these tokens that are bytes of characters without a piece (byte fallback).
        used: the number of different pieces that occur.
        pieces: the number of pieces that can occur: all but the special ones.
    """

    vocabulary: str
    source: str
    pages: int
    characters: int
    words: int
    tokens: int
    unknown: int
    bytes: int
    used: int
    pieces: int

    @property
    def characters_per_token(self) -> float:
        """The mean number of characters of a token."""
        return self.characters / max(1, self.tokens)

    @property
    def tokens_per_word(self) -> float | None:
        """The mean number of tokens of a word; None if the source has the name of a language without blanks."""
        return None if unspaced(self.source.rpartition("/")[2]) else self.tokens / max(1, self.words)

    @property
    def no_piece_share(self) -> float:
        """The share of tokens that stand for characters without a piece: the unknown piece, and bytes."""
        return (self.unknown + self.bytes) / max(1, self.tokens)

    @property
    def used_share(self) -> float:
        """The share of the pieces that occur."""
        return self.used / self.pieces

    def to_json(self) -> dict[str, Any]:
        """Returns the figures and the shares as JSON values."""
        shares = {
            "characters_per_token": round(self.characters_per_token, 4),
            "tokens_per_word": None if self.tokens_per_word is None else round(self.tokens_per_word, 4),
            "unknown_share": round(self.unknown / max(1, self.tokens), 6),
            "no_piece_share": round(self.no_piece_share, 6),
            "used_share": round(self.used_share, 4),
        }
        return {**asdict(self), **shares}


def held_out(reading: Reading) -> list[str]:
    """Returns the texts of a source's held-out pages, in the order of their keys, up to `HELD_OUT_BYTES`.

    Raises UsageError or C4pipeError if a file can't be read.
    """
    pages: list[tuple[int, str]] = []
    size = 0
    for file in reading.files:
        for texts, keys in read(file, reading):
            pages.extend(zip(keys.tolist(), texts, strict=True))
            size += sum(len(text.encode()) for text in texts)
            if size > 2 * HELD_OUT_BYTES:
                pages, size = _first(pages)
    return [text for _, text in _first(pages)[0]]


def _first(pages: list[tuple[int, str]]) -> tuple[list[tuple[int, str]], int]:
    """Returns the pages with the smallest keys, and their bytes."""
    pages, size = sorted(pages), 0
    for number, (_, text) in enumerate(pages):
        size += len(text.encode())
        if size > HELD_OUT_BYTES:
            return pages[: number + 1], size
    return pages, size


class Vocabulary:
    """A SentencePiece model to measure."""

    def __init__(self, name: str, file: StoragePath) -> None:
        """Raises UsageError if the file is no SentencePiece model."""
        self.name = name
        self._model = load_model(file)

    def __repr__(self) -> str:
        return short_repr(self, self.name, f"{self._model.size:,} pieces")

    def measure(self, source: str, texts: Sequence[str]) -> Figures:
        """Returns the figures on the held-out pages of a source, at least one."""
        lines = [line for text in texts for each in text.split("\n") if (line := each.strip())]
        counts = np.zeros(self._model.size, np.int64)
        for first in range(0, len(lines), _LINES_AT_ONCE):
            ids = self._model.encode(lines[first : first + _LINES_AT_ONCE], threads=-1)
            counts += np.bincount(np.concatenate(ids), minlength=len(counts))
        unknown = int(counts[self._model.unknown_id])
        return Figures(
            vocabulary=self.name,
            source=source,
            pages=len(texts),
            characters=sum(map(len, lines)),
            words=sum(len(line.split()) for line in lines),
            tokens=int(counts.sum()),
            unknown=unknown,
            bytes=int(counts[self._model.byte_ids].sum()),
            used=int(np.count_nonzero(counts)) - bool(unknown),
            pieces=self._model.text_pieces,
        )


def model_name(file: StoragePath) -> str:
    """Returns the name of a model: the name of its file, or of its folder if the file has a usual name."""
    file = file.absolute()
    usual = ("spm.model", "spiece.model", "sentencepiece.model")
    return file.parent.name if file.name in usual else file.name.removesuffix(".model")
