"""Finds pages of a corpus that share word n-grams with examples of evaluation sets: the command `overlap`.

GPT-3 (Brown et al. 2020, appendix C) searches for n-grams of 13 words, and ignores those that are in more than ten
documents. PaLM (Chowdhery et al. 2022, section 8) takes an example for contaminated if at least 70 % of its 8-grams
are in the training data. Both are counted here.
"""

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather

from c4pipe.corpus.opened import Corpus, open_language
from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters.evaluation_overlap import read_evaluation_file
from c4pipe.inspect.options import OverlapOptions
from c4pipe.io.atomic import make_folder, write_bytes
from c4pipe.io.json_files import parse_json
from c4pipe.io.options import takes_options
from c4pipe.io.parquet_footer import parquet_writer
from c4pipe.io.paths import StoragePath, open_file
from c4pipe.io.words import explain_errors, format_count, short_repr
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.scan import Scan, ScanStep
from c4pipe.text.languages import UNKNOWN
from c4pipe.text.ngrams import I64, ExampleNgrams, WordRows, batch_texts, ngram_words, split_words
from c4pipe.text.scripts.facts import SCRIPTS, scripts_of
from c4pipe.text.scripts.words import readable_words

CONTAMINATED = 0.7
"""An example is contaminated if the corpus has at least this share of its n-grams, as in PaLM."""

HITS = pa.schema({"size": pa.int64(), "ngram": pa.int64(), "row": pa.int64(), "url": pa.string()})
"""The columns of the hits of a shard: the words of an n-gram, its number, and the row and URL of a page that has it."""


@dataclass(frozen=True)
class FileOverlap:
    """The overlap of a corpus with the examples of one file, by n-grams of one size.

    Attributes:
        file: the file, as it was given.
        ngram: the words of an n-gram.
        examples: the examples of the file.
        searched: the examples with an n-gram; others are too short.
        found: the examples that share an n-gram with a page.
        contaminated: the examples with at least 70 % of their n-grams in the corpus, on any pages.
        pages: the pages that share an n-gram with an example.
    """

    file: str
    ngram: int
    examples: int
    searched: int
    found: int
    contaminated: int
    pages: int


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
        shared: how many n-grams of the example the page has; n-grams on too many pages do not count.
        total: how many n-grams the example has.
        share: `shared` as a share of `total`.
        text: the longest part of the example of which the page has each n-gram, as `ngram_words` writes words.
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
class Overlap:
    """The overlap of a corpus with evaluation examples.

    Attributes:
        files: the counts of each file and each size of n-grams, in the order in which they were given.
        matches: each page with each example of which it has n-grams, by shard, row, size and example.
        common: the number of n-grams that were ignored because they are on too many pages, by size.
    """

    files: tuple[FileOverlap, ...]
    matches: tuple[Match, ...]
    common: Mapping[int, int]

    def __repr__(self) -> str:
        files = dict.fromkeys(each.file for each in self.files)
        return short_repr(self, format_count(len(self.matches), "match", "matches"), *files)

    def top_pages(self, count: int) -> list[tuple[str, int]]:
        """Returns the pages that share n-grams with the most examples: the URL of each, and the number of examples."""
        pairs = {(match.url, match.file, match.example) for match in self.matches}
        pages = Counter(url for url, _, _ in pairs)
        return sorted(pages.items(), key=lambda page: (-page[1], page[0]))[:count]


@takes_options(OverlapOptions)
def find_overlap(options: OverlapOptions) -> Overlap:
    """Finds the pages of a corpus that share word n-grams with examples of evaluation sets. The command
    `c4pipe overlap`.

    {options}

    The corpus can also be a URL of a store or a web server. No n-gram is in two fields.

    Raises UsageError for an argument that can't be met, before any page is read; C4pipeError if a shard can't be
    read, or the matches can't be written.
    """
    return overlap(options, Progress(options.progress))


def overlap(options: OverlapOptions, progress: Progress) -> Overlap:
    """Finds the overlap of a corpus with examples, and writes the matches if the options name a file.

    Errors are those of `find_overlap`.
    """
    _check(options)
    corpus = open_language(os.fspath(options.corpus))
    examples = [
        _Example(str(path), line, texts)
        for path in options.example_files
        for line, texts in read_evaluation_file(path, options.fields)
    ]
    scripts = tuple(SCRIPTS) if UNKNOWN in corpus.languages else scripts_of(corpus.languages)
    known = {size: _ngrams([each.texts for each in examples], size, scripts) for size in options.ngrams}
    if not any(len(each) for each in known.values()):
        raise UsageError(
            f"no text of {options.example_files[0]} has {min(options.ngrams)} words: give longer examples, "
            "or a smaller number with --ngrams"
        )
    output = options.matches_file
    if output is not None:
        _make_output_folder(output)
    hits = _find_hits(corpus, examples, scripts, options, progress)
    found = _count_overlap(options, examples, known, hits, [shard.path for shard in corpus.shards()], scripts)
    if output is not None:
        _write_matches(found.matches, output)
    return found


def _check(options: OverlapOptions) -> None:
    """Raises UsageError for an option that can't be met."""
    sizes = options.ngrams
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        numbers = ",".join(map(str, sizes))
        raise UsageError(f"--ngrams {numbers}: give numbers of words, each at least 1 and each once, such as 8,13")
    if options.max_pages < 1:
        raise UsageError(f"--max-pages {options.max_pages}: give a number of pages, at least 1")
    if not options.example_files:
        raise UsageError("no file of examples is given: name one or more with --against")
    output = options.matches_file
    if output is not None and not output.name.lower().endswith(".parquet"):
        raise UsageError(f"--output {output}: matches are written as Parquet: give a name that ends in .parquet")
    if output is not None and output.is_dir():
        raise UsageError(f"--output {output} is a folder: name a file in it, such as {output / 'matches.parquet'}")


def _make_output_folder(path: StoragePath) -> None:
    """Makes the folder of a file of matches. Raises UsageError if that is not possible."""
    with explain_errors(f"--output {path} can't be written", "name a file in another folder"):
        make_folder(path.parent)


class _Example(NamedTuple):
    file: str
    line: int
    texts: tuple[bytes, ...]


def _ngrams(examples: Iterable[Sequence[bytes]], size: int, scripts: tuple[str, ...]) -> ExampleNgrams:
    return ExampleNgrams([[split_words(text, scripts, size) for text in texts] for texts in examples], size)


def _find_hits(
    corpus: Corpus, examples: Sequence[_Example], scripts: tuple[str, ...], options: OverlapOptions, progress: Progress
) -> pa.Table:
    """Returns the hits of all shards (HITS), with a further column: the number of the shard."""
    with tempfile.TemporaryDirectory(prefix="c4pipe-overlap-") as name:
        folder = Path(name)
        file = folder / "examples.json"
        file.write_text(json.dumps([[text.decode() for text in each.texts] for each in examples]), "utf-8")
        scan = Scan(
            "Find shared n-grams",
            FindSharedNgrams(str(file), options.ngrams, options.max_pages, scripts),
            folder,
            {f"{number:06}.arrow": shard for number, shard in enumerate(corpus.shards())},
        )
        scan.run(RunnerOptions(workers=options.workers), progress, "overlap")
        return pa.concat_tables(
            hits.append_column("shard", pa.array([number] * len(hits), pa.int64()))
            for number, hits in enumerate(scan.parts())
        )


class FindSharedNgrams(ScanStep[Shard, pa.Table]):
    """(shard, path of its hits) -> nothing; the pages that share n-grams with examples are written there.

    An n-gram on more than `max_pages` pages of a shard has only some hits beyond `max_pages`. So hits take little
    room, even for very common n-grams.
    """

    def __init__(self, examples: str, sizes: Sequence[int], max_pages: int, scripts: tuple[str, ...]) -> None:
        self._examples, self._sizes, self._max_pages, self._scripts = examples, tuple(sizes), max_pages, scripts

    def setup(self) -> None:
        rows = parse_json(Path(self._examples).read_bytes())
        examples = [[text.encode() for text in texts] for texts in rows]
        self._known = [_ngrams(examples, size, self._scripts) for size in self._sizes]

    def scan(self, item: Shard) -> bytes:
        """Returns the hits in a shard."""
        pages = [np.zeros(len(known), np.int64) for known in self._known]  # pages so far that have each n-gram
        tables = [HITS.empty_table()]
        for batch in batch_texts(_read_pages(item)):
            rows = WordRows([words for _, words in batch])
            for known, counts in zip(self._known, pages, strict=True):
                if self._scripts:
                    rows = WordRows([split_words(words, self._scripts, known.size) for _, words in batch])
                numbers, ngrams = known.find(rows)
                rare = counts[ngrams] <= self._max_pages
                np.add.at(counts, ngrams[rare], 1)
                found = [batch[number][0] for number in numbers[rare].tolist()]
                columns = [
                    [known.size] * len(found),
                    ngrams[rare],
                    [row for row, _ in found],
                    [url for _, url in found],
                ]
                tables.append(pa.table(columns, schema=HITS))
        sink = pa.BufferOutputStream()
        feather.write_feather(pa.concat_tables(tables).combine_chunks(), sink, compression="zstd")
        return bytes(sink.getvalue().to_pybytes())

    def read(self, part: StoragePath, item: Shard) -> pa.Table:
        """Returns the hits in a shard."""
        with open_file(part) as file:
            return feather.read_table(file, memory_map=False)


def _read_pages(shard: Shard) -> Iterator[tuple[tuple[int, str], bytes]]:
    """Yields the row and URL of each page of a shard, and its words."""
    pages = (page for table in read_tables(shard, ("url", "text")) for page in table.to_pylist())
    for row, page in enumerate(pages):
        yield (row, page["url"]), ngram_words(page["text"])


def _count_overlap(
    options: OverlapOptions,
    examples: Sequence[_Example],
    known: Mapping[int, ExampleNgrams],
    hits: pa.Table,
    shards: Sequence[str],
    scripts: tuple[str, ...],
) -> Overlap:
    """Returns the overlap, given the n-grams of the examples by size, the hits of all shards, and the shards' paths."""
    matches, common, covered = list[tuple[int, Match]](), dict[int, int](), dict[int, I64]()
    for size, ngrams in known.items():
        some = hits.filter(pc.equal(hits["size"], size))
        counts = np.bincount(some["ngram"].to_numpy(), minlength=len(ngrams))
        rare = counts <= options.max_pages
        common[size] = int(np.count_nonzero(~rare))
        covered[size] = ngrams.coverage((counts > 0) & rare)
        some = some.filter(pa.array(rare[some["ngram"].to_numpy()]))
        rows = zip(*(some[name].to_pylist() for name in ("shard", "row", "url", "ngram")), strict=True)
        for (shard, row, url), page in groupby(rows, itemgetter(0, 1, 2)):
            found = np.array([ngram for *_, ngram in page], np.int64)
            for example, places in _places_by_example(ngrams, found):
                total = int(ngrams.totals[example])
                match = Match(
                    url=url,
                    shard=shards[shard],
                    row=row,
                    file=examples[example].file,
                    example=examples[example].line,
                    ngram=size,
                    shared=len(places),
                    total=total,
                    share=len(places) / total,
                    text=readable_words(_longest_text(ngrams, places), scripts),
                )
                matches.append((shard, match))
    matches.sort(key=lambda each: (each[0], each[1].row, each[1].ngram))
    found_matches = tuple(match for _, match in matches)
    files = [
        _count_file(file, size, examples, known[size], covered[size], found_matches)
        for file in dict.fromkeys(map(str, options.example_files))
        for size in options.ngrams
    ]
    return Overlap(tuple(files), found_matches, common)


def _places_by_example(ngrams: ExampleNgrams, found: I64) -> Iterator[tuple[int, I64]]:
    """Yields each example that has some of the found n-grams, and the places of these, sorted."""
    owners, places = ngrams.places(found)
    for example in np.unique(owners).tolist():
        yield example, places[owners == example]


def _longest_text(ngrams: ExampleNgrams, places: I64) -> str:
    """Returns the words of the longest run of consecutive places of n-grams, the first of several."""
    firsts = np.r_[0, np.flatnonzero(np.diff(places) != 1) + 1]
    lengths = np.diff(np.r_[firsts, len(places)])
    longest = int(np.argmax(lengths))
    return ngrams.words_at(int(places[firsts[longest]]), int(lengths[longest])).decode()


def _count_file(
    file: str, size: int, examples: Sequence[_Example], known: ExampleNgrams, covered: Any, matches: Sequence[Match]
) -> FileOverlap:
    own = np.array([each.file == file for each in examples], bool)
    totals, found = known.totals[own], covered[own]
    pages = {(match.shard, match.row) for match in matches if (match.file, match.ngram) == (file, size)}
    return FileOverlap(
        file=file,
        ngram=size,
        examples=len(totals),
        searched=int(np.count_nonzero(totals)),
        found=int(np.count_nonzero(found)),
        contaminated=int(np.count_nonzero((totals > 0) & (found >= CONTAMINATED * totals))),
        pages=len(pages),
    )


def _write_matches(matches: Sequence[Match], path: StoragePath) -> None:
    """Writes matches as Parquet. The file appears complete or not at all. Raises C4pipeError if it can't be written."""
    types: Mapping[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([pa.field(each.name, types[each.type], nullable=False) for each in fields(Match)])
    sink = pa.BufferOutputStream()
    with parquet_writer(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist([vars(match) for match in matches], schema))
    with explain_errors(f"{path} can't be written", "name another file with --output", C4pipeError):
        write_bytes(path, sink.getvalue().to_pybytes())
