"""Pages that a rule drops after they lost sentences: the copies of spans that they keep go to other pages."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from c4pipe.clean.work_file import KeptPage, WorkWriter
from c4pipe.dedup.falling_pages import chosen_pages
from c4pipe.errors import DamagedFileError
from c4pipe.recipes.presets import C4
from c4pipe.recipes.recipe import Recipe
from tests.helpers.falling_pages import (
    CHANCE,
    FEW,
    SIZE,
    ByChance,
    Made,
    Pages,
    components,
    fewest,
    handed_on,
    judged_by,
    made_rows,
)
from tests.helpers.survivor_oracle import Place


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
@example(sharing_pages(699179241), 1)  # a span between two others can only go after them
def test_each_span_keeps_a_copy_where_few_sentences_drop_a_page(pages: Pages, files: int) -> None:
    made = handed_on(*made_rows(pages, FEW), files)
    copies = made.copies(made.places)
    check_lost(copies, made)
    second = {span: found for span, found in copies.items() if len(found) > 1}
    assert made.counts["doubled"] == sum(len(found) - 1 for found in second.values())
    for found in second.values():
        survivors = [place for place in found if place in made.survivors]
        for place in survivors if len(survivors) > 1 else ():  # other spans need all units of the other copies
            check_is_needed(place, made)
    event(f"pages fell: {len(made.stay) < len(pages)}")
    event(f"second copies: {len(second)}")


@settings(deadline=None, max_examples=150)
@given(all_pages, st.integers(1, 4), st.sampled_from([0.2, 0.5, 0.8]))
def test_each_span_keeps_a_copy_whatever_drops_a_page(pages: Pages, files: int, share: float) -> None:
    """A text that a rule drops can have a part that the rule does not drop, and the other way round."""
    made = handed_on(*made_rows(pages, judged_by(ByChance(share))), files)
    check_lost(made.copies(made.places), made)


def check_lost(copies: Mapping[Any, Sequence[Place]], made: Made) -> None:
    """A span has no copy only if the rules drop all of its pages as a whole."""
    lost = [span for span, found in copies.items() if not found]
    assert len(lost) == made.counts["lost"]
    for span in lost:
        assert all(made.pages[page]["dropped"] for page, _ in made.places[span])


def check_is_needed(place: Place, made: Made) -> None:
    """A second copy stays only where its page falls without it, or where other spans need all of its units."""
    repeated, kept = made.of_page(place[0])
    others = {unit for each in kept - {place[1]} for unit in range(each, each + SIZE)}
    if not others.issuperset(range(place[1], place[1] + SIZE)):
        assert made.finisher.verdict(made.pages[place[0]], repeated, kept - {place[1]})


@settings(deadline=None, max_examples=60)
@given(all_pages, st.sampled_from([FEW, CHANCE]), st.randoms(use_true_random=False))
def test_groups_do_not_matter(pages: Pages, recipe: Recipe, chance: Any) -> None:
    rows = made_rows(pages, recipe)
    made = handed_on(*rows)
    files = {page: chance.randint(0, 3) for page in pages}
    for other in (handed_on(*rows, 5), handed_on(*rows, 4, files)):
        assert (other.survivors, other.counts) == (made.survivors, made.counts)


def small_pages(seed: int) -> dict[int, list[int]]:
    """Few pages of pieces of one text, so short that all choices of copies can be tried."""
    chance = random.Random(seed)
    pages: dict[int, list[int]] = defaultdict(list)
    for key in range(chance.randint(2, 4)):
        for number in range(2):
            start = chance.randrange(8)
            pages[key << 60] += range(start, start + chance.randint(2, 5))
            pages[key << 60] += [100 + 10 * key + number] * chance.randint(0, 1)
    return pages


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 1 << 30).map(small_pages), st.integers(1, 3), st.sampled_from([FEW, CHANCE]))
def test_no_choice_of_copies_loses_fewer_spans(pages: Pages, files: int, recipe: Recipe) -> None:
    """A rule that drops short pages never drops a page that got longer: so the steps lose as few spans as can be."""
    lost, doubled, least_lost, least_doubled = against_the_fewest(pages, recipe, files)
    assert (lost, doubled) >= (least_lost, least_doubled)
    assert recipe is CHANCE or lost == least_lost
    event(f"lost: {lost > 0}, doubled: {doubled > 0}, as few as can be: {doubled == least_doubled}")


def test_few_second_copies_could_be_avoided() -> None:
    """Of small pages that share as much as possible: 8 can't be avoided, and the steps, which see a page at a time,
    leave 20.
    """
    copies = [against_the_fewest(small_pages(seed), FEW, 1) for seed in range(600)]
    lost, doubled, least_lost, least_doubled = (sum(each) for each in zip(*copies, strict=True))
    assert lost == least_lost
    assert 5 < least_doubled <= doubled <= 3 * least_doubled


def against_the_fewest(pages: Pages, recipe: Recipe, files: int) -> tuple[int, int, int, int]:
    """The spans without a copy and the second copies that the steps leave, and the fewest of both, by brute force."""
    made = handed_on(*made_rows(pages, recipe), files)
    numbers = [len(found) for found in made.copies(made.places).values()]
    least = [fewest(some, made.pages, made.finisher, most=12) for some in components(made.places)]
    assert None not in least, "the pages are too long to try all choices"
    least_lost, least_doubled = (sum(each) for each in zip((0, 0), *(each for each in least if each), strict=True))
    return numbers.count(0), sum(number - 1 for number in numbers if number), least_lost, least_doubled


def test_texts_are_read_only_from_files_with_a_page_to_judge(tmp_path: Path) -> None:
    path, stale = tmp_path / "a.parquet", np.array([4], np.uint32)
    writer = WorkWriter(path)
    for key in range(2000):
        text, spans = f"Page {key} has a text.", np.array([key], np.uint64)
        page = KeptPage(key, f"http://a.example/{key}", text, text.encode(), "", "en", 1.0, False, None, [0], spans)
        writer.add(key, 0, 0, page if key % 3 else None)
    writer.finish("a", 1, C4, {}, {})
    keys = [key for key in range(2000) if key % 3 and key != 4]
    for wanted in ([], [1], [700], [1, 1999], keys):
        read = chosen_pages([(path, stale)], lambda pages: np.isin(pages["page_key"].to_numpy(), wanted))  # noqa: B023
        assert [row["text"] for pages in read for row in pages.to_pylist()] == [
            f"Page {each} has a text." for each in wanted
        ]
    with pq.ParquetFile(path) as file:
        text_column = file.metadata.row_group(0).column(file.schema_arrow.names.index("text"))
    data = bytearray(path.read_bytes())
    data[text_column.data_page_offset + text_column.total_compressed_size // 2] ^= 1
    path.write_bytes(data)
    assert not list(chosen_pages([(path, stale)], lambda pages: np.zeros(len(pages), bool)))
    with pytest.raises(DamagedFileError, match="is damaged"):
        list(chosen_pages([(path, stale)], lambda pages: pages["page_key"].to_numpy() == 1))
