"""What runs a pipeline: a local runner that loses nothing, or whatever Beam's own options name."""

import contextlib
import logging
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, PortableOptions, StandardOptions
from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.portability.fn_api_runner.fn_runner import ExtendedProvisionInfo, FnApiRunner
from apache_beam.runners.portability.portable_runner import JobServiceHandle
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from c4pipe.errors import C4pipeError, JobWritten, LostDataError, UsageError
from c4pipe.options import Engine
from c4pipe.storage import Place

LOCAL = ("LocalRunner", "DirectRunner", "FnApiRunner")
"""Names that mean this machine. Beam's own DirectRunner may try to download another runner."""

_ERROR_LINE = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)


class LocalRunner(FnApiRunner):
    """Beam's FnApiRunner, in memory with one worker, in processes with more.

    Beam 2.77 loses elements between processes, silently, when its data stream is flushed by a timer while it
    is written to; without the timer it is flushed by size alone, and exact. And it hands its worker processes
    no pipeline options, which this does.
    """

    def __init__(self, workers: int, options: PipelineOptions) -> None:
        # exec: the worker is our child, not its shell's
        command = "exec " + shlex.join([sys.executable, "-m", "c4pipe.worker", str(os.getpid())])
        encoded = JobServiceHandle.encode_pipeline_options(options.get_all_options(drop_default=True))
        super().__init__(
            default_environment=SubprocessSDKEnvironment.from_command_string(command) if workers > 1 else None,
            provision_info=ExtendedProvisionInfo(
                beam_provision_api_pb2.ProvisionInfo(retrieval_token="unused-retrieval-token", pipeline_options=encoded)
            ),
        )

    def run_pipeline(self, pipeline: beam.Pipeline, options: PipelineOptions) -> Any:
        """Runs a pipeline to its end, without Beam's timed flush."""
        with _no_timed_flush():
            return super().run_pipeline(pipeline, options)


@contextlib.contextmanager
def _no_timed_flush() -> Iterator[None]:
    before = worker_handlers.DATA_BUFFER_TIME_LIMIT_MS
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0
    try:
        yield
    finally:
        worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = before


def is_local(engine: Engine) -> bool:
    """Tells whether the engine is this machine, with LocalRunner."""
    name = PipelineOptions(list(engine.beam)).view_as(StandardOptions).runner
    return name is None or name in LOCAL


@contextlib.contextmanager
def spill_folder(engine: Engine, near: Place) -> Iterator[str]:
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


def run(construct: Callable[[beam.Pipeline], Any], engine: Engine, tasks: int) -> None:
    """Runs a pipeline to its end.

    Args:
        construct: adds the steps to a pipeline.
        engine: what to run it on.
        tasks: independent pieces of work there are; locally no more processes than that are started.

    Raises UsageError where --workers is given for an engine that has its own, C4pipeError with the cause in a
    sentence where a step fails, JobWritten where the job goes to a file.
    """
    options = PipelineOptions(list(engine.beam))
    remote = not is_local(engine)
    if remote and engine.workers is not None:
        name = options.view_as(StandardOptions).runner
        raise UsageError(f"--workers {engine.workers} is for this machine; {name} takes its own option for it")
    try:
        if remote:
            pipeline = beam.Pipeline(options=options)
        else:
            workers = max(1, min(engine.workers or os.cpu_count() or 1, tasks))
            options.view_as(DirectOptions).direct_num_workers = workers
            pipeline = beam.Pipeline(runner=LocalRunner(workers, options), options=options)
        construct(pipeline)
        with _logs() if remote and not engine.quiet else contextlib.nullcontext():
            pipeline.run().wait_until_finish()
        if job := options.view_as(PortableOptions).output_executable_path:
            raise JobWritten(f"the job is in {job}: submit it, then give the same command without that option")
    except JobWritten:
        raise
    except Exception as error:
        cause = failure(error)
        if str(cause).startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from error
        raise cause from error


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
def _logs() -> Iterator[None]:
    """Shows the log of a remote engine's client: job ids, links, states; not that of workers in this process."""
    logger, handler = logging.getLogger("apache_beam.runners"), logging.StreamHandler()
    handler.addFilter(lambda record: not record.name.startswith("apache_beam.runners.worker"))
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
