"""Documents to batches: tokenised, cut into pieces, corrupted, packed; with a state from which it goes on exactly."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.packing import Batch, Bin, Packer, batch_of, from_json, to_json
from c4pipe.objectives.rng import Rng
from c4pipe.objectives.rows import Rows, framed
from c4pipe.objectives.tokenizer import Tokenizer

_DOCUMENTS = 32  # tokenised at once; no example depends on it


class Documents(Protocol):
    """An iterator of documents that can say where it is and go there, as those of c4pipe's reader."""

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Returns itself."""
        ...

    def __next__(self) -> Mapping[str, Any]:
        """Returns the next document; its text is in `text`."""
        ...

    def state(self) -> dict[str, Any]:
        """Returns where it is, as JSON values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Goes to where it was when it gave this state."""
        ...


class Batches:
    """An iterator of batches (`packing.batch_of`), all of one shape; the last has empty rows where text ended.

    Every token is in one example, and every example in one batch. An example's random numbers depend on the seed and on
    how many examples came before it.
    """

    def __init__(
        self,
        documents: Documents,
        tokenizer: Tokenizer,
        objective: Objective,
        size: int,
        seed: int = 0,
        merge: bool = False,
    ) -> None:
        """Takes documents from where they are.

        Args:
            documents: text.
            tokenizer: the vocabulary.
            objective: made for the tokenizer's ids.
            size: rows of a batch.
            seed: of all random numbers.
            merge: whether a piece may have text of several documents, one behind the other, as T5's code has it; else a
                document's last piece is shorter.

        Raises UsageError for a size that isn't positive.
        """
        if size < 1:
            raise UsageError(f"a batch of {size} rows: give at least 1")
        self._documents, self._tokenizer, self._objective = documents, tokenizer, objective
        self._size, self._seed, self._merge = size, seed, merge
        self._packer = Packer(objective.lengths)
        self._rest = np.zeros(0, np.int32)  # text that waits for the next document, where they are merged
        self._examples = 0
        self._ready: list[Bin] = []
        self._ended = False

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> Batch:
        while len(self._ready) < self._size and not self._ended:
            self._read()
        if not self._ready:
            raise StopIteration
        bins, self._ready = self._ready[: self._size], self._ready[self._size :]
        return batch_of(bins, self._objective.lengths, self._size)

    def _read(self) -> None:
        texts = [document["text"] for document in itertools.islice(self._documents, _DOCUMENTS)]
        self._ended = len(texts) < _DOCUMENTS
        pieces = self._pieces(self._tokenizer.encode(texts))
        if len(pieces):
            examples = self._objective.make(pieces, Rng(self._seed, self._examples))
            self._examples += len(pieces)
            self._ready += self._packer.add(examples)
        if self._ended:
            self._ready += self._packer.flush()

    def _pieces(self, rows: Rows) -> Rows:
        if self._objective.ends:
            rows = framed(rows, (), [self._tokenizer.ids.eos])
        if not self._merge:
            return rows.cut(self._objective.raw)
        text = np.concatenate([self._rest, rows.values])
        whole = len(text) if self._ended else len(text) // self._objective.raw * self._objective.raw
        self._rest = text[whole:].copy()
        return Rows(text[:whole], np.array([0, whole])).cut(self._objective.raw)

    def _identity(self) -> dict[str, Any]:
        return {
            "objective": self._objective.name,
            "raw": self._objective.raw,
            "lengths": dict(self._objective.lengths),
            "vocabulary": self._tokenizer.sha256,
            "size": self._size,
            "seed": self._seed,
            "merge": self._merge,
        }

    def state(self) -> dict[str, Any]:
        """Returns where it is, as JSON values: the documents' state, and the examples that no batch has had."""
        return {
            **self._identity(),
            "documents": self._documents.state(),
            "examples": self._examples,
            "rest": self._rest.tolist(),
            "open": self._packer.state(),
            "ready": to_json(self._ready),
            "ended": self._ended,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes, with its documents, to where it was when it gave this state.

        Raises UsageError for a state of other batches.
        """
        for name, value in self._identity().items():
            if state.get(name) != value:
                raise UsageError(
                    f"the state is of other batches: {name} is {state.get(name)!r} there and {value!r} here; make them "
                    "with what the state has"
                )
        self._documents.restore(state["documents"])
        self._examples = state["examples"]
        self._rest = np.array(state["rest"], np.int32)
        self._packer.restore(state["open"])
        self._ready = from_json(state["ready"])
        self._ended = state["ended"]
