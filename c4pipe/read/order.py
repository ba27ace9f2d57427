"""The documents that a process reads, and their order. The order depends on numbers only, not on the files.

The files of a corpus are put in a random order; if there are few files, blocks of each file are, too. All rows, one
after the other, are divided into `num_shards` ranges of equal length, one for each process. Each range is divided into
windows, and the rows of a window are shuffled.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from c4pipe.errors import UsageError

WINDOW = 10_000
"""The number of documents that are shuffled together. They are held in memory: about 30 MB."""

BLOCKS = 8
"""The least number of blocks of rows that are put in a new order each epoch: files, or parts of files if a source has
fewer files. To read a block of a file that is compressed as a whole, the blocks before it are decompressed, too."""


class Span(NamedTuple):
    """Rows of one file, by its number: from row `first` up to row `end` (excluded)."""

    file: int
    first: int
    end: int


@dataclass(frozen=True)
class Order:
    """The order in which one process reads. Raises UsageError for impossible numbers.

    Attributes:
        seed: a number from which the order is drawn; None keeps the order of the corpus.
        epoch: the number of times that the corpus was read before.
        shard_index: the number of the process among those that read, from 0.
        num_shards: the number of processes that read.
        window: the number of documents that are shuffled together.
    """

    seed: int | None = None
    epoch: int = 0
    shard_index: int = 0
    num_shards: int = 1
    window: int = WINDOW

    def __post_init__(self) -> None:
        if not 0 <= self.shard_index < self.num_shards:
            raise UsageError(
                f"shard_index={self.shard_index}, num_shards={self.num_shards}: give 0 <= shard_index < num_shards"
            )
        if self.seed is not None and self.seed < 0:
            raise UsageError(f"seed={self.seed}: give 0 or more, or None for the order of the corpus")
        if self.epoch < 0:
            raise UsageError(f"epoch={self.epoch}: epochs count from 0")
        if self.window < 1:
            raise UsageError(f"window={self.window}: give 1 document or more")

    @property
    def place(self) -> tuple[int, int]:
        """The number of the process, and the number of processes."""
        return self.shard_index, self.num_shards

    def split(self, index: int, count: int) -> "Order":
        """Returns the order of one of `count` processes that together read what this order reads; `index` is from 0."""
        return replace(self, shard_index=self.shard_index * count + index, num_shards=self.num_shards * count)

    def spans(self, rows: Sequence[int]) -> list[Span]:
        """Returns the rows to read, before they are shuffled, given the number of rows of each file."""
        total = sum(rows)
        begin = total * self.shard_index // self.num_shards
        end = total * (self.shard_index + 1) // self.num_shards
        spans, rows_before = [], 0
        for file, first, stop in self._blocks(rows):
            low, high = max(begin - rows_before, 0), min(end - rows_before, stop - first)
            if low < high:
                spans.append(Span(file, first + low, first + high))
            rows_before += stop - first
        return spans

    def _blocks(self, rows: Sequence[int]) -> Iterator[Span]:
        """Yields all rows of all files, in the order of the epoch."""
        if self.seed is None:
            yield from (Span(file, 0, size) for file, size in enumerate(rows))
            return
        for file in permutation(len(rows), self.seed, self.epoch):
            count, size = -(-BLOCKS // len(rows)), rows[file]
            if count == 1 or not size:
                yield Span(file, 0, size)
                continue
            # blocks begin at other rows in each epoch, so a window has other rows
            offset, *keys = random_numbers(count + 2, self.seed, self.epoch, file).tolist()
            cuts = sorted({0, size, *((offset + size * number // count) % size for number in range(count))})
            blocks = [Span(file, first, end) for first, end in pairwise(cuts)]
            yield from (block for _, block in sorted(zip(keys, blocks, strict=False)))

    def window_order(self, number: int, size: int) -> Sequence[int]:
        """Returns the order of the `size` rows of a window, given the number of the window, from 0."""
        if self.seed is None:
            return range(size)
        return permutation(size, self.seed, self.epoch, self.shard_index, self.num_shards, number)


def after(spans: Sequence[Span], skipped: int) -> Iterator[Span]:
    """Yields the rest of spans without their first `skipped` rows."""
    for file, first, end in spans:
        if skipped < end - first:
            yield Span(file, first + skipped, end)
        skipped = max(0, skipped - (end - first))


def random_numbers(size: int, seed: int, *key: int) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """Returns `size` random numbers of 64 bits. With any version of NumPy, they depend on the seed and key only."""
    # NumPy promises that the stream of a bit generator never changes; the methods of Generator may change (NEP 19)
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=key)).random_raw(size)


def permutation(size: int, seed: int, *key: int) -> list[int]:
    """Returns the numbers from 0 to `size - 1` in a random order."""
    places: list[int] = np.argsort(random_numbers(size, seed, *key), kind="stable").tolist()
    return places
