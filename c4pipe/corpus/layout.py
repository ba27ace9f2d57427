"""Which shard a page goes to: the corpus's folders, their shards, and numbers for both. No Beam."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

SHARD_BYTES = 128 * 1024 * 1024
"""Bytes of text, before deduplication, that a shard is planned for: a worker holds a shard in memory."""

TRAIN_PER_VALIDATION = 128
"""Train shards to one validation shard, as in the published C4 (1,024 and 8)."""

SPLITS = ("train", "validation")


class Shard(NamedTuple):
    """One shard of the corpus, as its files are named."""

    language: str
    split: str
    number: int
    of: int


@dataclass(frozen=True)
class Layout:
    """The shards of a corpus. Folders are numbered: two for each language, train and validation."""

    languages: tuple[str, ...]
    train_shards: tuple[int, ...]

    @classmethod
    def plan(cls, languages: Sequence[str], text_bytes: Mapping[str, int], shards: int | None) -> "Layout":
        """Returns the layout for so many bytes of text by language, or with `shards` train shards for each."""
        counts = (shards or max(1, -(-text_bytes.get(each, 0) // SHARD_BYTES)) for each in languages)
        return cls(tuple(languages), tuple(counts))

    @property
    def counts(self) -> list[int]:
        """How many shards each folder has."""
        return [n for train in self.train_shards for n in (train, -(-train // TRAIN_PER_VALIDATION))]

    def folder(self, language: str, validation: bool) -> int:
        """Returns the folder's number."""
        return self.languages.index(language) * 2 + validation

    def shards(self) -> list[Shard]:
        """Returns every shard; its place in the list is its number."""
        return [
            Shard(self.languages[folder // 2], SPLITS[folder % 2], number, of)
            for folder, of in enumerate(self.counts)
            for number in range(of)
        ]

    def shard_numbers(self, folders: npt.NDArray[Any], page_keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Returns the shard of each page: in its folder, `page_key * count >> 64`."""
        counts = np.array(self.counts, dtype=np.uint64)
        first = np.cumsum(counts) - counts
        count = counts[folders]
        low, half = page_keys & np.uint64(0xFFFFFFFF), np.uint64(32)
        # The upper 64 bits of a 96-bit product, without leaving 64 bits.
        index = ((page_keys >> half) * count + ((low * count) >> half)) >> half
        numbers: npt.NDArray[np.int64] = (first[folders] + index).astype(np.int64)
        return numbers
