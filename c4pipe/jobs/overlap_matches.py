"""The matches of `overlap`: which page shares how much with which example, from the hits of all shards."""

import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.display.mistakes import error_reason
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters.example_ngrams import ExampleNgrams
from c4pipe.filters.word_ngrams import I64
from c4pipe.io.atomic import AtomicFile, make_folder, naming
from c4pipe.io.parquet_footer import sign_footer
from c4pipe.io.paths import StoragePath

ENDINGS = (".parquet", ".jsonl", ".jsonl.gz")
"""How the name of a file of matches can end."""


@dataclass(frozen=True)
class Match:
    """A page that shares n-grams with an example.

    Attributes:
        url: the page's URL.
        shard: the page's shard, by its path in the corpus.
        row: the page's row in the shard, from 0.
        file: the file of the example, as it was given.
        example: the number of the example's line in that file, from 1.
        ngram: the words of an n-gram.
        shared: how many n-grams of the example the page has; those that are on too many pages do not count.
        total: how many n-grams the example has.
        share: `shared` as a share of `total`.
        text: the longest text that they share, as `filters.word_ngrams` writes words.
    """

    url: str
    shard: str
    row: int
    file: str
    example: int
    ngram: int
    shared: int
    total: int
    share: float
    text: str


@dataclass(frozen=True)
class ExampleNames:
    """Where the examples are from: the file, and the line from 1, of each."""

    files: Sequence[str]
    lines: Sequence[int]


def page_counts(known: Mapping[int, ExampleNgrams], hits: Iterable[pa.Table]) -> dict[int, I64]:
    """Returns on how many pages each n-gram is, by the size of n-grams, given the hits of all shards."""
    counts = {size: np.zeros(len(each), np.int64) for size, each in known.items()}
    for table in hits:
        sizes, ngrams = table["size"].to_numpy(), table["ngram"].to_numpy()
        for size, total in counts.items():
            total += np.bincount(ngrams[sizes == size], minlength=len(total))
    return counts


def shard_matches(
    shard: str, hits: pa.Table, known: Mapping[int, ExampleNgrams], rare: Mapping[int, Any], names: ExampleNames
) -> Iterator[Match]:
    """Yields the matches of a shard by row, by size of the n-grams, and by example.

    Args:
        shard: its path in the corpus.
        hits: what `FindSharedNgrams` found.
        known: the n-grams of the examples, by size.
        rare: for each size, which n-grams count.
        names: where the examples are from.
    """
    columns = (hits["row"].to_pylist(), hits["size"].to_pylist(), hits["ngram"].to_pylist(), hits["url"].to_pylist())
    counted = sorted(each for each in zip(*columns, strict=True) if rare[each[1]][each[2]])
    for (row, size), some in groupby(counted, key=lambda each: each[:2]):
        page = list(some)
        ngrams = known[size]
        owners, places = ngrams.places(np.array([ngram for _, _, ngram, _ in page], np.int64))
        for example in np.unique(owners).tolist():
            own = places[owners == example]
            total = int(ngrams.totals[example])
            yield Match(
                url=page[0][3],
                shard=shard,
                row=row,
                file=names.files[example],
                example=names.lines[example],
                ngram=size,
                shared=len(own),
                total=total,
                share=len(own) / total,
                text=_longest(ngrams, own).decode(),
            )


def _longest(ngrams: ExampleNgrams, places: I64) -> bytes:
    """Returns the words of the longest run of consecutive places of n-grams, the first of several."""
    firsts = np.r_[0, np.flatnonzero(np.diff(places) != 1) + 1]
    lengths = np.diff(np.r_[firsts, len(places)])
    longest = int(np.argmax(lengths))
    return ngrams.words_at(int(places[firsts[longest]]), int(lengths[longest]))


def check_output(path: StoragePath) -> None:
    """Raises UsageError for the path of a file of matches whose name has no known ending, or that is a folder."""
    if not path.name.endswith(ENDINGS):
        raise UsageError(f"--output {path} ends in none of {', '.join(ENDINGS)}: name a file with one of these endings")
    if path.is_dir():
        raise UsageError(f"--output {path} is a folder: name a file in it, such as {path / 'matches.jsonl'}")


def make_output_folder(path: StoragePath) -> None:
    """Makes the folder of a file of matches. Raises UsageError where that is not possible."""
    try:
        make_folder(path.parent)
    except OSError as error:
        raise UsageError(
            f"--output {path} can't be written: {error_reason(error)}; name a file in another folder"
        ) from error


def write_matches(matches: Sequence[Match], path: StoragePath) -> None:
    """Writes matches as Parquet, JSON Lines, or gzipped JSON Lines, by the file's name.

    The file appears complete or not at all; its bytes depend on the matches, and on the versions of pyarrow and zlib.
    Raises C4pipeError where it can't be written.
    """
    file = AtomicFile(path)
    try:
        with naming(path):
            if path.name.endswith(".parquet"):
                pq.write_table(_table(matches), file.path, compression="zstd", write_page_checksum=True)
                sign_footer(file.path)
            else:
                file.path.write_bytes(_json_lines(matches, zipped=path.name.endswith(".gz")))
        file.publish()
    except OSError as error:
        raise C4pipeError(f"{path} can't be written: {error_reason(error)}; name another file with --output") from error
    finally:
        file.discard()


def _table(matches: Sequence[Match]) -> pa.Table:
    types: Mapping[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    columns = {each.name: types[each.type] for each in fields(Match)}
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])
    return pa.table([[getattr(match, name) for match in matches] for name in columns], schema=schema)


def _json_lines(matches: Sequence[Match], zipped: bool) -> bytes:
    lines = "".join(f"{json.dumps(asdict(match), ensure_ascii=False)}\n" for match in matches).encode()
    if not zipped:
        return lines
    data = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=data, mtime=0) as stream:
        stream.write(lines)
    return data.getvalue()
