"""How often documents are read by a curve: over the quantiles of a column, in each label of a second column.

These are functions of arrays, without an object for each document. A value is in the first bucket whose end is not
below the share of the documents with this value or a smaller one. So equal values are always in one bucket, whatever
shards they are in, and a bucket from 0 to 0.4 never has more than that share.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import factorial
from operator import itemgetter
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from c4pipe.errors import UsageError
from c4pipe.io.json_files import FiniteNumber, check_of, choice, from_json, mapping, parse_json, text, whole
from c4pipe.io.words import short, suggestion

Floats = npt.NDArray[np.float64]

MOST_TIMES = 1000
"""The most times that a document is read in an epoch."""

_BUCKETS = 20  # of a target
ROUNDED = 1e-6
"""By how much the sum of shares can differ from 1."""

_EXAMPLE = '{"column": "quality", "quantiles": [[0.4, 0], [0.9, 1], [1, 7]]}'
Seed = Annotated[int, whole(0, 2**32 - 1)]
_Name = Annotated[str, text(wanted="the name of a column")]


@dataclass(frozen=True)
class Curve:
    """How often documents are read, by the quantiles of a column.

    Attributes:
        column: a column of numbers. Documents without a number count as the smallest ones. "" reads all documents of a
            label equally often.
        quantiles: pairs, from the smallest values on: the upper end of a bucket, as a share of the documents, and how
            often documents of the bucket are read. The last end is 1.
        by: a column of labels, each with its own quantiles; "" for one distribution of all documents.
        seed: the number that decides, with the URL, which documents of weight 2.5 are read three times.
        shares: whether the ends of buckets are shares of the `pages` or of their `tokens`.
        target_tokens: instead of quantiles: the number of tokens to read in an epoch, from 20 buckets of equal tokens,
            with the curve of `target_times`.
        max_repeat: for a target: the most times that a bucket is read.
        drop: for a target: the share of the tokens, from the smallest values on, whose buckets are not read.
        mix: for a target: the share of the target by label; None for the labels' shares of the tokens.
    """

    column: _Name = ""
    quantiles: Sequence[Sequence[FiniteNumber]] = ()
    by: str = ""
    seed: Seed = 0
    shares: Annotated[str, choice("pages", "tokens")] = "pages"
    target_tokens: int = 0
    max_repeat: FiniteNumber = 7
    drop: float = 0.4
    mix: Annotated[Any, mapping(text(), check_of(float))] = None

    @property
    def by_tokens(self) -> bool:
        """Whether the tokens of each document decide."""
        return self.target_tokens > 0 or self.shares == "tokens"

    @property
    def ends(self) -> Floats:
        """The upper ends of all buckets but the last."""
        if self.target_tokens:
            return np.arange(1, _BUCKETS) / _BUCKETS
        return np.array([end for end, _ in self.quantiles[:-1]], np.float64)

    def check(self) -> None:
        """Raises ValueError for impossible numbers."""
        if bool(self.quantiles) == bool(self.target_tokens):
            raise ValueError("give either quantiles or target_tokens")
        if not (0 < self.max_repeat <= MOST_TIMES and self.drop < 1):
            raise ValueError(f"max_repeat is at most {MOST_TIMES:,}, and drop less than 1")
        if self.mix is not None and not (self.target_tokens and self.by and abs(sum(self.mix.values()) - 1) < ROUNDED):
            raise ValueError("mix needs target_tokens and by, and shares whose sum is 1")
        if any(len(pair) != 2 for pair in self.quantiles):
            raise ValueError("quantiles are pairs of an end and a number of times")
        ends, times = np.reshape(np.array(self.quantiles or [[1, 1]], np.float64), (-1, 2)).T
        if (np.diff(ends, prepend=0) <= 0).any() or ends[-1] != 1:
            raise ValueError("the ends of quantiles rise from above 0 to 1")
        if (times < 0).any() or (times > MOST_TIMES).any():
            raise ValueError(f"documents are read from 0 to {MOST_TIMES:,} times")


MEMBERS = [each.name for each in fields(Curve)]
"""The names in a table of a curve."""


def parse_curve(values: Mapping[str, Any]) -> Curve:
    """Returns the curve that a table of a user says. Raises UsageError for unknown names and impossible numbers."""
    check_names("weights have", values, MEMBERS)
    try:
        curve = from_json(Curve, parse_json(json.dumps(dict(values))))
        curve.check()
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"weights: {short(str(error), 120)}; give a table such as {_EXAMPLE}") from None
    return curve


def check_names(start: str, names: Iterable[str], known: Sequence[str]) -> None:
    """Raises UsageError, with the start of its sentence, for unknown names in a table of a user."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"{start} no {unknown[0]!r}: give {', '.join(known)}{suggestion(unknown[0], known)}")


@dataclass(frozen=True)
class LabelTimes:
    """How often the documents of a label are read.

    Attributes:
        label: the label; None for documents without one, and for all documents of a curve without `by`.
        starts: the smallest value of each bucket but the first; None for documents without a number.
        times: how often the documents of each bucket are read.
        documents: the number of documents of each bucket.
        tokens: the number of tokens of each bucket; empty if they were not counted.
    """

    label: str | None
    starts: tuple[float | None, ...]
    times: tuple[float, ...]
    documents: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()

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


def json_of(weights: Any) -> Any:
    """Returns curves and tables of weights, and what has them inside, as values of JSON."""
    return parse_json(json.dumps(weights, default=asdict))


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
    curve: Curve,
    names: Sequence[str | None],
    labels: npt.NDArray[np.int64],
    values: Floats,
    tokens: Floats | None = None,
) -> CurveTimes:
    """Returns how often the documents of each label are read.

    Args:
        curve: what decides.
        names: the labels.
        labels: the number of each document's label in `names`, of shape [documents].
        values: the numbers of the column, -inf for none, of shape [documents].
        tokens: the number of tokens of each document; only a curve by tokens needs it.

    Raises UsageError if a target can't be reached.
    """
    order = np.argsort(labels, kind="stable")
    cuts = np.cumsum(np.bincount(labels, minlength=len(names)))[:-1]
    sizes = tokens if curve.by_tokens and tokens is not None else np.ones(len(values))
    times, found = tuple(float(times) for _, times in curve.quantiles), []
    for name, some in zip(names, np.split(order, cuts) if names else [], strict=True):
        starts = bucket_starts(values[some], sizes[some], curve.ends)
        buckets, count = np.searchsorted(starts, values[some], "right"), len(starts) + 1
        documents = tuple(np.bincount(buckets, minlength=count).tolist())
        known = () if tokens is None else tuple(map(int, np.bincount(buckets, tokens[some], count)))
        below = tuple(None if start == -np.inf else start for start in starts.tolist())
        found.append(LabelTimes(name, below, times, documents, known))
    found.sort(key=lambda each: (each.label is None, each.label))
    found = _reach_target(curve, found) if curve.target_tokens else found
    return CurveTimes(curve.column, curve.by, curve.seed, tuple(found))


class UnreachableTarget(UsageError):
    """A target is more than can be read.

    Attributes:
        most: the most tokens that can be read.
        limits: the limits, and the label that has too few tokens, in words.
    """

    def __init__(self, target: int, most: int, limits: str) -> None:
        super().__init__(
            f"target_tokens {target:,} can't be reached: at most {most:,} tokens are there with {limits}; give a "
            "smaller target, or other limits"
        )
        self.most, self.limits = most, limits


def _reach_target(curve: Curve, labels: Sequence[LabelTimes]) -> list[LabelTimes]:
    """Returns labels with the times that reach the target. Raises UsageError if that is not possible."""
    target = curve.target_tokens
    total = sum(sum(each.tokens) for each in labels)
    natural = {each.label: sum(each.tokens) / total for each in labels}
    mix = natural if curve.mix is None else curve.mix
    if missing := [name for name, share in mix.items() if share and name not in natural]:
        raise UsageError(f"mix: no document has the label {missing[0]!r} in {curve.by}")
    sizes = {each.label: np.array(each.tokens, np.float64) for each in labels}
    most = {name: curve.max_repeat * sizes[name][~_dropped(sizes[name], curve.drop)].sum() for name in sizes}
    reached, least = min(
        ((most[name] / share, name) for name, share in mix.items() if share), key=itemgetter(0), default=(0, None)
    )
    if int(reached) < target:
        of_label = f", for the label {least!r}" if curve.by and labels else ""
        limits = f"max_repeat {curve.max_repeat:g} and drop {curve.drop:g}{of_label}"
        raise UnreachableTarget(target, int(reached), limits)
    found = []
    for each in labels:
        wanted = target * mix.get(each.label, 0)
        times = target_times(sizes[each.label], wanted, curve.max_repeat, curve.drop)
        found.append(replace(each, times=tuple(times.tolist())))
    return found


def _dropped(sizes: Floats, drop: float) -> npt.NDArray[np.bool_]:
    """Returns which buckets are not read: from the first on, those of at most that share together, and empty ones."""
    dropped: npt.NDArray[np.bool_] = (np.cumsum(sizes) / sizes.sum() <= drop) | (sizes == 0)
    return dropped


def target_times(sizes: Floats, wanted: float, max_repeat: float, drop: float) -> Floats:
    """Returns how often each bucket is read, so that together they have the wanted tokens: Olmo 3's curve.

    The curve over the share of the tokens is 0 up to `drop`, then C * x^p * exp(p / 10 * x), averaged in each bucket. p
    is 2, or less if the last bucket would be read more than `max_repeat` times; with p = 0 all are read equally often.
    So the curve rises, and is convex for p of 1 or more.

    Source: datasets/dolma3_mix/mixes/simple_mixing.py and mixing_dashboard.ipynb of https://github.com/allenai/dolma3,
    which searches p on a grid and the factor of x up to a limit; the published mixes have p = 2 and 0.2, or the cap.

    Args:
        sizes: the tokens of each bucket, from the smallest values on, of shape [buckets].
        wanted: at most `max_repeat` times the tokens that are not dropped.
        max_repeat: the most times that a bucket is read.
        drop: the share of the tokens, from the smallest values on, whose buckets are not read.
    """
    kept, times = ~_dropped(sizes, drop), np.zeros(len(sizes))
    if not wanted:
        return times
    edges = np.concatenate([[0.0], np.cumsum(sizes[kept])]) / sizes.sum()

    def average(power: float) -> Floats:
        integrals = edges ** (power + 1) * sum(
            (power / 10 * edges) ** number / (factorial(number) * (power + 1 + number)) for number in range(20)
        )
        averages: Floats = wanted / sizes.sum() * np.diff(integrals) / integrals[-1] / np.diff(edges)
        return averages

    power, step = 0.0, 2.0
    for _ in range(60):
        larger = min(power + step, 2.0)
        power, step = larger if average(larger)[-1] <= max_repeat else power, step / 2
    times[kept] = np.minimum(average(power), max_repeat)
    return times
