"""Which page keeps the copy of a repeated span: no span loses all copies, and none stands twice where that can be."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from c4pipe.dedup.occurrences import expand, repeated_in_bucket, repeated_in_group
from c4pipe.dedup.order import find_repeats
from c4pipe.dedup.removals import Removals
from c4pipe.dedup.shuffle import MARK, OCCURRENCE, REPEATED, SHUFFLES, SPAN_ROW
from c4pipe.dedup.survivors import choose_survivors
from c4pipe.io.rows import Rows
from c4pipe.runners.control_totals import Report, add_reports, check_totals
from c4pipe.runners.graph import Graph
from c4pipe.runners.local_flow import LocalFlow
from tests.helpers import survivor_oracle
from tests.helpers.survivor_oracle import Place

Pages = Mapping[int, Sequence[int]]
"""The units of each page, by its key."""


def pieces(chance: random.Random) -> list[list[int]]:
    """Pages that share pieces of one text, with other sentences put in: survivors of neighbours are on other pages."""
    text = [chance.randrange(20) for _ in range(chance.randint(4, 12))]
    pages = []
    for _ in range(chance.randint(2, 6)):
        start = chance.randint(0, len(text) // 2)
        page = text[start : chance.randint(start + 1, len(text))]
        for _ in range(chance.randint(0, 2)):
            new = chance.choice((text[chance.randint(0, 3) :][:3], [chance.randrange(20)]))
            at = chance.randint(0, len(page))
            page[at:at] = new
        pages.append(page)
    return pages


def keyed(pages: Sequence[Sequence[int]], size: int, files: int) -> tuple[dict[int, Sequence[int]], int, int]:
    return {(1 << 60) * number + number: page for number, page in enumerate(pages)}, size, files


few_units = st.lists(st.lists(st.integers(0, 5), max_size=12), max_size=6)
some_pages = st.one_of(few_units, st.integers(0, 1 << 30).map(lambda seed: pieces(random.Random(seed))))
cases = st.builds(keyed, some_pages, st.sampled_from([2, 3, 4]), st.integers(1, 4))

THE_ISSUE = [[1, 2, 3, 7, 8], [1, 2, 3, 4, 9], [2, 3, 4, 6]]
ALTERNATING = [[10, 11, 1, 2, 1, 2, 1, 2, 12, 13]] * 3
ALL_ENDS = [[8, 1, 2, 3, 6], [9, 1, 2, 3, 7], [8, 1, 2, 3, 7], [9, 1, 2, 3, 6]]
IN_EACH_ARTICLE = [[10 * number + each for each in (1, 2)] + [1, 2, 3] + [10 * number + 5] for number in (1, 2, 3)] * 2


@settings(deadline=None, max_examples=300)
@given(cases)
@example(keyed(THE_ISSUE, 3, 1))
@example(keyed(ALTERNATING, 3, 2))
@example(keyed(ALL_ENDS, 3, 4))
@example(keyed(IN_EACH_ARTICLE, 3, 3))
@example(keyed([[1] * 9, [1] * 5, [2, 1, 1, 1]], 3, 2))
def test_no_span_is_lost_or_doubled(case: tuple[Pages, int, int]) -> None:
    pages, size, files = case
    places = survivor_oracle.repeated_places(pages, size)
    removals, survivors = chosen(pages, size, files)
    check_copies(pages, places, removals, size)
    expected = survivor_oracle.choose(places, size)
    assert survivors == set(expected.values())
    doubled = survivor_oracle.doubled(places, expected, size)
    assert removals.counts == ({"spans.repeated": len(places), "spans.doubled": len(doubled)} if places else {})
    event(f"survivors moved: {survivors != {found[0] for found in places.values()}}")
    event(f"doubled: {len(doubled)}")


@pytest.mark.parametrize("pages", [ALTERNATING, ALL_ENDS, IN_EACH_ARTICLE])
def test_by_example(pages: list[list[int]]) -> None:
    by_key, size, files = keyed(pages, 3, 2)
    removals, survivors = chosen(by_key, size, files)
    assert survivors != {found[0] for found in survivor_oracle.repeated_places(by_key, size).values()}, "none has moved"
    assert removals.counts["spans.doubled"] == 0


def test_two_copies_stay_in_few_cases_only() -> None:
    """Of small texts that share as much as possible; with other survivors there would be a way in each of them."""
    chance = random.Random(0)
    conflicts = failures = 0
    for _ in range(1200):
        pages, size, files = keyed(pieces(chance), chance.choice((2, 3, 4)), chance.randint(1, 3))
        places = survivor_oracle.repeated_places(pages, size)
        first = {span: found[0] for span, found in places.items()}
        if not survivor_oracle.doubled(places, first, size):
            continue
        conflicts += 1
        removals, _ = chosen(pages, size, files)
        if removals.counts["spans.doubled"]:
            failures += 1
            assert not survivor_oracle.fewest_doubled(places, size)
    assert conflicts > 40
    assert failures <= conflicts // 20


@settings(deadline=None, max_examples=60)
@given(cases, st.randoms(use_true_random=False))
def test_groups_do_not_matter(case: tuple[Pages, int, int], chance: Any) -> None:
    pages, size, _ = case
    survivors = chosen(pages, size, 1)[1]
    assert chosen(pages, size, 5)[1] == survivors
    files = {page: chance.randint(0, 3) for page in pages}
    assert chosen(pages, size, 4, files)[1] == survivors


def test_several_processes() -> None:
    pages, size, _ = keyed([*ALL_ENDS, *ALTERNATING, *IN_EACH_ARTICLE], 3, 4)
    assert chosen(pages, size, 4, workers=2)[1] == chosen(pages, size, 1)[1]


def check_copies(pages: Pages, places: Mapping[Any, Sequence[Place]], removals: Removals, size: int) -> None:
    """Removes the units, and counts the places of each span that stay as a whole."""
    removed = {
        (page, unit + offset) for page, spans in removals.spans.items() for unit in spans for offset in range(size)
    } - {(page, unit + offset) for page, spans in removals.kept.items() for unit in spans for offset in range(size)}
    copies = {
        span: sum(not removed.intersection(survivor_oracle.units_at(place, size)) for place in found)
        for span, found in places.items()
    }
    assert [span for span, number in copies.items() if number < 1] == []
    assert sum(number - 1 for number in copies.values()) == removals.counts["spans.doubled"]
    repeated = {unit for found in places.values() for place in found for unit in survivor_oracle.units_at(place, size)}
    assert removed <= repeated


def chosen(
    pages: Pages, size: int, files: int, file_of: Mapping[int, int] | None = None, workers: int = 1
) -> tuple[Removals, set[Place]]:
    """Runs the steps, each file a group; gives what the pages lose, and the survivors."""
    rows = [
        (hash(tuple(units[unit : unit + size])) % 2**64, page, file_of[page] if file_of else number % files, unit)
        for number, (page, units) in enumerate(pages.items())
        for unit in range(len(units) - size + 1)
    ]
    spans = np.array(rows, SPAN_ROW)
    repeats, firsts = [], [np.empty(0, SPAN_ROW)]
    for group in range(files):
        first, others = find_repeats(spans[spans["file"] == group])
        repeats.append((group, repeated_in_group(first, others, group).tobytes()))
        firsts.append(first)
    repeated, groups = repeated_in_bucket(*find_repeats(np.concatenate(firsts)), 1)
    repeats += [(group, repeated[groups == group].tobytes()) for group in range(files)]
    graph = Graph()
    marks, changes = choose_survivors(graph, [graph.given(repeats, "repeated_spans")], "", size)
    with LocalFlow(workers) as flow:
        made = graph.run(flow, [marks, *changes, *graph.reports])
    all_marks = joined(made[0], MARK)
    all_changes = joined([each for some in made[1 : 1 + len(changes)] for each in some], OCCURRENCE)
    check_delivery([each for some in made[1 + len(changes) :] for each in some], repeats, all_marks, all_changes)
    start = {(row["page"], row["unit"]) for row in expand(all_marks) if row["survives"]}
    moved = {(row["page"], row["unit"]) for row in all_changes}
    return Removals(all_marks, all_changes, size), {(int(page), int(unit)) for page, unit in start ^ moved}


def joined(elements: Sequence[tuple[int, bytes]], dtype: np.dtype[Any]) -> Rows:
    return np.frombuffer(b"".join(block for _, block in elements), dtype)


def check_delivery(reports: list[Report], repeats: Sequence[tuple[int, bytes]], marks: Rows, changes: Rows) -> None:
    """Each row that was sent was received, as often as it was sent; the last step receives marks and changes."""
    total: dict[str, int] = defaultdict(int, add_reports(reports))
    for name, rows in (("marks", marks), ("changes", changes)):
        total[f"shuffle.{name}.received.rows"] += len(rows)
        total[f"shuffle.{name}.received.words"] += int(rows.view("<u4").sum(dtype=np.uint64))
    sent = joined(repeats, REPEATED)
    total["shuffle.repeated_spans.sent.rows"] = len(sent)
    total["shuffle.repeated_spans.sent.words"] = int(sent.view("<u4").sum(dtype=np.uint64))
    check_totals(total, SHUFFLES)
