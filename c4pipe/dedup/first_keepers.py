"""Keepers at the first place of each span, and where they could move. Pure functions, in NumPy: see `keepers`."""

from typing import Any

import numpy as np

from c4pipe.dedup.keepers import Index, Mask, Places
from c4pipe.dedup.span_places import ASK, PLACE, expand, marks_of, place_numbers
from c4pipe.filters.duplicates import Rows


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
