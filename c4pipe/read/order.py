"""Which documents a part reads, and in which order: functions of numbers alone.

Shards are put in an order. The rows of all of them, one after the other, are cut into parts of equal length, and a
part's rows into windows, whose rows are shuffled among themselves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.read import WINDOW


class Span(NamedTuple):
    """Rows of one shard, by its number: from `first` on, before `end`."""

    shard: int
    first: int
    end: int


@dataclass(frozen=True)
class Order:
    """An order, and a part of it; `read.documents` tells what the numbers mean. UsageError for impossible ones."""

    seed: int | None = None
    epoch: int = 0
    part: int = 0
    parts: int = 1
    window: int = WINDOW

    def __post_init__(self) -> None:
        if not 0 <= self.part < self.parts:
            raise UsageError(f"part={self.part}, parts={self.parts}: parts count from 0, so give 0 <= part < parts")
        if self.seed is not None and self.seed < 0:
            raise UsageError(f"seed={self.seed}: give 0 or more, or None for the order of the corpus")
        if self.epoch < 0:
            raise UsageError(f"epoch={self.epoch}: epochs count from 0")
        if self.window < 1:
            raise UsageError(f"window={self.window}: give 1 document or more")

    def split(self, number: int, count: int) -> "Order":
        """Returns one of `count` parts of this part, by its number; together they have its documents."""
        return replace(self, part=self.part * count + number, parts=self.parts * count)

    def spans(self, rows: Sequence[int]) -> list[Span]:
        """Returns what this part reads, in order, of shards with so many rows each."""
        total = sum(rows)
        begin, end = total * self.part // self.parts, total * (self.part + 1) // self.parts
        shards = range(len(rows)) if self.seed is None else permutation(len(rows), self.seed, self.epoch)
        spans, at = [], 0  # the number of a shard's first row among all rows
        for shard in shards:
            first, stop = max(begin - at, 0), min(end - at, rows[shard])
            if first < stop:
                spans.append(Span(shard, first, stop))
            at += rows[shard]
        return spans

    def turns(self, number: int, size: int) -> Sequence[int]:
        """Returns the order of the `size` rows of this part's window of that number."""
        if self.seed is None:
            return range(size)
        return permutation(size, self.seed, self.epoch, self.part, self.parts, number)


def after(spans: Sequence[Span], skipped: int) -> Iterator[Span]:
    """Yields what is left of spans without their first rows."""
    for shard, first, end in spans:
        if skipped < end - first:
            yield Span(shard, first + skipped, end)
        skipped = max(0, skipped - (end - first))


def random_numbers(size: int, seed: int, *key: int) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """Returns random numbers of 64 bits, the same for a seed and key from any version of NumPy."""
    # of NumPy, bit generators alone have a stream that never changes; those of Generator's methods may (NEP 19)
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=key)).random_raw(size)


def permutation(size: int, seed: int, *key: int) -> list[int]:
    """Returns the numbers below `size` in a random order."""
    places: list[int] = np.argsort(random_numbers(size, seed, *key), kind="stable").tolist()
    return places
