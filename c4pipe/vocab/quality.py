"""Measures how well a vocabulary splits held-out text into pieces, so that vocabularies can be compared."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import chain
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
# Colour-blind readers can tell these apart, too (Okabe and Ito's palette).
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
_LETTER, _BARS, _BAR, _GAP = 8, 460, 16, 14  # pixels: a letter of a label, the longest bar, a bar's height, a gap


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
        """The mean number of tokens of a word; None where the source has the name of a language without blanks."""
        return None if unspaced(self.source.rpartition("/")[2]) else self.tokens / max(1, self.words)

    @property
    def unknown_share(self) -> float:
        """The share of tokens that are the unknown piece."""
        return self.unknown / max(1, self.tokens)

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
            "unknown_share": round(self.unknown_share, 6),
            "no_piece_share": round(self.no_piece_share, 6),
            "used_share": round(self.used_share, 4),
        }
        return {**asdict(self), **shares}


def held_out(reading: Reading) -> list[str]:
    """Returns the texts of a source's held-out pages, in the order of their keys, up to `HELD_OUT_BYTES`.

    Raises UsageError or C4pipeError where a file can't be read.
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
    """Returns the pages to measure, those with the smallest keys, and their bytes."""
    pages, size = sorted(pages), 0
    for number, (_, text) in enumerate(pages):
        size += len(text.encode())
        if size > HELD_OUT_BYTES:
            return pages[: number + 1], size
    return pages, size


class Vocabulary:
    """A SentencePiece model to be measured."""

    def __init__(self, name: str, file: StoragePath) -> None:
        """Takes a name, and the model's file. Raises UsageError where the file is no SentencePiece model."""
        self.name = name
        self._model = load_model(file)

    def __repr__(self) -> str:
        return short_repr(self, self.name, f"{self._model.size:,} pieces")

    def measure(self, source: str, texts: Sequence[str]) -> Figures:
        """Returns the figures on the held-out pages of a source, given its name and at least one text."""
        lines = [line for text in texts for each in text.split("\n") if (line := each.strip())]
        counts = np.zeros(self._model.size, np.int64)
        for first in range(0, len(lines), _LINES_AT_ONCE):
            ids = chain.from_iterable(self._model.encode(lines[first : first + _LINES_AT_ONCE], threads=-1))
            counts += np.bincount(np.fromiter(ids, np.int64), minlength=len(counts))
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


def quality_picture(figures: Sequence[Figures]) -> str:
    """Returns an SVG picture: characters per token as bars, one for each source and vocabulary."""
    vocabularies = list(dict.fromkeys(each.vocabulary for each in figures))
    sources = list(dict.fromkeys(each.source for each in figures))
    colours = {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(vocabularies)}
    top = 40 + 20 * len(vocabularies)
    height = top + sum(_BAR * sum(each.source == source for each in figures) + _GAP for source in sources)
    most = max(each.characters_per_token for each in figures) or 1
    left = 20 + _LETTER * max(map(len, sources))
    parts = [_text(0, 16, "Characters per token on held-out pages (more is better)", "font-weight='bold'")]
    for n, name in enumerate(vocabularies):
        parts += [_box(0, 28 + 20 * n, 12, 12, colours[name]), _text(20, 38 + 20 * n, name)]
    y = top
    for source in sources:
        bars = [each for each in figures if each.source == source]
        parts.append(_text(left - 10, y + _BAR * len(bars) / 2 + 4, source, "text-anchor='end'"))
        for each in bars:
            width = _BARS * each.characters_per_token / most
            parts.append(_box(left, y, width, _BAR - 2, colours[each.vocabulary]))
            parts.append(_text(left + width + 6, y + 12, f"{each.characters_per_token:.2f}"))
            y += _BAR
        y += _GAP
    width_of_all = left + _BARS + 64
    frame = f"viewBox='-12 -8 {width_of_all} {height + 16}' width='{width_of_all}' height='{height + 16}'"
    style = "font-family='system-ui, sans-serif' font-size='13'"
    background = f"<rect x='-12' y='-8' width='{width_of_all}' height='{height + 16}' fill='#fff'/>"
    lines = "\n".join([background, *parts])
    return f"<svg xmlns='http://www.w3.org/2000/svg' role='img' {frame} {style}>\n{lines}\n</svg>\n"


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' fill='{colour}'/>"


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' {more}>{escape(text)}</text>"
