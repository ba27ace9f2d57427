"""Documents by a column of numbers, those with the largest numbers first.

A process sorts numbers, not texts: 8 bytes for each of its documents are kept. It reads the texts of a window together,
in the order of the files, so each row group is read once for a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.corpus.formats.shard_format import DocumentGenerator
from c4pipe.errors import UsageError
from c4pipe.read.chosen import Best, check_column, column_of
from c4pipe.read.indexed import RandomAccess
from c4pipe.read.order import Order, Span
from c4pipe.read.source import Source

Places = npt.NDArray[np.int64]
"""Documents of a source, by their numbers in the order of the corpus."""


@dataclass(frozen=True)
class BestFirst(Source):
    """A source of which each process reads its documents with the largest numbers of a column first.

    Documents with the same number stay in the order of the corpus; documents without a number come last.

    Attributes:
        column: the column.
    """

    column: str = ""

    def rows_of(self, spans: Sequence[Span], position: int, window: int, verified: set[int]) -> DocumentGenerator:
        """Yields the documents of spans as `Source.rows_of`, best first; those of `window` places are read together."""
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
        """Returns the first `count` documents, as one process reads them: at least one.

        Raises UsageError if one of them has no number.
        """
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
    """Returns a source of which each process reads the documents with the largest numbers of a column first.

    Raises UsageError for a column that is not there or has no numbers, for a subset of a corpus, and for a corpus
    without Parquet.
    """
    if source.documents is not None:
        raise UsageError(f"{source.path} is a subset of its corpus: give best_first for the corpus, or leave it out")
    check_column(column, source.path, source.columns)
    RandomAccess(source)  # raises UsageError for a corpus without Parquet
    return source.as_kind(BestFirst, column=column)


@lru_cache(maxsize=8)
def _access(source: Source) -> RandomAccess:
    return RandomAccess(source)


@lru_cache(maxsize=16)
def _places(source: BestFirst, spans: tuple[Span, ...]) -> Places:
    """Returns the documents of spans, which are in the order of the corpus, with the largest number first."""
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
