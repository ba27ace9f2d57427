"""The command `report`: the page of a corpus that was finished without one, or by an earlier c4pipe."""

import argparse
import gzip
import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe import examples, manifest, report_data, report_view, totals
from c4pipe.console import printer, say
from c4pipe.diff_read import Corpus, open_corpus
from c4pipe.errors import UsageError
from c4pipe.flow import Flow, Step
from c4pipe.lock import only_run
from c4pipe.options import Engine
from c4pipe.profile import Profiler
from c4pipe.publish import WORK
from c4pipe.runners import run as run_job
from c4pipe.shards import SCHEMA
from c4pipe.storage import Place, names, parquet_source, place, write_text
from c4pipe.work_folder import is_work_file

_ROWS_AT_ONCE = 2048
_UNREADABLE = (pa.ArrowInvalid, OSError, EOFError, ValueError, KeyError, zlib.error)


def run(options: argparse.Namespace, engine: Engine) -> None:
    """Writes `report.html` of a corpus; where it has no `report.json`, that too, from its shards.

    Raises UsageError where the folder is no corpus, or has to be read and has TFRecord alone or a damaged shard.
    """
    folder: Place = options.corpus.absolute()
    made = manifest.read(folder)
    if made is None:
        raise UsageError(f"{options.corpus} has no {manifest.NAME}: give the folder of a finished corpus")
    with only_run(folder):
        data = report_data.read(folder)
        if data is None:
            _make_data(open_corpus(folder), engine)
            data = report_data.read(folder) or {}
        write_text(folder / report_view.NAME, report_view.page(made, data))
    if not options.quiet:
        say(printer(sys.stdout), f"report: {options.corpus / report_view.NAME}")


def _make_data(corpus: Corpus, engine: Engine) -> None:
    """Writes `report.json`; the examples are those of the work files, where `build` left them."""
    work = corpus.folder / WORK
    files = examples.choose(str(work / name) for name in names(work) if is_work_file(name))

    def graph(flow: Flow) -> None:
        shards = flow.create("Shards", [str(shard.file) for shard in corpus.shards])
        profiles = flow.do("Profile shard", shards, _ProfileShard())["profiles"]
        flow.do("Write data", flow.fold("Add up", profiles, totals.add), _WriteData(str(corpus.folder), sorted(files)))

    run_job(graph, engine, len(corpus.shards))


class _ProfileShard(Step):
    """Path of a shard -> the report with its profile."""

    outputs = ("profiles",)

    def process(self, element: str) -> Iterable[tuple[str, Any]]:
        file = place(element)
        split, number = file.name.split("-")[1:3]
        profiler = Profiler(file.parent.name, split, int(number))
        try:
            for pages in _pages(file):
                profiler.add(pages)
        except _UNREADABLE as error:
            raise UsageError(f"{file} can't be read: {error}") from error
        yield "profiles", {"profiles": [profiler.result()]}


class _WriteData(Step):
    """The sum of the profiles -> nothing; `report.json` is written then."""

    def __init__(self, folder: str, work_files: list[str]) -> None:
        self._folder, self._work_files = folder, work_files

    def process(self, element: totals.Report) -> Iterable[tuple[str, Any]]:
        of_clean = examples.gather([place(path) for path in self._work_files])
        report_data.write(place(self._folder), report_data.make({**element, "examples": of_clean}))
        return ()


def _pages(file: Place) -> Iterator[pa.Table]:
    """Yields the pages of a shard, some at a time."""
    if file.name.endswith(".parquet"):
        shard = pq.ParquetFile(parquet_source(file), pre_buffer=not isinstance(file, Path))
        for batch in shard.iter_batches(_ROWS_AT_ONCE, columns=SCHEMA.names):
            yield pa.Table.from_batches([batch])
        return
    with file.open("rb") if isinstance(file, Path) else file.open() as stored, gzip.open(stored) as lines:
        while rows := [json.loads(line) for line in islice(lines, _ROWS_AT_ONCE)]:
            yield pa.Table.from_pylist(rows, SCHEMA)
