"""States: JSON values from which another reader, mixture or iterator over batches continues exactly.

A class names the fields of its state. `reshard` joins the states of any number of processes, field by field.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.json_files import check_of

STATE_VERSION = 2
"""The version of the states of readers, mixtures and batches. Version 1 had another order for few files."""

_Item = TypeVar("_Item", covariant=True)

UNCHANGED = "give what the method state returned, unchanged"
"""The next step after a wrong state."""


def sum_of_share(values: Sequence[Any], share: slice) -> Any:
    """Returns the sum of the values of the processes whose work this process continues."""
    return sum(values[share])


def chain_of_share(values: Sequence[list[Any]], share: slice) -> list[Any]:
    """Returns the items of the lists of the processes whose work this process continues."""
    return list(chain(*values[share]))


def largest(values: Sequence[Any], share: slice) -> Any:
    """Returns the largest value of all processes, so that no random number comes twice."""
    return max(values)


class Resumable(Iterator[_Item], Protocol[_Item]):
    """An iterator with a state, such as a `Reader`, or batches."""

    def state(self) -> dict[str, Any]:
        """Returns the state after the last item, as JSON values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continues where it was when it returned this state."""
        ...


class Field(NamedTuple):
    """A value of a state.

    Attributes:
        name: its name in the state.
        attribute: the name of the object's attribute. If the attribute has its own state, that state is the value.
        join: the value of this process, given the values of all earlier processes, and its share of them.
        load: the value, given the object and the JSON value. Raises UsageError for a wrong value.
        dump: the JSON value, given the value.
    """

    name: str
    attribute: str
    join: Callable[[Sequence[Any], slice], Any] = sum_of_share
    load: Callable[[Any, Any], Any] = lambda _, value: value
    dump: Callable[[Any], Any] = lambda value: value


class Stateful:
    """An object with a state. Its class names the fields; `__init__` sets `_identity` and, for `reshard`, `_place`."""

    _fields: tuple[Field, ...] = ()  # what changes
    _process: tuple[str, ...] = ("shard_index", "num_shards")  # the names of values that differ between processes
    _identity: Mapping[str, Any] = MappingProxyType({})  # what must be equal in the object that continues
    _place: Sequence[int]  # the number of this process from 0, and the number of processes

    def state(self) -> dict[str, Any]:
        """Returns the state for `restore`, as JSON values."""
        values = dict(self._identity)
        for name, attribute, _, _, dump in self._fields:
            value = getattr(self, attribute)
            values[name] = value.state() if hasattr(value, "state") else dump(value)
        return values

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues where another object was when it returned this state.

        Raises UsageError if the other object had other documents or arguments, C4pipeError if documents can't be
        read. After an error, nothing is changed.
        """
        values = checked(state, self.state(), *(field.name for field in self._fields))
        with unchanged_after_errors(self):
            self._continue(values)

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Continues the work of any number of processes: their unread documents are divided anew.

        With as many processes as before, each continues with its own state, as `restore` does.

        Args:
            states: the state of each earlier process, all of the same moment, by the number of the process. States
                that have this number can come in any order.

        Raises UsageError if a state is missing, or belongs to other documents or arguments.
        """
        index, count = self._place
        if "shard_index" in self._identity:
            states = complete(states)
            if len(states) == count:
                self.restore(states[index])
                return
        ours, names = self.state(), [field.name for field in self._fields]
        progress = [checked(state, ours, *self._process, *names) for state in states]
        with unchanged_after_errors(self):
            self._divide({name: [each[name] for each in progress] for name in names})

    def _continue(self, values: Mapping[str, Any]) -> None:
        for name, attribute, _, load, _ in self._fields:
            if hasattr(inner := getattr(self, attribute), "restore"):
                inner.restore(values[name])
            else:
                setattr(self, attribute, load(self, values[name]))

    def _divide(self, values: Mapping[str, list[Any]]) -> None:
        share = slice(self._place[0], None, self._place[1])
        for name, attribute, join, load, _ in self._fields:
            if hasattr(inner := getattr(self, attribute), "reshard"):
                inner.reshard(values[name])
            else:
                setattr(self, attribute, join([load(self, value) for value in values[name]], share))


class StatefulList(list[Any]):
    """A list of objects with states."""

    def state(self) -> list[Any]:
        """Returns their states."""
        return [each.state() for each in self]

    def restore(self, states: Sequence[Any]) -> None:
        """Restores their states. Raises UsageError for another number of states."""
        if len(states) != len(self):
            raise UsageError(f"the state has {len(states)} of {len(self)} parts or readers: {UNCHANGED}")
        for each, state in zip(self, states, strict=True):
            each.restore(state)

    def reshard(self, states: Sequence[Sequence[Any]]) -> None:
        """Divides their states anew, given the lists of all processes. Raises UsageError as `restore`."""
        for number, each in enumerate(self):
            each.reshard([state[number] for state in states])


@contextmanager
def unchanged_after_errors(restored: Any) -> Iterator[None]:
    """Restores an object's present state if the `with` block raises C4pipeError."""
    before = restored.state()
    try:
        yield
    except C4pipeError:
        restored.restore(before)
        raise


def checked(state: Any, ours: Mapping[str, Any], *progress: str) -> dict[str, Any]:
    """Returns the values of `progress` in a state that a user gives, by name, given the object's present state.

    Raises UsageError unless the state has all names of `ours`: those of `progress` with values of the same type, the
    others with equal values.
    """
    _check_type(state, ours, "the state")
    for name, value in ours.items():
        if name == "version" and state.get(name) != value:
            raise UsageError(
                f"the state has version {state.get(name)!r}, and this c4pipe reads version {value}: start the epoch "
                "again, or go on with the c4pipe that wrote it"
            )
        if name not in state:
            raise UsageError(f"the state has no {name!r}: another kind of reader wrote it, or another c4pipe")
        if name in progress:
            _check_type(state[name], value, f"{name} of the state")
        elif state[name] != value:
            raise UsageError(
                f"the state belongs to other documents or arguments: its {name} is {state[name]!r}, and here it is "
                f"{value!r}; restore it with the same documents and the same arguments"
            )
    return {name: state[name] for name in progress if name in ours}


def _check_type(value: Any, ours: Any, place: str) -> None:
    kind: Any = type(ours)
    if kind is list:
        kind = list[int] if ours and isinstance(ours[0], int) else list[Any]
    try:
        check_of(kind)(value, place)
    except ValueError as error:
        raise UsageError(f"{error}: {UNCHANGED}") from None


def complete(states: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the states of all processes, by `shard_index`. Raises UsageError unless each process has one state."""
    if not states:
        raise UsageError("there is no state: give one of each process that read before")
    for state in states:
        checked(state, {"shard_index": 0, "num_shards": 1}, "shard_index", "num_shards")
    ordered = sorted(states, key=itemgetter("shard_index"))
    indices, counts = [state["shard_index"] for state in ordered], {state["num_shards"] for state in ordered}
    if counts != {len(states)} or indices != list(range(len(states))):
        raise UsageError(
            f"the states are those of shards {indices} of {sorted(counts)}: give one of each process, all of the same "
            "moment"
        )
    return ordered
