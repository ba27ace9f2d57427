"""Documents to batches: tokenizes, divides into pieces, corrupts and packs, with a state to continue from exactly."""

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

_DOCUMENTS = 32  # documents that are tokenized together; no example depends on it


class Documents(Protocol):
    """An iterator over documents with a state, such as a `Reader` of `c4pipe.read`."""

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Returns itself."""
        ...

    def __next__(self) -> Mapping[str, Any]:
        """Returns the next document. Its text is the value of `text`."""
        ...

    def state(self) -> dict[str, Any]:
        """Returns its state, as JSON values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continues where it was when it returned this state."""
        ...


class Batches:
    """An iterator over batches, as `packing.batch_of` returns them.

    All batches have the same shapes; the last one can have empty rows. Every token of the text is in one example, and
    every example in one batch. The random numbers of an example depend on the seed and the number of examples before
    it.
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
        """Starts at the current position of the documents.

        Args:
            documents: the text, such as what `read.documents` returns.
            tokenizer: the vocabulary.
            objective: how text becomes examples; made with the ids of the tokenizer.
            size: the number of rows of a batch.
            seed: the seed of all random numbers.
            merge: whether a piece can contain text of several documents, one after the other, as in T5's code. If not,
                the last piece of a document is shorter.

        Raises UsageError for a size below 1.
        """
        if size < 1:
            raise UsageError(f"a batch of {size} rows: give at least 1 row")
        self._documents, self._tokenizer, self._objective = documents, tokenizer, objective
        self._size, self._seed, self._merge = size, seed, merge
        self._packer = Packer(objective.lengths)
        self._rest = np.zeros(0, np.int32)  # text that waits for the next document, where documents are merged
        self._examples = 0
        self._ready: list[Bin] = []
        self._ended = False

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> Batch:
        """Returns the next batch. Raises C4pipeError where documents can't be read."""
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
        if self._objective.adds_eos:
            rows = framed(rows, (), [self._tokenizer.ids.eos])
        if not self._merge:
            return rows.cut(self._objective.raw)
        text = np.concatenate([self._rest, rows.values])
        complete = len(text) if self._ended else len(text) // self._objective.raw * self._objective.raw
        self._rest = text[complete:].copy()
        return Rows(text[:complete], np.array([0, complete])).cut(self._objective.raw)

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
        """Returns the state for `restore`, as JSON values: that of the documents, and the waiting examples."""
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
        """Continues where other batches were when they returned this state; the documents continue, too.

        Raises UsageError where those batches had other documents or arguments.
        """
        for name, value in self._identity().items():
            if state.get(name) != value:
                raise UsageError(
                    f"the state belongs to other batches: its {name} is {state.get(name)!r}, and here it is {value!r}; "
                    "make the batches with the same arguments"
                )
        self._documents.restore(state["documents"])
        self._examples = state["examples"]
        self._rest = np.array(state["rest"], np.int32)
        self._packer.restore(state["open"])
        self._ready = from_json(state["ready"])
        self._ended = state["ended"]
