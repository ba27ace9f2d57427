"""Documents to examples: tokenizes, divides into pieces and corrupts, with a state to continue from exactly."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.rng import Rng
from c4pipe.objectives.rows import Features, Rows, framed
from c4pipe.objectives.tokenizer import Tokenizer

_DOCUMENTS = 32  # documents that are tokenized together; only examples of next_sentence depend on it


class Documents(Protocol):
    """An iterator over documents with a state, such as a `Reader` of `c4pipe.read`."""

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Returns itself."""
        ...

    def __next__(self) -> Mapping[str, Any]:
        """Returns the next document. Its text is the value of `text`."""
        ...

    def state(self) -> dict[str, Any]:
        """Returns its state, as JSON values.

        With `epoch`, `shard_index` and `num_shards` among them, each epoch and each process has random numbers of its
        own.
        """
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continues where it was when it returned this state."""
        ...


@runtime_checkable
class Resharding(Protocol):
    """Documents or examples that can go on where processes of another number were, such as a `Reader`."""

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Continues where all processes were together that returned these states, which are by their number."""
        ...


@runtime_checkable
class Endless(Protocol):
    """Documents that begin again at their end, such as a `Mixture` of `c4pipe.read`."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of their sources."""
        ...

    @property
    def given(self) -> list[int]:
        """The number of documents of each source that were returned."""
        ...

    def has_passed(self, given: Sequence[int]) -> bool:
        """Tells whether a whole epoch of each source was read since `given`."""
        ...


class TextExamples:
    """An iterator over examples of text, some at a time. Every token of the text is in one example.

    The random numbers of an example depend on the seed, the epoch and process of the documents, and the number of
    examples before it.

    Attributes:
        stream: the epoch, the number of the process and the number of processes of the documents, or nothing where
            their state does not have these.
        identity: what another iterator needs to have the same examples, as JSON values.
    """

    def __init__(
        self, documents: Documents, tokenizer: Tokenizer, objective: Objective, seed: int = 0, merge: bool = False
    ) -> None:
        """Starts at the current position of the documents. Arguments are those of `Batches`."""
        self._documents, self._tokenizer, self._objective, self._merge = documents, tokenizer, objective, merge
        state, names = documents.state(), ("epoch", "shard_index", "num_shards")
        self.stream: tuple[int, ...] = tuple(state[name] for name in names) if state.keys() >= set(names) else ()
        self.identity = {
            "objective": objective.name,
            "raw": objective.raw,
            "vocabulary": tokenizer.sha256,
            "merge": merge,
        }
        self._seed = seed
        self._rest = np.zeros(0, np.int32)  # text that waits for the next document, where documents are merged
        self._examples = 0

    def __iter__(self) -> "TextExamples":
        return self

    def __next__(self) -> Features:
        """Returns the next examples, at least one.

        Raises C4pipeError where documents can't be read, UsageError where they begin again at their end, and none in a
        whole pass over them has a token.
        """
        begun: list[int] | None = None
        while True:
            texts, last = self._read()
            rows = self._tokenizer.encode(texts)
            pieces = self._pieces(rows, last)
            if len(pieces):
                break
            if last:
                raise StopIteration
            begun = None if len(rows.values) else self._check_pass(begun)
        examples = self._objective.make(pieces, Rng(self._seed, self._examples, self.stream))
        self._examples += len(pieces)
        return examples

    def _check_pass(self, begun: list[int] | None) -> list[int] | None:
        """Raises UsageError where a whole pass over endless documents had no token.

        Takes and returns what these had returned when the first ones without a token came; None for other documents.
        """
        documents = self._documents
        if not isinstance(documents, Endless):
            return None
        if begun is None:
            return documents.given
        if documents.has_passed(begun):
            raise UsageError(
                f"in a whole pass over {' and '.join(documents.paths)}, no text has a token: give other documents"
            )
        return begun

    def _read(self) -> tuple[list[str], bool]:
        """Returns the next texts, and whether they are the last ones."""
        texts: list[str] = []
        try:
            while len(texts) < _DOCUMENTS:
                texts.append(next(self._documents)["text"])
        except StopIteration:
            return texts, True
        except C4pipeError:
            if not texts:
                raise
            # the documents before the damage are not lost; the next call comes to it
        return texts, False

    def _pieces(self, rows: Rows, last: bool) -> Rows:
        if self._objective.adds_eos:
            rows = framed(rows, (), [self._tokenizer.ids.eos])
        rng = Rng(self._seed, self._examples, self.stream)
        if not self._merge:
            return self._objective.cut(rows, rng)
        text = np.concatenate([self._rest, rows.values])
        if not len(text):
            return Rows(text, np.zeros(1, np.int64))
        pieces = self._objective.cut(Rows(text, np.array([0, len(text)])), rng)
        starts = pieces.starts if last else pieces.starts[:-1]  # the last piece can still grow
        self._rest = text[starts[-1] :].copy()
        return Rows(text[: starts[-1]], starts)

    def state(self) -> dict[str, Any]:
        """Returns the state for `restore`, as JSON values: that of the documents, and the text that waits."""
        return {"documents": self._documents.state(), "examples": self._examples, "rest": self._rest.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues where another iterator with the same identity was when it returned this state.

        Raises UsageError where it had other documents.
        """
        self._documents.restore(state["documents"])
        self._examples = state["examples"]
        self._rest = np.array(state["rest"], np.int32)

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Continues where any number of processes were together; what they have left is divided anew.

        Args:
            states: the state of each of those processes, by their number, of iterators with the same identity.

        Raises UsageError where they had other documents, or these documents can't be divided anew.
        """
        if not self.stream or not isinstance(self._documents, Resharding):
            raise UsageError("these documents can't be divided anew: use documents of read.documents or read.mix")
        self._documents.reshard([state["documents"] for state in states])
        _, index, count = self.stream
        rest = [token for state in states[index::count] for token in state["rest"]]
        self._rest = np.array(rest, np.int32)
        self._examples = max(state["examples"] for state in states)  # so no random number comes twice
