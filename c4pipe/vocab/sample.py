"""The sample that a vocabulary is trained on: its size for each source, and its sentences.

From each source the sample takes the pages with the smallest keys. Keys are hashes, so whether a page is in the sample
does not depend on the files, the workers or the runner. Text is counted in bytes of UTF-8, with a newline after each
line.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.errors import DamagedFileError
from c4pipe.io.checked_json import decode_checked_json, encode_checked_json
from c4pipe.io.paths import StoragePath

BINS = 1 << 16
"""Ranges of page keys in which text is counted."""

SENTENCE_BYTES = 4192
"""The longest sentence that SentencePiece takes (its `max_sentence_length`); it ignores longer ones."""

_BIN_SHIFT = np.uint64(64 - 16)
_PART_BYTES = 16 * 1024 * 1024  # of text, which one worker holds and sorts

Counts = npt.NDArray[np.int64]
"""Bytes of text in each bin, of shape [BINS]."""


@dataclass(frozen=True)
class Portion:
    """The share of the sample that comes from one source.

    Attributes:
        label: the short name of the source.
        take: the bytes of its text in the sample.
        parts: (bins, bytes) for each part. A part is a file with the pages whose keys are in that number of bins.
    """

    label: str
    take: int
    parts: tuple[tuple[int, int], ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the portion as JSON values."""
        return {"label": self.label, "take": self.take, "parts": [list(part) for part in self.parts]}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Portion":
        """Returns a portion, given its JSON values."""
        return cls(values["label"], values["take"], tuple((bins, size) for bins, size in values["parts"]))


def part_name(source: int, part: int) -> str:
    """Returns the name of a part's file."""
    return f"part-{source:03}-{part:05}.txt"


def bins_of(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Returns the bin of each page key."""
    bins: npt.NDArray[np.int64] = (keys >> _BIN_SHIFT).astype(np.int64)
    return bins


def count(keys: npt.NDArray[np.uint64], sizes: Sequence[int]) -> Counts:
    """Returns the bytes of pages by bin, given the keys and the bytes of the pages."""
    # exact: sums stay far below 2^53
    counts: Counts = np.bincount(bins_of(keys), weights=np.array(sizes, np.float64), minlength=BINS).astype(np.int64)
    return counts


def encode_counts(counts: Counts) -> bytes:
    """Returns the counts of a file as JSON, with their digest."""
    bins = np.flatnonzero(counts)
    return encode_checked_json({"bins": bins.tolist(), "bytes": counts[bins].tolist()})


def decode_counts(data: bytes, name: object = "the counts") -> Counts:
    """Returns the counts, given their JSON. Raises DamagedFileError, with the file's name, where it was changed."""
    values = decode_checked_json(data, name)
    counts = np.zeros(BINS, np.int64)
    counts[values["bins"]] = values["bytes"]
    return counts


def total_bytes(available: Sequence[int], weights: Sequence[float], limit: int, repeat: bool) -> int:
    """Returns the bytes of the whole sample: `limit`, or less where there is too little text.

    Args:
        available: the bytes of text of each source.
        weights: the weight of each source.
        limit: the largest size of the sample, in bytes.
        repeat: whether the sample may contain text more than once. With repeats, the source with the most text for its
            weight limits the sample; without, the source with the least text for its weight.
    """
    allows = [size * sum(weights) / weight for size, weight in zip(available, weights, strict=True)]
    return int(min(limit, max(allows) if repeat else min(allows)))


def portion(label: str, counts: Counts, take: int) -> Portion:
    """Returns the portion of a source, given its text by bin and the bytes to take.

    A larger `take` repeats its text.
    """
    upto = np.cumsum(counts)
    last = int(np.searchsorted(upto, min(take, int(upto[-1]))))
    sizes = counts[: last + 1]
    starts = np.flatnonzero(np.diff(upto[: last + 1] // _PART_BYTES, prepend=-1))
    ends = [*starts[1:].tolist(), last + 1]
    parts = tuple((end - start, int(sizes[start:end].sum())) for start, end in zip(starts.tolist(), ends, strict=True))
    return Portion(label, take, parts)


def first_bins(portion: Portion) -> npt.NDArray[np.int64]:
    """Returns the first bin of each part, and the bin after the last part."""
    return np.cumsum([0, *(bins for bins, _ in portion.parts)])


def sentences(
    folder: StoragePath, source: int, portion: Portion, digests: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yields the sentences of a source for SentencePiece, from the files of its parts.

    A sentence is a line. A line that is too long is divided at spaces. The last line ends where the portion ends.

    Args:
        folder: the folder of the sample.
        source: the number of the source.
        portion: its portion.
        digests: the SHA-256 of each part, by name; None to compare nothing.

    Raises DamagedFileError where a part was changed.
    """
    left = portion.take
    while left > 0:
        for part, (_, size) in enumerate(portion.parts):
            for line in _lines(folder / part_name(source, part), digests) if size else ():
                yield from _pieces(line if len(line) <= left else line[: _cut(line, left)])
                left -= len(line) + 1
                if left <= 0:
                    return


def _lines(file: StoragePath, digests: Mapping[str, str] | None) -> list[bytes]:
    data = file.read_bytes()
    if digests is not None and hashlib.sha256(data).hexdigest() != digests.get(file.name):
        raise DamagedFileError(f"{file} is damaged: it was changed since it was written; run the same command again")
    return data.split(b"\n")[:-1]


def _pieces(line: bytes) -> Iterator[str]:
    while line:
        end = len(line) if len(line) <= SENTENCE_BYTES else _cut(line, SENTENCE_BYTES)
        if piece := line[:end].decode().strip():
            yield piece
        line = line[end:]


def _cut(line: bytes, size: int) -> int:
    """Returns the place to divide a line so that its start has `size` bytes at most: a space, or between characters."""
    space = line.rfind(b" ", 1, size + 1)
    if space > 0:
        return space
    while size < len(line) and size and line[size] & 0xC0 == 0x80:
        size -= 1
    return size
