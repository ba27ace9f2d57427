"""Runs a job on the runner that the options name."""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from c4pipe.errors import C4pipeError, LostDataError, UsageError
from c4pipe.io.paths import StoragePath, remove_tree
from c4pipe.io.words import plain_reason
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.local_flow import LOCAL, Workers, run_here
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import find_runner
from c4pipe.runners.worker import is_limit, limit_error

_ERROR_LINE = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)


@contextlib.contextmanager
def spill_folder(options: RunnerOptions, near: StoragePath) -> Iterator[str]:
    """Yields the folder for bytes between two steps (see `Spill`), or "" for a runner that moves bytes itself.

    The folder is inside `near`, whose owner removes it; the folder of a run that was stopped is removed first. If
    `near` is in an object store, the runner of this machine gets a temporary folder.
    """
    is_shared, is_here = find_runner(options.runner).shares_files, isinstance(near, Path)
    if is_shared or (options.is_local and is_here):
        remove_tree(near / "_spill")
        yield f"{'file://' if is_shared and is_here else ''}{near.absolute() / '_spill'}"
    elif options.is_local:
        with tempfile.TemporaryDirectory(prefix="c4pipe-") as folder:
            yield folder
    else:
        yield ""


def check_runner(options: RunnerOptions) -> None:
    """Looks up the runner that the options name, and checks its options. Starts nothing.

    Raises UsageError for a runner that does not exist or is not installed, or for an option that it does not have.
    """
    find_runner(options.runner).check_options(options)


def run_job(
    graph: Callable[[Flow], None],
    options: RunnerOptions,
    tasks: int,
    progress: Progress | None = None,
    workers: Workers | None = None,
) -> None:
    """Runs a job to its end.

    Args:
        graph: connects the steps of the job.
        options: the runner and its options.
        tasks: the number of independent tasks; on this machine it limits the number of processes.
        progress: gets another runner's id of the job, and notes for the user.
        workers: processes of this machine that work for several jobs; None to start them for this job alone.

    Raises UsageError as `check_runner`, C4pipeError with the cause in one sentence if a step fails, JobWritten if the
    job is written to a file instead.
    """
    try:
        runner = find_runner(options.runner)
        run = partial(run_here, workers=workers) if workers and runner is LOCAL else runner.run
        run(graph, options, tasks, progress or Progress())
    except Exception as error:
        if was_stopped(error):
            raise KeyboardInterrupt from error
        if isinstance(error, C4pipeError):
            raise
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
