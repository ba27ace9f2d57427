"""How often documents are read by a curve: over the quantiles of a column, in each label of a second column.

These are functions of arrays, without an object for each document. A value is in the first bucket whose end is not
below the share of the documents with this value or a smaller one. So equal values are always in one bucket, whatever
shards they are in, and a bucket from 0 to 0.4 never has more than that share.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from c4pipe.errors import UsageError
from c4pipe.io.json_files import FiniteNumber, from_json, parse_json, text, whole
from c4pipe.io.words import short, suggestion

Floats = npt.NDArray[np.float64]

MOST_TIMES = 1000
"""The most times that a document is read in an epoch."""

_EXAMPLE = '{"column": "quality", "quantiles": [[0.4, 0], [0.9, 1], [1, 7]]}'
_Name = Annotated[str, text("(?s).+", "the name of a column")]


@dataclass(frozen=True)
class Curve:
    """How often documents are read, by the quantiles of a column.

    Attributes:
        column: a column of numbers. Documents without a number count as the smallest ones.
        quantiles: pairs, from the smallest values on: the upper end of a bucket, as a share of the documents, and how
            often documents of the bucket are read. The last end is 1.
        by: a column of labels, each with its own quantiles; "" for one distribution of all documents.
        seed: the number that decides, with the URL, which documents of weight 2.5 are read three times.
    """

    column: _Name
    quantiles: Sequence[Sequence[FiniteNumber]]
    by: str = ""
    seed: Annotated[int, whole(0, 2**32 - 1)] = 0

    @property
    def ends(self) -> Floats:
        """The upper ends of all buckets but the last."""
        return np.array([end for end, _ in self.quantiles[:-1]], np.float64)


def parse_curve(values: Mapping[str, Any]) -> Curve:
    """Returns the curve that a table of a user says. Raises UsageError for unknown names and impossible numbers."""
    known = [each.name for each in fields(Curve)]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise UsageError(f"weights have no {unknown[0]!r}: give {', '.join(known)}{suggestion(unknown[0], known)}")
    try:
        curve = from_json(Curve, parse_json(json.dumps(dict(values))))
        if any(len(pair) != 2 for pair in curve.quantiles):
            raise ValueError("quantiles are pairs of an end and a number of times")
        ends, times = np.reshape(np.array(curve.quantiles, np.float64), (-1, 2)).T
        if not len(ends) or (np.diff(ends, prepend=0) <= 0).any() or ends[-1] != 1:
            raise ValueError("the ends of quantiles rise from above 0 to 1")
        if (times < 0).any() or (times > MOST_TIMES).any():
            raise ValueError(f"documents are read from 0 to {MOST_TIMES:,} times")
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"weights: {short(str(error), 120)}; give a table such as {_EXAMPLE}") from None
    return curve


@dataclass(frozen=True)
class LabelTimes:
    """How often the documents of a label are read.

    Attributes:
        label: the label; None for documents without one, and for all documents of a curve without `by`.
        starts: the smallest value of each bucket but the first; None for documents without a number.
        times: how often the documents of each bucket are read.
    """

    label: str | None
    starts: tuple[float | None, ...]
    times: tuple[float, ...]

    def of(self, values: Floats) -> Floats:
        """Returns how often documents with these values are read, on average."""
        starts = np.array([-np.inf if start is None else start for start in self.starts])
        return np.array(self.times)[np.searchsorted(starts, values, "right")]


@dataclass(frozen=True)
class CurveTimes:
    """A curve with the values that its quantiles have in a corpus."""

    column: str
    by: str
    seed: int
    labels: tuple[LabelTimes, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the members, as JSON values."""
        values: dict[str, Any] = parse_json(json.dumps(asdict(self)))
        return values


def bucket_starts(values: Floats, sizes: Floats, ends: Floats) -> Floats:
    """Returns the smallest value of each bucket but the first.

    Args:
        values: of documents, of shape [documents], at least one; -inf for a document without a number.
        sizes: what each document counts for the shares, of shape [documents].
        ends: the upper ends of all buckets but the last, ascending, below 1.
    """
    distinct, places = np.unique(values, return_inverse=True)
    below = np.cumsum(np.bincount(places, sizes))
    starts: Floats = distinct[np.searchsorted(below / below[-1], ends, "right")]
    return starts


def curve_times(
    curve: Curve, names: Sequence[str | None], labels: npt.NDArray[np.int64], values: Floats, sizes: Floats
) -> CurveTimes:
    """Returns how often the documents of each label are read, given the number of each document's label in `names`."""
    if not names:
        return CurveTimes(curve.column, curve.by, curve.seed, ())
    order = np.argsort(labels, kind="stable")
    cuts = np.cumsum(np.bincount(labels, minlength=len(names)))[:-1]
    found = []
    for name, some in zip(names, np.split(order, cuts), strict=True):
        starts = bucket_starts(values[some], sizes[some], curve.ends).tolist()
        times = tuple(float(times) for _, times in curve.quantiles)
        found.append(LabelTimes(name, tuple(None if start == -np.inf else start for start in starts), times))
    found.sort(key=lambda each: (each.label is None, each.label))
    return CurveTimes(curve.column, curve.by, curve.seed, tuple(found))
