"""Peers in turn: what is given to a peer, what its runs took, and the ratio of two peers."""

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from measuring import Cost, NotMeasured, last_line, measure


class Trial(NamedTuple):
    """What a peer is given: WET files of one folder, the lists, and an empty folder for what it writes."""

    files: list[str]
    lists: Path
    folder: Path


class Peer(NamedTuple):
    """What is measured: a title, the command for a trial, how to count pages in its folder or output, and how often."""

    title: str
    command: Callable[[Trial], list[str]]
    pages: Callable[[Path, str], int]
    is_slow: bool = False  # it takes minutes, and is measured once


class Measured(NamedTuple):
    """What the runs of a peer took, and its pages."""

    costs: list[Cost]
    pages: int

    def values(self, figure: str) -> list[float]:
        """Returns `cpu`, `wall` or `peak` of each run."""
        return [getattr(cost, figure) for cost in self.costs]


Row = Measured | str
"""The runs of a peer, or why there are none."""


def run(peer: Peer, trial: Trial) -> tuple[Cost, int]:
    """Measures one run of a peer, and returns it with its pages. Raises NotMeasured where it fails."""
    trial.folder.mkdir()
    log = trial.folder / "log"
    # The shell keeps what the peer says of its progress.
    cost = measure(["sh", "-c", 'exec "$@" 2>"$0"', str(log), *peer.command(trial)])
    if cost.status:
        raise NotMeasured(f"it ended with status {cost.status}: {last_line(log.read_text(errors='replace'))}")
    return cost, peer.pages(trial.folder, cost.output)


def measured(peers: Mapping[str, Peer], files: list[str], lists: Path, folder: Path, rounds: int) -> dict[str, Row]:
    """Measures peers in turn, round by round, the slow ones in the first round only.

    Args:
        peers: what is measured, by name.
        files: the paths of the WET files.
        lists: the folder of the lists.
        folder: an empty folder for what they write, which is deleted after each run.
        rounds: how often the others are measured.
    """
    rows: dict[str, Row] = {}
    for number in range(rounds):
        for name, peer in peers.items():
            row = rows.get(name)
            if isinstance(row, str) or (peer.is_slow and number):
                continue
            print(f"measuring {name}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            trial = Trial(files, lists, folder / name)
            try:
                cost, pages = run(peer, trial)
                if row and row.pages != pages:
                    raise NotMeasured(f"it wrote {row.pages:,} pages, then {pages:,} pages of the same files")
                rows[name] = Measured([*(row.costs if row else ()), cost], pages)
            except NotMeasured as reason:
                rows[name] = f"not measured: {reason}"
            shutil.rmtree(trial.folder, ignore_errors=True)
    return rows


def ratio(rows: Mapping[str, Row], figure: str, above: str, below: str) -> float | None:
    """Returns the least of a figure of one peer over that of another, or None where one was not measured.

    Other work on a machine only adds to what a run takes, so the least is nearest to what the program itself takes.
    """
    first, second = rows.get(above), rows.get(below)
    if not isinstance(first, Measured) or not isinstance(second, Measured):
        return None
    return min(first.values(figure)) / min(second.values(figure))


def ratio_spread(rows: Mapping[str, Row], figure: str, above: str, below: str) -> tuple[float, float] | None:
    """Returns the smallest and the largest ratio of any two runs; None where there is but one run of each, or none."""
    first, second = rows.get(above), rows.get(below)
    if not isinstance(first, Measured) or not isinstance(second, Measured):
        return None
    values = [one / other for one in first.values(figure) for other in second.values(figure)]
    return (min(values), max(values)) if len(values) > 1 else None
