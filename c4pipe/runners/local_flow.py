"""Runs a job in processes of this machine, without Beam.

Beam's import and its graph take seconds, and its local runner loses elements between processes (2.77).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from c4pipe.runners.flow import Step
from c4pipe.runners.pairs import Pairs
from c4pipe.runners.worker import release_memory

if TYPE_CHECKING:
    from c4pipe.runners.worker_pool import WorkerPool


Collection = list[Any] | Pairs
"""Elements, or what a step gives: pairs, or numbers to add up."""


class LocalFlow:
    """Runs each step at once when it is added: in this process with one worker, in several processes with more."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: WorkerPool | None = None

    def __enter__(self) -> "LocalFlow":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool:
            self._pool.close(failed=kind is not None)

    def create(self, name: str, elements: Sequence[Any]) -> list[Any]:
        """Returns these elements."""
        return list(elements)

    def do(self, name: str, elements: list[Any], step: Step) -> dict[str, Collection]:
        """Applies a step to each element and returns its outputs, by name."""
        outputs: dict[str, Collection] = {output: [] if output in step.sums else Pairs() for output in step.outputs}
        for results in self._results(elements, step):
            for output, element in results:
                outputs[output].append(element)
        return outputs

    def _results(self, elements: list[Any], step: Step) -> Iterator[list[tuple[str, Any]]]:
        if self._workers == 1:
            step.setup()
            try:
                for element in elements:
                    yield list(step.process(element))
                    release_memory()
            finally:
                step.teardown()
            return
        if self._pool is None:
            from c4pipe.runners.worker_pool import WorkerPool  # one worker alone needs no multiprocessing

            self._pool = WorkerPool(self._workers, type(step).__module__)
        for results in self._pool.apply(step, elements):
            yield results
            release_memory()

    def group(self, name: str, pairs: Collection) -> list[Any]:
        """Groups pairs (key, value) by key: returns pairs (key, values)."""
        return list(_by_key(pairs).items())

    def join(self, name: str, **pairs: Collection) -> list[Any]:
        """Groups several collections of pairs (key, value): returns pairs (key, values by the collection's name)."""
        groups: dict[Any, dict[str, Any]] = {}
        for collection, some in pairs.items():
            for key, values in _by_key(some).items():
                groups.setdefault(key, {each: [] for each in pairs})[collection] = values
        return list(groups.items())

    def merge(self, name: str, *collections: Collection) -> Collection:
        """Returns the elements of all collections, which are of one kind."""
        elements = chain.from_iterable(collections)
        return Pairs(elements) if any(isinstance(each, Pairs) for each in collections) else list(elements)

    def fold(self, name: str, elements: list[Any], add: Callable[[Iterable[Any]], Any]) -> list[Any]:
        """Returns one element: the sum of all."""
        return [add(elements)]


def _by_key(pairs: Collection) -> dict[Any, Any]:
    return (pairs if isinstance(pairs, Pairs) else Pairs(pairs)).groups
