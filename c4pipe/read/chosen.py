"""The documents of a shard that are read, and how often: by the numbers of a column."""

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

_TYPES = {"numbers": ("int", "float"), "labels": ("string", "int", "bool")}


def check_column(column: str, path: str, columns: Sequence[str], kind: str = "numbers") -> None:
    """Raises UsageError if a corpus has no column of numbers or labels with this name, given its columns."""
    names = [each.name for each in parse_columns(columns) if each.type in _TYPES[kind]]
    if column not in names:
        has = f"it has {', '.join(names)}" if names else f"build it with --score {column}=MODEL, or import one"
        raise UsageError(f"{path} has no column {column} of {kind}: {has}" + suggestion(column, names))


def column_of(shard: Shard, column: str) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Returns which documents of a shard have a number in a column, and the numbers, or 0. Raises C4pipeError."""
    known, values = [np.zeros(0, bool)], [np.zeros(0)]
    for table in read_tables(shard, [column]):
        numbers = table[column].combine_chunks()
        known.append(numbers.is_valid().to_numpy(zero_copy_only=False))
        values.append(numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64))
    return np.concatenate(known), np.concatenate(values)


def read_turns(shard: Shard, times: npt.NDArray[np.int16], first: int, end: int, verify: bool) -> DocumentGenerator:
    """Yields documents of a shard as often as `times` says, an array of shape [rows].

    First come all documents that are read at least once, then all that are read at least twice, and so on. So the
    repetitions of a document are far apart. `first` and `end` are places among these rows.
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
    """The best documents of a source by a column, up to a last document: its shard, row and score."""

    column: str
    shard: int
    row: int
    score: FiniteNumber


@lru_cache(maxsize=8)
def best_rows(best: Best, number: int, shard: Shard) -> npt.NDArray[np.int64]:
    """Returns the rows of the best documents of a shard in their order, given the shard's number."""
    known, values = column_of(shard, best.column)
    last_row = shard.rows if number < best.shard else best.row if number == best.shard else -1
    is_before = np.arange(shard.rows) <= last_row
    return np.flatnonzero(known & ((values > best.score) | ((values == best.score) & is_before)))
