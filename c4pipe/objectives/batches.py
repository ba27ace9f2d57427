"""Batches of examples of text or of another source, with a state from which other batches continue exactly."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.arguments import checks_arguments
from c4pipe.io.words import short_repr
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.packing import SHUFFLE, Assembler, Batch
from c4pipe.objectives.rows import Features, Rng, TokenIds, TokenRows, framed
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.read.state import (
    STATE_VERSION,
    UNCHANGED,
    Field,
    Resumable,
    Stateful,
    checked,
    complete,
    largest,
    unchanged_after_errors,
)

_DOCUMENTS = 32  # documents that are tokenized together; only examples of next_sentence depend on it
_MOST_EMPTY = 100_000  # documents in a row without a token: an endless mixture of such documents would never return

TextStream = Resumable[Mapping[str, Any]]
"""Documents with a state, such as a `Reader` of `c4pipe.read`. The text of a document is the value of `text`.

If the state has `epoch`, `shard_index` and `num_shards`, each epoch and each process has random numbers of its own.
"""


def _load_tokens(_: Any, values: Any) -> TokenIds:
    rest = checked({"rest": values}, {"rest": [0]}, "rest")["rest"]
    if max(rest, default=0) >= 1 << 31:
        raise UsageError(f"the state has {max(rest)} in place of a token: {UNCHANGED}")
    return np.array(rest, np.int32)


def _chain_tokens(values: Sequence[TokenIds], share: slice) -> TokenIds:
    return np.concatenate([np.zeros(0, np.int32), *values[share]])


class TextExamples(Stateful, Iterator[Features]):
    """An iterator over examples of text, some at a time: an `ExampleSource`. Every token is in one example.

    The random numbers of an example depend on the seed, the epoch and process of the documents, and the number of
    examples before it. `stream` is empty if the state of the documents does not have these numbers.
    """

    _fields = (
        Field("documents", "_documents"),
        Field("examples", "_examples", largest),
        Field("rest", "_rest", _chain_tokens, _load_tokens, np.ndarray.tolist),
    )

    def __init__(
        self,
        documents: TextStream,
        tokenizer: Tokenizer,
        objective: Objective,
        seed: int = 0,
        merge: bool = False,
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
        self._seed, self._place = seed, self.stream[1:]
        self._rest = np.zeros(0, np.int32)  # text that waits for the next document, if documents are merged
        self._examples = 0

    def __repr__(self) -> str:
        return short_repr(self, self._objective.name, self._documents)

    def __next__(self) -> Features:
        """Returns the next examples, at least one.

        Raises C4pipeError if documents can't be read, UsageError if 100,000 documents in a row have no token.
        """
        empty, last, pieces = 0, False, TokenRows.of([])
        while not len(pieces):
            if last:
                raise StopIteration
            if empty >= _MOST_EMPTY:
                raise UsageError(
                    f"{empty:,} documents in a row of {self._documents!r} have no token: give other documents"
                )
            texts, last = self._read()
            rows = self._tokenizer.encode(texts)
            pieces = self._pieces(rows, last)
            empty = 0 if len(rows.values) else empty + len(texts)
        examples = self._objective.make(pieces, Rng(self._seed, self._examples, self.stream))
        self._examples += len(pieces)
        return examples

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
            # the documents before the damage are not lost; the next call meets the damage
        return texts, False

    def _pieces(self, rows: TokenRows, last: bool) -> TokenRows:
        if self._objective.adds_eos:
            rows = framed(rows, (), [self._tokenizer.ids.eos])
        rng = Rng(self._seed, self._examples, self.stream)
        if not self._merge:
            return self._objective.cut(rows, rng)
        text = np.concatenate([self._rest, rows.values])
        if not len(text):
            return TokenRows(text, np.zeros(1, np.int64))
        pieces = self._objective.cut(TokenRows(text, np.array([0, len(text)])), rng)
        starts = pieces.starts if last else pieces.starts[:-1]  # the last piece can still grow
        self._rest = text[starts[-1] :].copy()
        return TokenRows(text[: starts[-1]], starts)

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Works as `Stateful.reshard`. Raises UsageError also for documents without `reshard`."""
        if not self.stream or not hasattr(self._documents, "reshard"):
            raise UsageError("these documents can't be divided anew: use documents of read.documents or read.mix")
        super().reshard(states)


class ExampleSource(Resumable[Features], Protocol):
    """An iterator over examples, some at a time, with a state; such as `TextExamples`.

    It returns at least one example at a time; the features always have the same names. Its state has none of the names
    of an `Assembler`'s state, and `restore` ignores other names.

    Attributes:
        stream: the epoch, the number of the process from 0, and the number of processes, on which random numbers
            depend; empty for a single process.
        identity: JSON values; sources with the same identity have the same examples.
    """

    stream: tuple[int, ...]
    identity: dict[str, Any]


class ExampleBatches(Stateful, Iterator[Batch]):
    """An iterator over batches, as `packing.batch_of` returns them.

    All batches have the same shapes; the last one can have empty rows. Every example is in one batch.
    """

    def __init__(
        self, source: ExampleSource, lengths: Mapping[str, int], size: int, seed: int = 0, shuffle: int = SHUFFLE
    ) -> None:
        """Starts at the current position of the source.

        Args:
            source: the examples.
            lengths: the number of tokens of each feature of a row.
            size: the number of rows of a batch.
            seed: the seed of the order in which examples leave the buffer.
            shuffle: the number of examples in the buffer. A random example leaves it when a new one comes. 0 for no
                buffer.

        Raises UsageError for a size below 1 or a buffer below 0.
        """
        self._source = source
        self._assembler = Assembler(lengths, size, shuffle, Rng(seed, 0, source.stream))
        self._arguments = {
            "version": STATE_VERSION,
            **source.identity,
            "lengths": dict(lengths),
            "size": size,
            "seed": seed,
            "shuffle": shuffle,
        }

    def __repr__(self) -> str:
        shapes = (f"{name} {self._arguments['size']} x {length}" for name, length in self._arguments["lengths"].items())
        return short_repr(self, self._source, *shapes)

    def __next__(self) -> Batch:
        """Returns the next batch. Raises C4pipeError if examples can't be read."""
        while not self._assembler.complete:
            examples = next(self._source, None)
            if examples is None:
                self._assembler.end()
            else:
                self._assembler.add(examples)
        batch = self._assembler.take()
        if batch is None:
            raise StopIteration
        return batch

    def state(self) -> dict[str, Any]:
        """Returns the state for `restore`, as JSON values: that of the source, and all waiting examples."""
        stream = list(self._source.stream)
        return {**self._arguments, "stream": stream, **self._source.state(), **self._assembler.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues where other batches were when they returned this state; the source continues, too.

        Raises UsageError if the other batches had another source or other arguments.
        """
        checked(state, self._arguments)
        with unchanged_after_errors(self):
            self._source.restore(dict(state))
            self._assembler.restore(state)

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Works as `Stateful.reshard`, for states in any order; the number of rows of a batch may differ.

        Each document of an epoch and each waiting example comes once, in the batches of the old or of the new
        processes.
        """
        for state in states:
            checked(state, self._arguments, "size")
        source = self._source
        streams = [checked(state, {"stream": [0]}, "stream")["stream"] for state in states]
        reshard_source = getattr(source, "reshard", None)
        if reshard_source is None or any(len(stream) != 3 for stream in (source.stream, *streams)):
            raise UsageError("these examples can't be divided anew: use documents of read.documents or read.mix")
        ordered = [state["state"] for state in complete([_numbered(state) for state in states])]
        _, index, count = source.stream
        if len(ordered) == count:
            self.restore({**ordered[index], "size": self._arguments["size"]})
            return
        with unchanged_after_errors(self):
            reshard_source(ordered)
            self._assembler.reshard(ordered)


def _numbered(state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a state with the number of its process, as `complete` needs it."""
    _, index, count = state["stream"]
    return {"shard_index": index, "num_shards": count, "state": state}


class Batches(ExampleBatches):
    """An iterator over batches of text, as `packing.batch_of` returns them.

    All batches have the same shapes; the last one can have empty rows. Every token of the text is in one example, and
    every example in one batch. The random numbers of an example depend on the seed, the epoch and process of the
    documents, and the number of examples before it.
    """

    @checks_arguments
    def __init__(
        self,
        documents: TextStream,
        tokenizer: Tokenizer,
        objective: Objective,
        size: int,
        seed: int = 0,
        merge: bool = False,
        shuffle: int = SHUFFLE,
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
            shuffle: the number of examples that are shuffled together before they are packed: a buffer holds them, and
                a random one leaves it when one comes. Otherwise the pieces of a long document would fill whole
                batches. 0 keeps the order.

        Raises UsageError for a size below 1 or a buffer below 0.
        """
        source = TextExamples(documents, tokenizer, objective, seed, merge)
        super().__init__(source, objective.lengths, size, seed, shuffle)
