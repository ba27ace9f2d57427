"""Control totals: equal ones pass, and any difference is named with its numbers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.dedup.shuffle import SHUFFLES
from c4pipe.errors import LostDataError
from c4pipe.runners.control_totals import Totals, add_reports, check_totals, received, sent, unclaimed_rows

M64 = 2**64 - 1

parts = st.lists(st.builds(Totals, st.integers(0, 10**12), st.integers(0, M64)), min_size=1, max_size=5)


def report(changes: dict[str, int] | None = None) -> dict[str, Any]:
    """A report in which every shuffle gave back its 1,234 rows."""
    sums = {name: Totals(1234, 10**18 + place) for place, name in enumerate(SHUFFLES)}
    whole = add_reports(side(name, what) for name, what in sums.items() for side in (sent, received))
    return {**whole, **(changes or {})}


def test_numbers_are_added_lists_joined() -> None:
    assert add_reports([{"a": 1, "s": [1]}, {}, {"a": 2, "b": 5}, {"s": [2, 3]}]) == {"a": 3, "b": 5, "s": [1, 2, 3]}
    assert add_reports([]) == {}


def test_reports_given_are_not_changed() -> None:
    one, other = {"s": [1], "n": 1}, {"s": [2], "n": 2}
    add_reports([one, other])
    assert (one, other) == ({"s": [1], "n": 1}, {"s": [2], "n": 2})


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers()), max_size=6), st.integers(0, 6))
def test_order_and_grouping_do_not_matter(reports: list[dict[str, int]], cut: int) -> None:
    assert add_reports([add_reports(reports[:cut]), add_reports(reports[cut:])]) == add_reports(reversed(reports))


def test_whole_reports_pass() -> None:
    check_totals(report(), SHUFFLES)
    check_totals({}, SHUFFLES)  # no shuffle had anything to do


@given(st.sampled_from(sorted(SHUFFLES)), parts)
def test_sums_count_modulo_2_to_the_64(shuffle: str, given_parts: list[Totals]) -> None:
    """The workers' sums wrap around, and where they do depends on who adds what."""
    whole = Totals(sum(each.rows for each in given_parts), sum(each.words for each in given_parts) & M64)
    check_totals(add_reports([*(sent(shuffle, each) for each in given_parts), received(shuffle, whole)]), SHUFFLES)
    check_totals(add_reports([sent(shuffle, whole), *(received(shuffle, each) for each in given_parts)]), SHUFFLES)


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize(("rows", "hashes"), [(1233, 5), (1235, 5), (1234, 4), (0, 0), (1233, 10**18)])
def test_a_difference_is_named(shuffle: str, rows: int, hashes: int) -> None:
    changes = {
        f"shuffle.{shuffle}.sent.words": 5,
        f"shuffle.{shuffle}.received.rows": rows,
        f"shuffle.{shuffle}.received.words": hashes,
    }
    with pytest.raises(LostDataError) as raised:
        check_totals(report(changes), SHUFFLES)
    message = str(raised.value)
    assert f" {shuffle} ({SHUFFLES[shuffle]})" in message
    assert f"1,234 rows with word sum {5:016x} were sent" in message
    assert f"{rows:,} with {hashes:016x} were received" in message
    assert [name for name in SHUFFLES if SHUFFLES[name] in message] == [shuffle]


@pytest.mark.parametrize("side", ["sent", "received"])
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_side_that_is_missing_is_zero(shuffle: str, side: str) -> None:
    kept = {name: n for name, n in report().items() if not name.startswith(f"shuffle.{shuffle}.{side}.")}
    with pytest.raises(LostDataError, match=f" {shuffle} "):
        check_totals(kept, SHUFFLES)


def test_the_first_of_several_is_named() -> None:
    """What goes wrong in an early shuffle may make a late one differ, too."""
    with pytest.raises(LostDataError, match=" urls "):
        check_totals(report({"shuffle.pages.received.rows": 1, "shuffle.urls.received.rows": 1}), SHUFFLES)


def test_marks_that_no_page_claims_are_named() -> None:
    """All rows came out, and yet some were brought to the wrong file."""
    check_totals(report(unclaimed_rows("marks", 0)), SHUFFLES)
    with pytest.raises(
        LostDataError, match=r"1,234 rows of the shuffle marks .* arrived at a shard without their page"
    ):
        check_totals(report(unclaimed_rows("marks", 1234)), SHUFFLES)


def test_what_a_shuffle_lost_is_named_before_marks_that_no_page_claims() -> None:
    with pytest.raises(LostDataError, match=" marks "):
        check_totals(report({"shuffle.marks.received.rows": 1, **unclaimed_rows("marks", 5)}), SHUFFLES)
