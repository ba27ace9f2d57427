"""Pages that *fall*: a rule on texts drops them after they lost repeated spans. Their copies go to other pages.

`choose_survivors` gives each span a copy, also on pages that fall. Without these pages, the span would be lost. So
seven steps follow, whatever the input:

1. Each page that has survivors and lost other spans is judged. The survivors of pages that fall are *free*. They are
   offered to all groups that have their spans.
2. Each page with free spans is judged as if it kept all of them, and *bids* for them if it stays then, or with more of
   its spans. The best bid gets the span: that of a page on which no second copy appears, then of the page which needs
   the fewest other spans, then of the smallest.
3. A page that got other spans than it has bid for is judged again. If it falls, it *takes* spans from other pages, but
   no span without which it stays, too. The groups with these spans are told. Their pages *release* the spans as far as
   they stay without them. Otherwise a second copy stays, and is counted: each of the pages falls without its copy.

Why this needs no more rounds: a page only gets a span if it can stay, at the latest as a whole, and a page that stays
loses spans in step 3 only while it stays. So a span has no copy in the end only if each of its pages falls as a whole,
too, or if a rule on URLs drops the page: such a page does not fall, since `realnewslike` is `c4` on some domains. What
can be left is a second copy, where a page stays only with spans that another page can't release.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.work_file import PAGE_COLUMNS, read_kept
from c4pipe.dedup.finish import PageFinisher
from c4pipe.dedup.near_pages import NEAR_DUPLICATES
from c4pipe.dedup.removals import MOVED
from c4pipe.dedup.shuffle import (
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
    STALE_ROW,
    TAKEN_SPANS,
    Shuffle,
    with_fields,
)
from c4pipe.dedup.step import Made, Received, RowStep, rows_of
from c4pipe.dedup.survivors import Mask, Occurrences
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.runners.graph import Graph, Output
from c4pipe.text.duplicates import Rows
from c4pipe.text.spans import units_of

_ROWS_AT_ONCE = 512  # of a work file
_MOST_TRIES = 64  # how often a page is judged to give up spans, one by one

_REACHES = (1, 2, 4, 8, 16, 32, 64)  # how far from its spans a page looks for others that it needs

_DOUBLES = 2**31  # added to the cost of a bid by which second copies stay


CHOOSING_COLUMNS = ("page_key", "dropped", "span_hashes")
"""The columns by which the steps choose the pages that they judge."""

ChoosePages = Callable[[pa.Table], Mask]
"""Returns a mask of the pages to judge, given a table with CHOOSING_COLUMNS."""

ReadPages = Callable[[ChoosePages], Iterable[pa.Table]]
"""Yields the pages that are chosen, some at a time, with PAGE_COLUMNS and `span_hashes`."""


class PageSource(NamedTuple):
    """Where the steps find the pages of a group, and what else they need to know. It is sent to the workers.

    Attributes:
        spill: a folder of this machine for blocks of rows between two steps; empty if the workers share no disk.
        size: the number of units in a span.
        bits: the number of hash bits that make a bucket of spans.
        finisher: makes what judges the pages.
        open: takes the rows that say which pages a group has. Returns the function that reads the pages to judge.
    """

    spill: str
    size: int
    bits: int
    finisher: Callable[[], PageFinisher]
    open: Callable[[Received], ReadPages]


def newest_pages(received: Received) -> ReadPages:
    """Returns what reads the pages of the work files of a group that are not passed over."""
    passed = np.r_[received.rows(STALE_CAPTURES), with_fields(received.rows(NEAR_DUPLICATES), STALE_ROW)]
    return partial(chosen_pages, [(storage_path(path), rows_of(passed, file)) for file, path in received.files])


def chosen_pages(files: Iterable[tuple[StoragePath, Rows]], choose: ChoosePages) -> Iterator[pa.Table]:
    """Yields the chosen pages of work files, each given with the rows to pass over.

    The small columns are read first: most files have no page to judge, and texts take nearly all of the time.
    """
    for path, rows in files:
        small = read_kept(path, CHOOSING_COLUMNS, rows, _ROWS_AT_ONCE)
        chosen = np.concatenate([np.zeros(0, bool), *(choose(pages) for pages, _ in small)])
        left = chosen[: np.max(np.flatnonzero(chosen), initial=-1) + 1]  # up to the last page to judge
        for pages, _ in read_kept(path, [*PAGE_COLUMNS, "span_hashes"], rows, _ROWS_AT_ONCE) if len(left) else ():
            yield pages[: len(left)].filter(pa.array(left[: len(pages)]))
            left = left[len(pages) :]
            if not len(left):
                break


class SharedPage:
    """A page with repeated spans. A span is the index of its first unit.

    Attributes:
        key: the key of the page.
        hashes: the hash of each of its spans, also of spans that are not repeated.
        repeated: its repeated spans.
        known: of these, the spans that a known corpus has. The page never keeps them.
        kept: its survivors.
    """

    def __init__(self, page: Mapping[str, Any], occurrences: Occurrences, finisher: PageFinisher) -> None:
        """Takes a row with PAGE_COLUMNS and `span_hashes`, all occurrences of its group, and what judges it."""
        self._page, self._finisher, self._size = page, finisher, occurrences.size
        self.key: int = page["page_key"]
        self.hashes: Sequence[int] = page["span_hashes"]
        self.repeated, self.kept, self.known = occurrences.of_page(self.key)
        self._verdicts: dict[frozenset[int], str | None] = {}

    def verdict(self, kept: Set[int]) -> str | None:
        """Returns the rule that drops the page if it keeps these of its repeated spans; None if it stays."""
        spans = frozenset(kept)
        if spans not in self._verdicts:
            self._verdicts[spans] = self._finisher.verdict(self._page, self.repeated, spans)
        return self._verdicts[spans]

    def falls(self, kept: Set[int]) -> bool:
        """Tells whether a rule on texts drops the page if it keeps these of its repeated spans."""
        return self.verdict(kept) in self._finisher.text_rules

    def first_of(self, hashes: Collection[int]) -> dict[int, int]:
        """Returns the first occurrence of each span with one of these hashes, by hash."""
        return {self.hashes[unit]: unit for unit in sorted(self.repeated, reverse=True) if self.hashes[unit] in hashes}

    def whole(self, kept: Collection[int]) -> set[int]:
        """Returns the spans that the page does not keep, but that stay as a whole, since these spans need all their
        units.
        """
        units = units_of(kept, self._size)
        return {each for each in self.repeated if each not in kept and units.issuperset(units_of([each], self._size))}

    def wish(self, offers: Collection[int]) -> tuple[int, set[int]] | None:
        """Returns the cost of the page's bid for all free spans that it has, and the spans that it would keep then.

        Returns None if the page also falls as a whole. `offers` are the hashes of the free spans.
        """
        own = {each for each in self.kept if self.hashes[each] not in offers}
        kept = own.union(self.first_of(offers).values())
        wished = next((some for some in self._with_more(kept) if not self.falls(some)), None)
        if wished is None:
            return None
        doubles = len(self.whole(wished)) > len(self.whole(own))
        return doubles * _DOUBLES + len(wished) - len(kept), wished

    def _with_more(self, kept: set[int]) -> Iterator[set[int]]:
        """Yields spans with more and more of the page's other repeated spans after them, before them, or on both sides,
        and last all of them.
        """
        yield kept
        for reach in _REACHES:
            for steps in (range(1, reach + 1), range(-reach, 0), range(-reach, reach + 1)):
                yield kept | {unit + step for unit in kept for step in steps} & self.repeated - self.known
        yield self.repeated - self.known

    def give_up(self, kept: set[int], spans: set[int]) -> set[int]:
        """Returns the spans that the page has to keep of `kept`, so that it does not fall.

        It gives up `spans`: all of them, or one after the other, as far as it stays and the text of the span goes. Then
        it also gives up spans of which it keeps another copy. At most `_MOST_TRIES` spans are tried, and tried again
        from the last to the first, since a span between two others can go after them.
        """
        if not self.falls(kept - spans):
            return kept - spans
        own = {self.hashes[each] for each in kept - spans}
        order = sorted(kept, key=lambda unit: (self.hashes[unit] in own, unit))[:_MOST_TRIES]
        for each in [*order, *reversed(order)]:
            fewer = kept - {each}
            can_go = self.hashes[each] not in own or self.hashes[each] in {self.hashes[other] for other in fewer}
            if each in kept and can_go and each not in self.whole(fewer) and not self.falls(fewer):
                kept = fewer
        return kept


class TellHolders(RowStep):
    """The rows of some spans of a bucket -> the same rows, to each group that has occurrences of their span."""

    def __init__(self, spill: str, spans: Shuffle, told: Shuffle) -> None:
        """Takes the spill folder, and the shuffles of the rows (with `hash` and `group`) to and from the bucket."""
        self.sends, self._spans = (told,), spans
        super().__init__(spill)

    def run(self, received: Received) -> Iterator[Made]:
        """Sends the rows on."""
        spans = received.rows(self._spans)
        holders = np.unique(np.concatenate([with_fields(spans, HOLDER), received.rows(HOLDERS)]))
        first, last = (np.searchsorted(holders["hash"], spans["hash"], side) for side in ("left", "right"))
        counts = last - first
        which = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        yield self.sends[0].to_groups(np.repeat(spans, counts), holders["group"][which])


def have_spans(pages: pa.Table, hashes: npt.NDArray[np.uint64]) -> Mask:
    """Returns the mask of the pages that have a span with one of these hashes."""
    spans, mask = pages["span_hashes"].combine_chunks(), np.zeros(len(pages), bool)
    mask[pc.list_parent_indices(spans).to_numpy()[np.isin(spans.flatten().to_numpy(), hashes)]] = True
    return mask


class _JudgeStep(RowStep):
    """A step that judges pages of a group by the spans that they keep."""

    def __init__(self, source: PageSource) -> None:
        super().__init__(source.spill)
        self._source = source

    def setup(self) -> None:
        super().setup()
        self._finisher = self._source.finisher()

    def _current(self, received: Received) -> Occurrences:
        """Returns the occurrences of the group after all changes so far."""
        occurrences = Occurrences(received.rows(MARKS), self._source.size)
        occurrences.change(received.rows(CHANGES))
        return occurrences

    def _pages(self, read: ReadPages, occurrences: Occurrences, choose: ChoosePages) -> Iterator[SharedPage]:
        """Yields the pages that `choose` selects."""
        for table in read(choose):
            for page in table.to_pylist():
                yield SharedPage(page, occurrences, self._finisher)

    def _to_buckets(self, shuffle: Shuffle, rows: Iterable[tuple[int, ...]]) -> Made:
        """Sends rows, which begin with a hash."""
        return shuffle.to_buckets(np.array(sorted(rows), shuffle.dtype), self._source.bits)


class FreeSpans(_JudgeStep):
    """The pages and marks of a group -> the survivors of pages that fall."""

    sends = (FREE_SPANS,)

    def run(self, received: Received) -> Iterator[Made]:
        """Judges the pages that have survivors and lose other spans, or whose whole text is dropped."""
        read, occurrences = self._source.open(received), self._current(received)
        keys = occurrences.rows["page"]
        holding = np.unique(keys[occurrences.survives])
        edited = np.unique(keys[~occurrences.survives & ~occurrences.duplicates_left()])

        def chosen(table: pa.Table) -> Mask:
            of, dropped = table["page_key"].to_numpy(), table["dropped"].is_valid().to_numpy()
            mask: Mask = np.isin(of, holding) & (np.isin(of, edited) | dropped)
            return mask

        pages = self._pages(read, occurrences, chosen) if len(holding) else ()
        free = [
            (page.hashes[unit], page.key, unit, received.key)
            for page in pages
            if page.falls(page.kept)
            for unit in page.kept
        ]
        yield self._to_buckets(FREE_SPANS, free)


class BidForSpans(_JudgeStep):
    """The pages, marks and offers of a group -> its best bid for each free span."""

    sends = (BIDS,)

    def run(self, received: Received) -> Iterator[Made]:
        """Judges the pages that have free spans, as far as they can be the best bidder of one."""
        read, occurrences = self._source.open(received), self._current(received)
        hashes = received.rows(OFFERS)["hash"]
        offers, best = set(hashes.tolist()), dict[int, tuple[int, ...]]()
        chosen = partial(have_spans, hashes=hashes)
        for page in self._pages(read, occurrences, chosen) if len(hashes) else ():
            offered = page.first_of(offers)
            can_be_best = any((0, page.key) < best.get(each, (1,)) for each in offered)
            if can_be_best and (wish := page.wish(offers)):
                for each, unit in offered.items():
                    best[each] = min(best.get(each, (2**32,)), (wish[0], page.key, unit, len(offered)))
        bids = ((each, page, unit, received.key, cost, number) for each, (cost, page, unit, number) in best.items())
        yield self._to_buckets(BIDS, bids)


def _more_survivors(number: int) -> dict[str, int]:
    """Returns the correction of the counts of `Removals`, which counts each survivor as the only copy of a span."""
    return {"spans.repeated": -number, "spans.doubled": number}


class GiveSpans(RowStep):
    """The free spans and bids of a bucket -> the pages that keep the spans now; changes."""

    sends = (GIVEN, CHANGES)

    def run(self, received: Received) -> Iterator[Made]:
        """Gives each free span to the best bidder. A span without a bid stays where it was."""
        bids = np.sort(received.rows(BIDS), order=["hash", "cost", "page", "unit"])
        given = bids[np.unique(bids["hash"], return_index=True)[1]]
        yield GIVEN.to_groups(given, given["group"])
        free = received.rows(FREE_SPANS)
        left = free[np.isin(free["hash"], given["hash"])]
        changes = np.concatenate([with_fields(left, FREE), with_fields(given, FREE)])
        yield CHANGES.to_groups(changes, changes["group"])


class SettlePages(_JudgeStep):
    """The pages, marks, offers and given spans of a group -> changes; the spans that pages take from others."""

    sends = (CHANGES, TAKEN_SPANS)

    def run(self, received: Received) -> Iterator[Made]:
        """Judges the pages that did not get what they have bid for, and lets the pages that fall take more."""
        read, occurrences = self._source.open(received), self._current(received)
        given, offers = received.rows(GIVEN), set(received.rows(OFFERS)["hash"].tolist())
        keys, first, numbers = np.unique(given["page"], return_index=True, return_counts=True)
        unsettled = (given["cost"][first] % _DOUBLES > 0) | (given["bids"][first] != numbers)
        wanted = keys[unsettled]
        changes: list[tuple[int, int]] = []
        taken: list[tuple[int, ...]] = []

        def chosen(table: pa.Table) -> Mask:
            return np.isin(table["page_key"].to_numpy(), wanted)

        for page in self._pages(read, occurrences, chosen) if len(wanted) else ():
            most = (page.wish(offers) or (0, page.kept))[1]
            kept = page.give_up(most, most - page.kept)
            in_corpus = page.verdict(kept) is None
            changes += [(page.key, unit) for unit in kept ^ page.kept]
            taken += [(page.hashes[unit], received.key, page.key, in_corpus) for unit in kept - page.kept]
            yield _more_survivors(len(kept) - len(page.kept))
        yield CHANGES.to_group(np.array(sorted(changes), OCCURRENCE), received.key)
        yield self._to_buckets(TAKEN_SPANS, taken)


class ReleaseSpans(_JudgeStep):
    """The pages, marks and taken spans of a group -> changes: copies that pages give up, since another page has one."""

    sends = (CHANGES,)

    def run(self, received: Received) -> Iterator[Made]:
        """Judges the pages that keep spans that other pages have taken, as if they lost these spans."""
        read, occurrences = self._source.open(received), self._current(received)
        taken = received.rows(RELEASES)
        takers: dict[int, dict[int, bool]] = defaultdict(dict)
        for row in taken.tolist():
            span, _, page_key, in_corpus = row
            takers[span][page_key] = bool(in_corpus)
        changes: list[tuple[int, int]] = []
        chosen = partial(have_spans, hashes=taken["hash"])
        for page in self._pages(read, occurrences, chosen) if len(taken) else ():
            of = {each: takers[page.hashes[each]] for each in page.kept if page.hashes[each] in takers}
            others = {each for each in of if page.key not in of[each]}
            kept = page.give_up(page.kept, others) if others != page.kept else set[int]()
            changes += [(page.key, unit) for unit in page.kept - kept]
            yield _more_survivors(len(kept) - len(page.kept))
            copies = sorted(kept & of.keys())
            if copies and page.verdict(kept) is None:
                counted = {
                    page.hashes[each]
                    for each in copies
                    if not any(stays and (key < page.key or each in others) for key, stays in of[each].items())
                }
                yield {"spans.kept": len(counted) - len(copies)}
            yield {"moved_spans": [np.array([(page.hashes[each], page.key, each) for each in copies], MOVED).tobytes()]}
        yield CHANGES.to_group(np.array(sorted(changes), OCCURRENCE), received.key)


def keep_copies(
    graph: Graph, pages: Sequence[Output], marks: Sequence[Output], holders: Output, source: PageSource
) -> list[Output]:
    """Adds the steps by which pages that fall give the copies of spans that they keep to other pages.

    Args:
        graph: what the steps are added to.
        pages: what `source` reads the pages of a group from.
        marks: the marks of the repeated spans, and all changes to them.
        holders: the groups that have each repeated span, by the bucket of the span.
        source: where the steps find the pages.

    Returns:
        The outputs with (group, packed OCCURRENCE rows) of all further changes to the marks.
    """
    free = graph.add("Free spans", FreeSpans(source), *pages, *marks)["free_spans"]
    offers = graph.add("Offer spans", TellHolders(source.spill, FREE_SPANS, OFFERS), free, holders)["offers"]
    bids = graph.add("Bid for spans", BidForSpans(source), *pages, *marks, offers)["bids"]
    given = graph.add("Give spans", GiveSpans(source.spill), free, bids)
    known = [*pages, *marks, given["changes"]]
    settled = graph.add("Settle pages", SettlePages(source), *known, given["given"], offers)
    tell = TellHolders(source.spill, TAKEN_SPANS, RELEASES)
    releases = graph.add("Offer taken spans", tell, settled["taken_spans"], holders)["releases"]
    released = graph.add("Release spans", ReleaseSpans(source), *known, settled["changes"], releases)
    return [given["changes"], settled["changes"], released["changes"]]
