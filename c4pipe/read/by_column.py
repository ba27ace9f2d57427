"""Sources that use a column: documents several times, by a table or a curve; or the best documents first.

The column `copies` has the number of pages of the crawl that were nearly the same (`--copies`). FineWeb 2 calls weights
by this number rehydration: its README at https://github.com/huggingface/fineweb-2 has a table of weights.

To read the best documents first, a process sorts numbers, not texts: 8 bytes for each of its documents. It reads the
texts of a window together, in the order of the files, so each row group is read once for a window.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, cast

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4pipe.corpus.formats.shard_format import PROBABILITY, DocumentGenerator
from c4pipe.corpus.opened import Corpus
from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.errors import UsageError
from c4pipe.io.json_files import read_json
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import input_path
from c4pipe.io.words import short
from c4pipe.read.chosen import Best, check_column, column_of, read_turns
from c4pipe.read.curve import MOST_TIMES, Curve, CurveTimes, Floats, LabelTimes, curve_times, json_of, parse_curve
from c4pipe.read.indexed import RandomAccess
from c4pipe.read.order import Order, Span, random_numbers
from c4pipe.read.source import Source
from c4pipe.wet.columns import COPIES_COLUMN

_access = lru_cache(maxsize=8)(RandomAccess)

_MOST_LABELS = 1000

TOKENS_FILE = "tokens.json"
"""The file of a corpus with its numbers of tokens, and with the plans of weights by tokens."""

Weights = tuple[tuple[int, float], ...] | CurveTimes
"""By size, from the smallest on: documents of at least that many copies are read that many times. Or a curve."""


@dataclass(frozen=True)
class WeightedSource(Source):
    """A source whose documents are read several times, or not at all. The rows of a file are those of `read_turns`."""

    weights: Weights = ()

    def read(self, file: int, first: int, end: int, verify: bool) -> DocumentGenerator:
        """Works as `Source.read`, for rows of the turns of a file."""
        return read_turns(self.shards[file], times_read(self.shards[file], self.weights), first, end, verify)

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of these documents, as JSON values, with the weights."""
        return {**super().identity, "weights": json_of(self.weights)}


def weighted(source: Source, weights: Mapping[Any, Any]) -> WeightedSource:
    """Returns a source whose documents are read as often as a table says, after it has read the columns it needs.

    Args:
        source: the shards of a corpus.
        weights: by number of copies, how often a document of at least that many copies is read in an epoch. A document
            of fewer copies than the smallest number is read once. Of documents with weight 2.5, half are read twice,
            half three times: random numbers decide, which depend on the number of the shard and of the row. Or the
            members of a `Curve`, whose quantiles are those of the documents of the source; the URL decides.

    Raises UsageError for impossible numbers or documents without the column, C4pipeError if a file can't be read.
    """
    if source.documents is not None:
        raise UsageError(f"{source.path} is a subset of some tokens, each read once: give weights for its corpus")
    if not source.languages:
        raise UsageError(f"{source.path} is a file of text, and weights need a corpus: make it with c4pipe import")
    table = weight_table(weights, source, source.shards)
    totals = tuple(int(times_read(shard, table).sum()) for shard in source.shards)
    return source.as_kind(WeightedSource, documents=totals, weights=table)


def weight_table(
    weights: Mapping[Any, Any],
    corpus: Source | Corpus,
    shards: Sequence[Shard],
    tokenizer: Mapping[str, Any] | None = None,
) -> Weights:
    """Returns weights as a table, for the documents of shards. Raises UsageError for impossible numbers, or without a
    column or a plan that they need; `tokenizer` has members of TOKENS_FILE that the plan must have.
    """
    if {"column", "quantiles", "target_tokens"} & set(weights):
        curve = checked_curve(weights, str(corpus.path), shards)
        if not curve.by_tokens:
            return measure_curve(curve, str(corpus.path), shards)
        content = read_json(cast(StoragePath, input_path(corpus.path) / TOKENS_FILE), dict) or {}
        kept = kept_plan(content, curve, corpus.languages) if content.get("manifest") == corpus.digest else None
        of_tokenizer = all(content.get(name) == each for name, each in (tokenizer or {}).items())
        if kept is None or not of_tokenizer or any(shard.id.split != "train" for shard in shards):
            raise UsageError(
                f"{corpus.path} has no plan of these weights in {TOKENS_FILE} for its train split"
                f"{'' if of_tokenizer else ' by this tokenizer'}: write them to a file, and count the tokens with "
                "c4pipe tokens --plan FILE.toml"
            )
        return kept
    for size, weight in weights.items():
        whole = isinstance(size, int) and not isinstance(size, bool) and size >= 1
        if not (whole and isinstance(weight, Real) and math.isfinite(weight) and 0 <= float(weight) <= MOST_TIMES):
            raise UsageError(
                f"weights: {short(f'{size!r}: {weight!r}', 60)}: give numbers of copies from 1 on, and weights from 0 "
                f"to {MOST_TIMES:,}, such as {{1: 1, 2: 2, 100: 8}}"
            )
    if not weights:
        raise UsageError("weights={}: give a table such as {1: 1, 2: 2, 100: 8}, or None to read each document once")
    if COPIES_COLUMN not in _columns_in(shards):
        raise UsageError(f"{corpus.path} has no column copies, and weights need it: build the corpus with --copies")
    return tuple(sorted((size, float(weight)) for size, weight in weights.items()))


@lru_cache(maxsize=8)
def times_read(shard: Shard, weights: Weights) -> npt.NDArray[np.int16]:
    """Returns how often each document of a shard is read: an array of shape [rows]."""
    if isinstance(weights, CurveTimes):
        return _times_by_curve(shard, weights)
    copies = column_of(shard, "copies")[1]
    sizes, values = np.array([0, *(size for size, _ in weights)]), np.array([1.0, *(weight for _, weight in weights)])
    weight = values[np.searchsorted(sizes, copies, "right") - 1]
    is_train = shard.id.split == "train"
    drawn = (random_numbers(len(copies), 0, shard.id.shard_index, is_train) >> np.uint64(11)) / 2.0**53
    times: npt.NDArray[np.int16] = np.floor(weight + drawn).astype(np.int16)
    return times


def _times_by_curve(shard: Shard, curve: CurveTimes) -> npt.NDArray[np.int16]:
    """Returns how often each document of a shard is read: of weight 2.5, the hash of seed and URL decides."""
    of_label = {each.label: each for each in curve.labels}
    times = [np.zeros(0, np.int16)]
    for table in read_tables(shard, _columns_of(curve, "url")):
        names, labels = _labels_of(table, curve.by)
        values, weight = _values_of(table, curve.column), np.zeros(len(table))
        for number, name in enumerate(names):
            weight[labels == number] = of_label[name].of(values[labels == number])
        between = np.flatnonzero(weight % 1)
        urls = table["url"].take(pa.array(between)).to_pylist()
        hashes = np.fromiter((mmh3.hash64(url, curve.seed, signed=False)[0] for url in urls), np.uint64, len(urls))
        weight[between] += (hashes >> np.uint64(11)) / 2.0**53
        times.append(np.floor(weight).astype(np.int16))
    return np.concatenate(times)


def checked_curve(weights: Mapping[str, Any], path: str, shards: Sequence[Shard]) -> Curve:
    """Returns the curve that a table of a user says. Raises UsageError if the shards have no such columns."""
    curve, columns = parse_curve(weights), _columns_in(shards)
    if curve.column:
        check_column(curve.column, path, [*columns, f"{PROBABILITY}:float"])
    if curve.by:
        check_column(curve.by, path, ["language:string", *columns], "labels")
    return curve


def _columns_in(shards: Sequence[Shard]) -> Sequence[str]:
    return shards[0].columns if shards else ()


def kept_plan(content: Mapping[str, Any], curve: Curve, languages: Sequence[str]) -> CurveTimes | None:
    """Returns how often the documents of languages are read by a curve, given the content of TOKENS_FILE, if known."""
    for each in content.get("plans", ()):
        if (each["curve"], each["languages"]) == (json_of(curve), list(languages)):
            labels: list[dict[str, Any]] = [
                {name: tuple(value) if isinstance(value, list) else value for name, value in label.items()}
                for label in each["times"]["labels"]
            ]
            return CurveTimes(**{**each["times"], "labels": tuple(LabelTimes(**label) for label in labels)})
    return None


def measure_curve(curve: Curve, path: str, shards: Sequence[Shard], tokens: Floats | None = None) -> CurveTimes:
    """Returns a curve with the values of its quantiles in the documents of shards, given their numbers of tokens."""
    known: dict[str | None, int] = {}
    all_labels, all_values = [np.zeros(0, np.int64)], [np.zeros(0)]
    for shard in shards:
        for table in read_tables(shard, _columns_of(curve, "language")):
            names, labels = _labels_of(table, curve.by)
            numbers = np.array([known.setdefault(name, len(known)) for name in names], np.int64)
            if len(known) > _MOST_LABELS:
                raise UsageError(f"{path} has more than {_MOST_LABELS:,} labels in {curve.by}: give a column of fewer")
            all_labels.append(numbers[labels])
            all_values.append(_values_of(table, curve.column))
    return curve_times(curve, list(known), np.concatenate(all_labels), np.concatenate(all_values), tokens)


def _columns_of(curve: Curve | CurveTimes, more: str) -> list[str]:
    """Returns the columns of a curve, and one more."""
    return list(dict.fromkeys(filter(None, [curve.column, curve.by, more])))


def _values_of(table: pa.Table, column: str) -> Floats:
    """Returns the numbers of a column, -inf for none; equal numbers without a column."""
    if not column:
        return np.zeros(len(table))
    numbers = table[column].cast(pa.float64(), safe=False).fill_null(-math.inf).to_numpy()
    return np.where(np.isnan(numbers), -math.inf, numbers)


def _labels_of(table: pa.Table, column: str) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """Returns the labels of a column, as strings, and the number of each row's label; one label without a column."""
    if not column:
        return [None], np.zeros(len(table), np.int64)
    encoded = table[column].cast(pa.string()).combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


@dataclass(frozen=True)
class BestFirst(Source):
    """A source of which each process reads its documents with the largest numbers of a column first.

    Documents with the same number stay in the order of the corpus; documents without a number come last.
    """

    column: str = ""

    def rows_of(self, spans: Sequence[Span], position: int, window: int, verified: set[int]) -> DocumentGenerator:
        """Works as `Source.rows_of`, best first. It reads `window` documents together."""
        places, access = _places(self, tuple(sorted(spans))), _access(self)
        for first in range(position, len(places), window):
            chosen = places[first : first + window].tolist()
            documents = {place: access[place] for place in sorted(chosen)}
            yield from map(documents.pop, chosen)

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of these documents, as JSON values, with the column."""
        return {**super().identity, "best_first": self.column}

    def first(self, count: int) -> Source:
        """Returns the best `count` documents, at least one. Raises UsageError if a document has no number."""
        places = _places(self, tuple(Order().spans(self.rows)))[:count]
        ends = np.cumsum(self.rows)
        shards = np.searchsorted(ends, places, "right")
        shard = int(shards[-1])
        row = int(places[-1] - ends[shard]) + self.rows[shard]
        known, values = column_of(self.shards[shard], self.column)
        if not known[row]:
            raise UsageError(f"the documents of {self.path} with a number in {self.column} are fewer than {count:,}")
        best = Best(self.column, shard, row, float(values[row]))
        documents = tuple(np.bincount(shards, minlength=len(ends)).tolist())
        return self.as_kind(Source, documents=documents, best=best)


def best_first(source: Source, column: str) -> BestFirst:
    """Returns a source that is read by a column, the largest numbers first.

    Raises UsageError for a missing column or another type, for a subset of a corpus, and for a corpus without Parquet.
    """
    if source.documents is not None:
        raise UsageError(f"{source.path} is a subset of its corpus: give best_first for the corpus, or leave it out")
    check_column(column, source.path, source.columns)
    RandomAccess(source)  # raises UsageError for a corpus without Parquet
    return source.as_kind(BestFirst, column=column)


@lru_cache(maxsize=16)
def _places(source: BestFirst, spans: tuple[Span, ...]) -> npt.NDArray[np.int64]:
    """Returns the numbers of the documents of ascending spans, best first."""
    before = np.cumsum([0, *source.rows])
    places, known, values = [np.zeros(0, np.int64)], [np.zeros(0, bool)], [np.zeros(0)]
    for file, first, end in spans:
        are_known, numbers = column_of(source.shards[file], source.column)
        places.append(before[file] + np.arange(first, end))
        known.append(are_known[first:end])
        values.append(numbers[first:end])
    # the sort is stable and ascending: backwards before and after it, equal documents stay in their order
    order = np.lexsort((np.concatenate(values)[::-1], np.concatenate(known)[::-1]))[::-1]
    return np.concatenate(places)[::-1][order]
