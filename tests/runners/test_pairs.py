"""Pairs between two steps on this machine: values that are bytes are packed, and come back as they were."""

import pickle
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.runners.local_flow import LocalFlow, PackedValues, Pairs

BLOCKS = st.lists(st.tuples(st.integers(0, 5), st.binary(max_size=5)))
NUMBERS = st.lists(st.tuples(st.sampled_from("abc"), st.integers()))


def grouped(pairs: list[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


@given(st.one_of(BLOCKS, NUMBERS))
def test_pairs_are_grouped_by_key(pairs: list[tuple[Any, Any]]) -> None:
    packed = Pairs(pairs)
    for _ in range(2):  # they can be read again
        assert {key: list(values) for key, values in packed.groups.items()} == grouped(pairs)
    assert grouped(list(packed)) == grouped(pairs)


@given(st.lists(st.binary(max_size=5)), st.lists(st.binary(max_size=5)))
def test_packed_values_are_pickled_for_a_worker(first: list[bytes], others: list[bytes]) -> None:
    values = PackedValues()
    for value in first:
        values.append(value)
    copy = pickle.loads(pickle.dumps(values))
    for value in others:
        copy.append(value)
    assert (list(copy), list(values)) == ([*first, *others], first)


@given(BLOCKS, BLOCKS, st.lists(st.tuples(st.integers(0, 5), st.integers())))
def test_collections_of_pairs_are_merged_and_joined(
    first: list[tuple[int, bytes]], others: list[tuple[int, bytes]], known: list[tuple[int, int]]
) -> None:
    with LocalFlow(1) as flow:
        merged = flow.flatten("All", Pairs(first), Pairs(others))
        joined = dict(flow.co_group_by_key("Join", merged=merged, known=known))
        groups = dict(flow.group_by_key("First", Pairs(first)))
    assert {key: list(values) for key, values in groups.items()} == grouped(first)
    assert set(joined) == {key for key, _ in [*first, *others, *known]}
    for key, by_name in joined.items():
        assert list(by_name["merged"]) == grouped([*first, *others]).get(key, [])
        assert list(by_name["known"]) == grouped(known).get(key, [])


@pytest.mark.parametrize("value", ["text", [1, 2], 3, None, bytearray(b"x")])
def test_a_key_has_values_of_one_kind(value: object) -> None:
    pairs = Pairs([(1, b"x")])
    with pytest.raises(TypeError, match=f"is {type(value).__name__}, others of its key are bytes"):
        pairs.append((1, value))
    pairs.append((2, value))
    assert list(pairs.groups[2]) == [value]


def test_many_short_values_take_little_memory() -> None:
    tracemalloc.start()
    try:
        pairs = Pairs((number % 512, bytes([number % 256]) * 22) for number in range(100_000))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(1 for _ in pairs) == 100_000
    assert held < 40 * 100_000
