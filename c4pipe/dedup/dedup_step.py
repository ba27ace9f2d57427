"""What the steps of job 2 share: blocks of rows are packed, sent and received here.

Reports (counts and control totals) are data beside the rows, since the counters of runners count retried work twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from c4pipe.dedup import shuffle
from c4pipe.dedup.dedup_plan import DedupPlan
from c4pipe.filters import Rows
from c4pipe.runners import Spill, Step, control_totals

REPORT = "report"
"""The name of the output that carries reports."""

Files = Sequence[tuple[int, str]]
"""Numbers and paths of the work files of a group."""


class DedupStep(Step):
    """A step that sends and receives blocks of rows by `self._spill`."""

    outputs: tuple[str, ...] = ("rows", REPORT)

    def __init__(self, plan: DedupPlan) -> None:
        self._plan = plan

    def setup(self) -> None:
        """Opens the spill folder."""
        self._spill = Spill(self._plan.spill)

    def teardown(self) -> None:
        """Closes the spill folder."""
        self._spill.close()

    def _unpack(self, blocks: Iterable[bytes], dtype: np.dtype[Any]) -> Rows:
        return shuffle.unpack(self._spill.receive(blocks), dtype)

    def _by_group(self, name: str, rows: Rows, dtype: np.dtype[Any], report: control_totals.Report) -> Iterator[Any]:
        """Yields (group, packed rows) for a shuffle, and adds the totals of what was sent to `report`."""
        for group, selected in shuffle.by_group(rows, self._plan.group, dtype):
            report.update(control_totals.add_reports([report, control_totals.sent(name, shuffle.totals(selected))]))
            yield group, self._spill.send(selected.tobytes())


def step_report(*reports: Mapping[str, Any]) -> tuple[str, Any]:
    """Returns the sum of some reports as an element of the output REPORT."""
    return REPORT, control_totals.add_reports(reports)


def files_of(grouped: Mapping[str, Iterable[Any]]) -> Files:
    """Returns the files of a joined group."""
    return [file for files in grouped["files"] for file in files]


def rows_of(stale: Rows, file: int) -> Any:
    """Returns the numbers of a file's rows among STALE_ROW rows."""
    return stale["row"][stale["file"] == file]
