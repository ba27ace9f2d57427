"""Runs a job in processes of this machine, and its entry in the table of runners.

Beam does not run them: its import and its graph take two to three seconds in each process, and its local runner loses
elements between processes, because a flush by time races the writer (2.77). Plain processes run the same graph and give
the same bytes.

On Linux, workers are forks of a server that imports their modules while the command makes its plan. In `build`, the
same processes work for `clean` and for `dedup` (`Workers`). A step begins when its input is complete. Elements that are
added up stay in the command's own process: it reads the examples of the report while workers write shards, and
publishes the corpus while they end.
"""

import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.log import LOG
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.machine_limits import WorkerLimit, allowed_workers
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import Runner
from c4pipe.runners.worker import release_memory

if TYPE_CHECKING:
    from c4pipe.runners.worker_pool import WorkerPool


class PackedValues:
    """Many bytes objects, stored in a single block of memory. They can be read more than once."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends = array("Q")

    def append(self, value: bytes) -> None:
        """Adds a value. Raises TypeError if it is not bytes."""
        if not isinstance(value, bytes):
            raise TypeError(f"a value is {type(value).__name__}, others of its key are bytes")
        self._data += value
        self._ends.append(len(self._data))

    def __iter__(self) -> Iterator[bytes]:
        data, start = memoryview(self._data), 0
        for end in self._ends:
            yield bytes(data[start:end])
            start = end


class Pairs:
    """Pairs (key, value).

    Attributes:
        groups: by key, the values, in the order in which they came.
    """

    def __init__(self, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        """Takes the first pairs."""
        self.groups: dict[Any, PackedValues | list[Any]] = {}
        for pair in pairs:
            self.append(pair)

    def append(self, pair: tuple[Any, Any]) -> None:
        """Adds a pair. Raises TypeError if the first value of its key is bytes, and this value is not."""
        key, value = pair
        if key not in self.groups:
            self.groups[key] = PackedValues() if isinstance(value, bytes) else []
        self.groups[key].append(value)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for key, values in self.groups.items():
            for value in values:
                yield key, value


Collection = list[Any] | Pairs
"""Elements, or the output of a step: pairs, or reports to add up."""


class Sum(list[Any]):
    """The one element that `combine` gives."""


class Workers:
    """The worker processes of consecutive jobs: a context manager that ends the processes.

    They start when a job first needs them. The next job uses the same processes, unless it needs another number.
    """

    def __init__(self) -> None:
        self._pool: WorkerPool | None = None
        self._count = 0
        self._ending: threading.Thread | None = None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end(failed=kind is not None)

    def pool(self, count: int, module: str) -> "WorkerPool":
        """Returns this number of processes. Processes that have to be started import `module`."""
        if self._pool is None or self._count != count:
            self.end()
            from c4pipe.runners.worker_pool import WorkerPool  # a single worker needs no multiprocessing

            self._pool, self._count = WorkerPool(count, module), count
        return self._pool

    def end(self, failed: bool = False) -> None:
        """Ends the processes, after a failure at once; returns when they have ended."""
        pool, self._pool = self._pool, None
        if pool:
            pool.close(failed)
        if self._ending:
            self._ending.join()

    def end_meanwhile(self) -> None:
        """Begins to end the processes in a thread; `end` waits for them."""
        pool, self._pool = self._pool, None
        if pool:
            self._ending = threading.Thread(target=pool.close, args=(False,), name="end workers")
            self._ending.start()


class LocalFlow:
    """Runs each step at once when it is added: in this process with one worker, in several processes with more.

    Several processes also work on the next steps, until an output of a step is used. A step whose input is a sum runs
    in the main process, which has the reports.
    """

    def __init__(self, count: int, workers: Workers | None = None) -> None:
        """Takes the number of workers, and the workers of several jobs; None to start workers for this job alone."""
        self._count = count
        self._workers = workers or Workers()
        self._has_own = workers is None
        self._running: list[_Outputs] = []

    def __enter__(self) -> "LocalFlow":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        failed = True
        try:
            if kind is None:
                for outputs in self._running:
                    outputs.wait()
                failed = False
        finally:
            if failed or self._has_own:
                self._workers.end(failed)

    def create(self, name: str, elements: Sequence[Any]) -> list[Any]:
        """Returns these elements."""
        return list(elements)

    def map(self, name: str, elements: list[Any], step: Step) -> Mapping[str, Collection]:
        """Applies a step to each element and returns its outputs, by name."""
        if isinstance(elements, Sum) and not any(each.runs for each in self._running):
            self._workers.end_meanwhile()  # the next steps are the end of the job
        if self._count == 1 or isinstance(elements, Sum):
            return by_name(step, self._results(elements, step))
        pool = self._workers.pool(self._count, type(step).__module__)
        outputs = _Outputs(step, pool.apply(step, elements))
        self._running = [*(each for each in self._running if each.runs), outputs]
        return outputs

    def _results(self, elements: list[Any], step: Step) -> Iterator[list[tuple[str, Any]]]:
        step.setup()
        try:
            yield from _lightened(list(step.process(element)) for element in elements)
        finally:
            step.teardown()

    def group_by_key(self, name: str, pairs: Collection) -> list[Any]:
        """Groups pairs (key, value) by key: returns pairs (key, values)."""
        return sorted(_by_key(pairs).items(), key=itemgetter(0))

    def co_group_by_key(self, name: str, **pairs: Collection) -> list[Any]:
        """Groups several collections of pairs (key, value): returns pairs (key, values by the collection's name)."""
        groups: dict[Any, dict[str, Any]] = {}
        for collection, some in pairs.items():
            for key, values in _by_key(some).items():
                groups.setdefault(key, {each: [] for each in pairs})[collection] = values
        return sorted(groups.items(), key=itemgetter(0))

    def flatten(self, name: str, *collections: Collection) -> Collection:
        """Returns the elements of all collections, which are of one kind."""
        elements = chain.from_iterable(collections)
        return Pairs(elements) if any(isinstance(each, Pairs) for each in collections) else list(elements)

    def combine(self, name: str, elements: list[Any], add: Callable[[Iterable[Any]], Any]) -> list[Any]:
        """Returns one element: the sum of all."""
        return Sum([add(elements)])


def _by_key(pairs: Collection) -> dict[Any, Any]:
    return (pairs if isinstance(pairs, Pairs) else Pairs(pairs)).groups


class _Outputs(Mapping[str, Collection]):
    """The outputs of a step that may still run: access to an output waits for the end of the step."""

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
            self._outputs = by_name(self._step, _lightened(self._results()))
            self._results = None  # the function holds the elements, too

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


def by_name(step: Step, results: Iterable[list[tuple[str, Any]]]) -> dict[str, Collection]:
    """Returns the outputs of a step, by name, given the named outputs of each element."""
    outputs: dict[str, Collection] = {output: [] if output in step.sums else Pairs() for output in step.outputs}
    for some in results:
        for output, element in some:
            outputs[output].append(element)
    return outputs


def local_workers(options: RunnerOptions, tasks: int) -> WorkerLimit:
    """Returns how many processes of this machine run a job, and why.

    Args:
        options: the runner and its options; `workers` is None for as many as this machine allows.
        tasks: the number of independent tasks.
    """
    allowed = WorkerLimit(options.workers, "--workers") if options.workers else allowed_workers()
    return min(allowed, WorkerLimit(max(1, tasks), f"{tasks:,} to do"), key=lambda limit: limit.most)


def run_here(
    graph: Callable[[Flow], None],
    options: RunnerOptions,
    tasks: int,
    progress: Progress,
    workers: Workers | None = None,
) -> None:
    """Runs a job to its end in processes of this machine, or in the processes of `workers`.

    Raises C4pipeError if a process is killed, and the errors of the steps.
    """
    count, reason = local_workers(options, tasks)
    LOG.info("runner: this machine, %d %s (%s)", count, "process" if count == 1 else "processes", reason)
    try:
        with LocalFlow(count, workers) as flow:
            graph(flow)
    except BrokenExecutor as error:
        raise C4pipeError(
            "a worker process was killed, perhaps because memory ran out: the same command continues from here, "
            "--workers with a smaller number takes less memory"
        ) from error


def _refuse_options(given: Sequence[str]) -> tuple[str, ...]:
    raise UsageError(f"{given[0]} is an option of another runner than this machine: name it with --runner")


LOCAL = Runner(title="this machine", run=run_here, read_options=_refuse_options, options="")
