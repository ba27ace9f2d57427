"""Rows of token ids of any length, held as two arrays, so that all rows of a batch are worked on at once."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
"""Numbers or places of tokens."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, one behind the other.

    Attributes:
        values: the ids of all rows, of shape [tokens].
        starts: where each row starts in them, and where the last one ends, of shape [rows + 1].
    """

    values: Tokens
    starts: Counts

    @classmethod
    def of(cls, rows: Sequence[npt.ArrayLike]) -> "Rows":
        """Returns the rows that are given one by one."""
        arrays = [np.asarray(row, np.int32) for row in rows]
        return cls(np.concatenate([np.zeros(0, np.int32), *arrays]), starts_of([len(array) for array in arrays]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[Tokens]:
        bounds: list[int] = self.starts.tolist()
        return (self.values[start:end] for start, end in itertools.pairwise(bounds))

    @cached_property
    def sizes(self) -> Counts:
        """The number of tokens of each row, of shape [rows]."""
        return np.diff(self.starts)

    @cached_property
    def row(self) -> Counts:
        """The row of each token, of shape [tokens]."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def place(self) -> Counts:
        """The place of each token in its row, of shape [tokens]."""
        return placed(self.sizes)

    def running(self, numbers: npt.ArrayLike) -> Counts:
        """Returns the sums of numbers, of shape [tokens], from the start of each row up to and with each token."""
        sums = np.concatenate([[0], np.cumsum(numbers, dtype=np.int64)])
        upto: Counts = sums[1:] - np.repeat(sums[self.starts[:-1]], self.sizes)
        return upto

    def keep(self, flags: Mask) -> "Rows":
        """Returns the rows with only the flagged tokens."""
        return Rows(self.values[flags], np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])[self.starts])

    def replaced(self, values: npt.NDArray[Any]) -> "Rows":
        """Returns rows of the same lengths with other values."""
        return Rows(values.astype(np.int32), self.starts)

    def cut(self, size: int) -> "Rows":
        """Returns the rows cut into consecutive pieces of that size, the last of each row shorter."""
        pieces = -(-self.sizes // size)
        firsts = np.repeat(self.starts[:-1] - size * starts_of(pieces)[:-1], pieces)
        return Rows(self.values, np.append(firsts + size * np.arange(len(firsts)), self.starts[-1]))


Features = Mapping[str, Rows]
"""Examples: a row for each, in rows of every name."""


def starts_of(sizes: npt.ArrayLike) -> Counts:
    """Returns where rows of these sizes start, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def placed(sizes: Counts) -> Counts:
    """Returns the place of each token in its row, for rows of these sizes."""
    return np.arange(sizes.sum()) - np.repeat(starts_of(sizes)[:-1], sizes)


def framed(rows: Rows, before: Sequence[int], after: Sequence[int]) -> Rows:
    """Returns the rows with the same ids put before and after each."""
    starts = rows.starts + (len(before) + len(after)) * np.arange(len(rows) + 1)
    values = np.empty(starts[-1], np.int32)
    values[np.arange(len(rows.values)) + np.repeat(starts[:-1] - rows.starts[:-1] + len(before), rows.sizes)] = (
        rows.values
    )
    for number, token in enumerate(before):
        values[starts[:-1] + number] = token
    for number, token in enumerate(reversed(after), 1):
        values[starts[1:] - number] = token
    return Rows(values, starts)
