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

import numpy as np
import numpy.typing as npt

from c4pipe.dedup.span_places import PAGE, PLACE, expand, marks_of, place_numbers, places_in_order
from c4pipe.filters.duplicates import Rows

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
