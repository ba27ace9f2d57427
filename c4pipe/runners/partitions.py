"""Functions of engines that move the results of a step between partitions.

Such an engine runs a step as tasks. A task applies the step to its elements (`work`) and finds the partition of each
result (`placed`); a task of the next step makes groups of the results in one partition (`groups`).
"""

import gc
import pickle
import sys
import zipimport
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from c4pipe.runners.worker import release_memory, set_up_step

SUMS = 0
"""The partition of elements that are only added up. The pairs (key, value) are in the others."""


class StepOutput(NamedTuple):
    """One output of a step, in the shuffle of all its outputs.

    Attributes:
        shuffled: the shuffle, as the engine has it: pairs (label, element), by partition.
        label: the label of this output's elements, which names the step and the output.
    """

    shuffled: Any
    label: str


class Created(NamedTuple):
    """Elements that are in the memory of this process: their name, and the elements."""

    name: str
    elements: Sequence[Any]


class Joined(NamedTuple):
    """Groups: outputs, each with its name in the group, and a function that makes an element of a group's values."""

    outputs: Sequence[tuple[str, StepOutput]]
    element: Callable[[Any, dict[str, list[Any]]], Any]

    @property
    def shuffles(self) -> list[Any]:
        """The shuffles of the outputs, each once."""
        return list({id(output.shuffled): output.shuffled for _, output in self.outputs}.values())

    @property
    def names(self) -> dict[str, list[str]]:
        """The names of the outputs in a group, by label."""
        names: dict[str, list[str]] = {}
        for name, output in self.outputs:
            names.setdefault(output.label, []).append(name)
        return names


class PartitionedFlow:
    """The methods of a `Flow` that only name collections. An engine adds `map`, `combine` and `shuffle`."""

    def shuffle(self, created: Created) -> list[StepOutput]:
        """Returns created pairs as the output of a step."""
        raise NotImplementedError

    def create(self, name: str, elements: Sequence[Any]) -> Created:
        """Returns these elements; a step has a task for each."""
        return Created(name, elements)

    def group_by_key(self, name: str, pairs: Created | list[StepOutput]) -> Joined:
        """Groups pairs (key, value) by key: returns pairs (key, values)."""
        return Joined([("", output) for output in self._outputs(pairs)], _group)

    def co_group_by_key(self, name: str, **pairs: Created | list[StepOutput]) -> Joined:
        """Groups several collections of pairs (key, value): returns pairs (key, values by the collection's name)."""
        given = [(name, output) for name, some in pairs.items() for output in self._outputs(some)]
        return Joined(given, partial(_join, tuple(pairs)))

    def flatten(self, name: str, *collections: list[StepOutput]) -> list[StepOutput]:
        """Returns the elements of all collections."""
        return [output for collection in collections for output in collection]

    def _outputs(self, collection: Created | list[StepOutput]) -> list[StepOutput]:
        return self.shuffle(collection) if isinstance(collection, Created) else collection


def work(packed: bytes, elements: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Applies a step to elements, in a worker process: sets the step up unless it was the last one."""
    step, is_new = set_up_step(packed)
    if is_new:
        _forget_archives()
        pa.set_memory_pool(pa.system_memory_pool())  # see `lighten`, which is for c4pipe's own processes
        gc.collect()
        gc.freeze()  # Spark collects garbage after each task: it would visit all objects that the step has loaded
    for result in step.process_run(elements):
        yield result
        release_memory()


def apply_step(packed: bytes, runs: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the pickled outputs of each pickled run of elements, given a pickled step: a task of Spark."""
    for run in runs:
        yield pickle.dumps(list(work(packed, pickle.loads(run))))


def apply_in_arrow(packed: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the same in batches: a task of Spark's `mapInArrow`."""
    for outputs in apply_step(packed, (run.as_py() for batch in batches for run in batch.column(0))):
        yield pa.RecordBatch.from_arrays([pa.array([outputs], pa.binary())], ["result"])


def _forget_archives() -> None:
    """Spark 3 lets all importers check their files before each task: 60 ms for Spark's own archive."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]


def placed(
    labels: Mapping[str, str], sums: Sequence[str], partitions: int, results: Iterable[tuple[str, Any]]
) -> Iterator[tuple[int, tuple[str, Any]]]:
    """Yields the results of a step, each with the number of its partition and its label."""
    for output, element in results:
        yield SUMS if output in sums else 1 + _hash(element[0]) % partitions, (labels[output], element)


def _hash(key: int | str) -> int:
    """Returns a number for a key. Python's hash of a text differs from process to process."""
    return key if isinstance(key, int) else zlib.crc32(key.encode())


def groups(
    names: Mapping[str, Sequence[str]],
    make_element: Callable[[Any, dict[str, list[Any]]], Any],
    results: Iterable[tuple[int, tuple[str, Any]]],
) -> Iterator[Any]:
    """Yields an element for each key of a partition, given the names of the outputs in a group, by label."""
    by_key: dict[Any, dict[str, list[Any]]] = {}
    for _, (label, element) in results:
        for name in names.get(label, ()):
            key, value = element
            by_key.setdefault(key, {}).setdefault(name, []).append(value)
    while by_key:
        key, values = by_key.popitem()  # so that a step's memory is free before the next group
        yield make_element(key, values)


def _group(key: Any, values: dict[str, list[Any]]) -> tuple[Any, Iterator[Any]]:
    return key, _consumed(values[""])


def _join(names: Sequence[str], key: Any, values: dict[str, list[Any]]) -> tuple[Any, dict[str, Iterator[Any]]]:
    return key, {name: _consumed(values.get(name, [])) for name in names}


def _consumed(values: list[Any]) -> Iterator[Any]:
    """Yields values and frees each after use: memory may hold the results of a step, but not all values as well."""
    while values:
        yield values.pop()
