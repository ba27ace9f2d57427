"""The runner of this machine: processes of c4pipe's own."""

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.log import LOG
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.local_flow import LocalFlow, Workers
from c4pipe.runners.machine_limits import WorkerLimit, allowed_workers
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import Runner


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
    """Runs a job to its end in processes of this machine, those of `workers` if they are given.

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


def _refuse(given: Sequence[str]) -> tuple[str, ...]:
    raise UsageError(f"{given[0]} is an option of another runner than this machine: name it with --runner")


LOCAL = Runner(title="this machine", run=run_here, read_options=_refuse, options="")
