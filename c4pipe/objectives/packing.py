"""Examples of any origin to batches: a buffer shuffles them, bins hold several, and a bin becomes a row of a batch.

An example goes into the open bin where it leaves the least room (best fit). The number of open bins is limited: if no
bin has room, the fullest one is closed. The limit grows slowly: otherwise, short examples would wait in 64 bins, and
the first batches would have only examples of long documents, which fill a row. The bins depend only on the order of the
examples, and not on the calls by which they come.
"""

import base64
import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.errors import UsageError
from c4pipe.io.json_files import check_of
from c4pipe.objectives.rows import Features, Rng, TokenIds, starts_of, token_places
from c4pipe.read.state import UNCHANGED, Field, Stateful

SHUFFLE = 1000
"""The number of examples that wait in the buffer, as in seqio (`SHUFFLE_BUFFER_SIZE` in seqio/dataset_providers.py)."""

OPEN_BINS = 64

_FIRST_BINS, _GROWTH = 4, 8  # the bins that may be open at first, and the closed bins after which it is one more
_SLOT = 64  # a purpose of random numbers
_SMALLEST = (("B", 0, 0xFF), ("H", 0, 0xFFFF), ("i", -(1 << 31), (1 << 31) - 1))
"""The types of `struct` for whole numbers, with their smallest and largest number."""

Bin = list["ExampleTokens"]

Batch = dict[str, npt.NDArray[np.int32]]
"""Arrays of shape [rows, length] by name."""


class ExampleTokens(dict[str, TokenIds]):
    """The features of one example by name, each of shape [tokens]. It never changes."""

    @cached_property
    def stored(self) -> dict[str, str]:
        """The features as text: the letter of the smallest type for all numbers, and the numbers in Base64.

        The letter is `B`, `H` or `i`, as in Python's `struct`: 8 and 16 bits without a sign, and 32 bits;
        little-endian.
        """
        return {name: _encoded(values) for name, values in self.items()}


def examples_of(features: Features) -> list[ExampleTokens]:
    """Returns the examples, each with its own arrays: views would keep all examples of a call in memory."""
    names = list(features)
    return [
        ExampleTokens(zip(names, (row.copy() for row in rows), strict=True))
        for rows in zip(*features.values(), strict=True)
    ]


def examples_to_json(examples: Iterable[ExampleTokens]) -> list[dict[str, str]]:
    """Returns examples as JSON values."""
    return [example.stored for example in examples]


def examples_from_json(values: Sequence[Any], lengths: Mapping[str, int]) -> list[ExampleTokens]:
    """Returns examples, given their JSON values.

    Raises UsageError for other values, and if all together have more tokens of a feature than `lengths` says.
    """
    try:
        items = check_of(list[dict[str, Any]])(values, "it")
        examples = [ExampleTokens((name, _decoded(text)) for name, text in each.items()) for each in items]
        first = next(iter(lengths))
        sizes = [{name: len(tokens) for name, tokens in each.items()} for each in examples]
        if (
            any(each.keys() != sizes[0].keys() for each in sizes)
            or any(size != each[first] for each in sizes for name, size in each.items() if name not in lengths)
            or any(sum(each[name] for each in sizes) > length for name, length in lengths.items())
        ):
            raise ValueError
    except (AttributeError, LookupError, TypeError, ValueError):
        raise UsageError(f"the state has examples that are none, or too long: {UNCHANGED}") from None
    return examples


def load_examples(owner: Any, values: Sequence[Any]) -> list[ExampleTokens]:
    """Returns examples for an object with `lengths`, given their JSON values. Raises UsageError."""
    return [example for each in values for example in examples_from_json([each], owner.lengths)]


def load_bins(owner: Any, values: Sequence[Any]) -> list[Bin]:
    """Returns bins for an object with `lengths`, given their JSON values. Raises UsageError."""
    return [examples_from_json(bin, owner.lengths) for bin in values]


def bins_to_json(bins: Iterable[Bin]) -> list[list[dict[str, str]]]:
    """Returns bins as JSON values."""
    return list(map(examples_to_json, bins))


def _encoded(values: TokenIds) -> str:
    least, most = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    kind = next(kind for kind, smallest, largest in _SMALLEST if smallest <= least and most <= largest)
    return kind + base64.b64encode(values.astype(f"<{kind}").tobytes()).decode()


def _decoded(text: str) -> TokenIds:
    kind = {kind: f"<{kind}" for kind, *_ in _SMALLEST}[text[0]]
    values: TokenIds = np.frombuffer(base64.b64decode(text[1:], validate=True), kind).astype(np.int32)
    return values


class Packer(Stateful):
    """Puts examples into bins. `lengths` is the number of tokens of each feature that a bin has room for."""

    _fields = (Field("bins", "bins", load=load_bins, dump=bins_to_json), Field("closed", "_closed"))

    def __init__(self, lengths: Mapping[str, int], open_bins: int = OPEN_BINS) -> None:
        """Starts with empty bins, given the largest number of open bins."""
        self.lengths = dict(lengths)
        self._room = np.array(list(lengths.values()), np.int64)
        self._weights = self._room.prod() // self._room  # the tokens of a feature count by their share of a bin
        self._closed = 0  # the number of bins that were closed
        self.bins: list[Bin] = [[] for _ in range(open_bins)]
        self._free = np.repeat(self._room[:, None], open_bins, axis=1)  # of shape [features, bins]

    def add(self, examples: Iterable[ExampleTokens]) -> list[Bin]:
        """Adds examples, and returns the bins that are now complete. Raises UsageError for too long an example."""
        closed: list[Bin] = []
        for example in examples:
            need = np.array([len(example[name]) for name in self.lengths])
            if (need > self._room).any():
                sizes = dict(zip(self.lengths, need.tolist(), strict=True))
                raise UsageError(
                    f"an example has {sizes} tokens, and a bin has room for {self.lengths}: use shorter pieces of text"
                )
            closed += self._put(example, need)
        return closed

    def _put(self, example: ExampleTokens, need: npt.NDArray[np.int64]) -> list[Bin]:
        if (need == self._room).any():
            self._closed += 1
            return [[example]]
        closed = []
        free = self._free[:, : _FIRST_BINS + self._closed // _GROWTH]
        left = free - need[:, None]
        room = np.flatnonzero(left.min(0) >= 0)
        if len(room):
            slot = int(room[(self._weights @ left[:, room]).argmin()])
        else:
            slot = int((self._weights @ free).argmin())
            closed.append(self._close(slot))
        self.bins[slot].append(example)
        self._free[:, slot] -= need
        if not self._free[:, slot].all():
            closed.append(self._close(slot))
        return closed

    def _close(self, slot: int) -> Bin:
        closed, self.bins[slot] = self.bins[slot], []
        self._free[:, slot] = self._room
        self._closed += 1
        return closed

    def flush(self) -> list[Bin]:
        """Returns the open bins that have examples, and starts again with empty bins."""
        return [self._close(slot) for slot, each in enumerate(self.bins) if each]

    def _continue(self, values: Mapping[str, Any]) -> None:
        if len(values["bins"]) != len(self.bins):
            raise UsageError(f"the state has {len(values['bins'])} open rows instead of {len(self.bins)}: {UNCHANGED}")
        super()._continue(values)
        used = [[sum(len(each[name]) for each in bin) for bin in self.bins] for name in self.lengths]
        self._free = self._room[:, None] - np.array(used, np.int64)


def batch_of(bins: Sequence[Bin], lengths: Mapping[str, int], size: int) -> Batch:
    """Returns bins as arrays of shape [size, length]. Padding is 0, also in rows without examples.

    Args:
        bins: at least one bin, at most `size` bins.
        lengths: the length of each feature. Other features of the examples have the length of the first feature.
        size: the number of rows of the arrays.

    Returns:
        the features by their names. For each feature of `lengths` also `<name>_segment_ids`, the number of a token's
        example in its row, from 1, and `<name>_positions`, the position of a token in its example, from 0. In one row,
        segments with the same number belong to the same example.
    """
    examples = list(itertools.chain.from_iterable(bins))
    counts = np.array([len(bin) for bin in bins])
    number = 1 + token_places(counts)
    places, batch = {}, Batch()
    for name, length in lengths.items():
        sizes = np.array([len(example[name]) for example in examples])
        row = np.repeat(np.arange(len(bins)), counts)
        ends = np.cumsum(sizes)
        before = np.repeat(starts_of(sizes)[starts_of(counts)[:-1]], counts)  # tokens of the earlier bins
        starts = row * length + ends - sizes - before
        position = token_places(sizes)
        places[name] = np.repeat(starts, sizes) + position
        batch[f"{name}_segment_ids"] = _spread(np.repeat(number, sizes), places[name], size, length)
        batch[f"{name}_positions"] = _spread(position, places[name], size, length)
    first = next(iter(lengths))
    for name in examples[0]:
        stream = name if name in lengths else first
        values = np.concatenate([example[name] for example in examples])
        batch[name] = _spread(values, places[stream], size, lengths[stream])
    return batch


def _spread(values: npt.NDArray[Any], places: npt.NDArray[np.int64], size: int, length: int) -> npt.NDArray[np.int32]:
    spread = np.zeros(size * length, np.int32)
    spread[places] = values
    return spread.reshape(size, length)


class Assembler(Stateful):
    """Makes batches of examples.

    A buffer holds a number of examples. When a new example comes, a random example leaves and is packed. After the last
    example, the examples in the buffer leave in random order. Each example is in one batch.
    """

    _fields = (
        Field("buffer", "_buffer", load=load_examples, dump=examples_to_json),
        Field("draws", "_draws"),
        Field("open", "_packer"),
        Field("ready", "_ready", load=load_bins, dump=bins_to_json),
        Field("ended", "ended"),
    )

    def __init__(self, lengths: Mapping[str, int], size: int, shuffle: int, rng: Rng) -> None:
        """Starts without examples.

        Args:
            lengths: the number of tokens of each feature of a row.
            size: the number of rows of a batch.
            shuffle: the number of examples that the buffer holds; 0 keeps their order.
            rng: random numbers; the stream has the number of this process, and the number of processes.

        Raises UsageError for a size below 1 or a buffer below 0.
        """
        if size < 1:
            raise UsageError(f"a batch of {size} rows: give at least 1 row")
        if shuffle < 0:
            raise UsageError(f"shuffle={shuffle}: give the number of examples that are shuffled together, 0 for none")
        self.lengths, self._size, self._shuffle, self._rng = dict(lengths), size, shuffle, rng
        self._packer = Packer(lengths)
        self._buffer: list[ExampleTokens] = []
        self._draws = 0  # the number of examples that left the buffer
        self._ready: list[Bin] = []
        self.ended = False

    @property
    def complete(self) -> bool:
        """Whether `take` returns a batch without empty rows, or no more examples come."""
        return self.ended or len(self._ready) >= self._size

    def add(self, examples: Features) -> None:
        """Adds examples. Raises UsageError for an example that is longer than a row."""
        self._ready += self._packer.add(self._shuffle_in(examples_of(examples)))

    def end(self) -> None:
        """Packs the examples in the buffer, because no more examples come."""
        self._ready += self._packer.add(map(self._pop, self._draw(len(self._buffer)))) + self._packer.flush()
        self.ended = True

    def take(self) -> Batch | None:
        """Returns the next batch, as `batch_of`; None if no example is left."""
        if not self._ready:
            return None
        bins, self._ready = self._ready[: self._size], self._ready[self._size :]
        return batch_of(bins, self.lengths, self._size)

    def _shuffle_in(self, examples: Sequence[ExampleTokens]) -> list[ExampleTokens]:
        """Puts examples into the buffer, and returns the examples that leave it."""
        leave: list[ExampleTokens] = []
        numbers = iter(self._draw(max(0, len(self._buffer) + len(examples) - self._shuffle)))
        for example in examples:
            self._buffer.append(example)
            while len(self._buffer) > self._shuffle:
                leave.append(self._pop(next(numbers)))
        return leave

    def _draw(self, count: int) -> list[int]:
        numbers: list[int] = self._rng.numbered(self._draws, count, _SLOT).tolist()
        self._draws += count
        return numbers

    def _pop(self, number: int) -> ExampleTokens:
        """Removes the example that a random number of 64 bits chooses; the last example takes its place."""
        slot = number * len(self._buffer) >> 64
        example, self._buffer[slot] = self._buffer[slot], self._buffer[-1]
        self._buffer.pop()
        return example

    def _continue(self, values: Mapping[str, Any]) -> None:
        super()._continue(values)
        if not all(self._ready):
            raise UsageError(f"the state has a complete row without an example: {UNCHANGED}")

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Continues with this process's share of the waiting examples, given the states of all earlier processes."""
        _, index, count = self._rng.stream
        before = [Assembler(self.lengths, self._size, self._shuffle, self._rng) for _ in states]
        for each, state in zip(before, states, strict=True):
            each.restore(state)
        bins = [bin for each in before for bin in (each._buffer, *each._packer.bins, *each._ready)]
        self._packer = Packer(self.lengths)
        self._buffer = list(itertools.chain(*bins))[index::count]
        self._draws = max(each._draws for each in before)  # so no random number comes twice
        self._ready, self.ended = [], False
