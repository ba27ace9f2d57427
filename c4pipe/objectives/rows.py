"""Rows of token ids of different lengths, held in two arrays, so that NumPy handles all rows of a batch together.

The random numbers of rows depend only on the seed, the stream, the number of the example, and their purpose. So an
example does not depend on the examples before it in a batch. The generator is Philox, which is counter-based: its key
is (seed of the stream, number of the example), and the last word of its counter is the purpose.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.errors import UsageError

TokenIds = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
"""Numbers or positions of tokens."""

TokenMask = npt.NDArray[np.bool_]
"""True for some tokens, of shape [tokens]."""

Raw = npt.NDArray[np.uint64]

MOST_TOKENS = 1 << 16
"""The largest number of tokens of a row that can be put into a random order: a position has 16 bits of a sort key."""

_MOST_ROWS = 1 << 20  # the number of a row has 20 bits


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Rows, one after the other.

    Attributes:
        values: the ids of all rows, of shape [tokens].
        starts: the index in `values` at which each row starts, and at which the last row ends, of shape [rows + 1].
    """

    values: TokenIds
    starts: Counts

    @classmethod
    def of(cls, rows: Sequence[npt.ArrayLike]) -> "TokenRows":
        """Returns rows, given the ids of each row."""
        arrays = [np.asarray(row, np.int32) for row in rows]
        return cls(np.concatenate([np.zeros(0, np.int32), *arrays]), starts_of([len(array) for array in arrays]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[TokenIds]:
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
        return token_places(self.sizes)

    def running(self, numbers: npt.ArrayLike) -> Counts:
        """Returns running sums, of shape [tokens], from the start of each row to each token, which is included."""
        sums = np.concatenate([[0], np.cumsum(numbers, dtype=np.int64)])
        upto: Counts = sums[1:] - np.repeat(sums[self.starts[:-1]], self.sizes)
        return upto

    def keep(self, mask: TokenMask) -> "TokenRows":
        """Returns the rows with only the tokens whose mask is True."""
        return TokenRows(self.values[mask], np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])[self.starts])

    def replaced(self, values: npt.NDArray[Any]) -> "TokenRows":
        """Returns rows of the same lengths with other values."""
        return TokenRows(values.astype(np.int32), self.starts)

    def cut(self, size: int) -> "TokenRows":
        """Returns the rows divided into consecutive pieces of `size` tokens; the last piece of a row can be shorter."""
        pieces = -(-self.sizes // size)
        firsts = np.repeat(self.starts[:-1] - size * starts_of(pieces)[:-1], pieces)
        return TokenRows(self.values, np.append(firsts + size * np.arange(len(firsts)), self.starts[-1]))


Features = Mapping[str, TokenRows]
"""Features of examples by name: row n of each belongs to example n."""


def starts_of(sizes: npt.ArrayLike) -> Counts:
    """Returns the index at which each row of these sizes starts, and at which the last row ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def token_places(sizes: Counts) -> Counts:
    """Returns the position of each token in its row, for rows of these sizes."""
    return np.arange(sizes.sum()) - np.repeat(starts_of(sizes)[:-1], sizes)


def framed(rows: TokenRows, before: Sequence[int], after: Sequence[int]) -> TokenRows:
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
    return TokenRows(values, starts)


@dataclass(frozen=True)
class Rng:
    """The random numbers of consecutive examples.

    Attributes:
        seed: a number from 0 to 2^64 - 1; UsageError for another one.
        first: the number of the first example, from 0.
        stream: whole numbers that tell streams of examples apart, such as the epoch and the process; each stream has
            other random numbers. None of them: the seed alone decides.
    """

    seed: int
    first: int = 0
    stream: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 64:
            raise UsageError(f"the seed is {self.seed}: give one from 0 to 2^64 - 1")

    @cached_property
    def key(self) -> int:
        """The seed of the stream, from 0 to 2^64 - 1."""
        if not self.stream:
            return self.seed
        return int(np.random.SeedSequence(self.seed, spawn_key=self.stream).generate_state(1, np.uint64)[0])

    def numbered(self, start: int, count: int, purpose: int) -> Raw:
        """Returns 64 random bits for each number from `start` on, of shape [count]; no example matters."""
        before = start % 4  # a step of the counter has four numbers
        key = np.array([self.key, 0], np.uint64)
        philox = np.random.Philox(key=key, counter=[start // 4, 0, 0, purpose])
        numbers: Raw = philox.random_raw(before + count)[before:]
        return numbers

    def numbered_shares(self, count: int, purpose: int) -> npt.NDArray[np.float64]:
        """Returns a random number in [0, 1) for each example from the first on, of shape [count].

        No size of an example matters, so that it can be drawn before the examples are made.
        """
        return shares_of(self.numbered(self.first, count, purpose))

    def raw(self, sizes: Counts, purpose: int) -> Raw:
        """Returns 64 random bits for each token, of shape [tokens], for rows of these sizes."""
        philox = np.random.Philox(key=np.array([self.key, self.first], np.uint64), counter=[0, 0, 0, purpose])
        state = philox.state
        bounds = starts_of(sizes).tolist()
        numbers = np.empty(bounds[-1], np.uint64)
        for start, end in itertools.pairwise(bounds):
            philox.state = state  # six times as fast as a new generator
            numbers[start:end] = philox.random_raw(end - start)
            state["state"]["key"][1] += np.uint64(1)
        return numbers

    def shares(self, sizes: Counts, purpose: int) -> npt.NDArray[np.float64]:
        """Returns a random number in [0, 1) for each token, of shape [tokens], for rows of these sizes."""
        return shares_of(self.raw(sizes, purpose))


def shares_of(numbers: Raw) -> npt.NDArray[np.float64]:
    """Returns a number in [0, 1) for each number of 64 bits."""
    shares: npt.NDArray[np.float64] = (numbers >> np.uint64(11)) * 2.0**-53
    return shares


def shuffled(sizes: Counts, keys: Raw) -> Counts:
    """Returns the positions of all tokens, with the tokens of each row sorted by their keys.

    Args:
        sizes: the number of tokens of each row.
        keys: a key for each token, of shape [tokens]. Only the upper 28 bits are compared; the sort is stable.

    Raises UsageError for more or longer rows than a sort key has bits for.
    """
    if len(sizes) > _MOST_ROWS or sizes.max(initial=0) > MOST_TOKENS:
        raise UsageError(
            f"{len(sizes):,} rows of up to {sizes.max(initial=0):,} tokens: give at most {_MOST_ROWS:,} rows "
            f"of at most {MOST_TOKENS:,} tokens"
        )
    row = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    packed = row << np.uint64(44) | keys >> np.uint64(36) << np.uint64(16) | token_places(sizes).astype(np.uint64)
    packed.sort()
    places: Counts = (packed & np.uint64(MOST_TOKENS - 1)).astype(np.int64)
    return np.repeat(starts_of(sizes)[:-1], sizes) + places


def smallest_keys_mask(sizes: Counts, keys: Raw, count: Counts) -> TokenMask:
    """Returns a mask of the tokens with the `count` smallest keys of each row: all choices are equally likely."""
    mask = np.zeros(len(keys), bool)
    mask[shuffled(sizes, keys)] = token_places(sizes) < np.repeat(count, sizes)
    return mask
