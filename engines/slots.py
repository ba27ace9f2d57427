"""Checks that a Flink cluster spreads the inputs of a job over its slots, and gives each slot a worker process.

    python engines/slots.py

Beam's runner for Flink may ignore a Reshuffle (https://github.com/apache/beam/issues/30621), and without
`--sdk_worker_parallelism` all slots of a TaskManager share one Python process, so one core.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import clusters
from apache_beam.options.pipeline_options import PipelineOptions
from fetch import fetch

from c4pipe.runners.beam_runner import BeamFlow
from c4pipe.runners.flow import Step

ELEMENTS, SECONDS = 8, 1.0


class Note(Step):
    """A step that takes a second for an element, and writes which process took it, and when."""

    outputs = ("done",)

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def process(self, element: Any) -> Iterator[tuple[str, Any]]:
        """Writes one file for each element."""
        started = time.time()
        time.sleep(SECONDS)
        Path(self._folder, str(element)).write_text(f"{os.getpid()} {started}")
        yield "done", element


def main() -> None:
    """Prints how many elements each process took; ends with status 1 unless two processes worked at the same time."""
    folder = Path(tempfile.mkdtemp(prefix="c4pipe-slots-"))
    notes = folder / "notes"
    notes.mkdir()
    with clusters.flink_cluster(fetch(), folder) as cluster:
        options = PipelineOptions([*cluster, "--sdk_worker_parallelism=2"])
        with beam.Pipeline(options=options) as job:
            flow = BeamFlow(job)
            flow.map("note", flow.create("inputs", range(ELEMENTS)), Note(str(notes)))
    rows = sorted((float(started), pid) for pid, started in (path.read_text().split() for path in notes.iterdir()))
    seconds = rows[-1][0] + SECONDS - rows[0][0]
    processes = sorted({pid for _, pid in rows})
    counts = [sum(pid == process for _, pid in rows) for process in processes]
    print(f"{len(rows)} elements of {SECONDS:.0f} s took {seconds:.1f} s, processes took {counts}")
    if len(rows) != ELEMENTS or len(processes) != 2 or seconds > 0.75 * ELEMENTS * SECONDS:
        sys.exit("the elements were not spread over both slots")


if __name__ == "__main__":
    main()
