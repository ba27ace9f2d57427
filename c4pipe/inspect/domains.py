"""Counts the pages of a finished corpus by registered domain: all domains, sorted on disk, in a Parquet file.

Workers count the domains of each shard. Then rows with the same domain are added up, and sorted by their bytes: both
sorts write runs of rows, and merge them, so memory hardly grows with the number of domains.
"""

import heapq
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather

from c4pipe.corpus.opened import Corpus
from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.io.atomic import AtomicFile, FileBatch
from c4pipe.io.json_files import encode_checked_json
from c4pipe.io.parquet_footer import parquet_writer
from c4pipe.io.paths import StoragePath
from c4pipe.lists.addresses import ascii_host
from c4pipe.report.eu_summary import MOST_OF_SME, DomainTotals
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.scan import Scan, ScanStep
from c4pipe.text.urls import PublicSuffixes, host_of

_NAMES = ("domain", "pages", "bytes", "tokens")
_ROWS_OF_RUN = 1 << 20  # a merge has a thousand rows of each run in memory
_ROWS_OF_TABLE = 1 << 16

Row = tuple[Any, ...]


def write_domains(
    corpus: Corpus, file: StoragePath | None, rules: list[str], runner: RunnerOptions, progress: Progress, model: Any
) -> DomainTotals:
    """Writes the domains of a corpus as Parquet, by bytes of text (the most first), then by name; returns the totals.

    Args:
        corpus: an open corpus.
        file: the Parquet file, which appears complete or not at all; None for the totals alone.
        rules: of a list of public suffixes (`url_rules.load_public_suffixes`).
        runner: the runner that reads the shards.
        progress: shows how many shards are read.
        model: the `TokenizerFile` of the tokens to count; None for pages and bytes alone.

    Raises C4pipeError if a shard can't be read, OSError if a file can't be written.
    """
    with tempfile.TemporaryDirectory(prefix="c4pipe-domains-") as name, FileBatch() as files:
        shards = {f"{number:06}.json": shard for number, shard in enumerate(corpus.shards())}
        scan = Scan("Count domains", _CountDomains(rules, model), Path(name), shards)
        scan.run(runner, progress, "domains")
        times = set[str]()

        def rows() -> Iterator[Row]:
            for part in scan.parts():
                times.update(part["times"])
                yield from map(tuple, part["rows"])

        files.append(AtomicFile(file or Path(name, "domains.parquet")))
        totals = sort_domains(rows(), Path(name), files[0].path, _NAMES if model else _NAMES[:3])
    return totals._replace(times=sorted(times))


def sort_domains(rows: Iterator[Row], folder: Path, target: Path, names: Sequence[str]) -> DomainTotals:
    """Adds up rows of domains, and writes the columns `names`, sorted, as Parquet. Sorted runs wait in a folder."""
    by_size = _sort(_add_up(_sort(rows, _NAMES, folder / "by_name")), ("order", *_NAMES), folder / "by_size")
    schema = pa.schema([pa.field(name, pa.int64() if name != "domain" else pa.string(), False) for name in names])
    domains, largest = 0, list[str]()
    with parquet_writer(target, schema) as writer:
        while some := list(islice(by_size, _ROWS_OF_TABLE)):
            writer.write_table(_table(some, ("order", *_NAMES)).select(names).cast(schema))
            named = [domain for _, domain, *_ in some if domain]
            domains += len(named)
            largest += named[: MOST_OF_SME - len(largest)]
    return DomainTotals(domains, largest)


def _add_up(rows: Iterator[Row]) -> Iterator[Row]:
    """Yields the sum of the rows of each domain, after the number by which the rows are sorted then."""
    for domain, same in groupby(rows, itemgetter(0)):
        pages, size, tokens = map(sum, list(zip(*same, strict=True))[1:])
        yield -size, domain, pages, size, tokens


def _sort(rows: Iterator[Row], names: Sequence[str], folder: Path) -> Iterator[Row]:
    folder.mkdir()
    runs = list[Path]()
    while some := sorted(islice(rows, _ROWS_OF_RUN)):
        runs.append(folder / str(len(runs)))
        feather.write_feather(_table(some, names), str(runs[-1]), compression="zstd", chunksize=1 << 10)
        some.clear()
    return heapq.merge(*map(_read_run, runs))


def _table(rows: list[Row], names: Sequence[str]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=names)


def _read_run(run: Path) -> Iterator[Row]:
    number, count = 0, 1
    while number < count:
        with pa.OSFile(str(run)) as file, pa.ipc.open_file(file) as batches:  # closed again: there may be thousands
            count, columns = batches.num_record_batches, batches.get_batch(number).columns
        yield from zip(*(column.to_pylist() for column in columns), strict=True)
        number += 1


class _CountDomains(ScanStep[Shard, dict[str, Any]]):
    """(shard, path of its domains) -> nothing; the counts of its domains are written there."""

    def __init__(self, rules: Sequence[str], model: Any) -> None:
        self._rules, self._model = rules, model

    def setup(self) -> None:
        suffixes = PublicSuffixes(self._rules)
        self._domain = lru_cache(1 << 16)(lambda host: suffixes.registered_domain(host) or host)
        self._encode = self._model.load().encode if self._model else None

    def scan(self, item: Shard) -> bytes:
        """Returns the domains of a shard, and the first and last time of a page."""
        counts = defaultdict[str, list[int]](lambda: [0, 0, 0])
        times = set[str]()
        for table in read_tables(item, ("url", "text", "timestamp")):
            times |= set(pc.min_max(table["timestamp"]).as_py().values())
            for pages in table.to_batches(32):  # texts that are tokenized together
                urls, texts = pages["url"].to_pylist(), pages["text"]
                tokens = self._encode(texts.to_pylist(), urls).sizes.tolist() if self._encode else [0] * len(urls)
                for url, size, number in zip(urls, pc.binary_length(texts).to_pylist(), tokens, strict=True):
                    host = ascii_host(host_of(url).partition("\\")[0]) if "://" in url else ""
                    count = counts[self._domain(host)]
                    count[:] = count[0] + 1, count[1] + size, count[2] + number
        rows = [(domain, *count) for domain, count in counts.items()]
        return encode_checked_json({"rows": rows, "times": [min(times), max(times)] if times else []})
