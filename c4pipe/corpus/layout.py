"""The shard of each page: the folders of a corpus, their shards, and the numbers of both.

Here a folder means the shards of one language and split. Folders and shards are numbered from 0.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from c4pipe.corpus.formats.table import EXTENSIONS
from c4pipe.errors import UsageError
from c4pipe.text.languages import LANGUAGE

SHARD_BYTES = 128 * 1024 * 1024
"""Bytes of text before deduplication for which one shard is planned. A worker holds a whole shard in memory."""

MAX_SHARD_BYTES = 8 * SHARD_BYTES
"""Bytes of text that a shard may have at most, on average."""

FOLDER_FILES = 10_000
"""The most files in a folder of Hugging Face's Hub (https://huggingface.co/docs/hub/storage-limits)."""

_PLANNED_FILES = 8_900  # train shards in a folder, at most: with the validation shards, 8,970 files

TRAIN_PER_VALIDATION = 128
"""Train shards for each validation shard, as in the published C4 (1,024 and 8)."""

SPLITS = ("train", "validation")

MAX_SHARDS = 100_000
"""The most train shards of a language: a shard's number has five digits."""


class ShardId(NamedTuple):
    """The identity of a shard of a corpus, which is the same in each format.

    Attributes:
        language: the code of its language, which is also the name of its folder.
        split: `train` or `validation`.
        shard_index: its number among the shards of that language and split, from 0.
        num_shards: the number of these shards.
        part: the part of the corpus, from 1 (see `manifest.CorpusPart`).
    """

    language: str
    split: str
    shard_index: int
    num_shards: int
    part: int = 1


@dataclass(frozen=True)
class Layout:
    """The shards of a corpus. Each language has two folders: train and validation.

    Raises UsageError for a language that can't be the name of a folder: foreign pages and files can contain any text.
    """

    languages: tuple[str, ...]
    train_shards: tuple[int, ...]

    def __post_init__(self) -> None:
        for language in self.languages:
            if not re.fullmatch(LANGUAGE, language):
                raise UsageError(
                    f"{language[:60]!a} can't be the folder of a language: give codes of at most 32 letters, "
                    "digits, - and _, such as en or zh-Latn"
                )

    @classmethod
    def plan(
        cls, languages: Sequence[str], text_bytes: Mapping[str, int], shards: int | None, formats: int = 1
    ) -> "Layout":
        """Plans the shards of a corpus.

        Args:
            languages: the codes of the languages.
            text_bytes: the UTF-8 bytes of text of each language, before deduplication.
            shards: the number of train shards of each language; None plans it from `text_bytes`: for SHARD_BYTES each,
                or for up to MAX_SHARD_BYTES if a folder would have more files than the Hub takes.
            formats: in how many formats each shard is written.
        """
        sizes = [text_bytes.get(each, 0) for each in languages]
        most = [max(_PLANNED_FILES // formats, -(-size // MAX_SHARD_BYTES)) for size in sizes]
        planned = (min(max(1, -(-size // SHARD_BYTES)), limit) for size, limit in zip(sizes, most, strict=True))
        return cls(tuple(languages), tuple(shards or each for each in planned))

    @property
    def counts(self) -> list[int]:
        """The number of shards of each folder."""
        return [n for train in self.train_shards for n in (train, -(-train // TRAIN_PER_VALIDATION))]

    def folder(self, language: str, validation: bool) -> int:
        """Returns the number of the folder of a language and split."""
        return self.languages.index(language) * 2 + validation

    def shards(self, part: int = 1) -> list[ShardId]:
        """Returns every shard of a part. The index of a shard in this list is its number."""
        return [
            ShardId(self.languages[folder // 2], SPLITS[folder % 2], index, count, part)
            for folder, count in enumerate(self.counts)
            for index in range(count)
        ]

    def shard_numbers(self, folders: npt.NDArray[Any], page_keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Returns the number of each page's shard: in its folder, the index is `page_key * count >> 64`.

        Args:
            folders: the number of each page's folder, of shape [pages].
            page_keys: the key of each page, of shape [pages].
        """
        counts = np.array(self.counts, dtype=np.uint64)
        first = np.cumsum(counts) - counts
        count = counts[folders]
        low, half = page_keys & np.uint64(0xFFFFFFFF), np.uint64(32)
        # the upper 64 bits of a 96-bit product, in 64-bit arithmetic
        index = ((page_keys >> half) * count + ((low * count) >> half)) >> half
        numbers: npt.NDArray[np.int64] = (first[folders] + index).astype(np.int64)
        return numbers


def shard_name(shard: ShardId, extension: str) -> str:
    """Returns the path of a shard in its corpus: en/c4-train-00000-of-00016.parquet; of a part that was added,
    en/c4-train-part002-00000-of-00004.parquet.
    """
    part = f"part{shard.part:03}-" if shard.part > 1 else ""
    return f"{shard.language}/c4-{shard.split}-{part}{shard.shard_index:05d}-of-{shard.num_shards:05d}.{extension}"


def shard_files(layout: Layout, formats: Sequence[str], part: int = 1) -> list[str]:
    """Returns the paths of all shards of a part in their corpus."""
    return [shard_name(shard, EXTENSIONS[name]) for shard in layout.shards(part) for name in formats]
