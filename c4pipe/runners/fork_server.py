"""The server that forks workers, on Linux: it imports what they need while the command makes its plan."""

import os
import signal
import sys
from multiprocessing import forkserver, resource_tracker, util
from typing import Any


def start_server(*modules: str) -> None:
    """Starts the server that forks workers, on Linux, unless one runs already. It imports these modules meanwhile.

    What it imports for other forks of this program, by `multiprocessing.set_forkserver_preload`, stays as it was for
    the next server.
    """
    if sys.platform != "linux":
        return
    server: Any = forkserver._forkserver
    others = server._preload_modules
    server.set_forkserver_preload(["c4pipe.runners.worker_pool", *modules])
    # Ctrl-C reaches all processes. The server leaves it to this one, also while it still imports: it keeps the mask.
    resource_tracker.ensure_running()  # first: it ends with SIGINT unblocked
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        if server._forkserver_pid is None:
            # Before `multiprocessing` removes the server's address (priority -100).
            util.Finalize(None, _end, (server,), exitpriority=-50)
        server.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        server.set_forkserver_preload(others)


def _end(server: Any) -> None:
    """Ends the server at the end of the program, also while it still imports. The workers have ended before.

    Waits for it, so that the processor time of the server and of its workers counts as this program's.
    """
    if server._forkserver_pid is not None:
        os.kill(server._forkserver_pid, signal.SIGTERM)
    server._stop()
