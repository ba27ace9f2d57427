"""A worker process of LocalRunner: Beam's own, without its chatter, that does not outlive the run it works for."""

import logging
import os
import sys
import threading
import time


def main() -> None:
    """Serves bundles until the run ends; the one argument is the run's process id."""
    # An error reaches the user as the failure of the pipeline; the rest of what Beam logs is of no use here.
    logging.disable(logging.WARNING)
    parent = int(sys.argv.pop(1))
    threading.Thread(target=_end_with, args=(parent,), name="end with parent", daemon=True).start()

    from apache_beam.runners.worker.sdk_worker_main import main as serve

    serve(sys.argv)


def _end_with(parent: int) -> None:
    """Ends this process when its parent is gone: Beam's worker would wait for ever for work from a killed run."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    main()
