"""Pages that a rule drops after they lost sentences: the copies of spans that they keep go to other pages."""

import random
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

from c4pipe.dedup.falling_pages import PageSource, keep_copies
from c4pipe.dedup.finish import PageFinisher
from c4pipe.dedup.occurrences import marks_of
from c4pipe.dedup.removals import Removals
from c4pipe.dedup.shuffle import HOLDER, MARK, OCCURRENCE
from c4pipe.dedup.step import Received
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.lists import Lists
from c4pipe.filters.page_size import FewSentencesLeft
from c4pipe.filters.rule import PageRule, Share
from c4pipe.recipes.presets import C4
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.control_totals import add_reports
from c4pipe.runners.graph import Graph
from c4pipe.runners.local_flow import LocalFlow
from tests.helpers import survivor_oracle
from tests.helpers.survivor_oracle import Place, units_at

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


class Made(NamedTuple):
    """What the steps made of pages: the survivors, the spans that pages lose, their counts, the pages that stay."""

    survivors: set[Place]
    gone: set[Place]
    counts: dict[str, int]
    stay: set[int]
    finisher: PageFinisher
    pages: Mapping[int, dict[str, Any]]


def made_of(units: Sequence[int], key: int, finisher: PageFinisher) -> dict[str, Any]:
    sentences = [f"Sentence {unit} is here. " for unit in units]
    text, starts = "".join(sentences).rstrip(), np.cumsum([0, *map(len, sentences)])[:-1].tolist()
    hashes = [hash(tuple(units[at : at + SIZE])) % 2**64 for at in range(len(units) - SIZE + 1)]
    page = {"page_key": key, "url": f"https://a.example/{key}", "text": text, "unit_starts": starts}
    page |= {"span_hashes": hashes, "language": "en", "dropped": None}
    return page | {"dropped": finisher.judge(page, (), ())[2].reason}


def tables_of(groups: Sequence[Sequence[dict[str, Any]]], received: Received) -> Iterator[pa.Table]:
    assert list(received.given("pages")) == [b"here"]
    lists = [("unit_starts", pa.list_(pa.uint32())), ("span_hashes", pa.list_(pa.uint64()))]
    texts = [(name, pa.string()) for name in ("url", "text", "language", "dropped")]
    schema = pa.schema([("page_key", pa.uint64()), *lists, *texts])
    return (pa.Table.from_pylist([row], schema) for row in groups[received.key])


def handed_on(pages: Pages, recipe: Recipe, files: int, file_of: Mapping[int, int] | None = None) -> Made:
    """Runs the steps, each file a group."""
    finisher = PageFinisher(recipe, Lists())
    made = {key: made_of(units, key, finisher) for key, units in pages.items()}
    groups: list[list[dict[str, Any]]] = [[] for _ in range(files)]
    for number, key in enumerate(pages):
        groups[file_of[key] if file_of else number % files].append(made[key])
    places = survivor_oracle.repeated_places(pages, SIZE)
    survivors = set(survivor_oracle.choose(places, SIZE).values())
    group_of = {row["page_key"]: group for group, rows in enumerate(groups) for row in rows}
    marks, holders = [], []
    for group in range(files):
        here = [place for found in places.values() for place in found if group_of[place[0]] == group]
        rows = marks_of(np.array(here, OCCURRENCE), np.array([place in survivors for place in here]))
        marks.append((group, rows.tobytes()))
        spans = {made[page]["span_hashes"][unit] for page, unit in here}
        for span in sorted(spans):
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
    assert report.get("spans.repeated", 0) == len(places)
    for row in changed:
        survivors ^= {(int(row["page"]), int(row["unit"]))}
    lost = {place for page, units in removals.spans.items() for unit in units for place in units_at((page, unit), SIZE)}
    kept = {place for page, units in removals.kept.items() for unit in units for place in units_at((page, unit), SIZE)}
    stay = {key for key in pages if not finisher.verdict(made[key], *of_page(key, places, survivors))}
    counts = {
        "lost": len(places) - sum(page in stay for page, _ in survivors) - report["spans.kept"],
        "doubled": report.get("spans.doubled", 0),
    }
    return Made(survivors, lost - kept, counts, stay, finisher, made)


def joined(elements: Sequence[tuple[int, bytes]], dtype: np.dtype[Any]) -> Any:
    return np.frombuffer(b"".join(block for _, block in elements), dtype)


def of_page(key: int, places: survivor_oracle.Places, survivors: set[Place]) -> tuple[set[int], set[int]]:
    """The repeated spans of a page, and its survivors."""
    repeated = {unit for found in places.values() for page, unit in found if page == key}
    return repeated, {unit for unit in repeated if (key, unit) in survivors}


def copies_of(pages: Pages, places: survivor_oracle.Places, made: Made) -> dict[Any, list[Place]]:
    """The places of each repeated span which stay as a whole, on pages that stay: by brute force."""
    return {
        span: [place for place in found if place[0] in made.stay and not made.gone.intersection(units_at(place, SIZE))]
        for span, found in places.items()
    }


def sharing_pages(seed: int) -> dict[int, list[int]]:
    """Pages of pieces of one text, with other sentences between them."""
    chance = random.Random(seed)
    text = [chance.randrange(40) for _ in range(60)]
    pages: dict[int, list[int]] = defaultdict(list)
    for key in range(chance.randint(2, 12)):
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(55)
            own = [1000 + 100 * key + each for each in range(chance.randint(1, 3))]
            pages[key << 60] += text[start : start + chance.randint(2, 6)] if chance.random() < 0.7 else own
    return pages


all_pages = st.integers(0, 1 << 30).map(sharing_pages)


@settings(deadline=None, max_examples=150)
@given(all_pages, st.integers(1, 4))
def test_each_span_keeps_a_copy_where_few_sentences_drop_a_page(pages: Pages, files: int) -> None:
    made = handed_on(pages, FEW, files)
    places = survivor_oracle.repeated_places(pages, SIZE)
    copies = copies_of(pages, places, made)
    check_lost(copies, places, made)
    second = {span: found for span, found in copies.items() if len(found) > 1}
    assert made.counts["doubled"] == sum(len(found) - 1 for found in second.values())
    for found in second.values():
        survivors = [place for place in found if place in made.survivors]
        for place in survivors if len(survivors) > 1 else ():  # other spans need all units of the other copies
            check_is_needed(place, places, made)
    event(f"pages fell: {len(made.stay) < len(pages)}")
    event(f"second copies: {len(second)}")


@settings(deadline=None, max_examples=150)
@given(all_pages, st.integers(1, 4), st.sampled_from([0.2, 0.5, 0.8]))
def test_each_span_keeps_a_copy_whatever_drops_a_page(pages: Pages, files: int, share: float) -> None:
    """A text that a rule drops can have a part that the rule does not drop, and the other way round."""
    made = handed_on(pages, judged_by(ByChance(share)), files)
    places = survivor_oracle.repeated_places(pages, SIZE)
    check_lost(copies_of(pages, places, made), places, made)


def check_lost(copies: Mapping[Any, Sequence[Place]], places: survivor_oracle.Places, made: Made) -> None:
    """A span has no copy only if the rules drop all of its pages as a whole."""
    lost = [span for span, found in copies.items() if not found]
    assert len(lost) == made.counts["lost"]
    for span in lost:
        assert all(made.pages[page]["dropped"] for page, _ in places[span])


def check_is_needed(place: Place, places: survivor_oracle.Places, made: Made) -> None:
    """A second copy stays only where its page falls without it, or where other spans need all of its units."""
    repeated, kept = of_page(place[0], places, made.survivors)
    others = {unit for each in kept - {place[1]} for unit in range(each, each + SIZE)}
    if not others.issuperset(range(place[1], place[1] + SIZE)):
        assert made.finisher.verdict(made.pages[place[0]], repeated, kept - {place[1]})


@settings(deadline=None, max_examples=60)
@given(all_pages, st.sampled_from([FEW, CHANCE]), st.randoms(use_true_random=False))
def test_groups_do_not_matter(pages: Pages, recipe: Recipe, chance: Any) -> None:
    made = handed_on(pages, recipe, 1)
    files = {page: chance.randint(0, 3) for page in pages}
    for other in (handed_on(pages, recipe, 5), handed_on(pages, recipe, 4, files)):
        assert (other.survivors, other.counts) == (made.survivors, made.counts)
