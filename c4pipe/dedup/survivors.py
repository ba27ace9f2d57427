"""Which pages keep the copies of repeated spans. Pure functions on the places of a group of files, in NumPy.

A span that occurs several times has one *keeper*: the place whose units all stay. The units of all its other places go,
except those that the keeper of another span needs. So no span loses all its copies. But a place that is no keeper stays
as a whole, as a second copy, where keepers need all its units: it is *doubled*.

First, the keeper of each span is its first place, in the order (page key, unit). Then keepers move, where this removes
a second copy (`keeper_steps` sends the rows):

1. Each doubled place *claims* its span from the keeper. The keeper moves to the smallest claim, unless its own place
   would stay as a whole without it.
2. At each place that is still doubled, the keepers that need one of its units are *asked* to move to the second place
   of their spans. There a keeper is accepted where it doubles no other place. This is done twice.

A keeper is never without its units, and each move has one end and one beginning: so every span keeps a copy, always.
A place that is doubled in the end is counted.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.dedup.occurrences import ASK, MARKS, PAGE, PLACE, TWINS, expand, marks_of, place_numbers, places_in_order
from c4pipe.dedup.step import REPORT, RowStep, step_report
from c4pipe.filters.duplicates import Rows
from c4pipe.runners import control_totals
from c4pipe.runners.flow import Flow

Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]


class Places:
    """All places of repeated spans in some pages, in their order: which of them are keepers, which units those need.

    A unit of a page has a coordinate. Those of two pages are so far apart that no window around a place reaches both.

    Attributes:
        rows: the places (MARKS, each with `count` 1).
        keeper: whether each is a keeper.
        at: the coordinate of each place's first unit.
        needed: how many keepers need each unit, by coordinate.
    """

    def __init__(self, marks: Rows, size: int) -> None:
        """Takes the MARKS of the pages, and the number of units in a span."""
        rows = expand(marks)
        self.size = size
        self.rows = rows[places_in_order(rows)]
        self.keeper: Mask = self.rows["keeper"] != 0
        units = self.rows["unit"].astype(np.intp)
        new_page = np.r_[True, self.rows["page"][1:] != self.rows["page"][:-1]][: len(rows)]
        starts = np.flatnonzero(new_page)
        self._pages, self._least = self.rows["page"][starts], units[starts]
        ends = np.r_[starts[1:], len(rows)][: len(starts)] - 1
        lengths = units[ends] - self._least + 6 * size
        self._bases = np.cumsum(lengths) - lengths + 3 * size
        self._lengths = lengths - 6 * size
        page = np.cumsum(new_page) - 1
        self.at: Index = self._bases[page] + units - self._least[page]
        width = int(lengths.sum()) + 6 * size
        self._row = np.full(width, -1, np.intp)
        self._row[self.at] = np.arange(len(rows))
        self.needed = needed_units(self.at[self.keeper], size, width)

    def find(self, places: Rows) -> Index:
        """Returns the index of each of some places; -1 for a place that is not here."""
        if not len(self._pages):
            return np.full(len(places), -1, np.intp)
        page = np.minimum(np.searchsorted(self._pages, places["page"]), len(self._pages) - 1)
        offset = places["unit"].astype(np.intp) - self._least[page]
        inside = (self._pages[page] == places["page"]) & (offset >= 0) & (offset <= self._lengths[page])
        return np.where(inside, self._row[np.where(inside, self._bases[page] + offset, 0)], -1)

    def change(self, places: Rows) -> None:
        """Makes keepers of places that are none, and the other way round. Repeated places count once."""
        changed = np.unique(self.find(places))
        self.keeper[changed[changed >= 0]] ^= True
        self.needed = needed_units(self.at[self.keeper], self.size, len(self.needed))

    def set_keeper(self, index: int, keeper: bool) -> None:
        """Makes one place a keeper, or no keeper any more."""
        self.keeper[index] = keeper
        self.needed[self.units(index)] += 1 if keeper else -1

    def units(self, index: int) -> slice:
        """Returns the coordinates of a place's units."""
        return slice(self.at[index], self.at[index] + self.size)

    def around(self, index: int, reach: int) -> Index:
        """Returns the places at most `reach` units before and behind a place, itself among them."""
        rows = self._row[self.at[index] - reach : self.at[index] + reach + 1]
        return rows[rows >= 0]

    def at_unit(self, unit: int) -> Index:
        """Returns the places that have a unit, given its coordinate, in their order."""
        rows = self._row[unit - self.size + 1 : unit + 1]
        return rows[rows >= 0]

    def doubled(self) -> Mask:
        """Returns which places are no keepers, but stay as a whole: keepers of other spans need all their units."""
        missing = np.r_[0, np.cumsum(self.needed == 0)]
        whole: Mask = missing[self.at + self.size] == missing[self.at]
        return whole & ~self.keeper

    def of_pages(self, pages: npt.NDArray[np.uint64]) -> Rows:
        """Returns the MARKS of those pages whose keys are given."""
        rows = self.rows[np.isin(self.rows["page"], pages)]
        return marks_of(rows, rows["keeper"])


def needed_units(at: Index, size: int, width: int) -> npt.NDArray[np.int64]:
    """Returns for each of `width` units how many of the spans that begin at the coordinates `at` have it."""
    begins = np.bincount(at, minlength=width).astype(np.int64)
    begins[size:] -= begins[:-size].copy()
    return np.cumsum(begins)


def hosts_of(asks: Rows) -> Rows:
    """Returns the pages, with their group, to which keepers could move: each once."""
    hosts = np.empty(len(asks), [("group", "<u4"), *PAGE.descr])
    hosts["group"], hosts["page"] = asks["group"], asks["page"]
    return np.unique(hosts)


def grant_claims(places: Places, claims: Rows) -> Rows:
    """Moves the keepers that are claimed, in the order of their places, and returns the granted claims.

    A keeper whose place stays as a whole without it does not move.
    """
    claims = claims[np.lexsort((claims["from_unit"], claims["from_page"], claims["unit"], claims["page"]))]
    smallest = claims[np.unique(place_numbers(claims), return_index=True)[1]]
    granted = np.zeros(len(smallest), bool)
    for number, index in enumerate(places.find(smallest).tolist()):
        if index >= 0 and places.keeper[index] and (places.needed[places.units(index)] == 1).any():
            places.set_keeper(index, False)
            granted[number] = True
    return smallest[granted]


def ask_keepers(places: Places, options: Rows, asked: Rows) -> Rows:
    """Returns the ASKs for the keepers that should move, so that no place is doubled.

    Of each doubled place, in their order, the unit is freed that needs the fewest moves; of several, the last one.
    Moves that have not been asked for come first.

    Args:
        places: the places of the pages with doubled places.
        options: the ASKs that are possible, for some of the keepers.
        asked: the places of the keepers that were asked before.
    """
    movable = places.find(from_places(options))
    option_of = {index: number for number, index in enumerate(movable.tolist()) if index >= 0 and places.keeper[index]}
    before = set(places.find(asked).tolist())
    leaving: list[int] = []
    for doubled in np.flatnonzero(places.doubled()).tolist():
        units = places.units(doubled)
        if (places.needed[units] == 0).any():
            continue  # a move for an earlier place has freed it
        best: tuple[tuple[int, int, int], list[int]] | None = None
        for unit in range(units.start, units.stop):
            keepers = [each for each in places.at_unit(unit).tolist() if places.keeper[each]]
            if all(each in option_of for each in keepers):
                rank = (len(before.intersection(keepers)), len(keepers), -unit)
                best = min(best or (rank, keepers), (rank, keepers))
        for each in best[1] if best else ():
            places.set_keeper(each, False)
            leaving.append(each)
    return options[[option_of[each] for each in sorted(leaving)]]


def from_places(asks: Rows) -> Rows:
    """Returns the places from which ASKs come."""
    rows = np.empty(len(asks), PLACE)
    rows["page"], rows["unit"] = asks["from_page"], asks["from_unit"]
    return rows


def to_places(asks: Rows) -> Rows:
    """Returns the places to which ASKs go."""
    rows = np.empty(len(asks), PLACE)
    rows["page"], rows["unit"] = asks["page"], asks["unit"]
    return rows


def accept_keepers(places: Places, requests: Rows, leaving: Rows) -> Rows:
    """Returns the requests that are accepted: at their places, keepers double no other place.

    Args:
        places: the places of the pages to which keepers want to move.
        requests: ASKs of these keepers, whose other ends are here.
        leaving: the places of the group's own keepers that have asked to move. A request must be fine whether those
            leave or stay.
    """
    requests = requests[np.lexsort((requests["unit"], requests["page"]))]
    left = places.find(leaving)
    left = left[left >= 0]
    after = places.needed - needed_units(places.at[left], places.size, len(places.needed))
    accepted = np.zeros(len(requests), bool)
    for number, index in enumerate(places.find(requests).tolist()):
        if index < 0 or places.keeper[index]:
            continue
        units = places.units(index)
        around = places.around(index, places.size - 1).tolist()
        others = [places.units(each) for each in around if each != index and not places.keeper[each]]
        if not any(_doubles(needed, units, others) for needed in (places.needed, after)):
            places.set_keeper(index, True)
            after[units] += 1
            accepted[number] = True
    return requests[accepted]


def _doubles(needed: npt.NDArray[np.int64], units: slice, others: list[slice]) -> bool:
    """Tells whether a new keeper makes one of the other places stay as a whole; all are given by their units."""
    for each in others:
        new = np.arange(each.start, each.stop)
        free = needed[each] == 0
        if free.any() and not (free & ((new < units.start) | (new >= units.stop))).any():
            return True
    return False


class FirstKeepers:
    """The places of a group of files when each span's keeper is its first place."""

    def __init__(self, twins: Rows, group: int, size: int) -> None:
        """Takes all TWINS of the group, its number, and the number of units in a span."""
        self._size, self._group = size, group
        rows = expand(twins)
        is_repeat = _before(rows["twin_page"], rows["twin_unit"], rows["page"], rows["unit"])
        inside = is_repeat & (rows["twin_group"] == group)
        own = np.empty(len(rows) + int(inside.sum()), PLACE)
        own["page"] = np.r_[rows["page"], rows["twin_page"][inside]]
        own["unit"] = np.r_[rows["unit"], rows["twin_unit"][inside]]
        numbers = place_numbers(own)
        row_place, first_in_group = numbers[: len(rows)], numbers[len(rows) :]
        places = np.empty(int(numbers.max(initial=-1)) + 1, PLACE)
        places[numbers] = own
        keeper = np.ones(len(places), bool)
        keeper[row_place[is_repeat]] = False
        self.places = Places(marks_of(places, keeper), size)
        self._home = np.zeros(len(places), _SOMEWHERE)
        self._home[row_place[is_repeat]] = _twin_of(rows[is_repeat])
        elsewhere = ~keeper[first_in_group]  # the group's first is not the first of all: theirs is the same
        self._home[row_place[inside][elsewhere]] = self._home[first_in_group[elsewhere]]
        self._second = self._seconds(rows, row_place, is_repeat, inside, first_in_group, len(places))

    def _seconds(
        self, rows: Rows, row_place: Index, is_repeat: Mask, inside: Mask, first_in_group: Index, count: int
    ) -> Rows:
        """Returns for each keeper the second place of its span: the smallest of the group's and of the twins'."""
        of = np.r_[row_place[~is_repeat], first_in_group]
        here = np.zeros(int(inside.sum()), _SOMEWHERE)
        here["group"], here["page"], here["unit"] = self._group, rows["page"][inside], rows["unit"][inside]
        candidates = np.r_[_twin_of(rows[~is_repeat]), here]
        order = np.lexsort((candidates["unit"], candidates["page"], of))[::-1]
        seconds = np.zeros(count, _SOMEWHERE)
        seconds[of[order]] = candidates[order]  # of several values for one place, the last counts: the smallest
        return seconds

    def marks(self) -> Rows:
        """Returns the MARKS of all places."""
        return marks_of(self.places.rows, self.places.keeper)

    def claims(self) -> Rows:
        """Returns the smallest doubled place of each span, as an ASK to its keeper.

        A place that would not stay as a whole without that very keeper claims nothing: a move would win nothing.
        """
        doubled = np.flatnonzero(self.places.doubled())
        home, rows = self._home[doubled], self.places.rows[doubled]
        distance = np.abs(home["unit"].astype(np.int64) - rows["unit"].astype(np.int64))
        close = np.flatnonzero((home["page"] == rows["page"]) & (distance < self._size))
        helped = [each for each in close.tolist() if self._is_helped(doubled[each], home[each : each + 1])]
        asks = self._asks(np.delete(doubled, helped), np.delete(home, helped))
        asks = asks[np.lexsort((asks["from_unit"], asks["from_page"], asks["unit"], asks["page"]))]
        return asks[np.unique(place_numbers(asks), return_index=True)[1]]

    def _is_helped(self, doubled: Any, keeper: Rows) -> bool:
        """Tells whether a doubled place has a unit that only the keeper of its own span needs."""
        index = int(self.places.find(keeper)[0])
        own = np.zeros_like(self.places.needed[: self._size])
        offset = int(self.places.at[index] - self.places.at[doubled])
        own[max(0, offset) : max(0, self._size + offset)] = 1
        return bool((self.places.needed[self.places.units(doubled)] <= own).any())

    def options(self) -> Rows:
        """Returns ASKs for the keepers near doubled places: where each could move, and from where."""
        places, reach = self.places, 2 * (self._size - 1)
        near = [places.around(each, reach) for each in np.flatnonzero(places.doubled()).tolist()]
        keepers = np.unique(np.concatenate([np.empty(0, np.intp), *near]))
        keepers = keepers[places.keeper[keepers]]
        return self._asks(keepers, self._second[keepers])

    def _asks(self, places: Index, to: Rows) -> Rows:
        asks = np.empty(len(places), ASK)
        for name in ("group", "page", "unit"):
            asks[name] = to[name]
        asks["from_group"] = self._group
        asks["from_page"], asks["from_unit"] = self.places.rows["page"][places], self.places.rows["unit"][places]
        return asks


_SOMEWHERE = np.dtype([("group", "<u4"), *PLACE.descr])


def _twin_of(rows: Rows) -> Rows:
    twins = np.empty(len(rows), _SOMEWHERE)
    for name in ("group", "page", "unit"):
        twins[name] = rows[f"twin_{name}"]
    return twins


def _before(page: Any, unit: Any, other_page: Any, other_unit: Any) -> Mask:
    before: Mask = (page < other_page) | ((page == other_page) & (unit < other_unit))
    return before


ROUNDS = 2
"""How often keepers at doubled places are asked to move."""

Grouped = tuple[int, Mapping[str, Iterable[bytes]]]
"""The number of a group of files, and the blocks of rows that it received, by the name of their shuffle."""


def choose_keepers(flow: Flow, repeats: Any, spill: str, size: int) -> tuple[Any, Any, list[Any]]:
    """Adds the steps that choose the keeper of each repeated span.

    Args:
        flow: what the steps are added to.
        repeats: (group, packed TWINS) of all repeated spans.
        spill: a folder of this machine for blocks of rows between two steps; empty if the workers share no disk.
        size: the number of units in a span.

    Returns:
        (group, packed MARKS), when each span's keeper is its first place; (group, packed PLACEs) of all changes to
        that; the reports of the steps, as collections. `marks` and `changes` must each be read by one more step.
    """
    first = flow.map("Mark first copies", flow.group_by_key("Group repeated spans", repeats), MarkFirst(spill, size))
    claims = flow.co_group_by_key(
        "Claims to their group", marks=first["marks"], claims=first["claims"], hosts=first["hosts"]
    )
    granted = flow.map("Grant claims", claims, GrantClaims(spill, size))
    conflicts, changes, reports = granted["conflicts"], granted["changes"], [first[REPORT], granted[REPORT]]
    leaving: dict[str, Any] = {}
    for number in range(1, ROUNDS + 1):
        known = {"conflicts": conflicts, "changes": changes}
        options = flow.co_group_by_key(f"Options to their group {number}", **known, options=first["options"], **leaving)
        asked = flow.map(f"Ask keepers {number}", options, AskKeepers(spill, size, ROUNDS - number))
        requests = flow.co_group_by_key(
            f"Requests to their group {number}", **known, requests=asked["requests"], leaving=asked["leaving"]
        )
        accepted = flow.map(f"Accept keepers {number}", requests, AcceptKeepers(spill, size, ROUNDS - number))
        changes = flow.flatten(f"Changes {number}", changes, accepted["changes"])
        leaving = {"leaving": flow.flatten(f"Leaving {number}", *leaving.values(), asked["leaving"])}
        reports += [asked[REPORT], accepted[REPORT]]
    return first["marks"], changes, reports


class _KeeperStep(RowStep):
    def __init__(self, spill: str, size: int, rounds_left: int = ROUNDS) -> None:
        """Takes the spill folder, the number of units in a span, and how many rounds follow."""
        super().__init__(spill)
        self._size, self._rounds_left = size, rounds_left

    def _places(self, name: str, grouped: Mapping[str, Iterable[bytes]], reports: list[Any]) -> Places:
        return Places(self._receive(name, grouped[name], MARKS, reports), self._size)

    def _now(self, grouped: Mapping[str, Iterable[bytes]], reports: list[Any]) -> Places:
        """Returns the places of the pages with conflicts, after all changes so far."""
        places = self._places("conflicts", grouped, reports)
        places.change(self._receive("changes", grouped["changes"], PLACE, reports))
        return places

    def _changes(self, group: int, here: Rows, asks: Rows, reports: list[Any]) -> Iterator[tuple[str, Any]]:
        """Yields the changes at places of this group, and at those that asked for them."""
        readers = 2 * self._rounds_left + 1  # both steps of each round that follows, and the last step
        for block in self._to_groups("changes", here, np.full(len(here), group), PLACE, reports, readers):
            yield "changes", block
        there = from_places(asks)
        for block in self._to_groups("changes", there, asks["from_group"], PLACE, reports, readers):
            yield "changes", block


class MarkFirst(_KeeperStep):
    """(group, packed TWINS) -> marks, claims, options and their pages."""

    outputs = ("marks", "claims", "options", "hosts", REPORT)

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Makes the first place of each span its keeper, and finds the places that are doubled by this."""
        group, blocks = element
        reports: list[control_totals.Report] = []
        first = FirstKeepers(self._receive("repeated_spans", blocks, TWINS, reports), group, self._size)
        marks = first.marks()
        for block in self._to_groups("marks", marks, np.full(len(marks), group), MARKS, reports, readers=2):
            yield "marks", block
        claims, options = first.claims(), first.options()
        for block in self._to_groups("claims", claims, claims["group"], ASK, reports):
            yield "claims", block
        for block in self._to_groups("options", options, options["from_group"], ASK, reports, ROUNDS):
            yield "options", block
        hosts = hosts_of(options)
        for block in self._to_groups("hosts", hosts, hosts["group"], PAGE, reports):
            yield "hosts", block
        yield step_report(*reports)


class GrantClaims(_KeeperStep):
    """(group, marks, claims and hosts) -> conflicts, changes."""

    outputs = ("conflicts", "changes", REPORT)

    def process(self, element: Grouped) -> Iterator[Any]:
        """Moves the keepers that are claimed, and sends on the marks of the pages on which something may change."""
        group, grouped = element
        reports: list[control_totals.Report] = []
        places = self._places("marks", grouped, reports)
        hosts = self._receive("hosts", grouped["hosts"], PAGE, reports)
        claims = self._receive("claims", grouped["claims"], ASK, reports)
        marks = places.of_pages(np.union1d(hosts["page"], places.rows["page"][places.doubled()]))
        readers = 2 * self._rounds_left
        for block in self._to_groups("conflicts", marks, np.full(len(marks), group), MARKS, reports, readers):
            yield "conflicts", block
        granted = grant_claims(places, claims)
        yield from self._changes(group, to_places(granted), granted, reports)
        yield step_report(*reports)


class AskKeepers(_KeeperStep):
    """(group, conflicts, changes, options and those asked before) -> requests, and the places they come from."""

    outputs = ("requests", "leaving", REPORT)

    def process(self, element: Grouped) -> Iterator[Any]:
        """Asks keepers at doubled places to move."""
        group, grouped = element
        reports: list[control_totals.Report] = []
        places = self._now(grouped, reports)
        options = self._receive("options", grouped["options"], ASK, reports)
        before = self._receive("leaving", grouped.get("leaving", ()), PLACE, reports)
        asks = ask_keepers(places, options, before)
        for block in self._to_groups("requests", asks, asks["group"], ASK, reports):
            yield "requests", block
        leaving, readers = from_places(asks), 1 + self._rounds_left
        for block in self._to_groups("leaving", leaving, np.full(len(leaving), group), PLACE, reports, readers):
            yield "leaving", block
        yield step_report(*reports)


class AcceptKeepers(_KeeperStep):
    """(group, conflicts, changes, requests and leaving places) -> changes."""

    outputs = ("changes", REPORT)

    def process(self, element: Grouped) -> Iterator[Any]:
        """Accepts keepers where they double no other place."""
        group, grouped = element
        reports: list[control_totals.Report] = []
        places = self._now(grouped, reports)
        requests = self._receive("requests", grouped["requests"], ASK, reports)
        leaving = self._receive("leaving", grouped["leaving"], PLACE, reports)
        accepted = accept_keepers(places, requests, leaving)
        yield from self._changes(group, to_places(accepted), accepted, reports)
        yield step_report(*reports)
