"""A worker process of LocalRunner: Beam's own, without its chatter, that does not outlive the run it works for."""

import logging
import os
import sys
import threading
import time
from pathlib import Path


def main() -> None:
    """Serves bundles until the run ends; the one argument is the run's process id."""
    # An error reaches the user as the failure of the pipeline, in a sentence; its tracebacks are of no use here.
    logging.disable(logging.CRITICAL)
    parent = int(sys.argv.pop(1))
    threading.Thread(target=end_with, args=(parent,), name="end with parent", daemon=True).start()

    from apache_beam.runners.worker.sdk_worker_main import main as serve

    with Path(os.devnull).open("w") as sys.stderr:  # where Beam prints each traceback once more
        serve(sys.argv)


def end_with(parent: int) -> None:
    """Ends this process when its parent is gone: Beam's worker would wait for ever for work from a killed run."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    main()
