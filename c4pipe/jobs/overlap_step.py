"""The step of `overlap` that runs in workers: which n-grams of the examples are on which pages of a shard."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather

from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.filters.example_ngrams import ExampleNgrams
from c4pipe.filters.word_ngrams import BATCH_BYTES, I64, WordRows, ngram_words
from c4pipe.runners.flow import Step

HITS = pa.schema({"size": pa.int64(), "ngram": pa.int64(), "row": pa.int64(), "url": pa.string()})
"""The columns of the hits of a shard: the words of an n-gram, its number, and the row and URL of a page that has it."""

Examples = Sequence[Sequence[bytes]]
"""The fields of each example, in the form of `ngram_words`."""


def save_examples(examples: Examples, file: Path) -> None:
    """Writes examples to a file of this machine, for the workers. Raises OSError."""
    file.write_text(json.dumps([[field.decode() for field in fields] for fields in examples]), "utf-8")


def read_hits(file: Path) -> pa.Table:
    """Returns the hits that a worker found in a shard. Raises OSError."""
    return feather.read_table(file, memory_map=False)


class FindSharedNgrams(Step):
    """(shard, path of its hits) -> nothing; the pages that share n-grams with examples are written there.

    An n-gram that is on more than `max_pages` pages of the shard has some more hits than that, not all: so hits take
    little room, however common an n-gram is.
    """

    def __init__(self, examples: str, sizes: Sequence[int], max_pages: int) -> None:
        """Takes the file of the examples, the sizes of n-grams in words, and from how many pages on one is common."""
        self._examples, self._sizes, self._max_pages = examples, tuple(sizes), max_pages

    def setup(self) -> None:
        """Sorts the n-grams of the examples."""
        rows = json.loads(Path(self._examples).read_text("utf-8"))
        examples = [[field.encode() for field in fields] for fields in rows]
        self._known = [ExampleNgrams(examples, size) for size in self._sizes]

    def process(self, element: tuple[Shard, str]) -> Sequence[tuple[str, Any]]:
        """Searches a shard."""
        shard, target = element
        pages = [np.zeros(len(known), np.int64) for known in self._known]  # that have each n-gram, so far
        tables = [HITS.empty_table()]
        for batch in _batches(shard):
            rows = WordRows([page.words for page in batch])
            for known, counts in zip(self._known, pages, strict=True):
                numbers, ngrams = _distinct(known, rows)
                rare = counts[ngrams] <= self._max_pages
                numbers, ngrams = numbers[rare], ngrams[rare]
                np.add.at(counts, ngrams, 1)
                tables.append(_hits(known.size, batch, numbers, ngrams))
        feather.write_feather(pa.concat_tables(tables).combine_chunks(), target, compression="zstd")
        return ()


class _Page(NamedTuple):
    row: int
    url: str
    words: bytes


def _batches(shard: Shard) -> Iterator[list[_Page]]:
    """Yields the pages of a shard in lists of about BATCH_BYTES of text."""
    batch: list[_Page] = []
    waiting = row = 0
    for table in read_tables(shard, ("url", "text")):
        for url, text in zip(table["url"].to_pylist(), table["text"].to_pylist(), strict=True):
            page = _Page(row, url, ngram_words(text))
            if batch and waiting + len(page.words) >= BATCH_BYTES:
                yield batch
                batch, waiting = [], 0
            batch.append(page)
            waiting += len(page.words) + 1
            row += 1
    if batch:
        yield batch


def _distinct(known: ExampleNgrams, rows: WordRows) -> tuple[I64, I64]:
    """Returns the n-grams of examples that pages have: the number of the page and of the n-gram, each pair once."""
    words, ngrams = known.find(rows)
    keys = np.unique(rows.texts[words] * max(1, len(known)) + ngrams)
    return keys // max(1, len(known)), keys % max(1, len(known))


def _hits(size: int, batch: Sequence[_Page], numbers: I64, ngrams: I64) -> pa.Table:
    pages = [batch[number] for number in numbers.tolist()]
    columns = [[size] * len(pages), ngrams, [page.row for page in pages], [page.url for page in pages]]
    return pa.table(columns, schema=HITS)
