"""Rows of fixed width, against plain Python."""

from itertools import groupby

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.io.rows import arrow_array, groups_of, is_new, ranges, unique, with_fields


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
@given(st.lists(st.tuples(st.integers(0, 2**32 - 20), st.integers(0, 9))))
def test_ranges(dtype: type, pairs: list[tuple[int, int]]) -> None:
    starts, counts = np.array(pairs, dtype).reshape(-1, 2).T
    assert ranges(starts, counts).tolist() == [start + each for start, count in pairs for each in range(count)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2))).map(sorted))
def test_groups(pairs: list[tuple[int, int]]) -> None:
    columns = np.array(pairs, np.int64).reshape(-1, 2).T
    starts, ends = groups_of(*columns)
    groups = [pairs[start:end] for start, end in zip(starts, ends, strict=True)]
    assert groups == [list(group) for _, group in groupby(pairs)]
    assert np.flatnonzero(is_new(*columns)).tolist() == starts.tolist()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2))))
def test_values_for_arrow_and_each_once(pairs: list[tuple[int, int]]) -> None:
    rows = np.array(pairs, [("page", "<u8"), ("unit", "<u4")])
    assert unique(rows).tolist() == sorted(set(pairs))
    for values in (rows["page"], rows["unit"][::-1], rows["unit"] > 0):
        array = arrow_array(values)
        array.validate(full=True)
        assert array.equals(pa.array(values))


def test_fields() -> None:
    rows = np.array([(1, 2, 3)], [("page", "<u8"), ("unit", "<u4"), ("from_page", "<u8")])
    page = np.dtype([("page", "<u8")])
    assert [with_fields(rows, page, prefix).tolist() for prefix in ("", "from_")] == [[(1,)], [(3,)]]
    assert with_fields(rows, rows.dtype) is rows
