"""The steps of job 2 that choose the page which keeps the copy of each repeated span: see `keepers`.

Each step works on the places of a group of files. Places are sent once, as marks; after that, only the pages on which
something may change, and the changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from c4pipe.dedup import keepers
from c4pipe.dedup.dedup_step import REPORT, RowStep, step_report
from c4pipe.dedup.first_keepers import FirstKeepers
from c4pipe.dedup.keepers import Places
from c4pipe.dedup.span_places import ASK, MARKS, PAGE, PLACE, TWINS
from c4pipe.filters.duplicates import Rows
from c4pipe.runners import control_totals
from c4pipe.runners.flow import Flow

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
        there = keepers.from_places(asks)
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
        hosts = keepers.hosts_of(options)
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
        granted = keepers.grant_claims(places, claims)
        yield from self._changes(group, keepers.to_places(granted), granted, reports)
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
        asks = keepers.ask_keepers(places, options, before)
        for block in self._to_groups("requests", asks, asks["group"], ASK, reports):
            yield "requests", block
        leaving, readers = keepers.from_places(asks), 1 + self._rounds_left
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
        accepted = keepers.accept_keepers(places, requests, leaving)
        yield from self._changes(group, keepers.to_places(accepted), accepted, reports)
        yield step_report(*reports)
