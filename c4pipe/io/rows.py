"""Rows of fixed width: NumPy arrays with fields, in which no row is a Python object."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = npt.NDArray[Any]
"""An array of shape [rows] whose dtype has fields."""

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]


def arrow_array(values: npt.NDArray[Any]) -> pa.Array:
    """Returns numbers or truth values as an array of Arrow; `pyarrow.array` imports numpy.ma, which takes 0.01 s."""
    held = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(held)])


def ranges(starts: npt.NDArray[Any], counts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Returns the numbers from each start on, each start's count of them: [5, 9], [2, 1] give [5, 6, 9]."""
    starts, counts = starts.astype(np.int64), counts.astype(np.int64)
    numbers: npt.NDArray[np.int64] = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return numbers + np.arange(len(numbers))


def is_new(*columns: npt.NDArray[Any]) -> Mask:
    """Returns the mask of the rows that differ from the row before them, given columns that are sorted together."""
    mask = np.ones(len(columns[0]), np.bool_)
    if len(mask):
        mask[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return mask


def unique(values: Rows) -> Rows:
    """Returns the values in ascending order, each once, as `numpy.unique` does after it has imported numpy.ma."""
    ordered = np.sort(values)
    return ordered[is_new(ordered)]


def groups_of(*columns: npt.NDArray[Any]) -> tuple[Indices, Indices]:
    """Returns where each group of equal rows starts and ends, given columns that are sorted together."""
    starts = np.flatnonzero(is_new(*columns))
    return starts, np.append(starts[1:], len(columns[0]))[: len(starts)]


def with_fields(rows: Rows, dtype: np.dtype[Any], prefix: str = "") -> Rows:
    """Returns rows with only the fields of `dtype`: a new array, unless the rows have exactly these fields.

    With a prefix, the field `page` has the values of the field `<prefix>page`.
    """
    if rows.dtype == dtype:
        return rows
    selected = np.empty(len(rows), dtype)
    for name in dtype.names or ():
        selected[name] = rows[prefix + name]
    return selected


def by_number(rows: Rows, numbers: npt.NDArray[Any]) -> Iterator[tuple[int, Rows]]:
    """Yields (number, its rows) for each number that has rows, in ascending order, given the number of each row."""
    if not len(rows):
        return
    # NumPy sorts numbers of 16 bits in one pass.
    is_small = numbers.max() <= np.iinfo(np.uint16).max
    order = np.argsort(numbers.astype(np.uint16) if is_small else numbers, kind="stable")
    ordered, numbers = np.take(rows, order), numbers[order]
    starts, ends = groups_of(numbers)
    for number, start, end in zip(numbers[starts].tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield number, ordered[start:end]
