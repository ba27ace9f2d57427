"""Documents that are read several times an epoch, by how many pages of the crawl were nearly the same.

The numbers are those of the column `copies` (`--copies`). FineWeb 2 calls it rehydration: its README at
https://github.com/huggingface/fineweb-2 has a table of weights.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.corpus.formats.shard_format import DocumentGenerator
from c4pipe.corpus.reader import Shard
from c4pipe.errors import UsageError
from c4pipe.io.words import short
from c4pipe.read.chosen import column_of, read_turns
from c4pipe.read.order import random_numbers
from c4pipe.read.source import Source
from c4pipe.wet.columns import COPIES_COLUMN

Weights = tuple[tuple[int, float], ...]
"""By size, from the smallest on: documents of at least that many copies are read that many times."""

_MOST = 1000  # times that a document is read


@dataclass(frozen=True)
class WeightedSource(Source):
    """A source whose documents are read several times, or not at all. The rows of a file are those of `read_turns`.

    Attributes:
        weights: the table.
    """

    weights: Weights = ()

    def read(self, file: int, first: int, end: int, verify: bool) -> DocumentGenerator:
        """Returns the documents of a file as `Source.read`, given rows of its turns."""
        return read_turns(self.shards[file], times_read(self.shards[file], self.weights), first, end, verify)

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of these documents, as JSON values, with the weights."""
        return {**super().identity, "weights": [list(each) for each in self.weights]}


def weighted(source: Source, weights: Mapping[int, float]) -> WeightedSource:
    """Returns a source whose documents are read as often as a table says. It reads the column `copies` of all files.

    Args:
        source: the shards of a corpus.
        weights: by number of copies, how often a document of at least that many copies is read in an epoch. A document
            of fewer copies than the smallest number is read once. Of documents with weight 2.5, half are read twice,
            half three times: random numbers decide, which depend on the number of the shard and of the row.

    Raises UsageError for numbers that can't be used, and for documents without the column; C4pipeError if a file
    can't be read.
    """
    if source.documents is not None:
        raise UsageError(f"{source.path} is a subset of some tokens, each read once: give weights for its corpus")
    table = weight_table(weights, source.path, source.columns)
    totals = tuple(int(times_read(shard, table).sum()) for shard in source.shards)
    return source.as_kind(WeightedSource, documents=totals, weights=table)


def weight_table(weights: Mapping[int, float], path: str, columns: Sequence[str]) -> Weights:
    """Returns weights as a table, given the path of a corpus and its further columns.

    Raises UsageError for numbers that can't be used, and for a corpus without the column `copies`.
    """
    for size, weight in weights.items():
        whole = isinstance(size, int) and not isinstance(size, bool) and size >= 1
        if not (whole and isinstance(weight, Real) and math.isfinite(weight) and 0 <= weight <= _MOST):
            raise UsageError(
                f"weights: {short(f'{size!r}: {weight!r}', 60)}: give numbers of copies from 1 on, and weights from 0 "
                f"to {_MOST:,}, such as {{1: 1, 2: 2, 100: 8}}"
            )
    if not weights:
        raise UsageError("weights={}: give a table such as {1: 1, 2: 2, 100: 8}, or None to read each document once")
    if COPIES_COLUMN not in columns:
        raise UsageError(f"{path} has no column copies, and weights need it: build the corpus with --copies")
    return tuple(sorted((size, float(weight)) for size, weight in weights.items()))


@lru_cache(maxsize=8)
def times_read(shard: Shard, weights: Weights) -> npt.NDArray[np.int16]:
    """Returns how often each document of a shard is read: an array of shape [rows]."""
    copies = column_of(shard, "copies")[1]
    sizes, values = np.array([0, *(size for size, _ in weights)]), np.array([1.0, *(weight for _, weight in weights)])
    weight = values[np.searchsorted(sizes, copies, "right") - 1]
    is_train = shard.id.split == "train"
    drawn = (random_numbers(len(copies), 0, shard.id.shard_index, is_train) >> np.uint64(11)) / 2.0**53
    times: npt.NDArray[np.int16] = np.floor(weight + drawn).astype(np.int16)
    return times
