"""Given inputs and targets: records of files to examples of text, in the order of an epoch, with a state.

What comes in are files with the columns `inputs` and `targets`, or of raw records with a preprocessor. The examples
come in an order that depends on a seed and the epoch, and are divided among processes, as `read.documents` does it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, cast

from c4pipe.errors import UsageError
from c4pipe.objectives.task_files import RecordSource
from c4pipe.objectives.task_record import Preprocessor, Record, TextPair, text
from c4pipe.read.mixture import Endless
from c4pipe.read.order import Order
from c4pipe.read.reader import Reader


def given(record: Record) -> list[TextPair]:
    """Returns the inputs and targets that a record has. Raises UsageError where it has none."""
    return [{name: text(record, name, "given inputs and targets") for name in ("inputs", "targets")}]


class TaskReader:
    """An iterator over the examples of records that one process reads, as dicts with `inputs` and `targets`.

    Attributes:
        order: which records are read, and in which order.
        records: the number of records that were read so far.
        empty: the number of these that gave no example, such as records of WSC with a wrong noun.
    """

    def __init__(
        self, source: RecordSource, order: Order, preprocess: Preprocessor = given, endless: bool = False
    ) -> None:
        """Starts at the first record; no file is opened yet.

        Args:
            source: what `open_files` returns.
            order: a seed (None for the order of the files), the epoch, the process and the number of processes.
            preprocess: makes examples of a record, such as `tasks_glue.cola`; without it, the records have `inputs` and
                `targets`.
            endless: whether the next epoch begins after the last record; then, a source with fewer records than
                processes is read as a whole by each of them.
        """
        self.order, self._preprocess = order, preprocess
        self._rows = sum(source.rows)
        self._reader: Reader | Endless = Endless(source, order) if endless else Reader(source, order)
        self._identity = {"files": source.digest, "preprocess": _name(preprocess), "endless": endless}
        self.records, self.empty = 0, 0
        self._left: list[TextPair] = []  # examples of the last record that were not returned

    def __iter__(self) -> "TaskReader":
        return self

    def __next__(self) -> TextPair:
        """Returns the next example. Raises C4pipeError where a file can't be read; a later call tries again.

        Raises UsageError for a record that is none of the task, or where no record of an epoch gives an example.
        """
        empty = 0
        while not self._left:
            self._left = self._examples()
            empty += not self._left
            if isinstance(self._reader, Endless) and empty > self._rows:
                raise UsageError(
                    f"{self._reader.source.path} has no example for process {self.order.shard_index} of "
                    f"{self.order.num_shards}: look at its records and its preprocessor, or leave it out"
                )
        return self._left.pop(0)

    def _examples(self) -> list[TextPair]:
        """Returns the examples of the next record. Raises StopIteration after the last one."""
        record = cast(Record, next(self._reader))
        try:
            pairs = [pair for each in self._preprocess(record) for pair in given(each)]
        except Exception:
            state, position = self._reader.state(), "given" if isinstance(self._reader, Endless) else "documents"
            self._reader.restore({**state, position: state[position] - 1})  # the next call comes to the same record
            raise
        self.records += 1
        self.empty += not pairs
        return pairs

    @property
    def epoch(self) -> int:
        """The epoch of the next record, from 0."""
        return self._reader.epoch if isinstance(self._reader, Endless) else self.order.epoch

    def state(self) -> dict[str, Any]:
        """Returns the state for `restore`, as JSON values: the files, the position, and examples that wait."""
        return {
            **self._identity,
            **asdict(self.order),
            "reader": self._reader.state(),
            "left": [dict(pair) for pair in self._left],
            "records": self.records,
            "empty": self.empty,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues where another reader was when it returned this state.

        Raises UsageError where that reader had other files, another order or another preprocessor.
        """
        self._check(state)
        self._reader.restore(state["reader"])
        self._continue([state])

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Continues where any number of processes were together; what they have left is divided anew.

        Args:
            states: the state of each of those processes, by their number.

        Raises UsageError where they had other files, another order or another preprocessor.
        """
        for state in states:
            self._check(state, "shard_index", "num_shards")
        self._reader.reshard([state["reader"] for state in states])
        index, count = self.order.shard_index, self.order.num_shards
        self._continue(states[index::count])

    def _check(self, state: Mapping[str, Any], *free: str) -> None:
        for name, value in {**self._identity, **asdict(self.order)}.items():
            if name not in free and state.get(name) != value:
                raise UsageError(
                    f"the state belongs to other examples: its {name} is {state.get(name)!r}, and here {value!r}; "
                    "read the same files with the same arguments"
                )

    def _continue(self, states: Sequence[Mapping[str, Any]]) -> None:
        self._left = [dict(pair) for state in states for pair in state["left"]]
        self.records = sum(state["records"] for state in states)
        self.empty = sum(state["empty"] for state in states)


def _name(function: Any) -> str:
    """Returns what a function is called, with the arguments of a `functools.partial`."""
    if isinstance(function, partial):
        return f"{_name(function.func)}{function.args}{sorted(function.keywords.items())}"
    return str(getattr(function, "__qualname__", type(function).__qualname__))
