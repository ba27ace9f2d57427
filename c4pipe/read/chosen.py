"""Which documents of a shard are read, and how often: by the numbers of a column."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress

import numpy as np
import numpy.typing as npt

from c4pipe.corpus.formats.shard_format import DocumentGenerator
from c4pipe.corpus.reader import Shard, read_shard, read_tables
from c4pipe.errors import UsageError
from c4pipe.io.json_files import FiniteNumber
from c4pipe.io.words import suggestion
from c4pipe.wet.columns import parse_columns


def check_column(column: str, path: str, columns: Sequence[str]) -> None:
    """Raises UsageError if a corpus has no further column of numbers with this name, given its further columns."""
    numbers = [each.name for each in parse_columns(columns) if each.type in ("int", "float")]
    if column not in numbers:
        has = f"it has {', '.join(numbers)}" if numbers else f"build it with --score {column}=MODEL, or import one"
        raise UsageError(f"{path} has no column {column} of numbers: {has}" + suggestion(column, numbers))


def column_of(shard: Shard, column: str) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Returns which documents of a shard have a number in a column, and the numbers; 0 for those without one.

    Raises C4pipeError if the shard can't be read.
    """
    known, values = [np.zeros(0, bool)], [np.zeros(0)]
    for table in read_tables(shard, [column]):
        numbers = table[column].combine_chunks()
        known.append(numbers.is_valid().to_numpy(zero_copy_only=False))
        values.append(numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64))
    return np.concatenate(known), np.concatenate(values)


def read_turns(shard: Shard, times: npt.NDArray[np.int16], first: int, end: int, verify: bool) -> DocumentGenerator:
    """Yields documents of a shard as often as `times` says, an array of shape [rows].

    First come all documents that are read at least once, then those that are read at least twice, and so on. So the
    repetitions of a document are far apart.

    Args:
        shard, verify: as in `read_shard`.
        times: how often each document of the shard is read.
        first, end: the place among these rows of the first document, and the place after the last one.
    """
    for turn in range(int(times.max(initial=0))):
        is_read = times > turn
        rows = np.flatnonzero(is_read)
        chosen = rows[max(first, 0) : max(end, 0)]
        first, end = first - len(rows), end - len(rows)
        if len(chosen):
            low, high = int(chosen[0]), int(chosen[-1]) + 1
            with closing(read_shard(shard, low, high, verify)) as documents:
                yield from compress(documents, is_read[low:high])
            verify = False


@dataclass(frozen=True)
class Best:
    """The best documents of a source: those up to a last one, in the order of `read.best`.

    Attributes:
        column: the column of numbers.
        shard: the number of the last document's shard.
        row: the row of the last document.
        score: the number of the last document.
    """

    column: str
    shard: int
    row: int
    score: FiniteNumber

    def rows(self, number: int, shard: Shard) -> npt.NDArray[np.int64]:
        """Returns the rows of the best documents of a shard, given its number, in their order."""
        return _rows(self, number, shard)

    def times(self, number: int, shard: Shard) -> npt.NDArray[np.int16]:
        """Returns 1 for each of the best documents of a shard, given its number, and 0 for the others."""
        times = np.zeros(shard.rows, np.int16)
        times[self.rows(number, shard)] = 1
        return times


@lru_cache(maxsize=8)
def _rows(best: Best, number: int, shard: Shard) -> npt.NDArray[np.int64]:
    known, values = column_of(shard, best.column)
    last_row = shard.rows if number < best.shard else best.row if number == best.shard else -1
    is_before = np.arange(shard.rows) <= last_row
    return np.flatnonzero(known & ((values > best.score) | ((values == best.score) & is_before)))
