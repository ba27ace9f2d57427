"""Which place keeps each repeated span, in plain Python, on all pages at once; and both goals, by brute force."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

Place = tuple[int, int]
"""A page and the index of the span's first unit."""
Places = Mapping[Any, Sequence[Place]]
"""The places of each repeated span, in their order."""


KNOWN_PAGE = -1
"""A page of known corpora: it has all of their spans, comes first, and never changes."""


def repeated_places(
    pages: Mapping[int, Sequence[Any]], size: int, known: Collection[Any] = ()
) -> dict[Any, list[Place]]:
    """The places of each span that occurs more than once, given the units of each page, and the spans of known corpora.

    Their place comes first, far from all others.
    """
    places: dict[Any, list[Place]] = defaultdict(list)
    places.update({span: [(KNOWN_PAGE, 2 * size * number)] for number, span in enumerate(sorted(known))})
    for page in sorted(pages):
        units = pages[page]
        for unit in range(len(units) - size + 1):
            places[tuple(units[unit : unit + size])].append((page, unit))
    return {span: found for span, found in places.items() if len(found) > 1}


def units_at(place: Place, size: int) -> list[Place]:
    page, unit = place
    return [(page, unit + offset) for offset in range(size)]


def needed_by(survivors: Mapping[Any, Place], size: int) -> Counter[Place]:
    return Counter(unit for place in survivors.values() for unit in units_at(place, size))


def doubled(places: Places, survivors: Mapping[Any, Place], size: int) -> list[tuple[Place, Any]]:
    """The places that are no survivors, and of which other survivors need all units."""
    needed = needed_by(survivors, size)
    return sorted(
        (place, span)
        for span, found in places.items()
        for place in found
        if place != survivors[span] and all(needed[unit] for unit in units_at(place, size))
    )


def fewest_doubled(places: Places, size: int, most: int = 3000) -> int | None:
    """The fewest doubled places that any choice of survivors has; None where there are more choices than `most`."""
    choices = 1
    for found in places.values():
        choices *= len(found)
    if choices > most:
        return None
    picks = itertools.product(*places.values())
    return min(len(doubled(places, dict(zip(places, pick, strict=True)), size)) for pick in picks)


def choose(places: Places, size: int) -> dict[Any, Place]:
    """The survivor of each span, as `dedup.survivors` describes it."""
    survivors = {span: found[0] for span, found in places.items()}
    span_at = {place: span for span, found in places.items() for place in found}
    begin = doubled(places, survivors, size)
    near = {(page, unit + offset) for (page, unit), _ in begin for offset in range(-2 * (size - 1), 2 * (size - 1) + 1)}
    movable = {span for span, place in survivors.items() if place in near}
    survivors = _after_claims(begin, survivors, size)
    asked: set[Place] = set()
    for _ in range(2):
        leaving = _ask(places, survivors, movable, span_at, asked, size)
        accepted = _accept(places, survivors, leaving, size)
        asked.update(survivors[span] for span in leaving)
        survivors.update({span: places[span][1] for span in accepted})
    return survivors


def _after_claims(begin: Sequence[tuple[Place, Any]], survivors: Mapping[Any, Place], size: int) -> dict[Any, Place]:
    needed = needed_by(survivors, size)
    claims: dict[Any, Place] = {}
    for place, span in begin:
        own = set(units_at(survivors[span], size))
        if survivors[span][0] != KNOWN_PAGE and all(needed[unit] - (unit in own) > 0 for unit in units_at(place, size)):
            claims.setdefault(span, place)
    moved = dict(survivors)
    for span in sorted(claims, key=lambda span: survivors[span]):
        own_units = units_at(survivors[span], size)
        if any(needed[unit] == 1 for unit in own_units):
            needed.subtract(own_units)
            moved[span] = claims[span]
    return moved


def _ask(
    places: Places,
    survivors: Mapping[Any, Place],
    movable: set[Any],
    span_at: Mapping[Place, Any],
    asked: set[Place],
    size: int,
) -> list[Any]:
    needed = needed_by(survivors, size)
    leaving: list[Any] = []
    for place, _ in doubled(places, survivors, size):
        units = units_at(place, size)
        if not all(needed[unit] for unit in units):
            continue
        ways = []
        for page, unit in units:
            there = [span_at.get((page, unit - offset)) for offset in range(size)]
            of = [
                span
                for offset, span in enumerate(there)
                if span is not None and survivors[span] == (page, unit - offset) and span not in leaving
            ]
            if all(span in movable and survivors[span] == places[span][0] for span in of):
                ways.append((sum(survivors[span] in asked for span in of), len(of), -unit, of))
        if ways:
            best = min(ways, key=lambda way: way[:3])[3]
            leaving += best
            for span in best:
                needed.subtract(units_at(survivors[span], size))
    return leaving


def _accept(places: Places, survivors: Mapping[Any, Place], leaving: Sequence[Any], size: int) -> list[Any]:
    stay = needed_by(survivors, size)
    leave = stay - Counter(unit for span in leaving for unit in units_at(survivors[span], size))
    kept = set(survivors.values())
    everywhere = {place for found in places.values() for place in found}
    accepted = []
    for span in sorted(leaving, key=lambda span: places[span][1]):
        place = places[span][1]
        new = units_at(place, size)
        around = [(place[0], place[1] + offset) for offset in range(1 - size, size)]
        others = [each for each in around if each in everywhere and each != place and each not in kept]
        if any(
            not all(needed[unit] for unit in units_at(each, size))
            and all(needed[unit] or unit in new for unit in units_at(each, size))
            for each in others
            for needed in (stay, leave)
        ):
            continue
        accepted.append(span)
        kept.add(place)
        stay.update(new)
        leave.update(new)
    return accepted
