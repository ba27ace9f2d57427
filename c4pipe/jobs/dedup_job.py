"""Job 2, `dedup`: work files to a corpus. It plans, runs and verifies."""

from collections import Counter
from dataclasses import replace
from typing import Any

from c4pipe.clean import dropped_pages, missing
from c4pipe.corpus import manifest as manifest_file
from c4pipe.dedup import publish
from c4pipe.dedup.graph import dedup_work_files
from c4pipe.dedup.progress import watch_dedup
from c4pipe.dedup.publishers import STAGING
from c4pipe.dedup.step import DedupPlan
from c4pipe.errors import LostDataError
from c4pipe.io.lock import only_run
from c4pipe.jobs.corpus_plan import CorpusPlan
from c4pipe.jobs.dropped_notes import note_unaudited
from c4pipe.jobs.logs import LOG, key_values, log_cost
from c4pipe.report.nothing_kept import nothing_kept
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.local_flow import Workers
from c4pipe.runners.runner import run_job, spill_folder
from c4pipe.runners.worker import cpu_seconds


def dedup(plan: CorpusPlan, progress: Progress, workers: Workers | None = None) -> dict[str, Any]:
    """Writes the corpus of a plan, and returns its manifest.

    A complete corpus of the same inputs and options is left as it is. A corpus with missing files is written again once
    more of them are there. `workers` are processes that work for other jobs, too (see `runners.run_job`).

    Raises UsageError if the output folder holds something else, or if another run works there; LostDataError if the
    runner lost or repeated data.
    """
    with only_run(plan.options.output):
        manifest = publish.prepare(plan.options.output, plan.identity)
        _note_dropped(plan, manifest is not None, progress)
        if manifest is None:
            _note_crawls(plan, progress)
            before = cpu_seconds()
            _run(plan, _begin(plan), progress, workers)
            manifest = _verify(plan)
            if plan.options.runner.runner is None:  # its processes are those of this machine
                log_cost("dedup", cpu_seconds() - before, manifest["counts"].get("bytes.read", 0))
        LOG.info("dedup: %s", key_values(manifest["counts"]))
        if warning := nothing_kept(plan.recipe, manifest["counts"]):
            LOG.warning(warning)
        return manifest


def _note_dropped(plan: CorpusPlan, done: bool, progress: Progress) -> None:
    """Removes dropped pages that an earlier run kept; of a corpus that is done, notes that there are none."""
    keep = plan.options.keep_dropped
    if keep and done:
        note_unaudited(keep, plan.sources, "dedup", progress)
    elif keep:
        dropped_pages.clear(keep, plan.sources, "dedup")


def _note_crawls(plan: CorpusPlan, progress: Progress) -> None:
    """Logs the crawls whose pages are compared each alone; notes that files without a crawl count as one."""
    if plan.recipe.parameters("near_duplicate").get("within") != "crawl":
        return
    crawls = Counter(header.crawl for header in plan.headers)
    unnamed = crawls.pop("", 0)
    LOG.info(
        "near_duplicate: files of each crawl: %s", key_values({**dict(sorted(crawls.items())), "unnamed": unnamed})
    )
    if unnamed:
        progress.note(
            f"{unnamed:,} of {len(plan.headers):,} {plan.recipe.input_format} files name no crawl in their first "
            "record (isPartOf): near_duplicate takes all of them as one crawl"
        )


def _begin(plan: CorpusPlan) -> DedupPlan:
    """Makes the output folder ready, and returns the parameters of the steps."""
    token = publish.begin(
        plan.options.output,
        plan.identity,
        plan.shard_files,
        clean_counts=plan.clean_counts,
        missing=missing.missing_files(plan.options.work),
    )
    return plan.parameters(token)


def _run(plan: CorpusPlan, parameters: DedupPlan, progress: Progress, workers: Workers | None) -> None:
    """Runs the graph of job 2, whose last step publishes the corpus."""
    output, runner, size = plan.options.output, plan.options.runner, parameters.group
    files = list(enumerate(str(path.absolute()) for path in plan.files.values()))
    groups = [(first // size, files[first : first + size]) for first in range(0, len(files), size)]
    pages = plan.page_counts
    with spill_folder(runner, output.absolute() / STAGING) as spill:

        def graph(flow: Flow) -> None:
            dedup_work_files(flow, groups, replace(parameters, spill=spill))

        with watch_dedup(progress, output, plan.shard_files, spill, pages):
            run_job(graph, runner, len(groups), progress.runs_as, workers)


def _verify(plan: CorpusPlan) -> dict[str, Any]:
    """Returns the manifest of the corpus. Raises LostDataError if the last step has not published it."""
    manifest = manifest_file.read_manifest(plan.options.output)
    if manifest is None or not publish.has_all_inputs(manifest, plan.identity):
        raise LostDataError("the runner ended without the last of its steps; no corpus was written")
    return manifest
