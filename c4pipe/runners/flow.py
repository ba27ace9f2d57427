"""How steps make a job: its graph is written once, and runs on this machine's processes or on Beam's engines.

On this machine without Beam: its import and its graph take seconds, and its local runner loses elements between
processes (2.77). `beam_flow` has the same for its engines.
"""

import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from typing import Any, Protocol

from c4pipe.runners.worker import begin

Collection = Any
"""Elements on their way: a list here, a PCollection on an engine."""


class Step:
    """What is done to each element by itself. It is sent to the workers, and set up there."""

    outputs: tuple[str, ...] = ()
    """The names of its outputs."""

    def setup(self) -> None:
        """Opens what it needs, once in a worker."""

    def process(self, element: Any) -> Iterable[tuple[str, Any]]:
        """Returns (name of an output, element of it) for what an element gives."""
        raise NotImplementedError

    def teardown(self) -> None:
        """Closes what `setup` opened."""


class Flow(Protocol):
    """What puts steps together. Elements have no order, in the groups either."""

    def create(self, name: str, elements: Sequence[Any]) -> Collection:
        """Returns the elements, spread over the workers."""

    def do(self, name: str, elements: Collection, step: Step) -> Mapping[str, Collection]:
        """Returns the outputs of a step, by name."""

    def group(self, name: str, pairs: Collection) -> Collection:
        """(key, value) -> (key, values)."""

    def join(self, name: str, **pairs: Collection) -> Collection:
        """(key, value) of several -> (key, values by the name they were given here)."""

    def merge(self, name: str, *collections: Collection) -> Collection:
        """Returns the elements of all."""

    def fold(self, name: str, elements: Collection, add: Callable[[Iterable[Any]], Any]) -> Collection:
        """Returns one element: the sum of all, in any order and grouping."""


class LocalFlow:
    """Runs each step as it is put together: in this process with one worker, in processes with more."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "LocalFlow":
        if self._workers > 1:
            self._pool = ProcessPoolExecutor(
                self._workers, multiprocessing.get_context("spawn"), initializer=begin, initargs=(os.getpid(),)
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool:
            if kind:  # what the others are at is of no use any more
                for process in multiprocessing.active_children():
                    process.terminate()
            self._pool.shutdown(cancel_futures=True)

    def create(self, name: str, elements: Sequence[Any]) -> list[Any]:
        """Returns the elements."""
        return list(elements)

    def do(self, name: str, elements: list[Any], step: Step) -> dict[str, list[Any]]:
        """Runs a step to its end, and returns its outputs, by name."""
        made: dict[str, list[Any]] = {output: [] for output in step.outputs}
        for results in self._results(elements, step):
            for output, element in results:
                made[output].append(element)
        return made

    def _results(self, elements: list[Any], step: Step) -> Iterator[list[tuple[str, Any]]]:
        if self._pool is None:
            step.setup()
            try:
                for element in elements:
                    yield list(step.process(element))
            finally:
                step.teardown()
            return
        packed = pickle.dumps(step)
        futures = [self._pool.submit(_work, packed, element) for element in elements]
        for future in wait(futures, return_when=FIRST_EXCEPTION).done:
            future.result()  # the first failure
        for future in futures:
            yield future.result()

    def group(self, name: str, pairs: list[Any]) -> list[Any]:
        """(key, value) -> (key, values)."""
        groups: dict[Any, list[Any]] = {}
        for key, value in pairs:
            groups.setdefault(key, []).append(value)
        return list(groups.items())

    def join(self, name: str, **pairs: list[Any]) -> list[Any]:
        """(key, value) of several -> (key, values by the name they were given here)."""
        joined: dict[Any, dict[str, list[Any]]] = {}
        for given, some in pairs.items():
            for key, value in some:
                joined.setdefault(key, {each: [] for each in pairs})[given].append(value)
        return list(joined.items())

    def merge(self, name: str, *collections: list[Any]) -> list[Any]:
        """Returns the elements of all."""
        return [element for collection in collections for element in collection]

    def fold(self, name: str, elements: list[Any], add: Callable[[Iterable[Any]], Any]) -> list[Any]:
        """Returns one element: the sum of all."""
        return [add(elements)]


_at_work: tuple[bytes, Step] | None = None
"""The step that this worker process has set up."""


def _work(packed: bytes, element: Any) -> list[tuple[str, Any]]:
    global _at_work
    if _at_work is None or _at_work[0] != packed:
        if _at_work is not None:
            _at_work[1].teardown()
        step: Step = pickle.loads(packed)
        step.setup()
        _at_work = packed, step
    return list(_at_work[1].process(element))
