"""Pages that a rule drops after they lost sentences: the steps on any pages; and the fewest copies, by brute force."""

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, combinations, product
from operator import or_
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from c4pipe.dedup.falling_pages import PageSource, ReadPages, keep_copies
from c4pipe.dedup.finish import PageFinisher
from c4pipe.dedup.occurrences import marks_of
from c4pipe.dedup.removals import Removals
from c4pipe.dedup.shuffle import HOLDER, IN_KNOWN, MARK, OCCURRENCE
from c4pipe.dedup.step import Received
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.page_size import FewSentencesLeft
from c4pipe.filters.rule import PageRule, Share
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import C4
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.control_totals import add_reports
from c4pipe.runners.graph import Graph
from c4pipe.runners.local_flow import LocalFlow
from tests.helpers import survivor_oracle
from tests.helpers.survivor_oracle import KNOWN_PAGE, Place, Places, units_at

SIZE = 3
Pages = Mapping[int, Sequence[int]]
"""The units of each page, by its key."""


@dataclass(frozen=True)
class ByChance(PageRule):
    """A rule that drops a share of all texts, whatever they have in common, like a detector that errs."""

    name = "by_chance"
    does = "drops a page by the hash of its text"
    source = "tests"
    share: Share = 0.5

    def value(self, page: CheckedPage) -> float:
        return zlib.crc32(page.text.encode()) / 2**32

    def drops(self, value: float) -> bool:
        return value < self.share


def judged_by(*rules: PageRule) -> Recipe:
    return replace(C4, final=rules)


FEW = judged_by(FewSentencesLeft(min_sentences=5))
CHANCE = judged_by(ByChance())


Row = dict[str, Any]
"""A page in a work file."""
Rows = Mapping[int, Row]
"""Pages by key."""


class Made(NamedTuple):
    """What the steps made of pages.

    The places of repeated spans, the survivors, the units that pages lose, the counts, and the pages that stay.
    """

    places: Places
    survivors: set[Place]
    gone: set[Place]
    counts: dict[str, int]
    stay: set[int]
    finisher: PageFinisher
    pages: Rows

    def of_page(self, key: int) -> tuple[set[int], set[int]]:
        """The repeated spans of a page, and its survivors."""
        hashes = enumerate(self.pages[key]["span_hashes"])
        repeated = {unit for unit, span in hashes if span in self.places}
        return repeated, {unit for unit in repeated if (key, unit) in self.survivors}

    def copies(self, places: Places) -> dict[Any, list[Place]]:
        """The places of repeated spans which stay as a whole, on pages that stay: by brute force."""
        return {
            span: [each for each in found if each[0] in self.stay and not self.gone.intersection(units_at(each, SIZE))]
            for span, found in places.items()
        }


def made_of(units: Sequence[int], key: int, finisher: PageFinisher) -> Row:
    sentences = [f"Sentence {unit} is here. " for unit in units]
    text, starts = "".join(sentences).rstrip(), np.cumsum([0, *map(len, sentences)])[:-1].tolist()
    hashes = [hash(tuple(units[at : at + SIZE])) % 2**64 for at in range(len(units) - SIZE + 1)]
    page = {"page_key": key, "url": f"https://a.example/{key}", "text": text, "unit_starts": starts}
    page |= {"span_hashes": hashes, "language": "en", "dropped": None}
    return page | {"dropped": finisher.judge(page, (), ())[2].reason}


def tables_of(groups: Sequence[Sequence[Row]], received: Received) -> ReadPages:
    assert list(received.given("pages")) == [b"here"]
    lists = [("unit_starts", pa.list_(pa.uint32())), ("span_hashes", pa.list_(pa.uint64()))]
    texts = [(name, pa.string()) for name in ("url", "text", "language", "dropped")]
    schema = pa.schema([("page_key", pa.uint64()), *lists, *texts])
    tables = (pa.Table.from_pylist([row], schema) for row in groups[received.key])
    return lambda choose: (table.filter(pa.array(choose(table))) for table in tables)


def made_rows(pages: Pages, recipe: Recipe) -> tuple[Rows, PageFinisher]:
    """Rows of work files, and what judges them, for pages of made-up sentences."""
    finisher = PageFinisher(recipe, Lists())
    return {key: made_of(units, key, finisher) for key, units in pages.items()}, finisher


def handed_on(
    rows: Rows,
    finisher: PageFinisher,
    files: int = 1,
    file_of: Mapping[int, int] | None = None,
    known: Collection[int] = (),
) -> Made:
    """Runs the steps on pages, by key, each file a group. Known corpora have the spans with the hashes `known`."""
    groups: list[list[Row]] = [[] for _ in range(files)]
    for number, (key, row) in enumerate(rows.items()):
        groups[file_of[key] if file_of else number % files].append(row)
    hashes = {key: row["span_hashes"] for key, row in rows.items()}
    by_hash = survivor_oracle.repeated_places(hashes, 1, [(each,) for each in known])
    chosen = survivor_oracle.choose({span: found for (span,), found in by_hash.items()}, SIZE)
    places = {span: [each for each in found if each[0] != KNOWN_PAGE] for (span,), found in by_hash.items()}
    survivors = {place for place in chosen.values() if place[0] != KNOWN_PAGE}
    group_of = {row["page_key"]: group for group, some in enumerate(groups) for row in some}
    marks, holders = [], []
    for group in range(files):
        here = [(span, place) for span, found in places.items() for place in found if group_of[place[0]] == group]
        survive = np.array([IN_KNOWN if span in known else place in survivors for span, place in here])
        marks.append((group, marks_of(np.array([place for _, place in here], OCCURRENCE), survive).tobytes()))
        for span in sorted({span for span, _ in here}):
            holders.append((span >> 62, np.array([(span, group)], HOLDER).tobytes()))
    graph = Graph()
    given = [graph.given([(group, b"here") for group in range(files)], "pages")]
    source = PageSource("", SIZE, 2, lambda: finisher, partial(tables_of, groups))
    changes = keep_copies(graph, given, [graph.given(marks, "marks")], graph.given(holders, "holders"), source)
    with LocalFlow(1) as flow:
        found = graph.run(flow, [*changes, *graph.reports])
    changed = joined([each for some in found[: len(changes)] for each in some], OCCURRENCE)
    removals = Removals(joined(marks, MARK), changed, SIZE)
    report = add_reports(
        [removals.counts, {"spans.kept": 0}, *(each for some in found[len(changes) :] for each in some)]
    )
    assert report.get("spans.repeated", 0) == len(places.keys() - known)
    for row in changed:
        survivors ^= {(int(row["page"]), int(row["unit"]))}
    lost = {place for page, units in removals.spans.items() for unit in units for place in units_at((page, unit), SIZE)}
    kept = {place for page, units in removals.kept.items() for unit in units for place in units_at((page, unit), SIZE)}
    made = Made(places, survivors, lost - kept, {}, set(), finisher, rows)
    made.stay.update(key for key in rows if not finisher.verdict(rows[key], *made.of_page(key)))
    made.counts["lost"] = len(places) - sum(page in made.stay for page, _ in survivors) - report["spans.kept"]
    made.counts["doubled"] = report.get("spans.doubled", 0)
    return made


def joined(elements: Sequence[tuple[int, bytes]], dtype: np.dtype[Any]) -> Any:
    return np.frombuffer(b"".join(block for _, block in elements), dtype)


def components(places: Places) -> Iterator[dict[Any, Sequence[Place]]]:
    """The repeated spans of pages which share spans, directly or by way of other pages."""
    spans_of = defaultdict(list)
    for span, found in places.items():
        for page, _ in found:
            spans_of[page].append(span)
    seen = set()
    for first in places:
        waiting, spans = [first], {}
        while waiting:
            span = waiting.pop()
            if span not in seen:
                seen.add(span)
                spans[span] = places[span]
                waiting += [other for page, _ in places[span] for other in spans_of[page]]
        if spans:
            yield spans


def fewest(places: Places, rows: Rows, finisher: PageFinisher, most: int = 10) -> tuple[int, int] | None:
    """The fewest spans without a copy, and then the fewest second copies, of all choices of surviving occurrences.

    Every page may keep any of its occurrences; a page that the last rules drop then has no copies. Returns None where a
    page has more than `most` occurrences, or `places` has more spans.
    """
    bit_of = {place: 1 << number for number, found in enumerate(places.values()) for place in found}
    units_of_page = defaultdict(set)
    for page, unit in bit_of:
        units_of_page[page].add(unit)
    if max(len(places), *map(len, units_of_page.values())) > most:
        return None
    copies = {0: 0}  # the fewest copies that the pages have which have copies of these spans
    for page, units in units_of_page.items():
        ways = _ways_of_page(rows[page], units, {unit: bit_of[page, unit] for unit in units}, finisher)
        merged: dict[int, int] = {}
        for (spans, number), (more, added) in product(copies.items(), ways.items()):
            merged[spans | more] = min(merged.get(spans | more, number + added), number + added)
        copies = merged
    return min((len(places) - spans.bit_count(), number - spans.bit_count()) for spans, number in copies.items())


def _ways_of_page(row: Row, repeated: set[int], bits: Mapping[int, int], finisher: PageFinisher) -> dict[int, int]:
    """Which spans a page can have copies of, and the fewest copies in which it has them."""
    ways = {0: 0}
    for chosen in chain.from_iterable(combinations(sorted(repeated), number + 1) for number in range(len(repeated))):
        left = {unit + step for unit in chosen for step in range(SIZE)}
        whole = {each for each in repeated if left.issuperset(range(each, each + SIZE))}
        if len(whole) == len(chosen) and finisher.verdict(row, repeated, whole) is None:
            spans = reduce(or_, (bits[each] for each in whole))
            ways[spans] = min(ways.get(spans, len(whole)), len(whole))
    return ways
