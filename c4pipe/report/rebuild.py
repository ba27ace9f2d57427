"""The data of a report, made anew from the shards of a finished corpus."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.clean import examples
from c4pipe.clean.work_folder import WORK, is_work_file
from c4pipe.corpus.shard_writer import SCHEMA
from c4pipe.diff.keys import Corpus
from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath, names, parquet_source, storage_path
from c4pipe.report import report_data
from c4pipe.report.profile import Profiler
from c4pipe.runners import control_totals
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.progress import Progress, State
from c4pipe.runners.runner import RunnerOptions
from c4pipe.runners.runner import run as run_job

_ROWS_AT_ONCE = 2048


_UNREADABLE = (pa.ArrowInvalid, OSError, EOFError, ValueError, KeyError, zlib.error)


def rebuild_data(corpus: Corpus, folder: StoragePath, engine: RunnerOptions, progress: Progress) -> None:
    """Writes `report.json`; the examples are those of the work files, where `build` left them."""
    work = folder / WORK
    files = examples.choose(str(work / name) for name in names(work) if is_work_file(name))

    def graph(flow: Flow) -> None:
        shards = flow.create("Shards", [str(shard.file) for shard in corpus.shards])
        profiles = flow.do("Profile shard", shards, _ProfileShard())["profiles"]
        flow.do(
            "Write data",
            flow.fold("Add up", profiles, control_totals.add),
            _WriteData(str(folder), sorted(files)),
        )

    def look() -> State:
        return float(report_data.NAME in names(folder)), f"reading {len(corpus.shards):,} shards"

    with progress.show("report", folder, look):
        run_job(graph, engine, len(corpus.shards), progress.runs_as)


class _ProfileShard(Step):
    """Path of a shard -> the report with its profile."""

    outputs = ("profiles",)

    def process(self, element: str) -> Iterable[tuple[str, Any]]:
        file = storage_path(element)
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

    def process(self, element: control_totals.Report) -> Iterable[tuple[str, Any]]:
        of_clean = examples.gather([storage_path(path) for path in self._work_files])
        report_data.write(storage_path(self._folder), report_data.make({**element, "examples": of_clean}))
        return ()


def _pages(file: StoragePath) -> Iterator[pa.Table]:
    """Yields the pages of a shard, some at a time."""
    if file.name.endswith(".parquet"):
        shard = pq.ParquetFile(parquet_source(file), pre_buffer=not isinstance(file, Path))
        for batch in shard.iter_batches(_ROWS_AT_ONCE, columns=SCHEMA.names):
            yield pa.Table.from_batches([batch])
        return
    with file.open("rb") if isinstance(file, Path) else file.open() as stored, gzip.open(stored) as lines:
        while rows := [json.loads(line) for line in islice(lines, _ROWS_AT_ONCE)]:
            yield pa.Table.from_pylist(rows, SCHEMA)
