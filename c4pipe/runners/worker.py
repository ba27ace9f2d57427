"""The begin and end of c4pipe's own processes: they stay small, end with their run, and report limits."""

import contextlib
import ctypes
import errno
import gc
import logging
import os
import pickle
import signal
import sys
import threading
import time
from types import ModuleType

from c4pipe.errors import C4pipeError
from c4pipe.io.words import error_reason
from c4pipe.runners.flow import Step

_LIMITS = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_LIMIT_WORDS = ("can't start new thread", "failed to map segment", "cannot allocate memory")  # of Python and the linker

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's malloc.h
_LARGE_BYTES = 4 * 1024 * 1024
_TRIM_THRESHOLD = -1  # M_TRIM_THRESHOLD
_TRIM_BYTES = 16 * 1024 * 1024
_RELEASE_SECONDS = 1.0  # between two releases of memory, at least
_next_release = time.monotonic() + _RELEASE_SECONDS
_DOCSTRINGS = "pyarrow.vendored.docscrape"
_COLLECTED_AT = 100_000  # further objects before a search: pages are in no cycles, and imported objects stay


class _WithoutPandas:
    """Imports pandas as if it were not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


class _WithoutParameters(ModuleType):
    """Stands for the parser of docstrings with which pyarrow.compute writes the docstrings of its functions."""

    @staticmethod
    def NumpyDocString(text: str) -> dict[str, tuple[()]]:
        return {"Parameters": ()}


def lighten() -> None:
    """Hides pandas, which Arrow imports if it is installed, and keeps NumPy from starting threads.

    Nothing here uses pandas or these threads; they take a quarter of a second and some 40 MB in every process. The
    docstrings of pyarrow.compute and NumPy take another 0.03 seconds and are not needed: Arrow's get no parameters.
    Arrow takes its memory from the C library, which gives it back to the system (see `release_memory`). Only for
    processes of c4pipe's own, at their start. Cycles are searched less often.
    """
    sys.meta_path.insert(0, _WithoutPandas())
    sys.modules.setdefault(_DOCSTRINGS, _WithoutParameters(_DOCSTRINGS))
    sys.modules.setdefault("numpy._core._add_newdocs", ModuleType("no docstrings"))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")  # another pool, which is not used
    _return_large_blocks()
    gc.set_threshold(_COLLECTED_AT, 20, 20)


def show_pandas() -> bool:
    """Makes pandas importable after `lighten`: PySpark needs it. Returns whether it was not."""
    before = len(sys.meta_path)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _WithoutPandas)]
    return len(sys.meta_path) < before


def _return_large_blocks() -> None:
    """Makes glibc give each freed block of 4 MB or more back at once; other C libraries have no such call.

    By default, glibc keeps blocks of up to 32 MB after the first block of that size was freed (mallopt(3)). Used blocks
    lie between free blocks, so a worker held 100 MB more than it used. The end of the heap is given back when it has 16
    MB: with 128 KB, the default after that call, each page would take the same memory from the system again.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)


def release_memory() -> None:
    """Gives free memory back to the system: otherwise a worker keeps the largest amount that any step has needed.

    Once a second at most: small elements would take the same memory from the system again and again.
    """
    global _next_release
    now = time.monotonic()
    if now >= _next_release and (arrow := sys.modules.get("pyarrow")):
        _next_release = now + _RELEASE_SECONDS
        arrow.default_memory_pool().release_unused()


def is_limit(error: BaseException) -> bool:
    """Tells whether an error means that this process can have no more memory, processes, threads or open files."""
    if isinstance(error, OSError):
        return error.errno in _LIMITS
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in _LIMIT_WORDS)


def limit_error(error: BaseException) -> C4pipeError:
    """Returns the error for a process that has reached such a limit, given what Python raised."""
    words = error_reason(error)
    why = words if isinstance(error, OSError) or "thread" in words else "memory ran out"
    return C4pipeError(
        f"this system's limits on memory, processes or open files are too low for this run ({why}): give a smaller "
        "number with --workers, or raise the limit (ulimit -a shows all limits)"
    )


_current: tuple[bytes, Step] | None = None
"""The step that this worker process has set up, pickled and as an object: a process works on many elements."""


def set_up_step(packed: bytes) -> tuple[Step, bool]:
    """Returns a pickled step, and whether this call has set it up, instead of the last step."""
    global _current
    if _current and _current[0] == packed:
        return _current[1], False
    if _current:
        _current[1].teardown()
    step: Step = pickle.loads(packed)
    step.setup()
    _current = packed, step
    return step, True


_of_workers = 0.0


def add_cpu_seconds(seconds: float) -> None:
    """Counts CPU seconds of a worker that is no child of this process."""
    global _of_workers
    _of_workers += seconds


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process so far, of its workers' tasks, and of its children that have ended."""
    return time.process_time() + sum(os.times()[2:4]) + _of_workers


def end_with(parent: int) -> None:
    """Ends this process when its parent (of this id) has ended: otherwise it would work for a killed run."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def initialise_worker(environment: dict[str, str]) -> None:
    """Prepares this process to work for a run, given the environment variables of the run."""
    os.environ.clear()  # the server that forked this process can have the variables of an earlier run
    os.environ.update(environment)
    lighten()
    logging.getLogger().addHandler(logging.NullHandler())  # the run says what failed in a worker
    if arrow := sys.modules.get("pyarrow"):  # `lighten` sets a variable, but it is too late for that
        arrow.set_memory_pool(arrow.system_memory_pool())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the run ends its workers itself
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()


def _end_with_parent() -> None:
    """Ends this process when the run's process has ended: otherwise it would wait for ever for work."""
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
