"""A task of a submission to Slurm. The batch scripts call `python -m c4pipe.cli.slurm_task FOLDER DIGEST NUMBER`."""

import sys
from pathlib import Path

from c4pipe.cli.console import note, open_streams
from c4pipe.cli.main import run_to_end
from c4pipe.cli.progress import show_lines
from c4pipe.runners.events import Progress
from c4pipe.runners.worker import lighten

_SECONDS = 60.0  # between two lines of a log: each line reads the work folder, which all tasks share


def _run() -> int:
    from c4pipe.jobs.slurm import run_task  # after `lighten`

    folder, *digest, task = sys.argv[1:]  # an earlier version had no digest
    run_task(Path(folder), "".join(digest), task, Progress(show_lines(sys.stderr), note, _SECONDS))
    return 0


if __name__ == "__main__":
    open_streams()
    lighten()
    sys.exit(run_to_end(_run))
