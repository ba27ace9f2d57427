"""Which pages keep the copies of repeated spans: pure functions on the occurrences of a group of files, and the steps.

A span that occurs several times has one *survivor*: the occurrence whose units all stay. The units of all its other
occurrences go, except the units that the survivor of another span needs. So no span loses all its copies. But if
survivors of other spans need all units of an occurrence that is no survivor, it stays: it is a *duplicate left*.

First, the survivor of each span is its first occurrence (`order.precedence`). Then survivors move, if this removes a
second copy:

1. Each duplicate left *proposes* itself to the survivor of its span. The survivor moves to the smallest proposal,
   unless its own occurrence would stay as a whole without it.
2. At each duplicate that is still left, the survivors that need one of its units are *requested* to move to the second
   occurrence of their spans. The group of that occurrence accepts a survivor only if this leaves no other duplicate.
   This is done twice.

A survivor always has all its units, and each move has one end and one beginning: so every span keeps a copy, always.
A duplicate that is left in the end is counted. Occurrences are sent once, as marks; after that, only the changes are
sent, and the pages that may change. docs/dedup_by_example.md has all rows of four pages.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.dedup.occurrences import expand, marks_of
from c4pipe.dedup.order import is_after_other, occurrence_numbers, order_of_occurrences, precedence, sort_by
from c4pipe.dedup.shuffle import (
    CANDIDATE_PAGES,
    CHANGES,
    CONFLICTS,
    KNOWN_GROUP,
    LEAVING,
    MARKS,
    OCCURRENCE,
    OPTIONS,
    PAGE,
    PLACE,
    PROPOSALS,
    REPEATED_SPANS,
    REQUEST,
    REQUESTS,
    Sent,
)
from c4pipe.dedup.step import Received, RowStep, StepItem
from c4pipe.io.rows import Indices, Mask, Rows, groups_of, is_new, unique, with_fields
from c4pipe.runners.graph import Graph, Output

REQUEST_ROUNDS = 2
"""How often survivors near duplicates are requested to move."""


class Occurrences:
    """All occurrences of repeated spans in some pages, in the order of page and unit, and which of them survive.

    Each unit has a coordinate. Between two pages is a gap, so that no window around an occurrence reaches both pages.

    Attributes:
        rows: the occurrences (MARK, each with `count` 1).
        survives: whether each is a survivor.
        at: the coordinate of each occurrence's first unit.
        needed: how many survivors need each unit, by coordinate.
    """

    def __init__(self, marks: Rows, size: int) -> None:
        """Takes the MARK rows of the pages, and the number of units in a span."""
        rows = expand(marks)
        self.size = size
        self.rows = rows[order_of_occurrences(rows)]
        self.survives: Mask = self.rows["survives"] == 1
        units = self.rows["unit"].astype(np.intp)
        starts, ends = groups_of(self.rows["page"])
        self._pages, self._least = self.rows["page"][starts], units[starts]
        self._lengths = units[ends - 1] - self._least
        lengths = self._lengths + 6 * size
        self._bases = np.cumsum(lengths) - lengths + 3 * size
        self.at: Indices = np.repeat(self._bases - self._least, ends - starts) + units
        width = int(lengths.sum()) + 6 * size
        self._row = np.full(width, -1, np.intp)
        self._row[self.at] = np.arange(len(rows))
        self.needed = needed_units(self.at[self.survives], size, width)

    def find(self, occurrences: Rows) -> Indices:
        """Returns the index of each occurrence; -1 if it is on another page."""
        if not len(self._pages):
            return np.full(len(occurrences), -1, np.intp)
        page = np.minimum(np.searchsorted(self._pages, occurrences["page"]), len(self._pages) - 1)
        offset = occurrences["unit"].astype(np.intp) - self._least[page]
        inside = (self._pages[page] == occurrences["page"]) & (offset >= 0) & (offset <= self._lengths[page])
        return np.where(inside, self._row[np.where(inside, self._bases[page] + offset, 0)], -1)

    def change(self, occurrences: Rows) -> None:
        """Flips occurrences: survivors become others, and others become survivors. An occurrence can flip twice."""
        changed, times = np.unique(self.find(occurrences), return_counts=True)
        self.survives[changed[(changed >= 0) & (times % 2 == 1)]] ^= True
        self.needed = needed_units(self.at[self.survives], self.size, len(self.needed))

    def set_survives(self, index: int, survives: bool) -> None:
        """Makes one occurrence a survivor, or takes this from it."""
        self.survives[index] = survives
        self.needed[self.units(index)] += 1 if survives else -1

    def units(self, index: int) -> slice:
        """Returns the coordinates of an occurrence's units."""
        return slice(self.at[index], self.at[index] + self.size)

    def around(self, index: int, reach: int) -> Indices:
        """Returns the occurrences at most `reach` units before or after an occurrence, including that occurrence."""
        rows = self._row[self.at[index] - reach : self.at[index] + reach + 1]
        return rows[rows >= 0]

    def at_unit(self, unit: int) -> Indices:
        """Returns the occurrences that contain the unit at a coordinate, in their order."""
        rows = self._row[unit - self.size + 1 : unit + 1]
        return rows[rows >= 0]

    def duplicates_left(self) -> Mask:
        """Returns the mask of duplicates left: no survivors, but survivors of other spans need all their units."""
        missing = np.r_[0, np.cumsum(self.needed == 0)]
        whole: Mask = missing[self.at + self.size] == missing[self.at]
        return whole & ~self.survives

    def of_pages(self, pages: npt.NDArray[np.uint64]) -> Rows:
        """Returns the MARK rows of the pages with the given keys."""
        rows = self.rows[np.isin(self.rows["page"], pages)]
        return marks_of(rows, rows["survives"])


def needed_units(at: Indices, size: int, width: int) -> npt.NDArray[np.int64]:
    """Returns for each of `width` units the number of spans that contain it, given the coordinates of the spans."""
    begins = np.bincount(at, minlength=width).astype(np.int64)
    begins[size:] -= begins[:-size].copy()
    return np.cumsum(begins)


def smallest_requests(requests: Rows) -> Rows:
    """Returns, of the REQUEST rows to each occurrence, the row from the first occurrence."""
    requests = requests[sort_by(requests["page"], requests["unit"], *precedence(requests, "from_"))]
    return requests[is_new(requests["page"], requests["unit"])]


def grant_proposals(occurrences: Occurrences, proposals: Rows) -> Rows:
    """Moves the survivors as proposed, in the order of their occurrences, and returns the granted proposals.

    A survivor does not move if other survivors need all its units.
    """
    smallest = smallest_requests(proposals)
    granted = np.zeros(len(smallest), bool)
    for number, index in enumerate(occurrences.find(smallest).tolist()):
        if index >= 0 and occurrences.survives[index] and (occurrences.needed[occurrences.units(index)] == 1).any():
            occurrences.set_survives(index, False)
            granted[number] = True
    return smallest[granted]


def request_moves(occurrences: Occurrences, options: Rows, requested: Rows) -> Rows:
    """Returns the REQUEST rows for the survivors that should move, so that no duplicate is left.

    For each remaining duplicate, frees the unit that needs the fewest moves. Ties: the last unit. Moves that have not
    been requested before come first.

    Args:
        occurrences: the occurrences of the pages with duplicates left.
        options: the possible REQUEST rows; a survivor without such a row can't move.
        requested: the occurrences of the survivors whose move was requested before.
    """
    movable = occurrences.find(with_fields(options, OCCURRENCE, "from_"))
    option_of = {
        index: number for number, index in enumerate(movable.tolist()) if index >= 0 and occurrences.survives[index]
    }
    before = set(occurrences.find(requested).tolist())
    leaving: list[int] = []
    for duplicate in np.flatnonzero(occurrences.duplicates_left()).tolist():
        units = occurrences.units(duplicate)
        if (occurrences.needed[units] == 0).any():
            continue  # a move for an earlier duplicate has freed this one, too
        best: tuple[tuple[int, int, int], list[int]] | None = None
        for unit in range(units.start, units.stop):
            survivors = [each for each in occurrences.at_unit(unit).tolist() if occurrences.survives[each]]
            if all(each in option_of for each in survivors):
                rank = (len(before.intersection(survivors)), len(survivors), -unit)
                best = min(best or (rank, survivors), (rank, survivors))
        for each in best[1] if best else ():
            occurrences.set_survives(each, False)
            leaving.append(each)
    return options[[option_of[each] for each in sorted(leaving)]]


def accept_requests(occurrences: Occurrences, requests: Rows, leaving: Rows) -> Rows:
    """Returns the accepted REQUEST rows: the moved survivor makes no other occurrence a duplicate.

    Args:
        occurrences: the occurrences of the pages to which survivors should move.
        requests: the requests to these pages.
        leaving: the group's own survivors that should move. A request must be acceptable whether they leave or stay.
    """
    requests = requests[order_of_occurrences(requests)]
    left = occurrences.find(leaving)
    left = left[left >= 0]
    after = occurrences.needed - needed_units(occurrences.at[left], occurrences.size, len(occurrences.needed))
    accepted = np.zeros(len(requests), bool)
    for number, index in enumerate(occurrences.find(requests).tolist()):
        if index < 0 or occurrences.survives[index]:
            continue
        units = occurrences.units(index)
        around = occurrences.around(index, occurrences.size - 1).tolist()
        others = [occurrences.units(each) for each in around if each != index and not occurrences.survives[each]]
        if not any(_makes_duplicate(needed, units, others) for needed in (occurrences.needed, after)):
            occurrences.set_survives(index, True)
            after[units] += 1
            accepted[number] = True
    return requests[accepted]


def _makes_duplicate(needed: npt.NDArray[np.int64], units: slice, others: list[slice]) -> bool:
    """Tells whether a new survivor needs the last free units of one of the `others`. All are given by their units."""
    for each in others:
        new = np.arange(each.start, each.stop)
        free = needed[each] == 0
        if free.any() and not (free & ((new < units.start) | (new >= units.stop))).any():
            return True
    return False


class FirstSurvivors:
    """The occurrences of a group of files when each span's survivor is its first occurrence."""

    def __init__(self, repeated: Rows, group: int, size: int) -> None:
        """Takes all REPEATED rows of the group, its number, and the number of units in a span."""
        self._size, self._group = size, group
        rows = expand(repeated)
        is_repeat = is_after_other(rows) | (rows["other_group"] == KNOWN_GROUP)
        inside = is_repeat & (rows["other_group"] == group)
        own = np.concatenate([with_fields(rows, OCCURRENCE), with_fields(rows[inside], OCCURRENCE, "other_")])
        numbers = occurrence_numbers(own)
        number_of_row, first_in_group = numbers[: len(rows)], numbers[len(rows) :]
        occurrences = np.empty(int(numbers.max(initial=-1)) + 1, OCCURRENCE)
        occurrences[numbers] = own
        survivor = np.ones(len(occurrences), bool)
        survivor[number_of_row[is_repeat]] = False
        self.occurrences = Occurrences(marks_of(occurrences, survivor), size)
        self._home = np.zeros(len(occurrences), PLACE)
        self._home[number_of_row[is_repeat]] = with_fields(rows[is_repeat], PLACE, "other_")
        elsewhere = ~survivor[first_in_group]  # not the first of all: both name the same first
        self._home[number_of_row[inside][elsewhere]] = self._home[first_in_group[elsewhere]]
        self._second = self._seconds(rows, number_of_row, is_repeat, inside, first_in_group, len(occurrences))

    def _seconds(
        self, rows: Rows, number_of_row: Indices, is_repeat: Mask, inside: Mask, first_in_group: Indices, count: int
    ) -> Rows:
        """Returns for each survivor the second occurrence of its span: the first that is in this group or named."""
        of = np.r_[number_of_row[~is_repeat], first_in_group]
        candidates = np.r_[with_fields(rows[~is_repeat], PLACE, "other_"), self._places(rows[inside])]
        order = sort_by(of, *precedence(candidates))[::-1]
        seconds = np.zeros(count, PLACE)
        seconds[of[order]] = candidates[order]  # of several values for one occurrence, the last counts: the first
        return seconds

    def _places(self, rows: Rows) -> Rows:
        """Returns the PLACE rows of occurrences of this group."""
        places = np.empty(len(rows), PLACE)
        places["group"] = self._group
        for name in OCCURRENCE.names or ():
            places[name] = rows[name]
        return places

    def marks(self) -> Rows:
        """Returns the MARK rows of all occurrences."""
        return marks_of(self.occurrences.rows, self.occurrences.survives)

    def proposals(self) -> Rows:
        """Returns the first duplicate left of each span, as a REQUEST to its survivor. Known corpora do not change.

        A duplicate makes no proposal if it is left only because of the survivor of its own span: a move gains nothing.
        """
        duplicates = np.flatnonzero(self.occurrences.duplicates_left() & (self._home["group"] != KNOWN_GROUP))
        home, rows = self._home[duplicates], self.occurrences.rows[duplicates]
        distance = np.abs(home["unit"].astype(np.int64) - rows["unit"].astype(np.int64))
        close = np.flatnonzero((home["page"] == rows["page"]) & (distance < self._size))
        helped = [each for each in close.tolist() if self._is_helped(duplicates[each], home[each : each + 1])]
        return smallest_requests(self._requests(np.delete(duplicates, helped), np.delete(home, helped)))

    def _is_helped(self, duplicate: Any, survivor: Rows) -> bool:
        """Tells whether a duplicate left has a unit that only the survivor of its own span needs."""
        index = int(self.occurrences.find(survivor)[0])
        own = np.zeros_like(self.occurrences.needed[: self._size])
        offset = int(self.occurrences.at[index] - self.occurrences.at[duplicate])
        own[max(0, offset) : max(0, self._size + offset)] = 1
        return bool((self.occurrences.needed[self.occurrences.units(duplicate)] <= own).any())

    def options(self) -> Rows:
        """Returns REQUEST rows for the survivors near duplicates left: to and from where each could move."""
        occurrences, reach = self.occurrences, 2 * (self._size - 1)
        near = [occurrences.around(each, reach) for each in np.flatnonzero(occurrences.duplicates_left()).tolist()]
        survivors = unique(np.concatenate([np.empty(0, np.intp), *near]))
        survivors = survivors[occurrences.survives[survivors]]
        return self._requests(survivors, self._second[survivors])

    def _requests(self, occurrences: Indices, to: Rows) -> Rows:
        requests, origins = np.empty(len(occurrences), REQUEST), self._places(self.occurrences.rows[occurrences])
        for name in PLACE.names or ():
            requests[name], requests[f"from_{name}"] = to[name], origins[name]
        return requests


_PAGE_AND_GROUP = np.dtype([("group", "<u4"), *PAGE.descr])


def choose_survivors(graph: Graph, repeats: list[Output], spill: str, size: int) -> tuple[Output, list[Output]]:
    """Adds the steps that choose the survivor of each repeated span.

    Args:
        graph: the graph.
        repeats: outputs through REPEATED_SPANS.
        spill: a folder of this machine for blocks of rows between two steps; empty if the workers share no disk.
        size: the number of units in a span.

    Returns:
        The output through MARKS, in which each span's survivor is its first occurrence, and the outputs through
        CHANGES, which change these marks.
    """
    first = graph.add("Mark first copies", MarkFirst(spill, size), *repeats)
    near = [first["marks"], first["proposals"], first["candidate_pages"]]
    granted = graph.add("Grant proposals", GrantProposals(spill, size), *near)
    conflicts, changes, leaving = granted["conflicts"], [granted["changes"]], list[Output]()
    for number in range(1, REQUEST_ROUNDS + 1):
        known = [conflicts, *changes]
        requested = graph.add(f"Request moves {number}", RequestMoves(spill, size), *known, first["options"], *leaving)
        asked = [requested["requests"], requested["leaving"]]
        accepted = graph.add(f"Accept requests {number}", AcceptRequests(spill, size), *known, *asked)
        changes.append(accepted["changes"])
        leaving.append(requested["leaving"])
    return first["marks"], changes


class _SurvivorStep(RowStep):
    def __init__(self, spill: str, size: int) -> None:
        super().__init__(spill)
        self._size = size

    def _current(self, received: Received) -> Occurrences:
        """Returns the occurrences of the pages with conflicts, after all changes so far."""
        occurrences = Occurrences(received.rows(CONFLICTS), self._size)
        occurrences.change(received.rows(CHANGES))
        return occurrences


def _send_changes(group: int, moved: Rows) -> Iterator[Sent]:
    """Sends the occurrences of this group to which survivors move, and the occurrences that they leave."""
    yield CHANGES.to_group(with_fields(moved, OCCURRENCE), group)
    yield CHANGES.to_groups(with_fields(moved, OCCURRENCE, "from_"), moved["from_group"])


class MarkFirst(_SurvivorStep):
    """The repeated spans of a group -> marks, proposals, options and their pages."""

    sends = (MARKS, PROPOSALS, OPTIONS, CANDIDATE_PAGES)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Makes the first occurrence of each span its survivor, and finds the duplicates left."""
        first = FirstSurvivors(received.rows(REPEATED_SPANS), received.key, self._size)
        yield MARKS.to_group(first.marks(), received.key)
        proposals, options = first.proposals(), first.options()
        yield PROPOSALS.to_groups(proposals, proposals["group"])
        yield OPTIONS.to_groups(options, options["from_group"])
        pages = unique(with_fields(options, _PAGE_AND_GROUP))
        yield CANDIDATE_PAGES.to_groups(pages, pages["group"])


class GrantProposals(_SurvivorStep):
    """The marks, proposals and candidate pages of a group -> conflicts, changes."""

    sends = (CONFLICTS, CHANGES)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Moves survivors to the smallest proposals, and sends on the marks of the pages that may change."""
        occurrences = Occurrences(received.rows(MARKS), self._size)
        pages, proposals = received.rows(CANDIDATE_PAGES), received.rows(PROPOSALS)
        with_duplicates = occurrences.rows["page"][occurrences.duplicates_left()]
        yield CONFLICTS.to_group(occurrences.of_pages(np.r_[pages["page"], with_duplicates]), received.key)
        yield from _send_changes(received.key, grant_proposals(occurrences, proposals))


class RequestMoves(_SurvivorStep):
    """The conflicts, changes, options and earlier requests of a group -> requests, and the leaving occurrences."""

    sends = (REQUESTS, LEAVING)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Requests survivors near duplicates to move."""
        occurrences = self._current(received)
        requests = request_moves(occurrences, received.rows(OPTIONS), received.rows(LEAVING))
        yield REQUESTS.to_groups(requests, requests["group"])
        yield LEAVING.to_group(with_fields(requests, OCCURRENCE, "from_"), received.key)


class AcceptRequests(_SurvivorStep):
    """The conflicts, changes, requests and leaving occurrences of a group -> changes."""

    sends = (CHANGES,)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Accepts survivors that leave no other duplicate."""
        occurrences = self._current(received)
        yield from _send_changes(
            received.key, accept_requests(occurrences, received.rows(REQUESTS), received.rows(LEAVING))
        )
