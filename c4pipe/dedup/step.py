"""What the steps of job 2 share: their plan, and how blocks of rows are packed, sent, received and counted.

Reports (counts and control totals) are data beside the rows, since the counters of runners count retried work twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.corpus.layout import Layout
from c4pipe.dedup import shuffle
from c4pipe.dedup.progress import StepTally
from c4pipe.filters.duplicates import Rows
from c4pipe.runners import control_totals
from c4pipe.runners.flow import Step
from c4pipe.runners.spill import Spill


def moves_keepers(span: Mapping[str, Any]) -> bool:
    """Tells from the parameters of the rule `repeated_span` whether copies of spans can move."""
    return bool(span) and span["size"] > 1 and span["keep"] == "one"


@dataclass(frozen=True)
class DedupPlan:
    """Everything that the steps of job 2 need to know. It is sent to the workers.

    Attributes:
        recipe: the recipe, as JSON values.
        lists: the digests of its lists, by name.
        work: the work folders, where the lists are.
        layout: the shards of the corpus.
        url_bits: number of hash bits that make a bucket of URLs.
        span_bits: number of hash bits that make a bucket of spans.
        group: how many work files make a group; file number // group is the group's key in a shuffle.
        output: the folder of the corpus.
        formats: the formats of the shards.
        publication_token: what `publish.begin` returned.
        spill: a folder of this machine for blocks of rows between two steps; empty if the workers share no disk.
        band_bits: number of hash bits that make a bucket of bands of signatures.
        keep_dropped: which dropped pages are kept, and where; None to keep none.
    """

    recipe: Mapping[str, Any]
    lists: Mapping[str, str]
    work: tuple[str, ...]
    layout: Layout
    url_bits: int
    span_bits: int
    group: int
    output: str
    formats: tuple[str, ...]
    publication_token: str
    spill: str = ""
    band_bits: int = 0
    keep_dropped: KeepDropped | None = None

    @property
    def span(self) -> Mapping[str, Any]:
        """The parameters of the rule `repeated_span`; empty where the recipe has none."""
        return self._parameters("repeated_span")

    @property
    def near(self) -> Mapping[str, Any]:
        """The parameters of the rule `near_duplicate`; empty where the recipe has none."""
        return self._parameters("near_duplicate")

    def _parameters(self, rule: str) -> Mapping[str, Any]:
        return next((each for each in self.recipe["corpus"] if each["rule"] == rule), {})

    @property
    def moves_keepers(self) -> bool:
        """Whether copies of spans can move: spans of one unit never overlap, so their first copy always stays."""
        return moves_keepers(self.span)


REPORT = "report"
"""The name of the output that carries reports."""

Files = Sequence[tuple[int, str]]
"""Numbers and paths of the work files of a group."""


class RowStep(Step):
    """A step that sends and receives blocks of rows by `self._spill`, and notes their control totals in a list."""

    outputs: tuple[str, ...] = ("rows", REPORT)
    sums = (REPORT,)

    def __init__(self, spill: str) -> None:
        """Takes the folder for blocks of rows; empty if the workers share no disk."""
        self._spill_folder = spill

    def setup(self) -> None:
        """Opens the spill folder."""
        self._spill = Spill(self._spill_folder)

    def teardown(self) -> None:
        """Closes the spill folder."""
        self._spill.close()

    def _receive(
        self, shuffle_name: str, blocks: Iterable[bytes], dtype: np.dtype[Any], reports: list[control_totals.Report]
    ) -> Rows:
        """Returns the rows that came through a shuffle, and adds their totals to `reports`."""
        rows = shuffle.unpack(self._spill.receive(blocks), dtype)
        reports.append(control_totals.received(shuffle_name, shuffle.totals(rows)))
        return rows

    def _to_groups(
        self,
        shuffle_name: str,
        rows: Rows,
        groups: npt.NDArray[Any],
        dtype: np.dtype[Any],
        reports: list[control_totals.Report],
        readers: int = 1,
    ) -> Iterator[tuple[int, bytes]]:
        """Yields (group, packed rows) for a shuffle, given each row's group, and adds the totals to `reports`.

        `readers` is the number of steps that receive these rows.
        """
        rows = shuffle.with_fields(rows, dtype)
        if len(rows):
            reports += [control_totals.sent(shuffle_name, shuffle.totals(rows))] * readers
        for group, selected in shuffle.by_number(rows, groups, dtype):
            yield group, self._spill.send(selected.tobytes())


class DedupStep(RowStep):
    """A step that knows the whole plan of job 2."""

    tallied: tuple[str, ...] = ()
    """What the step tallies for the progress of the job, by the names that `dedup/progress.py` knows."""

    def __init__(self, plan: DedupPlan) -> None:
        super().__init__(plan.spill)
        self._plan = plan

    def setup(self) -> None:
        """Opens the spill folder, and begins the tallies."""
        super().setup()
        self._tallies = {name: StepTally(self._spill_folder, name) for name in self.tallied}

    def teardown(self) -> None:
        """Closes what `setup` opened."""
        for tally in self._tallies.values():
            tally.close()
        super().teardown()

    def _tally(self, name: str, pages: int) -> None:
        """Notes that so many more pages are handled."""
        self._tallies[name].add(pages)


def step_report(*reports: Mapping[str, Any]) -> tuple[str, Any]:
    """Returns the sum of some reports as an element of the output REPORT."""
    return REPORT, control_totals.add_reports(reports)


def files_of(grouped: Mapping[str, Iterable[Any]]) -> Files:
    """Returns the files of a joined group."""
    return [file for files in grouped["files"] for file in files]


def rows_of(stale: Rows, file: int) -> Any:
    """Returns the numbers of a file's rows among rows with `file` and `row`."""
    return stale["row"][stale["file"] == file]
