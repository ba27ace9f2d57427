"""The exchange, held against oracles that use dictionaries and Python's own integers."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.clean.work_file import URL_ROW
from c4pipe.dedup import near_pages, shuffle
from c4pipe.dedup.occurrences import expand, marks_of, runs_of
from c4pipe.dedup.order import find_repeats, find_stale_captures
from c4pipe.dedup.removals import _units_by_page
from c4pipe.dedup.shuffle import (
    BUCKET_BYTES,
    FEWEST_BITS,
    MARK,
    OCCURRENCE,
    PAGE,
    REPEATED,
    REQUEST,
    SPAN_ROW,
    Shuffle,
    bucket_bits,
    bucketed,
    group_size,
    span_rows,
    totals,
    unpack,
)
from c4pipe.io.rows import Rows, by_number, with_fields
from c4pipe.runners.control_totals import Totals

M64 = 2**64 - 1
Row = tuple[int, ...]

# few distinct values, so that they repeat; the ends of the ranges, so that a wrong sign or a float shows
hashes = st.sampled_from([0, 1, 2, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, M64 - 1, M64])
page_keys = st.sampled_from([0, 1, 1 << 53, (1 << 53) + 1, 1 << 63, M64 - 1, M64])
units = st.sampled_from([0, 1, 2, (1 << 20) - 1, 1 << 20, (1 << 32) - 1])
times = st.sampled_from([-(2**63) + 1, -1, 0, 1, (1 << 53), (1 << 53) + 1, 2**63 - 1])
small = st.sampled_from([0, 1, 2, (1 << 31), (1 << 32) - 1])


def file_of(page: int) -> int:
    """A page is in one file only; the order of files is not that of page keys."""
    return (7, 0, (1 << 32) - 1)[page % 3]


spans = st.builds(lambda span, page, unit: (span, page, file_of(page), unit), hashes, page_keys, units)
span_lists = st.lists(spans, max_size=40)
url_lists = st.lists(st.tuples(hashes, times, hashes, small, small), max_size=40)


def place(span: Row) -> Row:
    """What decides which span of a hash is the first: page key and unit, whatever the file."""
    return span[1], span[3]


def as_rows(values: Sequence[Row], dtype: np.dtype[Any]) -> Rows:
    return np.array(values, dtype=dtype)


def as_list(rows: Rows) -> list[Row]:
    return [tuple(row) for row in rows.tolist()]


def first_of_each(values: Sequence[Row], rank: Callable[[Row], Row]) -> tuple[list[Row], list[Row]]:
    groups = defaultdict(list)
    for value in values:
        groups[value[0]].append(value)
    firsts, others = [], []
    for key in sorted(groups):
        first, *rest = sorted(groups[key], key=rank)
        firsts.append(first)
        others.extend(rest)
    return firsts, others


# --- who is the first ------------------------------------------------------------------------------------


@given(span_lists)
def test_repeats_are_all_but_the_smallest_place(values: list[Row]) -> None:
    first, repeats = find_repeats(as_rows(values, SPAN_ROW))
    assert (as_list(first), as_list(repeats)) == first_of_each(values, place)
    assert first.dtype == repeats.dtype == SPAN_ROW


@given(url_lists)
def test_older_are_all_but_the_newest(values: list[Row]) -> None:
    newest, older = find_stale_captures(as_rows(values, URL_ROW))
    assert (as_list(newest), as_list(older)) == first_of_each(values, lambda row: (-row[1], *row[2:]))
    assert newest.dtype == older.dtype == URL_ROW


@pytest.mark.parametrize(
    ("captures", "newest"),
    [
        ([(7, 10, 0, 0, 0), (7, 20, 3, 1, 0)], (7, 20, 3, 1, 0)),  # the time decides, not the text
        ([(7, 20, 2, 0, 0), (7, 20, 1, 1, 0)], (7, 20, 1, 1, 0)),  # then the text, not the file
        ([(7, 20, 2, 1, 0), (7, 20, 2, 0, 9)], (7, 20, 2, 0, 9)),  # then the file: both give the same page
        ([(7, 20, 2, 1, 5), (7, 20, 2, 1, 4)], (7, 20, 2, 1, 4)),  # then the row
        ([(7, -5, 0, 0, 0), (7, 5, 0, 0, 1)], (7, 5, 0, 0, 1)),  # before 1970 is before
    ],
)
def test_newest_by_example(captures: list[Row], newest: Row) -> None:
    assert as_list(find_stale_captures(as_rows(captures, URL_ROW))[0]) == [newest]


@given(span_lists, url_lists, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(span_values: list[Row], url_values: list[Row], random: Any) -> None:
    cases = ((find_repeats, span_values, SPAN_ROW), (find_stale_captures, url_values, URL_ROW))
    for find, values, dtype in cases:
        shuffled = random.sample(values, len(values))
        before, after = find(as_rows(values, dtype)), find(as_rows(shuffled, dtype))
        assert [part.tobytes() for part in before] == [part.tobytes() for part in after]


@given(span_lists, st.integers(1, 5))
def test_repeats_settled_part_by_part_first(values: list[Row], files: int) -> None:
    """What a file drops by itself and what the bucket drops are, together, what one exchange would drop."""
    parts = [find_repeats(as_rows(values[number::files], SPAN_ROW)) for number in range(files)]
    first, repeats = find_repeats(np.concatenate([own_first for own_first, _ in parts]))
    own_repeats = np.concatenate([own for _, own in parts])
    naive_first, naive_repeats = first_of_each(values, place)
    assert as_list(first) == naive_first
    assert sorted(as_list(repeats) + as_list(own_repeats)) == sorted(naive_repeats)


def test_rows_given_are_not_changed() -> None:
    rows = as_rows([(5, 2, 8, 0), (5, 1, 9, 0), (3, 9, 8, 9)], SPAN_ROW)
    packed = rows.tobytes()
    find_repeats(unpack([packed], SPAN_ROW))  # read-only memory: writing to it would raise
    find_repeats(rows)
    assert rows.tobytes() == packed


# --- buckets ---------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.one_of(hashes, st.integers(0, M64)), page_keys, small, units)), st.integers(3, 16))
def test_buckets_hold_every_row_once(values: list[Row], bits: int) -> None:
    rows = as_rows(sorted(values), SPAN_ROW)
    buckets = list(bucketed(rows, bits))
    numbers = [number for number, _ in buckets]
    assert numbers == sorted(set(numbers))
    for number, packed in buckets:
        inside = as_list(unpack([packed], SPAN_ROW))
        assert inside
        assert {row[0] >> 64 - bits for row in inside} == {number}
    assert as_list(unpack([packed for _, packed in buckets], SPAN_ROW)) == sorted(values)


@given(st.lists(url_lists, max_size=4))
def test_pieces_are_put_together_in_their_order(pieces: list[list[Row]]) -> None:
    packed = (as_rows(piece, URL_ROW).tobytes() for piece in pieces)
    assert as_list(unpack(packed, URL_ROW)) == [row for piece in pieces for row in piece]


def test_rows_have_no_padding() -> None:
    assert (SPAN_ROW.itemsize, URL_ROW.itemsize) == (24, 32)
    assert [each.itemsize for each in (REPEATED, MARK, REQUEST, OCCURRENCE, PAGE)] == [32, 20, 32, 12, 8]


@pytest.mark.parametrize("module", [shuffle, near_pages])
def test_the_docstring_of_a_shuffle_says_the_width_of_its_rows(module: ModuleType) -> None:
    source = Path(module.__file__ or "").read_text()
    found = {name: each for name, each in vars(module).items() if isinstance(each, Shuffle)}
    for name in found.keys() - {"OPEN_PAGES", "PAGES", "SIGNATURES", "STAYED", "TEXTS"}:  # no rows of one width
        docstring = source.partition(f"\n{name} = Shuffle(")[2].split('"""')[1]
        assert docstring.startswith(f"{found[name].dtype.itemsize} bytes"), name


@given(st.integers(0, 10**13), st.sampled_from([SPAN_ROW.itemsize, URL_ROW.itemsize]))
def test_buckets_fit_and_are_no_more_than_needed(rows: int, row_bytes: int) -> None:
    bits = bucket_bits(rows, row_bytes)
    assert bits >= FEWEST_BITS
    assert rows * row_bytes <= BUCKET_BYTES << bits
    assert bits == FEWEST_BITS or rows * row_bytes > BUCKET_BYTES << bits - 1


def test_buckets_of_a_crawl() -> None:
    assert bucket_bits(0, 24) == FEWEST_BITS
    assert bucket_bits(7_000_000_000, SPAN_ROW.itemsize) == 12  # 168 GB in 4,096 buckets of 41 MB


def test_bucket_bytes_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "BUCKET_BYTES", 20)
    assert [bucket_bits(rows, 20) for rows in (8, 9, 16, 17)] == [3, 4, 4, 5]


# --- control totals, span rows, drops --------------------------------------------------------------------


@given(url_lists)
def test_totals_sum_every_word_of_every_row(values: list[Row]) -> None:
    packed = as_rows(values, URL_ROW).tobytes()
    words = [int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4)]
    assert totals(as_rows(values, URL_ROW)) == Totals(len(values), sum(words) & M64)


@given(url_lists.filter(bool), st.data())
def test_any_field_that_changes_changes_the_totals(values: list[Row], data: st.DataObject) -> None:
    rows = as_rows(values, URL_ROW)
    changed = rows.copy()
    field = data.draw(st.sampled_from(list(URL_ROW.fields or ())))
    changed[field][data.draw(st.integers(0, len(rows) - 1))] ^= np.array(1, URL_ROW[field])
    assert totals(changed) != totals(rows)


pages = st.lists(st.tuples(page_keys, st.lists(hashes, max_size=6)), max_size=8)


@given(pages, small, st.integers(0, 3))
def test_span_rows(values: list[tuple[int, list[int]]], file: int, before: int) -> None:
    lists = pa.array([[1, 2]] * before + [spans for _, spans in values], pa.list_(pa.uint64()))
    keys = np.array([key for key, _ in values], dtype=np.uint64)
    pages = pa.table({"page_key": keys, "span_hashes": lists[before:]})  # a slice: its offsets don't start at 0
    rows = span_rows(pages, file)
    assert rows.dtype == SPAN_ROW
    assert as_list(rows) == [(span, key, file, unit) for key, spans in values for unit, span in enumerate(spans)]


@pytest.mark.parametrize(
    ("files", "rows", "size"),
    [
        (1, 140_000, 1),
        (4096, 4096 * 140_000, 1),  # each for itself while they are few
        (72_000, 72_000 * 140_000, 18),
        (7_200_000, 7_200_000 * 140_000, 19),  # no more rows than a bucket has
        (72_000, 72_000 * 10_000_000, 1),
        (72_000, 0, 4500),
        (10_000, 10_000 * 12, 341),  # files of a page share a group
        (300, 300 * 12, 18),  # but all workers have groups
        (31, 31, 1),
    ],
)
def test_group_size(files: int, rows: int, size: int) -> None:
    assert group_size(files, rows) == size


@given(st.lists(st.tuples(hashes, page_keys, small, units), max_size=40), st.integers(1, 4))
def test_by_number(values: list[Row], size: int) -> None:
    rows = as_rows(values, SPAN_ROW)
    parts = list(by_number(with_fields(rows, OCCURRENCE), rows["file"] // size))
    assert [group for group, _ in parts] == sorted({file // size for _, _, file, _ in values})
    for group, places in parts:
        assert places.dtype == OCCURRENCE
        assert as_list(places) == [(page, unit) for _, page, of, unit in values if of // size == group]
    assert as_list(rows) == values, "the rows given were changed"


@given(st.lists(st.tuples(page_keys, units), max_size=40))
def test_units_by_page(values: list[Row]) -> None:
    removals: dict[int, list[int]] = {}
    for page, unit in sorted(values):
        removals.setdefault(page, []).append(unit)
    assert _units_by_page(as_rows(sorted(values), OCCURRENCE)) == removals


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=60), st.integers(0, 1))
def test_runs(places: set[Row], survivor: int) -> None:
    """Runs hold each place once, and no run begins where another one ends."""
    runs = marks_of(as_rows(list(places), OCCURRENCE), survivor)
    assert as_list(expand(runs)) == [(page, unit, 1, survivor) for page, unit in sorted(places)]
    ends = {(page, unit + count) for page, unit, count, _ in as_list(runs)}
    assert ends.isdisjoint((page, unit) for page, unit, _, _ in as_list(runs))


def test_runs_of_pairs_follow_each_other_on_both_sides() -> None:
    rows = as_rows([(1, 2, 1, 9, 5, 0), (1, 3, 1, 9, 6, 0), (1, 4, 1, 9, 8, 0), (1, 5, 1, 7, 9, 0)], REPEATED)
    assert as_list(runs_of(rows)) == [(1, 2, 2, 9, 5, 0), (1, 4, 1, 9, 8, 0), (1, 5, 1, 7, 9, 0)]
    assert as_list(expand(runs_of(rows))) == as_list(rows)


def test_nothing_repeated() -> None:
    nothing = unpack([], SPAN_ROW)
    assert list(by_number(nothing, nothing["file"])) == []
    assert _units_by_page(unpack([], OCCURRENCE)) == {}
    assert len(marks_of(unpack([], OCCURRENCE), 1)) == 0
