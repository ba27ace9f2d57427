"""The progress of `dedup`: the written shards and, on this machine, the pages that each step has handled."""

import contextlib
import os
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from c4pipe.dedup.publishers import publisher
from c4pipe.io.paths import StoragePath, read_file
from c4pipe.runners.events import Progress, Status

_TALLY = ".tally"
_STEPS = {
    "urls": (0.10, "reads URLs"),
    "bands": (0.15, "looks for near-duplicates"),
    "spans": (0.15, "looks for repeats"),
    "pages": (0.50, "finishes pages"),
    "shards": (0.25, "writes shards"),
}
"""The steps that handle pages, in their order. Each has its share of the time on 32,000 pages, and words for people.

Only some recipes have `bands`, which takes as long as `spans` on real pages. The shares of the other steps add up to 1.
"""


class StepTally:
    """Counts pages of one step in one worker, in an own small file. Only people see the count."""

    def __init__(self, folder: str, step: str) -> None:
        """Takes the spill folder, or "", and the name of the step."""
        tallies = _find_tallies(folder)
        self._path = tallies and tallies / f"{step}-{uuid.uuid4().hex}{_TALLY}"
        self._file: int | None = None
        self._pages = 0

    def add(self, pages: int) -> None:
        """Adds a number of pages. If the file can't be written, as on a full disk, there is no count."""
        self._pages += pages
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            os.pwrite(self._file, self._pages.to_bytes(8, "little"), 0)

    def close(self) -> None:
        """Closes the file, which stays."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _find_tallies(spill: str) -> Path | None:
    path = spill.removeprefix("file://")
    return Path(path) if path and "://" not in path else None  # in a store, each count would be a request


def read_tallies(folder: str) -> Counter[str]:
    """Returns the pages that all workers have handled, by step."""
    pages = Counter[str]()
    tallies = _find_tallies(folder)
    for path in tallies.glob(f"*{_TALLY}") if tallies else ():
        with contextlib.suppress(OSError):
            pages[path.name.partition("-")[0]] += int.from_bytes(read_file(path), "little")
    return pages


def watch_dedup(
    progress: Progress, output: StoragePath, shards: Sequence[str], spill: str, pages: Mapping[str, int]
) -> AbstractContextManager[None]:
    """Watches the job `dedup`, which runs inside the `with` block.

    Args:
        progress: gets the status of the job.
        output: the folder of the corpus.
        shards: the paths of all shard files, inside the corpus.
        spill: the folder in which the steps tally their pages, or "".
        pages: the number of pages of the job for each step before `shards`.
    """
    written, latest = 0, 0.0

    def look() -> Status:
        nonlocal written, latest
        # While the corpus is published, its files leave the folders that these two functions read.
        written = max(written, publisher(output).written(shards))
        share, words = share_done(read_tallies(spill), pages)
        files = f"{written:,} of {len(shards):,} files written"
        if written == len(shards) or not words:
            share, words = written / max(1, len(shards)), ""
        latest = max(latest, share)
        facts = {"files": written, "files_total": len(shards)}
        return Status(latest, f"{files}, {words}" if words else files, facts)

    return progress.show("dedup", output, look)


def share_done(done: Mapping[str, int], pages: Mapping[str, int]) -> tuple[float, str]:
    """Returns the finished share of the work, and the words of the current step; "" before the first step.

    Args:
        done: the pages that each step has handled. The step `shards` has as many pages as `finished` has handled.
        pages: the pages of each other step of the job.
    """
    totals = {**pages, "shards": done.get("finished", 0)}
    steps = {step: _STEPS[step] for step in _STEPS if step in totals}
    whole = sum(weight for weight, _ in steps.values())
    before, share, words = 0.0, 0.0, ""
    for step, (weight, verb) in steps.items():
        if done.get(step):  # all steps before it have ended
            share = before + weight * min(1.0, done[step] / max(1, totals[step]))
            words = verb
        before += weight
    return share / whole, words
