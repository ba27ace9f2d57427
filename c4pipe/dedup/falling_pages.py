"""Pages that fall give the copies of spans that they keep to other pages.

A page that lost some repeated spans can be the only page with the copies of others. If the stage `final` drops it, it
*falls*, and its copies would vanish with it. So after the survivors are chosen (`survivors`), one more round asks:

1. Each edited page that has survivors is judged. The survivors of pages that fall are *free*: they are offered to all
   groups that have occurrences of their spans.
2. Each page with a free span is judged as if it kept all free spans that it has, and *bids* for them if it stays then.
   The smallest page gets the span. If none stays, a page bids that passes the rules as a whole.
3. A page that got other spans than it has bid for is judged again. If it falls, it keeps more of its spans: those that
   it has bid for, or all, but no span without which it stays, too. The other copies of these spans are *taken*: their
   pages release them if they stay without them. Otherwise a second copy stays, and is counted.

No page falls in step 3, so every repeated span keeps a copy, unless the rules drop all of its pages as a whole. There
is no further round: on real pages nothing is left for it. Pages that keep and lose what they did are not judged again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.work_file import PAGE_COLUMNS, read_kept
from c4pipe.dedup.finish import PageFinisher
from c4pipe.dedup.near_pages import NEAR_DUPLICATES
from c4pipe.dedup.removals import MOVED
from c4pipe.dedup.shuffle import (
    BID,
    BIDS,
    CHANGES,
    FREE,
    FREE_SPANS,
    GIVEN,
    HOLDER,
    HOLDERS,
    MARKS,
    OCCURRENCE,
    OFFERS,
    RELEASES,
    STALE_CAPTURES,
    TAKEN,
    TAKEN_SPANS,
    with_fields,
)
from c4pipe.dedup.step import DedupPlan, Made, Received, RowStep, rows_of
from c4pipe.dedup.survivors import Occurrences
from c4pipe.filters.duplicates import Rows
from c4pipe.filters.lists import find_lists
from c4pipe.filters.spans import units_of
from c4pipe.io.paths import storage_path
from c4pipe.runners.graph import Graph, Output

_ROWS_AT_ONCE = 512  # of a work file
_MOST_TRIES = 64
"""How many spans that a page keeps only so that it stays are tried to be given up, one by one."""

_WHOLE = 2  # rank of a bid: the page stays only if it keeps all of its repeated spans

Pages = Callable[[], Iterator[pa.Table]]
"""Reads the pages of a group, with `page_key`, `url`, `text`, `language`, `unit_starts`, `span_hashes`."""


class PageSource(Protocol):
    """Where the steps read the pages of a group. It is sent to the workers."""

    def finisher(self) -> PageFinisher:
        """Returns what judges the pages."""

    def open(self, received: Received) -> Pages:
        """Takes the input of a step that is about pages, and returns what reads them."""


@dataclass(frozen=True)
class WorkPages:
    """The newest pages of work files."""

    plan: DedupPlan

    def finisher(self) -> PageFinisher:
        """Returns the finisher of the recipe."""
        plan = self.plan
        lists = find_lists([storage_path(each) for each in plan.work], plan.lists)
        return PageFinisher(plan.rules, lists, judged=True)

    def open(self, received: Received) -> Pages:
        """Takes the rows of pages that are passed over; the returned function reads the other pages."""
        stale, near = received.rows(STALE_CAPTURES), received.rows(NEAR_DUPLICATES)

        def read() -> Iterator[pa.Table]:
            for file, path in received.files:
                passed = np.r_[rows_of(stale, file), rows_of(near, file)]
                columns = [*PAGE_COLUMNS, "span_hashes"]
                yield from (pages for pages, _ in read_kept(storage_path(path), columns, passed, _ROWS_AT_ONCE))

        return read


class SharedPage:
    """A page with repeated spans.

    Attributes:
        key: its key.
        repeated: the first unit of each repeated span.
        kept: of these, the spans that the page keeps: their survivors.
        hashes: the hash of the span at each unit.
    """

    def __init__(self, page: Mapping[str, Any], occurrences: Occurrences, finisher: PageFinisher) -> None:
        """Takes a row of a work file, all occurrences of its group, and what judges it."""
        self._page, self._finisher = page, finisher
        self.key: int = page["page_key"]
        self.hashes: Sequence[int] = page["span_hashes"]
        self.repeated, self.kept = occurrences.of_page(self.key)

    def verdict(self, kept: Collection[int]) -> str | None:
        """Returns the rule that drops the page if it keeps these spans; None if it stays."""
        return self._finisher.verdict(self._page, self.repeated, set(kept))

    def falls(self, kept: Collection[int]) -> bool:
        """Tells whether the page falls if it keeps these spans."""
        return self._finisher.falls(self.verdict(kept))

    def offered(self, hashes: Collection[int]) -> dict[int, int]:
        """Returns one occurrence of each span with one of these hashes: its unit by its hash."""
        found: dict[int, int] = {}
        for unit in sorted(self.repeated, key=lambda unit: (unit not in self.kept, unit)):
            if self.hashes[unit] in hashes:
                found.setdefault(self.hashes[unit], unit)
        return found


def second_copies(kept: Collection[int], repeated: Iterable[int], size: int) -> set[int]:
    """Returns the spans of a page, by their first units, that it does not keep, but that stay as a whole: other spans
    need all of their units.
    """
    units = units_of(kept, size)
    return {unit for unit in repeated if unit not in kept and units.issuperset(units_of([unit], size))}


def groups_with(spans: Rows, holders: Rows) -> Rows:
    """Returns the HOLDER rows of some spans, sorted: all their groups, and the groups in `spans` itself."""
    wanted = holders[np.isin(holders["hash"], spans["hash"])]
    return np.unique(np.concatenate([with_fields(spans, HOLDER), wanted]))


def best_bids(bids: Rows) -> Rows:
    """Returns the best bid for each span, in the order of the hashes: by rank, extra copies, page and unit."""
    bids = bids[np.lexsort([bids[name] for name in ("unit", "page", "extra", "rank", "hash")])]
    return bids[np.unique(bids["hash"], return_index=True)[1]]


class _JudgeStep(RowStep):
    """A step that judges pages of a group by the spans that they keep."""

    def __init__(self, source: PageSource, spill: str, size: int, bits: int) -> None:
        """Takes where the pages are, the spill folder, the number of units in a span, and of bits of a bucket."""
        super().__init__(spill)
        self._source, self._size, self._bits = source, size, bits

    def setup(self) -> None:
        """Loads the recipe with its lists."""
        super().setup()
        self._finisher = self._source.finisher()

    def _open(self, received: Received) -> tuple[Pages, Occurrences]:
        """Returns what reads the pages, and the occurrences of the group after all changes so far."""
        pages, occurrences = self._source.open(received), Occurrences(received.rows(MARKS), self._size)
        occurrences.change(received.rows(CHANGES))
        return pages, occurrences

    def _shared(self, tables: Iterable[pa.Table], occurrences: Occurrences, choose: Any) -> Iterator[SharedPage]:
        """Yields the pages that `choose` selects by a mask, from each table."""
        for table in tables:
            rows = np.flatnonzero(choose(table))
            for page in table.take(pa.array(rows)).to_pylist() if len(rows) else ():
                yield SharedPage(page, occurrences, self._finisher)

    def _with_spans(self, pages: Pages, occurrences: Occurrences, hashes: Any) -> Iterator[SharedPage]:
        """Yields the pages that have a span with one of these hashes."""

        def choose(table: pa.Table) -> Any:
            lists = table["span_hashes"].combine_chunks()
            found = np.zeros(len(table), bool)
            found[pc.list_parent_indices(lists).to_numpy()[np.isin(lists.flatten().to_numpy(), hashes)]] = True
            return found

        return self._shared(pages() if len(hashes) else (), occurrences, choose)

    def _moved(self, occurrences: Occurrences, page: SharedPage, units: Collection[int]) -> bytes:
        """Returns packed MOVED rows of the copies at these units which are the first occurrences of their spans."""
        places = np.array([(page.key, unit) for unit in units], OCCURRENCE)
        first = occurrences.rows["survives"][occurrences.find(places)] != 0
        rows = [(page.hashes[unit], page.key, unit) for unit in places["unit"][first].tolist()]
        return np.array(rows, MOVED).tobytes()


class FreeSpans(_JudgeStep):
    """The pages and marks of a group -> the survivors of pages that fall."""

    sends = (FREE_SPANS,)

    def run(self, received: Received) -> Iterator[Made]:
        """Judges the pages that have survivors and lose other spans, or whose whole text falls."""
        pages, occurrences = self._open(received)
        keys = occurrences.rows["page"]
        holding = np.unique(keys[occurrences.survives])
        edited = np.unique(keys[~occurrences.survives & ~occurrences.duplicates_left()])

        def choose(table: pa.Table) -> Any:
            of = table["page_key"].to_numpy()
            judged = table["dropped"].is_valid().to_numpy() if "dropped" in table.column_names else True
            return np.isin(of, holding) & (np.isin(of, edited) | judged)

        free = [
            (page.hashes[unit], page.key, unit, received.key)
            for page in self._shared(pages() if len(holding) else (), occurrences, choose)
            if page.falls(page.kept)
            for unit in page.kept
        ]
        yield FREE_SPANS.to_buckets(np.array(sorted(free), FREE), self._bits)


class OfferSpans(RowStep):
    """The free spans of a bucket -> offers to all groups that have occurrences of them."""

    sends = (OFFERS,)

    def run(self, received: Received) -> Iterator[Made]:
        """Offers the free spans."""
        offers = groups_with(received.rows(FREE_SPANS), received.rows(HOLDERS))
        yield OFFERS.to_groups(offers, offers["group"])


class BidForSpans(_JudgeStep):
    """The pages, marks and offers of a group -> its best bid for each free span."""

    sends = (BIDS,)

    def run(self, received: Received) -> Iterator[Made]:
        """Judges the pages that have free spans, as far as they can be the best bidder of one."""
        pages, occurrences = self._open(received)
        hashes = received.rows(OFFERS)["hash"]
        wanted = set(hashes.tolist())
        best: dict[int, tuple[int, ...]] = {}
        for page in self._with_spans(pages, occurrences, hashes):
            offered = page.offered(wanted)
            if all(best.get(each, (9,)) < (0, 0, page.key, unit) for each, unit in offered.items()):
                continue
            rank = self._rank(page, page.kept.union(offered.values()))
            for each, unit in offered.items() if rank else ():
                best[each] = min(best.get(each, (9,)), (*rank, page.key, unit, len(offered)))
        rows = [
            (each, page, unit, received.key, rank, extra, bids)
            for each, (rank, extra, page, unit, bids) in best.items()
        ]
        yield BIDS.to_buckets(np.array(sorted(rows), BID), self._bits)

    def _rank(self, page: SharedPage, kept: Collection[int]) -> tuple[int, int] | tuple[()]:
        """Returns the rank of a page which would keep these spans, and the other spans that it needs; () for no bid."""
        if not page.falls(kept):
            before, after = (second_copies(each, page.repeated, self._size) for each in (page.kept, kept))
            return int(len(after) > len(before)), 0
        return () if page.falls(page.repeated) else (_WHOLE, len(page.repeated) - len(kept))


class GiveSpans(RowStep):
    """The free spans and bids of a bucket -> the pages that keep the spans now; changes."""

    sends = (GIVEN, CHANGES)

    def run(self, received: Received) -> Iterator[Made]:
        """Gives each free span to the best bidder. A span without a bid stays where it was."""
        free, given = received.rows(FREE_SPANS), best_bids(received.rows(BIDS))
        yield GIVEN.to_groups(given, given["group"])
        left = free[np.isin(free["hash"], given["hash"])]
        moved = (left["page"] != given["page"]) | (left["unit"] != given["unit"])
        yield CHANGES.to_groups(left[moved], left["group"][moved])


class SettlePages(_JudgeStep):
    """The pages, marks, offers and given spans of a group -> changes; the spans that pages take from others."""

    sends = (CHANGES, TAKEN_SPANS)

    def run(self, received: Received) -> Iterator[Made]:
        """Judges the pages that did not get what they have bid for, and lets those that fall keep more."""
        pages, occurrences = self._open(received)
        given, offers = received.rows(GIVEN), set(received.rows(OFFERS)["hash"].tolist())
        new = with_fields(given[~occurrences.survives[occurrences.find(given)]], OCCURRENCE)
        occurrences.change(new)
        keys, first, number = np.unique(given["page"], return_index=True, return_counts=True)
        unsettled = keys[(given["rank"][first] == _WHOLE) | (given["bids"][first] != number)]
        changes, taken = [new], [np.empty(0, TAKEN)]
        tables = pages() if len(unsettled) else ()
        for page in self._shared(tables, occurrences, lambda table: np.isin(table["page_key"].to_numpy(), unsettled)):
            extra = self._extra(page, offers)
            if extra:
                changes.append(np.array([(page.key, unit) for unit in extra], OCCURRENCE))
                in_corpus = page.verdict(page.kept.union(extra)) is None
                known = {page.hashes[unit] for unit in page.kept}
                hashes = {page.hashes[unit] for unit in extra} - known
                rows = [(each, received.key, page.key, in_corpus) for each in hashes]
                taken.append(np.array(rows, TAKEN))
                yield {"moved_spans": [self._moved(occurrences, page, extra)]}
                yield from doubled(len(extra) - len(hashes), in_corpus)
        yield CHANGES.to_group(np.concatenate(changes), received.key)
        rows = np.concatenate(taken)
        yield TAKEN_SPANS.to_buckets(rows[np.lexsort((rows["page"], rows["hash"]))], self._bits)

    def _extra(self, page: SharedPage, offers: Collection[int]) -> list[int]:
        """Returns the spans that a page has to keep besides, so that it does not fall."""
        if not page.falls(page.kept):
            return []
        kept = page.kept.union(page.offered(offers).values())
        if page.falls(kept):
            kept = page.repeated
        extra = sorted(kept - page.kept)
        tries = 0
        for unit in [*extra, *reversed(extra)]:
            fewer = kept - {unit}
            if unit in kept and unit not in second_copies(fewer, [unit], self._size) and tries < _MOST_TRIES:
                tries += 1
                kept = kept if page.falls(fewer) else fewer
        return sorted(kept - page.kept)


def doubled(copies: int, in_corpus: bool) -> Iterator[Mapping[str, int]]:
    """Yields the correction of the counts for second copies, which are survivors, too; `in_corpus`: as both copies."""
    if copies:
        yield {"spans.repeated": -copies, "spans.doubled": copies, "spans.kept": -copies if in_corpus else 0}


class OfferTaken(RowStep):
    """The taken spans of a bucket -> the groups that have occurrences of them."""

    sends = (RELEASES,)

    def run(self, received: Received) -> Iterator[Made]:
        """Tells all groups with a taken span which page has taken it."""
        taken = received.rows(TAKEN_SPANS)
        groups = groups_with(taken, received.rows(HOLDERS))
        rows = [np.empty(0, TAKEN)]
        for span in taken:
            group = groups["group"][groups["hash"] == span["hash"]]
            rows.append(np.repeat(span, len(group)))
            rows[-1]["group"] = group
        releases = np.concatenate(rows)
        yield RELEASES.to_groups(releases, releases["group"])


class ReleaseSpans(_JudgeStep):
    """The pages, marks and taken spans of a group -> changes: copies that pages give up, since another page has one."""

    sends = (CHANGES,)

    def run(self, received: Received) -> Iterator[Made]:
        """Judges the pages that keep taken spans as if they lost these."""
        pages, occurrences = self._open(received)
        releases = received.rows(RELEASES)
        takers: dict[int, list[tuple[int, int]]] = {}
        for span in np.sort(releases, order=["hash", "page"]):
            takers.setdefault(int(span["hash"]), []).append((int(span["page"]), int(span["in_corpus"])))
        settled = {page for pages_of_span in takers.values() for page, _ in pages_of_span}
        changes = [np.empty(0, OCCURRENCE)]
        for page in self._with_spans(pages, occurrences, releases["hash"]):
            copies = {unit: takers[page.hashes[unit]] for unit in page.kept if page.hashes[unit] in takers}
            own = {unit for unit, some in copies.items() if page.key in dict(some)}
            out = copies.keys() - own
            if page.key not in settled and out and (out == page.kept or not page.falls(page.kept - out)):
                changes.append(np.array([(page.key, unit) for unit in sorted(out)], OCCURRENCE))
                continue
            in_corpus = bool(copies) and page.verdict(page.kept) is None
            if out:
                yield {"moved_spans": [self._moved(occurrences, page, out)]}
            for unit, some in copies.items():
                first, first_in_corpus = some[0]
                if first != page.key:
                    yield from doubled(1, in_corpus and bool(first_in_corpus))
        yield CHANGES.to_group(np.concatenate(changes), received.key)


def keep_copies(
    graph: Graph, pages: Sequence[Output], marks: Sequence[Output], holders: Output, plan: DedupPlan
) -> list[Output]:
    """Adds the steps by which pages that fall give the copies of spans that they keep to other pages.

    Args:
        graph: what the steps are added to.
        pages: the files of each group, and the rows of their pages that are passed over.
        marks: the marks of the repeated spans, and all changes to them.
        holders: the groups that have each repeated span, by the bucket of the span.
        plan: the plan of job 2.

    Returns:
        The outputs with (group, packed OCCURRENCE rows) of all further changes to the marks.
    """
    assert plan.span
    of_group: Any = (WorkPages(plan), plan.spill, plan.span.size, plan.span_bits)
    free = graph.add("Free spans", FreeSpans(*of_group), *pages, *marks)["free_spans"]
    offers = graph.add("Offer spans", OfferSpans(plan.spill), free, holders)["offers"]
    bids = graph.add("Bid for spans", BidForSpans(*of_group), *pages, *marks, offers)["bids"]
    given = graph.add("Give spans", GiveSpans(plan.spill), free, bids)
    known = [*pages, *marks, given["changes"]]
    settled = graph.add("Settle pages", SettlePages(*of_group), *known, given["given"], offers)
    releases = graph.add("Offer taken spans", OfferTaken(plan.spill), settled["taken_spans"], holders)["releases"]
    released = graph.add("Release spans", ReleaseSpans(*of_group), *known, settled["changes"], releases)
    return [given["changes"], settled["changes"], released["changes"]]
