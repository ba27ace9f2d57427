"""Makes the data of a report again, from the shards of a finished corpus."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from c4pipe.clean import WORK_FOLDER, examples, is_work_file, read_headers_of
from c4pipe.corpus import SCHEMA, Corpus, Shard, read_tables
from c4pipe.errors import UsageError
from c4pipe.io import StoragePath, list_names, storage_path
from c4pipe.report import report_data
from c4pipe.report.profile import Profiler
from c4pipe.runners import Flow, Progress, RunnerOptions, State, Step, control_totals, run_job


def rebuild_data(corpus: Corpus, folder: StoragePath, runner: RunnerOptions, progress: Progress) -> None:
    """Writes the `report.json` of a corpus. Its examples come from the work files in the corpus, where there are some.

    Args:
        corpus: the corpus; its shards are read.
        folder: the folder of the corpus, absolute: a worker may run in any folder.
        runner: what reads the shards.
        progress: shows that the job runs, and its end.

    Raises C4pipeError where a shard can't be read.
    """
    work = folder / WORK_FOLDER
    names = sorted(filter(is_work_file, list_names(work)))
    work_files = examples.choose_files(str(work / name) for name in names)
    clean_counts = {}
    with contextlib.suppress(UsageError):  # work files of another version: the report is made without them
        clean_counts = control_totals.add_reports(
            each.counts for each in read_headers_of(work / name for name in names)
        )
    shards = corpus.shards()

    def graph(flow: Flow) -> None:
        profiles = flow.do("Profile shard", flow.create("Shards", list(shards)), _ProfileShard())["profiles"]
        flow.do(
            "Write data",
            flow.fold("Add up", profiles, control_totals.add_reports),
            _WriteData(str(folder), sorted(work_files), clean_counts),
        )

    def look() -> State:
        return float(report_data.NAME in list_names(folder)), f"reading {len(shards):,} shards, {corpus.pages:,} pages"

    with progress.show("report", folder, look):
        run_job(graph, runner, len(shards), progress.runs_as)


class _ProfileShard(Step):
    """Shard -> the report with its profile."""

    outputs = ("profiles",)
    sums = ("profiles",)

    def process(self, element: Shard) -> Iterable[tuple[str, Any]]:
        profiler = Profiler(element.language, element.id.split)
        for pages in read_tables(element, SCHEMA.names):
            profiler.add(pages)
        yield "profiles", {"profiles": [profiler.result()]}


class _WriteData(Step):
    """The sum of the profiles -> nothing; `report.json` is written then."""

    def __init__(self, folder: str, work_files: list[str], clean_counts: Mapping[str, int]) -> None:
        self._folder, self._work_files, self._clean_counts = folder, work_files, clean_counts

    def process(self, element: control_totals.Report) -> Iterable[tuple[str, Any]]:
        of_clean = examples.gather_examples([storage_path(path) for path in self._work_files])
        data = report_data.make({**element, "examples": of_clean}, self._clean_counts)
        report_data.write(storage_path(self._folder), data)
        return ()
