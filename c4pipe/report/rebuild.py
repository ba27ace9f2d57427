"""Makes the data of a report again, from the shards of a finished corpus."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from c4pipe.clean import examples
from c4pipe.clean.work_folder import WORK_FOLDER, is_work_file, read_headers_of
from c4pipe.corpus.formats.shard_format import shard_schema
from c4pipe.corpus.opened import Corpus
from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.errors import UsageError
from c4pipe.io.json_files import write_json
from c4pipe.io.paths import StoragePath, list_names, storage_path
from c4pipe.report.data import REPORT_DATA, DedupData, make_dedup_data, make_report_data, read_dedup_data
from c4pipe.report.profile import Profiler
from c4pipe.runners import control_totals
from c4pipe.runners.events import Progress, Status
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.runner import run_job
from c4pipe.runners.runner_options import RunnerOptions


def rebuild_data(corpus: Corpus, folder: StoragePath, runner: RunnerOptions, progress: Progress) -> None:
    """Writes the `report.json` of a corpus.

    The findings of job 2 come from `dedup.json`, the examples of job 1 from the work files of the folder. `folder` is
    absolute: a worker may run in any folder.

    Raises C4pipeError if a shard can't be read, UsageError if `dedup.json` can't be used.
    """
    found = read_dedup_data(folder) or make_dedup_data({}, _clean_counts(folder))
    work = folder / WORK_FOLDER
    work_files = examples.choose_files(str(work / name) for name in _work_files(work))
    shards = corpus.shards()

    def graph(flow: Flow) -> None:
        profiles = flow.map("Profile shard", flow.create("Shards", list(shards)), _ProfileShard())["profiles"]
        flow.map(
            "Write data",
            flow.combine("Add up", profiles, control_totals.add_reports),
            _WriteData(str(folder), sorted(work_files), found),
        )

    def look() -> Status:
        words = f"reading {len(shards):,} shards, {corpus.pages:,} pages"
        return Status(float(REPORT_DATA in list_names(folder)), words)

    with progress.show("report", folder, look):
        run_job(graph, runner, len(shards), progress)


def _work_files(work: StoragePath) -> list[str]:
    return sorted(filter(is_work_file, list_names(work)))


def _clean_counts(folder: StoragePath) -> Mapping[str, int]:
    """Returns the counters of job 1 from the work files in a corpus; none if the files have another version."""
    work = folder / WORK_FOLDER
    with contextlib.suppress(UsageError):
        counts: dict[str, int] = control_totals.add_reports(
            each.counts for each in read_headers_of(work / name for name in _work_files(work))
        )
        return counts
    return {}


class _ProfileShard(Step):
    """Shard -> the report with its profile."""

    outputs = ("profiles",)
    sums = ("profiles",)

    def process(self, element: Shard) -> Iterable[tuple[str, Any]]:
        profiler = Profiler(element.language, element.id.split)
        for pages in read_tables(element, shard_schema(element.columns).names):
            profiler.add(pages)
        yield "profiles", {"profiles": [profiler.result()]}


class _WriteData(Step):
    """The sum of the profiles -> nothing; `report.json` is written then."""

    def __init__(self, folder: str, work_files: list[str], found: DedupData) -> None:
        self._folder, self._work_files, self._found = folder, work_files, found

    def process(self, element: control_totals.Report) -> Iterable[tuple[str, Any]]:
        of_clean = examples.gather_examples([storage_path(path) for path in self._work_files])
        data = make_report_data(element.get("profiles", ()), self._found, of_clean)
        write_json(storage_path(self._folder) / REPORT_DATA, data)
        return ()
