"""Worker processes of this machine. On Linux, they are forks of a server that has imported their modules."""

import contextlib
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, BrokenExecutor, ProcessPoolExecutor, wait
from multiprocessing import forkserver, resource_tracker, set_forkserver_preload
from types import ModuleType
from typing import Any

from c4pipe.runners.flow import Step
from c4pipe.runners.worker import (
    add_cpu_seconds,
    cpu_seconds,
    initialise_worker,
    limit_error,
    release_memory,
    set_up_step,
)

if "from multiprocessing.forkserver" in " ".join(sys.orig_argv):  # in the server: if it can't fork, the run says so
    sys.excepthook = lambda *_: None

_OF_A_RUN, _OF_A_WORKER = 16, 2
"""Open files, and about as many threads and processes: of the run without workers, and of each worker."""

_STACK_BYTES = 1 << 18


def start_server(*modules: str) -> None:
    """On Linux, starts the server that forks workers, unless it runs already. The server imports these modules.

    It is the server of `multiprocessing`, of which a program has one. It ends when the program and all workers have
    ended, and no earlier than its imports.
    """
    if sys.platform != "linux":
        return
    set_forkserver_preload(["c4pipe.runners.worker_pool", *modules])
    with _named_limits():
        _check_room(_OF_A_RUN)
        # Ctrl-C reaches all processes. The server must ignore it, also while it still imports: it inherits this mask.
        resource_tracker.ensure_running()  # first: starting it unblocks SIGINT
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)


@contextlib.contextmanager
def _named_limits() -> Iterator[None]:
    """Raises C4pipeError if the code of the `with` block can't start a process or thread, or open a file."""
    try:
        yield
    except BrokenExecutor:
        raise
    except (OSError, EOFError, RuntimeError, MemoryError) as error:
        raise limit_error(error) from error


if sys.platform == "linux":
    from multiprocessing.context import ForkServerContext as Context
    from multiprocessing.context import ForkServerProcess as WorkerProcess
else:  # a fork is not safe everywhere: each worker starts, and imports all, by itself
    from multiprocessing.context import SpawnContext as Context
    from multiprocessing.context import SpawnProcess as WorkerProcess


def _check_room(count: int) -> None:
    """Raises OSError or RuntimeError if this process can't open `count` files and start `count` threads.

    Otherwise a pool could wait for ever for a thread or process that did not start. Limits count both alike.
    """
    done, before = threading.Event(), threading.stack_size(_STACK_BYTES)
    with contextlib.ExitStack() as ending:
        ending.callback(threading.stack_size, before)
        ending.callback(done.set)
        for _ in range(count):
            ending.callback(os.close, os.open(os.devnull, os.O_RDONLY))
            threading.Thread(target=done.wait, daemon=True).start()


class WorkerPool:
    """Processes that apply steps to elements."""

    def __init__(self, workers: int, module: str) -> None:
        """Starts the server of the processes, which imports the module of the first step, but no process yet."""
        start_server(module)
        self._processes: list[WorkerProcess] = []
        context = _RecordingContext(self._processes)
        with _named_limits():
            _check_room(_OF_A_RUN + workers * _OF_A_WORKER)
            self._executor = ProcessPoolExecutor(
                workers, context, initializer=initialise_worker, initargs=(dict(os.environ),)
            )

    def apply(self, step: Step, elements: Sequence[Any]) -> Callable[[], Iterator[list[tuple[str, Any]]]]:
        """Begins to apply a step to each element, and returns at once.

        The returned function waits, and yields the named outputs of each element. It raises the first failure. Call it
        once.
        """
        packed = pickle.dumps(step)
        with _named_limits():  # the first task starts the workers
            futures = deque(self._executor.submit(_process, packed, element) for element in elements)
            # The pool may list the workers to watch before the last one is started (Python 3.11). It would then notice
            # its death only when another worker returns something. One more task makes the pool list them again.
            self._executor.submit(_nothing)

        def results() -> Iterator[list[tuple[str, Any]]]:
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
            while futures:
                packed, seconds = futures.popleft().result()
                if sys.platform == "linux":  # elsewhere the workers are children of this process
                    add_cpu_seconds(seconds)
                yield pickle.loads(packed)

        return results

    def close(self, failed: bool) -> None:
        """Ends the processes. After a failure it ends them at once, because their results are not needed any more."""
        if failed:
            for process in self._processes:
                if process.pid is not None:  # it has started
                    process.terminate()
        with contextlib.suppress(*[RuntimeError] * failed):  # the pool's own thread may not have started
            self._executor.shutdown(cancel_futures=True)


class _RecordingContext(Context):
    """Starts processes as `multiprocessing` does, and records them: the pool has no public list of its processes."""

    def __init__(self, processes: list[WorkerProcess]) -> None:
        self._recorded = processes

    def Process(self, *arguments: Any, **keywords: Any) -> WorkerProcess:  # type: ignore[override]
        process = _LightProcess(*arguments, **keywords)
        self._recorded.append(process)
        return process


class _LightProcess(WorkerProcess):
    """A process that does not import the main module of the run; processes of `multiprocessing` usually do.

    Steps are never defined in the main module. So a script that calls `c4pipe.build_corpus` needs no `if __name__ ==
    "__main__"`, and no worker imports the modules of the script.
    """

    def start(self) -> None:
        """Starts the process while an empty module stands in for the main module."""
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            super().start()
        finally:
            sys.modules["__main__"] = main


def _nothing() -> None:
    pass


def _process(packed: bytes, element: Any) -> tuple[bytes, float]:
    """Applies a step to one element, in a worker process. Returns the pickled outputs and the CPU seconds.

    The outputs wait until all elements are done, and take much less memory as bytes than as objects.
    """
    before = cpu_seconds()
    step, _ = set_up_step(packed)
    try:
        made = pickle.dumps(list(step.process(element)))
        return made, cpu_seconds() - before
    finally:
        release_memory()
