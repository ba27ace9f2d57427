"""Rows of token ids of different lengths, held in two arrays, so that NumPy handles all rows of a batch together."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
"""Numbers or positions of tokens."""

Mask = npt.NDArray[np.bool_]
"""True for some tokens, of shape [tokens]."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, one after the other.

    Attributes:
        values: the ids of all rows, of shape [tokens].
        starts: the index in `values` at which each row starts, and at which the last row ends, of shape [rows + 1].
    """

    values: Tokens
    starts: Counts

    @classmethod
    def of(cls, rows: Sequence[npt.ArrayLike]) -> "Rows":
        """Returns rows, given the ids of each row."""
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
        """The number of the row of each token, of shape [tokens]."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def place(self) -> Counts:
        """The position of each token in its row, from 0, of shape [tokens]."""
        return placed(self.sizes)

    def running(self, numbers: npt.ArrayLike) -> Counts:
        """Returns running sums, of shape [tokens], from the start of each row to each token, which is included."""
        sums = np.concatenate([[0], np.cumsum(numbers, dtype=np.int64)])
        upto: Counts = sums[1:] - np.repeat(sums[self.starts[:-1]], self.sizes)
        return upto

    def keep(self, mask: Mask) -> "Rows":
        """Returns the rows with only the tokens whose mask is True."""
        return Rows(self.values[mask], np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])[self.starts])

    def replaced(self, values: npt.NDArray[Any]) -> "Rows":
        """Returns rows of the same lengths with other values."""
        return Rows(values.astype(np.int32), self.starts)

    def cut(self, size: int) -> "Rows":
        """Returns the rows divided into consecutive pieces of `size` tokens; the last piece of a row can be shorter."""
        pieces = -(-self.sizes // size)
        firsts = np.repeat(self.starts[:-1] - size * starts_of(pieces)[:-1], pieces)
        return Rows(self.values, np.append(firsts + size * np.arange(len(firsts)), self.starts[-1]))


Features = Mapping[str, Rows]
"""Features of examples by name: row n of each belongs to example n."""


def starts_of(sizes: npt.ArrayLike) -> Counts:
    """Returns the index at which each row of these sizes starts, and at which the last row ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def placed(sizes: Counts) -> Counts:
    """Returns the position of each token in its row, for rows of these sizes."""
    return np.arange(sizes.sum()) - np.repeat(starts_of(sizes)[:-1], sizes)


def framed(rows: Rows, before: Sequence[int], after: Sequence[int]) -> Rows:
    """Returns the rows with the ids `before` at the start of each row and the ids `after` at its end."""
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
