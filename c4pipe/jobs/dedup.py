"""Job 2, `dedup`: work files to a corpus. It plans, runs and verifies."""

from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, islice

from c4pipe.clean.dropped_pages import prepare_dropped
from c4pipe.clean.work_file import row_groups
from c4pipe.corpus import manifest as manifest_file
from c4pipe.corpus.funnel import empty_warning
from c4pipe.corpus.manifest import Manifest
from c4pipe.dedup import publish
from c4pipe.dedup.graph import dedup_work_files
from c4pipe.dedup.progress import watch_dedup
from c4pipe.dedup.publishers import STAGING
from c4pipe.dedup.step import DedupPlan
from c4pipe.errors import LostDataError
from c4pipe.filters.corpus_rules import NearDuplicate, StaleCapture
from c4pipe.io.lock import only_run
from c4pipe.io.log import LOG
from c4pipe.io.words import URL_SIZE, format_count, key_values, short, visible
from c4pipe.jobs.clean_plan import CleanPlan
from c4pipe.jobs.dedup_plan import CorpusPlan, note_files, plan_dedup
from c4pipe.jobs.logs import count_values, log_cost
from c4pipe.jobs.options import BuildOptions, ImportOptions
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.local_flow import Workers
from c4pipe.runners.runner import run_job, spill_folder
from c4pipe.runners.worker import cpu_seconds

_PROCESS_PAGES = 1000  # of work files: for fewer, to start a process takes longer than it saves


def dedup(plan: CorpusPlan, progress: Progress, workers: Workers | None = None, spill: str | None = None) -> Manifest:
    """Writes the corpus of a plan, and returns its manifest.

    A complete corpus of the same inputs and options is left as it is. A corpus with missing files is written again if
    some of these files are now cleaned.

    Args:
        plan: the corpus.
        workers: processes that also work for other jobs (see `runners.run_job`).
        spill: a folder of this machine for the bytes between two steps, which stays; None for one that is removed.

    Raises UsageError if the output folder holds something else, or if another run works there; LostDataError if the
    runner lost or repeated data.
    """
    if workers is None:  # build has noted it before
        note_files(plan.options, progress)
    with only_run(plan.options.folder):
        manifest = publish.find_complete(plan.options.folder, plan.identity, plan.missing)
        done, again = ([], plan.source_names) if manifest is None else (plan.source_names, [])
        prepare_dropped(plan.dropped, "dedup", done, again, progress)
        if manifest is None:
            if plan.taken_down:
                takedowns = format_count(len(plan.taken_down.takedowns), "takedown")
                progress.note(f"the pages of {takedowns} stay out of the corpus")
            _note_crawls(plan, progress)
            if ";" in plan.text_versions:
                progress.note(f"warning: several versions decide the text, as the manifest says: {plan.text_versions}")
            if plan.known and plan.recipe.find(NearDuplicate):
                progress.note("known corpora are compared by URLs and spans; near_duplicate compares new pages alone")
            before = cpu_seconds()
            token = publish.begin(
                plan.options.folder,
                plan.identity,
                plan.shard_files,
                clean_counts=plan.clean_counts,
                missing=plan.missing,
                text_versions=plan.text_versions,
                sources=plan.sources,
            )
            _run(plan, plan.parameters(token), progress, workers, spill)
            manifest = _verify(plan)
            _note_addresses(plan, manifest["counts"], progress)
            if plan.options.is_local:  # it uses the processes of this machine
                log_cost("dedup", cpu_seconds() - before, manifest["counts"].get("bytes.read", 0))
        elif not manifest["missing"]:
            progress.note_complete(plan.options.folder)
        LOG.info("dedup: %s", count_values(manifest["counts"]))
        if warning := empty_warning(plan.recipe, manifest["counts"]):
            LOG.warning(warning)
    if plan.options.index:
        from c4pipe.jobs.index import write_index

        write_index(plan.options.folder, plan.options, progress, workers)
    return manifest


def write_corpus(
    options: BuildOptions | ImportOptions, cleaned: CleanPlan, progress: Progress, workers: Workers | None = None
) -> Manifest:
    """Writes the corpus of files that are cleaned, and returns its manifest. Raises the errors of `dedup`."""
    manifest = dedup(plan_dedup(options, {file.name for file in cleaned.files}), progress, workers)
    known = {file["name"] for file in (*manifest["inputs"], *manifest["missing"])}
    if lost := [file.name for file in cleaned.files if file.name not in known]:
        files = f"{cleaned.file_count} {cleaned.recipe.input_format} files"
        raise LostDataError(f"{len(lost)} of {files} are not in the corpus: {lost[0]}, ...")
    return manifest


def _note_addresses(plan: CorpusPlan, counts: Mapping[str, int], progress: Progress) -> None:
    """Notes that ten documents or more share an address, such as `N/A`, or that over half have that of another one."""
    stale, read = counts.get(f"pages.dropped.{StaleCapture.name}", 0), counts.get("pages.read", 0)
    if plan.recipe.input_format != "text" or stale < 9:
        return
    tables = (table for path in plan.files.values() for table in row_groups(path, ["url"]))
    urls = chain.from_iterable(table["url"].drop_null().to_pylist() for table in tables)
    for url, number in Counter(islice(urls, 200_000)).most_common(1):  # memory
        if number >= 10 or 2 * stale > read:
            progress.note(
                f"{stale:,} of {read:,} documents were left out, as another one has their address, most often "
                f"{visible(short(url, URL_SIZE))}: give another --url-column, or none to make addresses"
            )


def _note_crawls(plan: CorpusPlan, progress: Progress) -> None:
    """Logs the crawls whose pages are compared separately; notes that all files without a crawl count as one crawl."""
    near = plan.recipe.find(NearDuplicate)
    if near is None or near.within != "crawl":
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


def _run(
    plan: CorpusPlan, parameters: DedupPlan, progress: Progress, workers: Workers | None, folder: str | None
) -> None:
    """Runs the graph of job 2, whose last step publishes the corpus."""
    output, runner, size = plan.options.folder, plan.options, parameters.group
    files = [
        (file, str(path.absolute()), header.counts.get("pages.cleaned", 0) > 0)
        for file, (path, header) in enumerate(zip(plan.files.values(), plan.headers, strict=True))
    ]
    groups = [(first // size, files[first : first + size]) for first in range(0, len(files), size)]
    pages = plan.page_counts
    with nullcontext(folder) if folder else spill_folder(runner, output.absolute() / STAGING) as spill:

        def graph(flow: Flow) -> None:
            dedup_work_files(flow, groups, replace(parameters, spill=spill))

        with watch_dedup(progress, output, plan.shard_files, spill, pages):
            run_job(graph, runner, runner.useful_tasks(len(groups), pages["urls"], _PROCESS_PAGES), progress, workers)


def _verify(plan: CorpusPlan) -> Manifest:
    """Returns the manifest of the corpus. Raises LostDataError if the last step has not published it."""
    manifest = manifest_file.read_manifest(plan.options.folder)
    if manifest is None or not publish.has_inputs(manifest, plan.identity, plan.missing):
        raise LostDataError("the runner ended without the last of its steps; no corpus was written")
    return manifest
