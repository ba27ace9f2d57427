"""Batches of examples, with a state to continue from exactly: of text, or of any other source of examples."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from c4pipe.errors import UsageError
from c4pipe.objectives.assembly import SHUFFLE, Assembler
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.packing import Batch
from c4pipe.objectives.rng import Rng
from c4pipe.objectives.rows import Features
from c4pipe.objectives.text_examples import Documents, Resharding, TextExamples
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.read import reader

_VERSION = 2
"""The version of a state."""


class ExampleSource(Protocol):
    """An iterator over examples, some at a time, with a state; such as `TextExamples`.

    Attributes:
        stream: the epoch, the number of the process from 0, and the number of processes, on which random numbers
            depend; or nothing where there is one process.
        identity: what another iterator needs to have the same examples, as JSON values.
    """

    stream: tuple[int, ...]
    identity: dict[str, Any]

    def __iter__(self) -> Iterator[Features]:
        """Returns itself."""
        ...

    def __next__(self) -> Features:
        """Returns the next examples, at least one; the features have the same names every time."""
        ...

    def state(self) -> dict[str, Any]:
        """Returns its state, as JSON values. Its names are not those of the state of an `Assembler`."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continues where it was when it returned this state; other names in it have no meaning."""
        ...


class ExampleBatches:
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
            shuffle: the number of examples in the buffer, from which a random one leaves when one comes; 0 for none.

        Raises UsageError for a size below 1 or a buffer below 0.
        """
        self._source = source
        self._assembler = Assembler(lengths, size, shuffle, Rng(seed, 0, source.stream))
        self._identity = {
            "version": _VERSION,
            **source.identity,
            "lengths": dict(lengths),
            "size": size,
            "seed": seed,
            "shuffle": shuffle,
        }

    def __iter__(self) -> "ExampleBatches":
        return self

    def __next__(self) -> Batch:
        """Returns the next batch. Raises C4pipeError where examples can't be read."""
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
        """Returns the state for `restore`, as JSON values: that of the source, and all examples that wait."""
        stream = list(self._source.stream)
        return {**self._identity, "stream": stream, **self._source.state(), **self._assembler.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues where other batches were when they returned this state; the source continues, too.

        Raises UsageError where those batches had another source or other arguments.
        """
        self._check(state)
        self._source.restore(dict(state))
        self._assembler.restore(state)

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Continues where any number of processes were together; what they have left is divided anew.

        Each document of an epoch and each example that waits comes once, in the batches of those processes or of
        these. The number of rows may change, too. With as many processes as before, each process continues with its
        own state, as `restore` does.

        Args:
            states: the state of each of those processes, in any order, all of the same step.

        Raises UsageError where a state is missing, or has another source or other arguments.
        """
        for state in states:
            self._check(state, "size")
        source = self._source
        if not isinstance(source, Resharding) or not all([source.stream, *(state["stream"] for state in states)]):
            raise UsageError("these examples can't be divided anew: use documents of read.documents or read.mix")
        ordered = [state["state"] for state in reader.complete([_numbered(state) for state in states])]
        _, index, count = source.stream
        if len(ordered) == count:
            source.restore(ordered[index])
            self._assembler.restore(ordered[index])
            return
        source.reshard(ordered)
        self._assembler.reshard(ordered, index, count)

    def _check(self, state: Mapping[str, Any], free: str = "") -> None:
        if state.get("version") != _VERSION:
            raise UsageError(
                f"the state has version {state.get('version')!r}, and this c4pipe reads version {_VERSION}: start the "
                "epoch again, or go on with the c4pipe that wrote it"
            )
        for name, value in self._identity.items():
            if name != free and state.get(name) != value:
                raise UsageError(
                    f"the state belongs to other batches: its {name} is {state.get(name)!r}, and here it is {value!r}; "
                    "make the batches with the same arguments"
                )


def _numbered(state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a state with the number of its process, as `parts.complete` needs it."""
    _, index, count = state["stream"]
    return {"shard_index": index, "num_shards": count, "state": state}


class Batches(ExampleBatches):
    """An iterator over batches of text, as `packing.batch_of` returns them.

    All batches have the same shapes; the last one can have empty rows. Every token of the text is in one example, and
    every example in one batch. The random numbers of an example depend on the seed, the epoch and process of the
    documents, and the number of examples before it.
    """

    def __init__(
        self,
        documents: Documents,
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
