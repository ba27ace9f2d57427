"""What a worker process of this machine does beside its work: it neither outlives its run nor answers for it."""

import os
import signal
import threading
import time


def begin(parent: int) -> None:
    """Prepares this process to work for the run of that process id."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the run itself ends its workers
    threading.Thread(target=end_with, args=(parent,), name="end with parent", daemon=True).start()


def end_with(parent: int) -> None:
    """Ends this process when its parent is gone: it would wait for ever for work from a killed run."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
