"""What runs a job: the processes of this machine, or the engine that Beam's own options name."""

import argparse
import contextlib
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from c4pipe.errors import C4pipeError, JobWritten, LostDataError, UsageError
from c4pipe.io.paths import StoragePath
from c4pipe.runners.flow import Flow, LocalFlow


@dataclass(frozen=True)
class RunnerOptions:
    """What runs the pipelines.

    Attributes:
        workers: processes on this machine; None for one a core (at most one a file).
        beam: options for Beam, as on its command line; they name another runner, if any.
        quiet: whether the client of another engine says nothing of its jobs.
    """

    workers: int | None = None
    beam: tuple[str, ...] = ()
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--workers {self.workers}: there must be at least one")


LOCAL = ("LocalRunner", "DirectRunner", "FnApiRunner")
"""Names that mean this machine, as no name does. Beam's own runners for it lose elements between processes (2.77)."""

_ERROR_LINE = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)


def is_local(engine: RunnerOptions) -> bool:
    """Tells whether the engine is this machine, without Beam."""
    return _runner(engine) in (None, *LOCAL)


def _runner(engine: RunnerOptions) -> str | None:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--runner")
    found: str | None = parser.parse_known_args(engine.beam)[0].runner
    return found


@contextlib.contextmanager
def spill_folder(engine: RunnerOptions, near: StoragePath) -> Iterator[str]:
    """Gives the folder where bytes wait that travel on this machine; empty on other engines.

    It is in the folder `near`, which whoever has that removes, or on this machine's own disk if that is in a store.
    """
    if not is_local(engine):
        yield ""
    elif isinstance(near, Path):
        yield str(near / "_spill")
    else:
        with tempfile.TemporaryDirectory(prefix="c4pipe-") as folder:
            yield folder


def run(
    graph: Callable[[Flow], None], engine: RunnerOptions, tasks: int, runs_as: Callable[[str], None] = lambda job: None
) -> None:
    """Runs a job to its end.

    Args:
        graph: puts the steps together.
        engine: what to run it on.
        tasks: independent pieces of work there are; locally no more processes than that are started.
        runs_as: is told the id of the job on another engine, where that gives one.

    Raises UsageError where an option is not for that engine, C4pipeError with the cause in a sentence where a step
    fails, JobWritten where the job goes to a file.
    """
    try:
        if is_local(engine):
            with LocalFlow(max(1, min(engine.workers or os.cpu_count() or 1, tasks))) as flow:
                graph(flow)
        else:
            _run_on_beam(graph, engine, runs_as)
    except (C4pipeError, KeyboardInterrupt):
        raise
    except BrokenProcessPool as error:
        raise C4pipeError(
            "a worker process was killed, perhaps for want of memory: the same command goes on from here, "
            "--workers with a smaller number takes less"
        ) from error
    except Exception as error:
        cause = failure(error)
        if str(cause).startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from error
        raise cause from error


def _run_on_beam(graph: Callable[[Flow], None], engine: RunnerOptions, runs_as: Callable[[str], None]) -> None:
    if engine.workers is not None:
        raise UsageError(
            f"--workers {engine.workers} is for this machine; {_runner(engine)} takes its own option for it"
        )
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

    from c4pipe.runners.beam_flow import BeamFlow

    options = PipelineOptions(list(engine.beam))
    pipeline = beam.Pipeline(options=options)
    graph(BeamFlow(pipeline))
    with _logs(not engine.quiet):
        result = pipeline.run()
        if job := _job_id(result):
            runs_as(job)
        result.wait_until_finish()
    if job := options.view_as(PortableOptions).output_executable_path:
        raise JobWritten(f"the job is in {job}: submit it, then give the same command without that option")


def _job_id(result: object) -> str | None:
    """Returns the id of a job: Dataflow's result has a method for it, those of job servers keep it to themselves."""
    found = getattr(result, "job_id", None) or getattr(result, "_job_id", None)
    job = found() if callable(found) else found
    return str(job) if job else None


def failure(error: BaseException) -> C4pipeError:
    """Returns the cause of a failed pipeline, in a sentence: Beam wraps it in tracebacks of its workers."""
    text = re.sub(r"\s*\[while running .*", "", str(error)).strip()
    found = _ERROR_LINE.findall(text)
    kind, message = found[-1] if found else (type(error).__name__, text or "no message")
    while inner := _ERROR_LINE.match(message):  # an error that only carries another
        kind, message = inner.groups()
    own = {kind.__name__: kind for kind in (C4pipeError, LostDataError, UsageError)}
    return own[kind](message) if kind in own else C4pipeError(f"{message} ({kind})")


@contextlib.contextmanager
def _logs(shown: bool) -> Iterator[None]:
    """Lets a remote engine's client log job ids, links and states; shows them, but for workers in this process."""
    logger, handler = logging.getLogger("apache_beam.runners"), logging.StreamHandler()
    handler.addFilter(lambda record: not record.name.startswith("apache_beam.runners.worker"))
    before = logger.level
    logger.setLevel(logging.INFO)
    if shown:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
