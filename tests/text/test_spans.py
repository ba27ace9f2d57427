"""Units and spans: what counts as equal, what a page loses, and that nothing else changes."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from c4pipe.text.hashes import U64, span_hashes, unit_hashes
from c4pipe.text.spans import cut, remove_spans

M64 = 2**64 - 1


def joined(lines: Sequence[Sequence[str]]) -> tuple[str, list[int]]:
    """A page's text and the starts of its units, each of which brings the white space that follows it."""
    text, starts = "", []
    for number, line in enumerate(lines):
        text += "\n" if number else ""
        for unit in line:
            starts.append(len(text))
            text += unit
    return text, starts


def spans(hashes: Sequence[int], size: int = 3) -> list[int]:
    found: list[int] = span_hashes(np.array(hashes, dtype=np.uint64), size).tolist()
    return found


def hash_of(unit: str) -> int:
    (found,) = unit_hashes([unit], "collapsed").tolist()
    return int(found)


def hash_of_trimmed(unit: str) -> int:
    (found,) = unit_hashes([unit], "stripped").tolist()
    return int(found)


# --- cut -------------------------------------------------------------------------------------------------


def test_a_unit_reaches_to_the_start_of_the_next() -> None:
    assert cut("One.  Two.\nThree.", [0, 6, 11]) == ["One.  ", "Two.\n", "Three."]


def test_starts_are_characters_not_bytes() -> None:
    assert cut("Ça 😀. Où?", [0, 6]) == ["Ça 😀. ", "Où?"]


def test_no_starts_no_units() -> None:
    assert cut("", []) == []


@given(st.text(), st.sets(st.integers(0, 40)))
def test_units_make_up_the_text(text: str, inner: set[int]) -> None:
    starts = sorted({0, *(each for each in inner if each < len(text))})
    assert "".join(cut(text, starts)) == text


# --- hashes of units -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        "THE FOX RUNS HOME.",
        "the fox runs home.",
        "  The fox runs home.\n",
        "The  fox\truns\nhome.",
        "The\u00a0fox\u2003runs\u3000home.",
    ],
)
def test_case_and_white_space_fold(other: str) -> None:
    assert hash_of(other) == hash_of("The fox runs home.")


@pytest.mark.parametrize("other", ["The fox runs home", "Thefox runs home.", "The fox runs home!", ""])
def test_all_else_counts(other: str) -> None:
    assert hash_of(other) != hash_of("The fox runs home.")


def test_hash_values_are_part_of_the_work_file() -> None:
    """Work files of two releases meet in one corpus: other values need another version of the layout."""
    texts = ["The fox runs home.", "It sleeps.", "Où est-elle ?", "It sleeps."]
    hashes = unit_hashes(texts, "collapsed")
    sleeps = 10319216597240578783
    assert hashes.tolist() == [14751608117408119008, sleeps, 265614959220398114, sleeps]
    assert unit_hashes(texts, "stripped").tolist() == hashes.tolist()
    assert span_hashes(hashes, 3).tolist() == [15461973571701767870, 3265045991363538915]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
@example("i\u0307", "İ")  # one of the pairs that fold to the same
@example("ß", "SS")  # and one that doesn't
def test_equal_if_and_only_if_they_fold_equal(one: str, other: str) -> None:
    assert (hash_of(one) == hash_of(other)) == (one.lower().split() == other.lower().split())


@pytest.mark.parametrize("other", ["THE FOX RUNS HOME.", "  The fox runs home.\n", "\u00a0the fox runs home.\u3000"])
def test_trimmed_folds_case_and_outer_white_space(other: str) -> None:
    assert hash_of_trimmed(other) == hash_of_trimmed("The fox runs home.")


@pytest.mark.parametrize(
    "other", ["The  fox runs home.", "The fox\truns home.", "The\u00a0fox runs home.", "The fox runs home", ""]
)
def test_trimmed_counts_all_else(other: str) -> None:
    assert hash_of_trimmed(other) != hash_of_trimmed("The fox runs home.")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
@example("a  b", "a b")
@example(" A b\n", "a b")
def test_trimmed_equal_if_and_only_if_they_trim_equal(one: str, other: str) -> None:
    assert (hash_of_trimmed(one) == hash_of_trimmed(other)) == (one.strip().lower() == other.strip().lower())


@pytest.mark.parametrize("whitespace", ["collapsed", "stripped"])
def test_no_units_no_hashes(whitespace: str) -> None:
    none = unit_hashes([], whitespace)
    assert (none.dtype.str, len(none)) == ("<u8", 0)


# --- hashes of spans -------------------------------------------------------------------------------------


def mixed(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & M64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & M64
    return value ^ value >> 31


def one_span(hashes: Sequence[int]) -> int:
    total = 0
    for each in hashes:
        total = mixed((total * 0x9E3779B97F4A7C15 + each) & M64)
    return total


u64 = st.one_of(st.integers(0, M64), st.sampled_from([0, 1, M64 - 1, M64, 1 << 63, (1 << 63) - 1]))


@given(st.lists(u64, max_size=30), st.integers(1, 6))
def test_as_span_by_span(hashes: list[int], size: int) -> None:
    naive = [one_span(hashes[first : first + size]) for first in range(len(hashes) - size + 1)]
    assert spans(hashes, size) == naive


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_units_than_a_span(count: int) -> None:
    none = span_hashes(np.arange(count, dtype=np.uint64), 3)
    assert (none.dtype.str, len(none)) == ("<u8", 0)


@given(st.lists(u64, min_size=3, max_size=3), st.lists(u64, min_size=3, max_size=3))
def test_different_spans_differ(one: list[int], other: list[int]) -> None:
    assume(one != other)
    assert spans(one) != spans(other)


def test_order_counts() -> None:
    assert len({*spans([1, 2, 3]), *spans([3, 2, 1]), *spans([2, 1, 3]), *spans([1, 3, 2])}) == 4


@given(st.lists(u64, min_size=3, max_size=8), st.lists(u64, max_size=5), st.lists(u64, max_size=5))
def test_a_span_knows_nothing_of_its_surroundings(inner: list[int], before: list[int], after: list[int]) -> None:
    here = spans([*before, *inner, *after])[len(before) : len(before) + len(inner) - 2]
    assert here == spans(inner)


def test_hashes_are_not_changed() -> None:
    hashes: U64 = np.arange(9, dtype=np.uint64)
    span_hashes(hashes, 3)
    assert hashes.tolist() == list(range(9))


# --- removal ---------------------------------------------------------------------------------------------

GOLDEN = {
    "in the middle of a line": ([["A. ", "B. ", "C. ", "D. ", "E."]], [1], 3, "A. E.", 2),
    "at the start of a line": ([["A."], ["B. ", "C. ", "D. ", "E."]], [1], 3, "A.\nE.", 2),
    "at the end of a line": ([["A. ", "B. ", "C. ", "D."], ["E. ", "F."]], [1], 3, "A.\nE. F.", 3),
    "at the end of the page": ([["A. ", "B."], ["C."], ["D. ", "E."]], [2], 3, "A. B.", 2),
    "across lines": ([["A. ", "B."], ["C. ", "D. ", "E."]], [1], 3, "A.\nE.", 2),
    "a whole line": ([["A."], ["B. ", "C. ", "D."], ["E."]], [1], 3, "A.\nE.", 2),
    "three whole lines": ([["A."], ["B."], ["C."], ["D."], ["E."]], [1], 3, "A.\nE.", 2),
    "the last of a line joins no lines": ([["A. ", "B."], ["C. ", "D."]], [1], 1, "A.\nC. D.", 3),
    "the first of a line joins no lines": ([["A. ", "B."], ["C. ", "D."]], [2], 1, "A. B.\nD.", 3),
    "overlapping": ([["A. ", "B. ", "C. ", "D. ", "E. ", "F."]], [1, 2], 3, "A. F.", 2),
    "overlapping, in any order": ([["A. ", "B. ", "C. ", "D. ", "E. ", "F."]], [3, 1], 3, "A.", 1),
    "the same twice": ([["A. ", "B. ", "C. ", "D."]], [1, 1], 3, "A.", 1),
    "two apart": ([["A. ", "B. ", "C."], ["D."], ["E. ", "F. ", "G."]], [0, 4], 3, "D.", 1),
    "everything": ([["A. ", "B."], ["C."]], [0], 3, "", 0),
    "inner white space stays": ([["A.  ", "B.\t", "C. ", "D\u00a0 d."]], [1], 1, "A.  C. D\u00a0 d.", 3),
    "no white space between sentences": ([["A.", "B.", "C.", "D."]], [1], 2, "A.D.", 2),
    "beyond the BMP": ([["😀 a. ", "𝔅. ", "Ç."], ["D."]], [1], 2, "😀 a.\nD.", 2),
    "nothing": ([["A. ", "B."], ["C."]], [], 3, "A. B.\nC.", 3),
}


@pytest.mark.parametrize(("lines", "removed", "size", "left", "count"), GOLDEN.values(), ids=GOLDEN)
def test_golden(lines: list[list[str]], removed: list[int], size: int, left: str, count: int) -> None:
    text, starts = joined(lines)
    assert remove_spans(text, starts, removed, size, "sentence") == (left, count)


def test_spans_may_be_read_once_only() -> None:
    text, starts = joined([["A. ", "B. ", "C. ", "D. ", "E."]])
    assert remove_spans(text, starts, iter([0, 1]), 3, "sentence") == ("E.", 1)
    assert remove_spans("A.\nB.\nC.", [0, 3, 6], iter([0, 1]), 1, "line") == ("C.", 1)


words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=6)
gaps = st.sampled_from([" ", "  ", "\t", "\u00a0", ""])
shapes = st.lists(st.lists(st.tuples(words, gaps), min_size=1, max_size=5), min_size=1, max_size=6)


def page(shape: list[list[tuple[str, str]]]) -> list[list[str]]:
    """Lines of units; each unit is told by its number, and only the last of a line ends without white space."""
    numbered, number = [], 0
    for line in shape:
        units = []
        for word, gap in line:
            units.append(f"<{number}:{word.replace('<', '')}>{gap}")
            number += 1
        units[-1] = units[-1].rstrip()
        numbered.append(units)
    return numbered


@given(shapes)
def test_removing_nothing_gives_the_text_back(shape: list[list[tuple[str, str]]]) -> None:
    text, starts = joined(page(shape))
    assert remove_spans(text, starts, [], 3, "sentence") == (text, len(starts))


@given(shapes, st.integers(1, 4), st.data())
def test_what_is_left(shape: list[list[tuple[str, str]]], size: int, data: st.DataObject) -> None:
    lines = page(shape)
    text, starts = joined(lines)
    assume(len(starts) >= size)
    removed = data.draw(st.lists(st.integers(0, len(starts) - size), max_size=4))
    gone = {unit for first in removed for unit in range(first, first + size)}
    left, count = remove_spans(text, starts, removed, size, "sentence")
    assert count == len(starts) - len(gone)
    numbers = [int(each) for each in re.findall(r"<(\d+):", left)]
    assert numbers == [unit for unit in range(len(starts)) if unit not in gone]
    number = iter(range(len(starts)))
    lines_left = ["".join(unit for unit in line if next(number) not in gone).strip() for line in lines]
    assert left == "\n".join(line for line in lines_left if line)


# --- removal of lines ------------------------------------------------------------------------------------

GOLDEN_LINES = {
    "the first": (["A.", "B.", "C."], [0], 1, ["B.", "C."]),
    "one in the middle": (["A.", "B.", "C."], [1], 1, ["A.", "C."]),
    "the last leaves no line end behind": (["A.", "B.", "C."], [2], 1, ["A.", "B."]),
    "all": (["A.", "B."], [0, 1], 1, []),
    "the only one": (["A."], [0], 1, []),
    "the same twice": (["A.", "B.", "C."], [1, 1], 1, ["A.", "C."]),
    "overlapping spans": (["A.", "B.", "C.", "D.", "E."], [1, 2], 2, ["A.", "E."]),
    "sentences of one line go together": (["A. B. C.", "D. E."], [0], 1, ["D. E."]),
    "leading blanks stay": (["A.", "  B.", "\u00a0C."], [0], 1, ["  B.", "\u00a0C."]),
    "leading blanks stay where nothing is removed before": ([" A.", " B.", "C."], [2], 1, [" A.", " B."]),
    "inner white space stays": (["A.  a.", "B.", "C.\tc."], [1], 1, ["A.  a.", "C.\tc."]),
    "an empty line can go": (["A.", "", "C."], [1], 1, ["A.", "C."]),
    "beyond the BMP": (["😀 a.", "𝔅.", "Ç."], [1], 1, ["😀 a.", "Ç."]),
    "nothing": (["A.", " B."], [], 1, ["A.", " B."]),
}


def line_starts(lines: Sequence[str]) -> list[int]:
    return [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]


@pytest.mark.parametrize(("lines", "removed", "size", "left"), GOLDEN_LINES.values(), ids=GOLDEN_LINES)
def test_golden_lines(lines: list[str], removed: list[int], size: int, left: list[str]) -> None:
    assert remove_spans("\n".join(lines), line_starts(lines), removed, size, "line") == ("\n".join(left), len(left))


some_lines = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")), min_size=1, max_size=8
)


@given(some_lines, st.sets(st.integers(0, 7)))
def test_lines_that_stay_stay_as_they_are(lines: list[str], removed: set[int]) -> None:
    assume(lines[-1])  # a page's text is trimmed: it does not end in a line end
    gone = {number for number in removed if number < len(lines)}
    left = [line for number, line in enumerate(lines) if number not in gone]
    found = remove_spans("\n".join(lines), line_starts(lines), gone, 1, "line")
    assert found == ("\n".join(left), len(left))
