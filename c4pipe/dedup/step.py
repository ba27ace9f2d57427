"""The base of the steps of job 2: their plan, and how they pack, send, receive and count blocks of rows.

Reports (counts and control totals) are data beside the rows: the counters of runners count retried work twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.corpus.layout import Layout
from c4pipe.dedup import shuffle
from c4pipe.dedup.known import Known
from c4pipe.dedup.progress import StepTally
from c4pipe.dedup.shuffle import Sent, Shuffle
from c4pipe.dedup.taken_down import TakenDown
from c4pipe.filters.corpus_rules import NearDuplicate, RepeatedSpan
from c4pipe.io.rows import Rows
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners import control_totals
from c4pipe.runners.control_totals import REPORT, Report, Totals
from c4pipe.runners.spill import Spill, SpillingStep


@dataclass(frozen=True)
class DedupPlan:
    """All parameters of the steps of job 2. It is sent to the workers.

    Attributes:
        recipe: the recipe, as JSON values.
        lists: the digests of its lists, by name.
        work: the work folders, which have the lists.
        layout: the shards of the corpus.
        url_bits, span_bits, band_bits: the number of hash bits that make a bucket of URLs, spans, bands of signatures.
        group: how many work files make a group; file number // group is the group's key in a shuffle.
        output: the folder of the corpus.
        formats: the formats of the shards.
        publication_token: the result of `publish.begin`.
        spill: a folder of this machine for blocks of rows between two steps; empty if the workers share no disk.
        keep_dropped: which dropped pages are kept, and the folder for them; None to keep none.
        known: the indexes of known corpora, whose pages and spans are left out.
        taken_down: what takedowns of the corpus listed, and is left out again; None without any.
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
    known: tuple[Known, ...] = ()
    taken_down: TakenDown | None = None

    @cached_property
    def rules(self) -> Recipe:
        """The recipe."""
        return Recipe.from_json(self.recipe)

    @property
    def span(self) -> RepeatedSpan | None:
        """The rule on repeated spans; None if the recipe has none."""
        return self.rules.find(RepeatedSpan)

    @property
    def near(self) -> NearDuplicate | None:
        """The rule on pages that are nearly the same; None if the recipe has none."""
        return self.rules.find(NearDuplicate)

    @property
    def moves_survivors(self) -> bool:
        """Whether survivors can move."""
        return self.span is not None and self.span.moves_survivors


Files = Sequence[tuple[int, str]]
"""Numbers and paths of work files."""

GroupFiles = Sequence[tuple[int, str, bool]]
"""Number and path of each work file of a group, and whether a page of it was kept."""

WORK_FILES = "files"
"""The name of the output that carries the files of each group."""


class Received:
    """The input of a step for a group of files or for a bucket.

    Attributes:
        key: the number of the group or of the bucket.
        totals: the control totals of the rows that the step has read.
    """

    def __init__(self, element: tuple[int, Any], spill: Spill) -> None:
        """Takes (key, the blocks of the only shuffle; or a mapping of names of shuffles to their blocks)."""
        self.key, self._given = element
        self._spill = spill
        self.totals: list[Report] = []

    def rows(self, of: Shuffle) -> Rows:
        """Returns the rows that came through a shuffle."""
        rows = shuffle.unpack(self._spill.receive(self.given(of.name)), of.dtype)
        self.count(of, rows)
        return rows

    def streams(self, of: Shuffle) -> Iterator[bytes]:
        """Yields the Arrow streams that came through a shuffle; the step counts their page keys."""
        return self._spill.receive(self.given(of.name))

    def count(self, of: Shuffle, rows: Rows) -> None:
        """Adds the control totals of rows that came through a shuffle."""
        self.totals.append(control_totals.received(of.name, shuffle.totals(rows)))

    def given(self, name: str) -> Iterable[Any]:
        """Returns all values of a name."""
        values: Iterable[Any] = self._given.get(name, ()) if isinstance(self._given, Mapping) else self._given
        return values

    @property
    def files(self) -> Files:
        """The work files of the group with a kept page."""
        return [(file, path) for file, path, has_pages in self.all_files if has_pages]

    @property
    def all_files(self) -> GroupFiles:
        """The work files of the group."""
        if not isinstance(self._given, Mapping):
            return list(self._given)
        return [each for files in self.given(WORK_FILES) for each in files]


StepItem = Sent | Mapping[str, Any] | tuple[str, Any]
"""One item that a step yields: rows to send, a report, or an element of another output with that output's name."""


class RowStep(SpillingStep):
    """A step that receives and sends blocks of rows through shuffles. The base adds the control totals."""

    sends: tuple[Shuffle, ...] = ()
    """The shuffles through which the step sends rows: its outputs have their names."""

    tallied: tuple[str, ...] = ()
    """The tallies of the step for the progress of the job (names of `dedup.progress`)."""

    sums = (REPORT,)

    def __init__(self, spill: str) -> None:
        """Takes the folder for blocks of rows; empty if the workers share no disk."""
        super().__init__(spill)
        self.outputs = (*(each.name for each in self.sends), REPORT)

    def setup(self) -> None:
        super().setup()
        self._tallies = {name: StepTally(self._spill_folder, name) for name in self.tallied}

    def teardown(self) -> None:
        for tally in self._tallies.values():
            tally.close()
        super().teardown()

    def process(self, element: tuple[int, Any]) -> Iterator[tuple[str, Any]]:
        """Applies the step to the rows that a group or a bucket has received."""
        received = Received(element, self._spill)
        reports: list[Mapping[str, Any]] = []
        for made in self.run(received):
            if isinstance(made, Mapping):
                reports.append(made)
                continue
            if not isinstance(made, Sent):
                yield made
                continue
            name, readers = made.shuffle.name, self.readers.get(made.shuffle.name, 1)
            if made.totals.rows:
                reports.append(control_totals.sent(name, Totals(*(readers * each for each in made.totals))))
            for key, block in made.blocks:
                yield name, (key, self._spill.send(block))
        self._spill.commit()
        yield REPORT, control_totals.add_reports([*received.totals, *reports])

    def run(self, received: Received) -> Iterator[StepItem]:
        """Yields rows to send, reports (counts by name), and elements of other outputs."""
        raise NotImplementedError

    def _tally(self, name: str, pages: int) -> None:
        self._tallies[name].add(pages)


class DedupStep(RowStep):
    """A step that knows the whole plan of job 2."""

    def __init__(self, plan: DedupPlan) -> None:
        super().__init__(plan.spill)
        self._plan = plan


def rows_of(stale: Rows, file: int) -> Any:
    """Returns the row numbers of one file, from rows with `file` and `row`."""
    return stale["row"][stale["file"] == file]
