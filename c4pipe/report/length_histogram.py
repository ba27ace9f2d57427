"""Histograms of lengths that can be added: sixteen ranges for each power of two, so a quantile is right within 3 %."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_STEPS = 16  # ranges from a power of two to the next; below it, each number is a range


def count(lengths: Any) -> dict[int, int]:
    """Returns how many of some lengths (an array of whole numbers) are in each range, by its first number."""
    mantissas, exponents = np.frexp(np.maximum(lengths, 1).astype(np.float64))
    numbers, counts = np.unique(exponents * _STEPS + ((2 * mantissas - 1) * _STEPS).astype(int), return_counts=True)
    firsts = [_first(int(number)) for number in numbers]
    total: dict[int, int] = {}
    for first, amount in zip(firsts, counts.tolist(), strict=True):
        total[first] = total.get(first, 0) + amount
    return total


def _first(number: int) -> int:
    """Returns the first whole number of a range."""
    exponent, step = divmod(number, _STEPS)
    return -(-(1 << exponent) * (_STEPS + step) // (2 * _STEPS))


def _end(first: int) -> int:
    """Returns the first number behind the range that begins with a number."""
    return first + max(1, (1 << (first.bit_length() - 1)) // _STEPS)


def quantiles(counts: Mapping[int, int], shares: Sequence[float]) -> list[int]:
    """Returns, for each share, the length that this share of all lengths is below, interpolated in its range.

    Args:
        counts: what `count` returns, or a sum of it; not empty.
        shares: from 0 to 1.
    """
    firsts = sorted(counts)
    sums = np.cumsum([counts[first] for first in firsts])
    found = []
    for share in shares:
        wanted = share * int(sums[-1])
        place = min(int(np.searchsorted(sums, wanted, side="right")), len(firsts) - 1)
        first, before = firsts[place], int(sums[place - 1]) if place else 0
        inside = (wanted - before) / counts[first]
        found.append(round(first + min(1.0, max(0.0, inside)) * (_end(first) - 1 - first)))
    return found
