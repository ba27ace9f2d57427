"""An iterator over documents that knows where it is, and can go on from there."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from typing import Any

from c4pipe.corpus.shard_reader import Document, Documents, read
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.read.order import Order, after
from c4pipe.read.source import Source


class Reader:
    """Iterates over a part of a source's documents, once. `read.documents` makes one.

    Attributes:
        source: what is read.
        order: which part of it, and in which order.
        position: the documents given so far.
    """

    def __init__(self, source: Source, order: Order) -> None:
        self.source = source
        self.order = order
        self.position = 0
        self._spans = order.spans(source.rows)
        self._size = sum(end - first for _, first, end in self._spans)
        self._stream: Documents | None = None

    def __len__(self) -> int:
        """The documents of this part, also those that were given."""
        return self._size

    def __iter__(self) -> "Reader":
        return self

    def __next__(self) -> Document:
        if self._stream is None:
            self._stream = self._documents(self.position)
        try:
            document = next(self._stream)
        except C4pipeError:
            self._stream = None  # so that who tries again reads on, and is not told that this was the end
            raise
        self.position += 1
        return document

    def skip(self, count: int) -> None:
        """Passes over documents, at the cost of a window at most. Raises UsageError where there are fewer."""
        if not 0 <= count <= self._size - self.position:
            raise UsageError(f"{count:,} documents can't be skipped: {self._size - self.position:,} are left")
        self.position += count
        self._stream = None

    def state(self) -> dict[str, Any]:
        """Returns what `restore` needs, as JSON values: the number of documents given, of what, and in which order."""
        return {"source": self.source.identity, **asdict(self.order), "documents": self.position}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes to where another reader was when it gave this state. Raises UsageError for a state of anything else."""
        position = checked(state, self.state(), "documents")
        self.position = 0
        self.skip(position)

    def _documents(self, position: int) -> Documents:
        """Yields this part's documents from that position on."""
        if self.order.seed is None:
            yield from self._rows(position)
            return
        number, given = divmod(position, self.order.window)
        with closing(self._rows(position - given)) as rows:
            while window := list(islice(rows, self.order.window)):
                turns = self.order.turns(number, len(window))
                yield from (window[place] for place in turns[given:])
                number, given = number + 1, 0

    def _rows(self, position: int) -> Documents:
        """Yields this part's documents before their shuffling, from that position on."""
        for shard, first, end in after(self._spans, position):
            with closing(read(self.source.shards[shard], first, end, self.source.verify)) as rows:
                yield from rows


def checked(state: Mapping[str, Any], ours: Mapping[str, Any], *progress: str) -> Any:
    """Returns a state's progress: the values of these names, or of the only one.

    Raises UsageError unless it has all the names that our own state has, and equal values for the others.
    """
    for name, value in ours.items():
        if name not in state:
            raise UsageError(f"the state has no {name!r}: it is not one of this kind of reader")
        if name not in progress and state[name] != value:
            raise UsageError(
                f"the state is of another order or other documents: {name} is {state[name]!r} there and {value!r} "
                "here; give it to a reader of the same corpus, made with the same arguments"
            )
    values = [state[name] for name in progress]
    return values if len(values) > 1 else values[0]
