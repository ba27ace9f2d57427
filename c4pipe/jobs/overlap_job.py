"""Which pages of a corpus share word n-grams with examples of evaluation sets. The command `overlap`.

GPT-3 (Brown et al. 2020, appendix C) searches for n-grams of 13 words, and ignores those that are in more than ten
documents. PaLM (Chowdhery et al. 2022, section 8) takes an example for contaminated if at least 70 % of its 8-grams
are in the training data. Both are counted here.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from c4pipe.corpus.opened import Corpus, open_language
from c4pipe.corpus.reader import Shard
from c4pipe.errors import LostDataError, UsageError
from c4pipe.filters.example_ngrams import ExampleNgrams
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.jobs.overlap_matches import (
    ExampleNames,
    Match,
    check_output,
    make_output_folder,
    page_counts,
    shard_matches,
    write_matches,
)
from c4pipe.jobs.overlap_step import Examples, FindSharedNgrams, read_hits, save_examples
from c4pipe.recipes.evaluation_lists import read_examples
from c4pipe.runners.flow import Flow
from c4pipe.runners.progress import Progress, ProgressEvent
from c4pipe.runners.runner import run_job
from c4pipe.runners.runner_options import RunnerOptions

NGRAMS = (8, 13)
"""The sizes of n-grams, in words, of PaLM and of GPT-3."""

MAX_PAGES = 10
"""An n-gram on more pages is ignored, as in GPT-3."""

CONTAMINATED = 0.7
"""An example of whose n-grams at least this share is in the corpus is contaminated, as in PaLM."""


@dataclass(frozen=True)
class OverlapOptions:
    """What to compare.

    Attributes:
        corpus: the folder of a corpus, or of one of its languages.
        against: files of examples: JSON Lines or plain text, gzipped or not, or Parquet.
        ngrams: sizes of n-grams in words.
        fields: the fields of JSON Lines, or columns, to take; () for all texts.
        max_pages: the most pages on which an n-gram can be without being ignored.
        output: a file for the matches: .parquet, .jsonl or .jsonl.gz; None to write none.
        workers: processes on this machine; None for one a core.
    """

    corpus: str
    against: tuple[Path, ...]
    ngrams: tuple[int, ...] = NGRAMS
    fields: tuple[str, ...] = ()
    max_pages: int = MAX_PAGES
    output: StoragePath | None = None
    workers: int | None = None


@dataclass(frozen=True)
class FileOverlap:
    """What a corpus shares with the examples of one file, by n-grams of one size.

    Attributes:
        file: the file, as it was given.
        ngram: the words of an n-gram.
        examples: the examples of the file.
        searched: those that have an n-gram; the others are too short.
        found: those that share an n-gram with a page.
        contaminated: those of whose n-grams at least 70 % are in the corpus, on any pages.
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
class Overlap:
    """What a corpus shares with evaluation examples.

    Attributes:
        files: the counts of each file and each size of n-grams, in the order in which they were given.
        matches: each page with each example of which it has n-grams, by shard, row, size and example.
        common: the number of n-grams that were ignored because they are on too many pages, by size.
    """

    files: tuple[FileOverlap, ...]
    matches: tuple[Match, ...]
    common: Mapping[int, int]

    def top_pages(self, count: int) -> list[tuple[str, int]]:
        """Returns the pages that share n-grams with the most examples: the URL of each, and the number of examples."""
        pairs = {(match.url, match.file, match.example) for match in self.matches}
        pages = Counter(url for url, _, _ in pairs)
        return sorted(pages.items(), key=lambda page: (-page[1], page[0]))[:count]


def find_overlap(
    corpus: str | os.PathLike[str],
    against: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    ngrams: Sequence[int] = NGRAMS,
    fields: Sequence[str] = (),
    max_pages: int = MAX_PAGES,
    output: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Callable[[ProgressEvent], None] | None = None,
) -> Overlap:
    """Finds the pages of a corpus that share word n-grams with examples of evaluation sets. The command
    `c4pipe overlap`.

    Args:
        corpus: the folder of a finished corpus, or of one of its languages; also a URL of a store or a web server.
        against: a file of examples, or several: JSON Lines (.jsonl, .ndjson, .json) or plain text, gzipped or
            not; or Parquet (.parquet).
        ngrams: the sizes of n-grams, in words.
        fields: the fields of JSON Lines, or columns, to take; () for all texts of a line or row. No n-gram is in two
            fields.
        max_pages: an n-gram that is on more pages than this is ignored.
        output: a file for the matches, whose name ends in .parquet, .jsonl or .jsonl.gz; None to write none.
        workers: processes on this machine; None for one a core.
        progress: is called about once a second with a `ProgressEvent`, in a thread of its own.

    Raises UsageError for an argument that can't be met, before any page is read; C4pipeError where a shard can't be
    read, or the matches can't be written.
    """
    options = OverlapOptions(
        corpus=os.fspath(corpus),
        against=tuple(map(Path, [against] if isinstance(against, str | os.PathLike) else against)),
        ngrams=tuple(ngrams),
        fields=tuple(fields),
        max_pages=max_pages,
        output=None if output is None else storage_path(os.fspath(output)),
        workers=workers,
    )
    return overlap(options, Progress(progress))


@dataclass
class _Examples:
    """All examples: their fields, and where they are from."""

    texts: list[tuple[bytes, ...]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def overlap(options: OverlapOptions, progress: Progress) -> Overlap:
    """Finds what a corpus shares with examples, and writes the matches if a file is named for them.

    Errors are those of `find_overlap`.
    """
    _check(options)
    corpus = open_language(options.corpus)
    examples = _read(options)
    known = {size: ExampleNgrams(examples.texts, size) for size in options.ngrams}
    if not any(len(each) for each in known.values()):
        raise UsageError(
            f"no text of {options.against[0]} has {min(options.ngrams)} words: give longer examples, "
            "or a smaller number with --ngrams"
        )
    if options.output is not None:
        make_output_folder(options.output)
    with tempfile.TemporaryDirectory(prefix="c4pipe-overlap-") as folder:
        hits = _find(corpus, examples.texts, options, progress, Path(folder))
        found = _overlap(options, examples, known, hits)
    if options.output is not None:
        write_matches(found.matches, options.output)
    return found


def _check(options: OverlapOptions) -> None:
    """Raises UsageError for an option that can't be met."""
    sizes = options.ngrams
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        numbers = ",".join(map(str, sizes))
        raise UsageError(f"--ngrams {numbers}: give numbers of words, each at least 1 and each once, such as 8,13")
    if options.max_pages < 1:
        raise UsageError(f"--max-pages {options.max_pages}: give a number of pages, at least 1")
    if not options.against:
        raise UsageError("no file of examples is given: name one or more with --against")
    if options.output is not None:
        check_output(options.output)


def _read(options: OverlapOptions) -> _Examples:
    examples = _Examples()
    for path in options.against:
        for number, fields in read_examples(path, options.fields):
            examples.texts.append(fields)
            examples.files.append(str(path))
            examples.lines.append(number)
    return examples


def _find(
    corpus: Corpus, examples: Examples, options: OverlapOptions, progress: Progress, folder: Path
) -> dict[str, Path]:
    """Searches all shards, and returns the file of the hits of each, by the shard's path, in the order of shards."""
    save_examples(examples, folder / "examples.json")
    targets = {shard: folder / f"{number:06}.arrow" for number, shard in enumerate(corpus.shards())}
    tasks: list[tuple[Shard, str]] = [(shard, str(target)) for shard, target in targets.items()]
    step = FindSharedNgrams(str(folder / "examples.json"), options.ngrams, options.max_pages)

    def graph(flow: Flow) -> None:
        flow.do("Find shared n-grams", flow.create("Shards", tasks), step)

    def written() -> int:
        return sum(target.exists() for target in targets.values())

    with progress.wait("overlap", folder, len(tasks), written):
        if tasks:
            run_job(graph, RunnerOptions(workers=options.workers), len(tasks), progress.runs_as)
    if written() < len(targets):
        raise LostDataError(f"only {written()} of {len(targets)} shards were searched: run the command again")
    return {shard.path: target for shard, target in targets.items()}


def _overlap(
    options: OverlapOptions, examples: _Examples, known: Mapping[int, ExampleNgrams], hits: Mapping[str, Path]
) -> Overlap:
    counts = page_counts(known, map(read_hits, hits.values()))
    rare = {size: some <= options.max_pages for size, some in counts.items()}
    names = ExampleNames(examples.files, examples.lines)
    matches = [
        match for shard, file in hits.items() for match in shard_matches(shard, read_hits(file), known, rare, names)
    ]
    common = {size: int(np.count_nonzero(~each)) for size, each in rare.items()}
    covered = {size: known[size].coverage((counts[size] > 0) & rare[size]) for size in known}
    files = [
        _file_overlap(file, size, examples, known[size], covered[size], matches)
        for file in dict.fromkeys(map(str, options.against))
        for size in options.ngrams
    ]
    return Overlap(tuple(files), tuple(matches), common)


def _file_overlap(
    file: str, size: int, examples: _Examples, known: ExampleNgrams, covered: Any, matches: Sequence[Match]
) -> FileOverlap:
    own = np.array([each == file for each in examples.files], bool)
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
