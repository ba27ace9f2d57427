"""Runs a job's graph on Ray: as tasks, whose results are in Ray's object store, which spills them to disk.

A task returns one block for each partition, and the elements that are only added up. The next tasks read values from
the store without a copy of the block, and copy one group at a time. This process owns all blocks: Ray makes lost blocks
again by running their tasks again, and frees blocks when the graph drops the shuffle.
"""

import os
import pickle
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import ray
from ray import exceptions

from c4pipe.errors import C4pipeError
from c4pipe.io.log import LOG
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.machine_limits import allowed_cores
from c4pipe.runners.partitions import SUMS, Created, Joined, PartitionedFlow, StepOutput, groups, placed, work

_MOST = 1000
"""Tasks of a step and partitions of a shuffle, at most: each task has a result for each partition, and Ray needs about
0.3 ms for each, and a kB of this process's memory."""

_EACH = 4
"""Elements of a task, and groups of a partition, at most, up to `_MOST` tasks: their results are in memory."""

_RETRIES = 4
"""How often a task is tried again after its process or node was lost, or to make a lost result again."""

_IN_FLIGHT = 4
"""Tasks for each core that Ray has at a time: enough to keep it busy, and for its autoscaler to see what waits."""

_CONNECT_SECONDS = 10.0

_QUIET_MINUTES = 10.0
"""After so many minutes without the end of a task, the user is told: a Ray without space waits without an error."""

_Row: TypeAlias = "list[ray.ObjectRef[Any]]"
"""The results of one task: first pairs (label, element) that are only added up, then a block for each partition."""


class _Block(NamedTuple):
    """The pairs of one task for one partition.

    Attributes:
        heads: the label and key of each pair, whether its value is bytes or pickled, and the end of the value.
        values: all values, which a task reads from Ray's object store without a copy.
    """

    heads: list[tuple[str, Any, bool, int]]
    values: npt.NDArray[np.uint8]


class RayFlow(PartitionedFlow):
    """Runs each step to its end when it is added, as tasks of Ray. See `flow.Flow`."""

    def __init__(self, tasks: int, on_note: Callable[[str], None]) -> None:
        """Takes the number of independent tasks of the job, and what gets a sentence about a step that waits."""
        self._count = _count_tasks(tasks)
        self._on_note = on_note

    def map(self, name: str, elements: Created | Joined, step: Step) -> Mapping[str, list[StepOutput]]:
        """Runs a step to its end, and returns its outputs, by name."""
        labels = {output: f"{name}: {output}" for output in step.outputs}
        count = self._count if set(labels) - set(step.sums) else 0
        remote = ray.remote(_apply).options(
            name=name, num_returns=1 + count, max_retries=_RETRIES, scheduling_strategy="SPREAD"
        )
        task = partial(remote.remote, _versions(), ray.put(pickle.dumps(step)), labels, step.sums, count)
        if isinstance(elements, Created):
            size = -(-len(elements.elements) // _count_tasks(len(elements.elements))) if count else 1
            each = iter(elements.elements)
            calls = (partial(task, None, None, some) for some in iter(lambda: list(islice(each, size)), []))
        else:
            rows = [row for shuffled in elements.shuffles for row in shuffled]
            calls = (
                partial(task, elements.names, elements.element, *(row[number] for row in rows))
                for number in range(1, 1 + self._count)
            )
        made = _run_all(calls, partial(self._note_wait, name))
        return {output: [StepOutput(made, label)] for output, label in labels.items()}

    def _note_wait(self, name: str, minutes: float) -> None:
        self._on_note(
            f'Ray: no task of the step "{name}" has ended for {minutes:g} minutes: the tasks may be long, or Ray waits '
            "for nodes, memory, or space on the disk to which it spills; ray status and df say which"
        )

    def combine(self, name: str, elements: list[StepOutput], add: Callable[[Iterable[Any]], Any]) -> Created:
        """Returns one element: the sum of all."""
        rows = ((row, label) for made, label in elements for row in made)
        return Created(name, [add(each for row, label in rows for of, each in ray.get(row[SUMS]) if of == label)])

    def shuffle(self, created: Created) -> list[StepOutput]:
        """Returns created pairs as the output of a step."""
        results = placed({"": created.name}, (), self._count, (("", pair) for pair in created.elements))
        return [StepOutput([[ray.put(each) for each in _pack_results(results, self._count)]], created.name)]


def _count_tasks(elements: int) -> int:
    """Returns how many tasks do the work on elements: two for each core, or more for many elements."""
    return max(1, min(elements, _MOST, max(2 * _count_cores(), -(-elements // _EACH))))


def _count_cores() -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _run_all(calls: Iterable[Callable[[], Any]], on_wait: Callable[[float], None]) -> list[_Row]:
    """Starts tasks, a bounded number at a time, waits for all, and returns their results. Raises the first error.

    If one fails, or at Ctrl-C, running tasks are cancelled. `on_wait` gets the minutes in which no task has ended, at
    longer and longer intervals.
    """
    rows: list[_Row] = []
    running: list[ray.ObjectRef[Any]] = []

    def wait(left: int) -> None:
        nonlocal running
        waited = 0.0
        while len(running) > left:
            step = waited or _QUIET_MINUTES
            done, running = ray.wait(running, timeout=60 * step)
            ray.get(done)
            waited = 0.0 if done else waited + step
            if waited:
                on_wait(waited)

    try:
        for call in calls:
            wait(_IN_FLIGHT * _count_cores() - 1)
            made = call()
            rows.append(made if isinstance(made, list) else [made])
            running.append(rows[-1][SUMS])
        wait(0)
    except BaseException:
        for each in reversed(running):  # waiting tasks first, so that none begins meanwhile
            ray.cancel(each, force=True)  # otherwise a step that waits, as for the network, goes on
        raise
    return rows


def _apply(
    expected: str,
    packed: bytes,
    labels: Mapping[str, str],
    sums: Sequence[str],
    count: int,
    names: Mapping[str, Sequence[str]] | None,
    make_element: Callable[[Any, dict[str, list[Any]]], Any],
    *given: Any,
) -> Any:
    """Applies a step to elements, or to the groups of blocks if there are names. Returns a `_Row`, by value."""
    if expected != (found := _versions()):
        raise C4pipeError(f"a worker of Ray has {found}, and this command {expected}: install the same on all nodes")
    elements = groups(names, partial(_make_with_values, make_element), _read_pairs(given)) if names else given[0]
    made = _pack_results(placed(labels, sums, count, work(packed, elements)), count)
    return made if count else made[0]


def _versions() -> str:
    return f"c4pipe {version('c4pipe')} with Python {sys.version_info.major}.{sys.version_info.minor}"


def _pack_results(results: Iterable[tuple[int, tuple[str, Any]]], count: int) -> list[Any]:
    """Returns the elements that are only added up, and for each partition a block, or None if it is empty."""
    sums: list[tuple[str, Any]] = []
    heads: list[list[tuple[str, Any, bool, int]]] = [[] for _ in range(count)]
    values = [bytearray() for _ in range(count)]
    for number, (label, element) in results:
        if number == SUMS:
            sums.append((label, element))
            continue
        key, value = element
        is_bytes, data = isinstance(value, bytes), values[number - 1]
        data += value if is_bytes else pickle.dumps(value)
        heads[number - 1].append((label, key, is_bytes, len(data)))
    blocks = (_Block(some, np.frombuffer(data, np.uint8)) for some, data in zip(heads, values, strict=True))
    return [sums, *(block if block.heads else None for block in blocks)]


def _read_pairs(blocks: Iterable[_Block | None]) -> Iterator[tuple[int, tuple[str, Any]]]:
    """Yields the pairs of blocks as `groups` takes them, with the place of each value instead of the value."""
    for block in blocks:
        start = 0
        for label, key, is_bytes, end in block.heads if block else ():
            yield 0, (label, (key, (block.values, start, end, is_bytes)))  # type: ignore[union-attr]
            start = end


def _make_with_values(
    make_element: Callable[[Any, dict[str, list[Any]]], Any], key: Any, places: dict[str, list[Any]]
) -> Any:
    """Makes an element of a group from its values: memory holds the values of one group."""
    return make_element(key, {name: [_read_value(*place) for place in some] for name, some in places.items()})


def _read_value(values: npt.NDArray[np.uint8], start: int, end: int, is_bytes: bool) -> Any:
    data = values[start:end].tobytes()
    return data if is_bytes else pickle.loads(data)


def run_on_ray(graph: Callable[[Flow], None], tasks: int, progress: Progress) -> None:
    """Runs a job to its end on Ray.

    If Ray is initialised, as in a notebook, it is used as it is. Otherwise this process joins the cluster that
    RAY_ADDRESS names or that runs on this machine, or starts Ray here. It stays until the process ends, so the next job
    can use it.

    Args:
        graph: connects the steps of the job.
        tasks: the number of independent tasks.
        progress: gets Ray's id of the job, and a sentence if no task ends for a long time.

    Raises C4pipeError if there is no such cluster, if a worker is killed or a node lost again and again, if the disk
    where Ray spills is full, or if a worker has other versions; and the errors of the steps.
    """
    if not ray.is_initialized():
        _connect()
    context = ray.get_runtime_context()
    progress.runs_as(f"ray-{context.get_job_id()}")
    nodes = sum(node["Alive"] for node in ray.nodes())
    LOG.info(
        "runner: ray, Ray %s at %s, nodes %d, cores %d", ray.__version__, context.gcs_address, nodes, _count_cores()
    )
    try:
        graph(RayFlow(tasks, progress.note))
    except exceptions.RayError as error:
        _raise_cause(error)


def _connect() -> None:
    """Joins a cluster, or starts Ray on this machine, without its dashboard and without telling its makers."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or Ray warns about a coming change
    named = os.environ.get("RAY_ADDRESS", "")
    address = named or _find_address()
    if not address or not _answers(address):
        if named:
            raise C4pipeError(
                f"there is no Ray cluster at {named} (RAY_ADDRESS): start one with ray start --head, or unset the "
                "variable to run on this machine"
            )
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init("local", num_cpus=allowed_cores().most, include_dashboard=False, **quiet)
        return
    try:
        ray.init(named or "auto", **quiet)  # for "auto", Ray reads its token of this machine
    except (ConnectionError, RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise C4pipeError(
            f"this process can't join the Ray cluster at {address} ({why}): it needs the cluster's versions of Ray and "
            "Python, and RAY_AUTH_MODE=token if the cluster has a token"
        ) from error


def _answers(address: str) -> bool:
    """Tells whether something answers there: Ray itself waits for minutes, and logs."""
    host, _, port = address.rpartition(":")
    try:
        if host:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        return True
    except (OSError, ValueError):
        return False


def _find_address() -> str:
    """Returns the address that `ray start` has noted on this machine, or "". Its cluster may have died."""
    try:
        return (Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster").read_text().strip()
    except OSError:
        return ""


def _raise_cause(error: exceptions.RayError) -> NoReturn:
    """Raises the error of a task, or a sentence about the cluster."""
    cause: BaseException = error
    while isinstance(cause, exceptions.RayTaskError) and isinstance(cause.cause, BaseException):
        cause = cause.cause
    goes_on = "the same command continues from here"
    if isinstance(cause, exceptions.OutOfDiskError | exceptions.ObjectStoreFullError):
        raise C4pipeError(
            "Ray's object store is full, and so is the disk to which it spills: free space there, or start Ray with "
            f"another --object-spilling-directory, and {goes_on}"
        ) from error
    if isinstance(cause, exceptions.WorkerCrashedError | exceptions.OutOfMemoryError | exceptions.NodeDiedError):
        raise C4pipeError(
            f"a worker process of Ray was killed {1 + _RETRIES} times, perhaps because memory ran out: give nodes more "
            f"memory or fewer cores (ray start --num-cpus), and {goes_on}"
        ) from error
    if isinstance(cause, exceptions.ObjectLostError):
        raise C4pipeError(
            f"a node of the Ray cluster was lost, and what it held could not be made again: {goes_on}"
        ) from error
    raise cause from error
