"""Runs a job: in processes of this machine, or on the Beam runner that the options name."""

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from c4pipe.errors import C4pipeError, LostDataError, UsageError
from c4pipe.io import StoragePath
from c4pipe.runners.flow import Flow
from c4pipe.runners.local_flow import LocalFlow
from c4pipe.runners.runner_options import RunnerOptions, is_local, runner_name

_ERROR_LINE = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)


@contextlib.contextmanager
def spill_folder(options: RunnerOptions, near: StoragePath) -> Iterator[str]:
    """Gives the folder for bytes between two steps on this machine (see `Spill`), or "" for another runner.

    It is inside the folder `near`, whose owner removes it. If `near` is in an object store, it is a temporary folder.
    """
    if not is_local(options):
        yield ""
    elif isinstance(near, Path):
        yield str(near / "_spill")
    else:
        with tempfile.TemporaryDirectory(prefix="c4pipe-") as folder:
            yield folder


def run_job(
    graph: Callable[[Flow], None], options: RunnerOptions, tasks: int, runs_as: Callable[[str], None] = lambda job: None
) -> None:
    """Runs a job to its end.

    Args:
        graph: connects the steps of the job.
        options: what runs it.
        tasks: the number of independent tasks; on this machine no more processes than that are started.
        runs_as: called with the id by which another runner knows the job, where it gives one.

    Raises UsageError where an option is not for that runner, C4pipeError with the cause in one sentence where a step
    fails, JobWritten where the job is written to a file instead.
    """
    try:
        if is_local(options):
            with LocalFlow(max(1, min(options.workers or os.cpu_count() or 1, tasks))) as flow:
                graph(flow)
        else:
            if options.workers is not None:
                name = runner_name(options.beam)
                raise UsageError(f"--workers {options.workers} is for this machine; {name} has an option of its own")
            from c4pipe.runners.beam_runner import run_on_beam

            run_on_beam(graph, options, runs_as)
    except (C4pipeError, KeyboardInterrupt):
        raise
    except BrokenProcessPool as error:
        raise C4pipeError(
            "a worker process was killed, perhaps because memory ran out: the same command continues from here, "
            "--workers with a smaller number takes less memory"
        ) from error
    except Exception as error:
        cause = failure(error)
        if str(cause).startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from error
        raise cause from error


def failure(error: BaseException) -> C4pipeError:
    """Returns the cause of a failed pipeline in one sentence: Beam wraps it in the tracebacks of its workers."""
    text = re.sub(r"\s*\[while running .*", "", str(error)).strip()
    error_lines = _ERROR_LINE.findall(text)
    kind, message = error_lines[-1] if error_lines else (type(error).__name__, text or "no message")
    while inner := _ERROR_LINE.match(message):  # an error whose message is another error
        kind, message = inner.groups()
    own = {kind.__name__: kind for kind in (C4pipeError, LostDataError, UsageError)}
    return own[kind](message) if kind in own else C4pipeError(f"{message} ({kind})")
