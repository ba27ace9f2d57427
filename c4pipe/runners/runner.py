"""Runs a job: in processes of this machine, on Spark, or on the Beam runner that the options name."""

import contextlib
import importlib.util
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path

from c4pipe.errors import C4pipeError, LostDataError, UsageError
from c4pipe.io.paths import StoragePath, remove_tree
from c4pipe.io.words import plain_reason
from c4pipe.runners.events import LOG
from c4pipe.runners.flow import Flow
from c4pipe.runners.local_flow import LocalFlow, Workers
from c4pipe.runners.machine_limits import Limit, allowed_workers
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.worker import is_limit, limit_error

_SPARK_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|yarn|(spark|k8s|mesos)://.+")
_ERROR_LINE = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)


@contextlib.contextmanager
def spill_folder(options: RunnerOptions, near: StoragePath) -> Iterator[str]:
    """Yields the folder for bytes between two steps on this machine (see `Spill`), or "" for another runner.

    It is inside the folder `near`, whose owner removes it; that of a run that was stopped is removed first. If `near`
    is in an object store, it is a temporary folder.
    """
    if options.runner is not None:
        yield ""
    elif isinstance(near, Path):
        remove_tree(near / "_spill")
        yield str(near / "_spill")
    else:
        with tempfile.TemporaryDirectory(prefix="c4pipe-") as folder:
            yield folder


def check_runner(options: RunnerOptions) -> None:
    """Looks up the runner that the options name, and checks its options. Starts nothing.

    Raises UsageError for a runner that does not exist or is not installed, or for an option that it does not have.
    """
    master = options.spark_master
    if master is not None and not _SPARK_MASTER.fullmatch(master):
        raise UsageError(
            f"--spark-master {master} is no master of Spark: give one such as local[2], spark://HOST:7077, yarn or "
            "k8s://https://HOST:6443"
        )
    if options.is_spark and importlib.util.find_spec("pyspark") is None:
        raise UsageError("--runner spark needs PySpark, which is not installed: pip install 'c4pipe[spark]'")
    if options.runner is not None and not options.is_spark:
        if importlib.util.find_spec("apache_beam") is None:
            raise UsageError(
                f"--runner {options.runner} needs Apache Beam, which is not installed: pip install apache-beam"
            )
        from c4pipe.runners.beam_options import find_runner

        find_runner(options)


def local_workers(options: RunnerOptions, tasks: int) -> Limit:
    """Returns how many processes of this machine run a job, and why.

    Args:
        options: the runner and its options; `workers` is None for as many as this machine allows.
        tasks: the number of independent tasks.
    """
    allowed = Limit(options.workers, "--workers") if options.workers else allowed_workers()
    return min(allowed, Limit(max(1, tasks), f"{tasks:,} to do"), key=lambda limit: limit.most)


def run_job(
    graph: Callable[[Flow], None],
    options: RunnerOptions,
    tasks: int,
    runs_as: Callable[[str], None] = lambda job: None,
    workers: Workers | None = None,
) -> None:
    """Runs a job to its end.

    Args:
        graph: connects the steps of the job.
        options: the runner and its options.
        tasks: the number of independent tasks; on this machine it limits the number of processes.
        runs_as: called with another runner's id of the job, if it has one.
        workers: the processes of this machine that work for several jobs, one after the other; None to start them for
            this job alone.

    Raises UsageError as `check_runner`, C4pipeError with the cause in one sentence if a step fails, JobWritten if the
    job is written to a file instead.
    """
    try:
        if options.runner is None:
            count, reason = local_workers(options, tasks)
            LOG.info("runner: this machine, %d %s (%s)", count, "process" if count == 1 else "processes", reason)
            with LocalFlow(count, workers) as flow:
                graph(flow)
        elif options.is_spark:
            from c4pipe.runners.spark_runner import run_on_spark

            run_on_spark(graph, options, tasks, runs_as)
        else:
            from c4pipe.runners.beam_runner import run_on_beam

            run_on_beam(graph, options, runs_as)
    except Exception as error:
        if was_stopped(error):
            raise KeyboardInterrupt from error
        if isinstance(error, C4pipeError):
            raise
        if isinstance(error, BrokenExecutor):
            raise C4pipeError(
                "a worker process was killed, perhaps because memory ran out: the same command continues from here, "
                "--workers with a smaller number takes less memory"
            ) from error
        if is_limit(error):
            raise limit_error(error) from error
        cause = failure(error)
        if str(cause).startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from error
        raise cause from error


def was_stopped(error: BaseException) -> bool:
    """Tells whether an error was raised while Ctrl-C was handled, for example by a runner that was told to stop."""
    context = error.__context__
    return isinstance(error, KeyboardInterrupt) or (context is not None and was_stopped(context))


def failure(error: BaseException) -> C4pipeError:
    """Returns the cause of a failed pipeline in one sentence: Beam wraps it in the tracebacks of its workers."""
    text = re.sub(r"\s*\[while running .*", "", str(error)).strip()
    error_lines = _ERROR_LINE.findall(text)
    kind, message = error_lines[-1] if error_lines else (type(error).__name__, text or "no message")
    while inner := _ERROR_LINE.match(message):  # an error whose message is another error
        kind, message = inner.groups()
    message = plain_reason(message)
    own = {kind.__name__: kind for kind in (C4pipeError, LostDataError, UsageError)}
    if kind in own:
        return own[kind](message)
    of_system = isinstance(error, OSError) or kind == OSError.__name__
    return C4pipeError(message if of_system else f"{message} ({kind})")
