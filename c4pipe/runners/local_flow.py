"""Runs a job in processes of this machine, without Beam.

Beam's import and its graph take seconds, and its local runner loses elements between processes (2.77).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    """Runs each step at once when it is added: in this process with one worker, in several processes with more.

    Several processes work on the next steps, too, until an output of a step is used.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: WorkerPool | None = None
        self._running: list[_Outputs] = []

    def __enter__(self) -> "LocalFlow":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool:
            failed = True
            try:
                if kind is None:
                    for outputs in self._running:
                        outputs.wait()
                    failed = False
            finally:
                self._pool.close(failed)

    def create(self, name: str, elements: Sequence[Any]) -> list[Any]:
        """Returns these elements."""
        return list(elements)

    def do(self, name: str, elements: list[Any], step: Step) -> Mapping[str, Collection]:
        """Applies a step to each element and returns its outputs, by name."""
        if self._workers == 1:
            return _by_name(step, self._results(elements, step))
        if self._pool is None:
            from c4pipe.runners.worker_pool import WorkerPool  # one worker alone needs no multiprocessing

            self._pool = WorkerPool(self._workers, type(step).__module__)
        outputs = _Outputs(step, self._pool.apply(step, elements))
        self._running = [*(each for each in self._running if each.runs), outputs]
        return outputs

    def _results(self, elements: list[Any], step: Step) -> Iterator[list[tuple[str, Any]]]:
        step.setup()
        try:
            yield from _lightened(list(step.process(element)) for element in elements)
        finally:
            step.teardown()

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


class _Outputs(Mapping[str, Collection]):
    """The outputs of a step that may still run: whoever asks for one waits for its end."""

    def __init__(self, step: Step, results: Callable[[], Iterator[list[tuple[str, Any]]]]) -> None:
        self._step = step
        self._results: Callable[[], Iterator[list[tuple[str, Any]]]] | None = results
        self._outputs: dict[str, Collection] = {}

    @property
    def runs(self) -> bool:
        """Whether nobody has waited for the end of the step yet."""
        return self._results is not None

    def wait(self) -> None:
        """Waits for the end of the step. Raises its first failure."""
        if self._results is not None:
            self._outputs = _by_name(self._step, _lightened(self._results()))
            self._results = None  # which holds the elements, too

    def __getitem__(self, name: str) -> Collection:
        self.wait()
        return self._outputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._step.outputs)

    def __len__(self) -> int:
        return len(self._step.outputs)


def _lightened(results: Iterable[list[tuple[str, Any]]]) -> Iterator[list[tuple[str, Any]]]:
    for some in results:
        yield some
        release_memory()


def _by_name(step: Step, results: Iterable[list[tuple[str, Any]]]) -> dict[str, Collection]:
    outputs: dict[str, Collection] = {output: [] if output in step.sums else Pairs() for output in step.outputs}
    for some in results:
        for output, element in some:
            outputs[output].append(element)
    return outputs
