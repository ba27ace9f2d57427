"""Parts of an epoch: what is left when processes stop, divided among any number of other ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from c4pipe.corpus.reader import Document, Documents
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.read.order import Order, after
from c4pipe.read.source import Source


class Part(NamedTuple):
    """Documents that one process reads in one epoch, from a position up to another one, which is not among them."""

    epoch: int
    shard_index: int
    num_shards: int
    first: int
    end: int

    @property
    def size(self) -> int:
        """The number of documents."""
        return self.end - self.first

    def between(self, start: int, stop: int) -> "Part":
        """Returns the documents from number `start` up to number `stop`."""
        return self._replace(first=self.first + start, end=self.first + stop)


def whole_part(order: Order, total: int) -> Part:
    """Returns all documents that a process reads in an epoch, of `total` documents that all processes read."""
    index, count = order.shard_index, order.num_shards
    return Part(order.epoch, index, count, 0, total * (index + 1) // count - total * index // count)


def cut(parts: Iterable[Part], start: int, stop: int | None = None) -> list[Part]:
    """Returns the documents of parts, one after the other, from number `start` up to number `stop`, or to the end."""
    found, before = [], 0
    for part in parts:
        low = max(start - before, 0)
        high = part.size if stop is None else min(stop - before, part.size)
        if low < high:
            found.append(part.between(low, high))
        before += part.size
    return found


def divided(parts: Sequence[Part], index: int, count: int) -> list[Part]:
    """Returns one of `count` shares of parts: together they are all parts, and their sizes differ by 1 at most."""
    total = sum(part.size for part in parts)
    return cut(parts, total * index // count, total * (index + 1) // count)


class PartReader:
    """An iterator over the documents of parts, one part after the other. It is the base of the readers.

    Attributes:
        source: the documents.
        order: which of them are read, and in which order.
        position: the number of documents that were returned so far.
    """

    def __init__(self, source: Source, order: Order) -> None:
        """Starts at the first document; no file is opened yet."""
        self.source = source
        self.order = order
        self.position = 0
        self._stream: Documents | None = None
        self._verified: set[int] = set()  # the files that need not be verified again

    def _at(self, position: int) -> Part | None:
        """Returns what is left of the part that has the document of a position; None where there is no such part."""
        raise NotImplementedError

    def __next__(self) -> Document:
        """Returns the next document. Raises C4pipeError where its file can't be read; a later call tries again."""
        while True:
            if self._stream is None:
                part = self._at(self.position)
                if part is None:
                    raise StopIteration
                self._stream = self._documents(part)
            try:
                document = next(self._stream)
            except StopIteration:
                self._stream = None  # the next part begins
                continue
            except C4pipeError:
                self._stream = None  # the generator has ended: the next call must read again, and not stop
                raise
            self.position += 1
            return document

    def _go_to(self, position: int) -> None:
        self.position = position
        self._stream = None

    def _documents(self, part: Part) -> Documents:
        """Yields the documents of a part."""
        order = replace(self.order, epoch=part.epoch, shard_index=part.shard_index, num_shards=part.num_shards)
        with closing(self._ordered(order, part.first)) as documents:
            yield from islice(documents, part.size)

    def _ordered(self, order: Order, position: int) -> Documents:
        """Yields the documents of an order from a position on."""
        if order.seed is None:
            yield from self._rows(order, position)
            return
        number, skipped = divmod(position, order.window)
        with closing(self._rows(order, position - skipped)) as rows:
            while window := list(islice(rows, order.window)):
                places = order.window_order(number, len(window))
                yield from (window[place] for place in places[skipped:])
                number, skipped = number + 1, 0

    def _rows(self, order: Order, position: int) -> Documents:
        """Yields the documents in the order before windows are shuffled, from a position on."""
        for file, first, end in after(order.spans(self.source.rows), position):
            verify = self.source.verify and file not in self._verified
            with closing(self.source.read(file, first, end, verify)) as rows:
                for row in rows:
                    self._verified.add(file)
                    yield row


def checked(state: Mapping[str, Any], ours: Mapping[str, Any], *progress: str) -> Any:
    """Checks a state that a user gives, and returns its progress.

    Args:
        state: the state.
        ours: the own state of what is restored.
        progress: the names whose values may differ.

    Returns:
        the values of `progress` in the state: a list, or the only value.

    Raises UsageError unless the state has all names of `ours`, and equal values where they may not differ.
    """
    for name, value in ours.items():
        if name not in state:
            raise UsageError(f"the state has no {name!r}: another kind of reader wrote it, or another c4pipe")
        if name not in progress and state[name] != value:
            raise UsageError(
                f"the state belongs to another order or other documents: its {name} is {state[name]!r}, and the "
                f"reader's is {value!r}; restore it in a reader of the same corpus with the same arguments"
            )
    values = [state[name] for name in progress]
    return values if len(values) > 1 else values[0]


def complete(states: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the states of all processes that read together, by their `shard_index`.

    Raises UsageError unless there is one state of each of these processes.
    """
    if not states:
        raise UsageError("there is no state: give one of each process that read before")
    for state in states:
        if "shard_index" not in state or "num_shards" not in state:
            raise UsageError("the state has no 'shard_index': another kind of reader wrote it, or another c4pipe")
    ordered = sorted(states, key=lambda state: int(state["shard_index"]))
    indices, counts = [state["shard_index"] for state in ordered], {state["num_shards"] for state in ordered}
    if counts != {len(states)} or indices != list(range(len(states))):
        raise UsageError(
            f"the states are those of shards {indices} of {sorted(counts)}: give one of each process, all of the same "
            "moment"
        )
    return ordered


def parts_from(values: Iterable[Sequence[int]]) -> list[Part]:
    """Returns parts, given their JSON values."""
    return [Part(*value) for value in values]


def epochs_of(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Yields the parts of each epoch, the earliest epoch first."""
    by_epoch: dict[int, list[Part]] = {}
    for part in parts:
        by_epoch.setdefault(part.epoch, []).append(part)
    yield from (by_epoch[epoch] for epoch in sorted(by_epoch))
