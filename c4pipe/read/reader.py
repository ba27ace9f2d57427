"""An iterator over documents with a state: another one can continue from it."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from typing import Any

from c4pipe.corpus import Document, Documents, read_shard
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.read.order import Order, after
from c4pipe.read.source import Source


class Reader:
    """An iterator over the documents of a source that one process reads. `read.documents` returns one.

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
        self._spans = order.spans(source.rows)
        self._size = sum(end - first for _, first, end in self._spans)
        self._stream: Documents | None = None

    def __len__(self) -> int:
        """The number of all documents that it reads, also those already returned."""
        return self._size

    def __iter__(self) -> "Reader":
        return self

    def __next__(self) -> Document:
        """Returns the next document. Raises C4pipeError where its file can't be read; a later call tries again."""
        if self._stream is None:
            self._stream = self._documents(self.position)
        try:
            document = next(self._stream)
        except C4pipeError:
            self._stream = None  # the generator has ended: the next call must read again, and not stop
            raise
        self.position += 1
        return document

    def skip(self, count: int) -> None:
        """Skips the next `count` documents; at most one window is read for it.

        Raises UsageError where fewer are left.
        """
        if not 0 <= count <= self._size - self.position:
            raise UsageError(f"{count:,} documents can't be skipped: {self._size - self.position:,} are left")
        self.position += count
        self._stream = None

    def state(self) -> dict[str, Any]:
        """Returns the state for `restore`, as JSON values: the source, the order and the position."""
        return {"source": self.source.identity, **asdict(self.order), "documents": self.position}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues where another reader was when it returned this state.

        Raises UsageError where that reader had another source or order.
        """
        position = checked(state, self.state(), "documents")
        self.position = 0
        self.skip(position)

    def _documents(self, position: int) -> Documents:
        """Yields the documents from a position on."""
        if self.order.seed is None:
            yield from self._rows(position)
            return
        number, skipped = divmod(position, self.order.window)
        with closing(self._rows(position - skipped)) as rows:
            while window := list(islice(rows, self.order.window)):
                order = self.order.window_order(number, len(window))
                yield from (window[place] for place in order[skipped:])
                number, skipped = number + 1, 0

    def _rows(self, position: int) -> Documents:
        """Yields the documents in the order before windows are shuffled, from a position on."""
        for file, first, end in after(self._spans, position):
            with closing(read_shard(self.source.shards[file], first, end, self.source.verify)) as rows:
                yield from rows


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
