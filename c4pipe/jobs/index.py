"""Writes the index of a finished corpus, by which later corpora leave out its pages and spans."""

from dataclasses import replace

from c4pipe.corpus.opened import open_corpus
from c4pipe.dedup.index import IndexPlan, index_shards
from c4pipe.dedup.known import CONTENT, INDEX, Index, digests_of, read_bucket, read_index
from c4pipe.errors import DamagedFileError, LostDataError, UsageError
from c4pipe.io.atomic import clear_abandoned, make_folder
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath, list_names, remove_tree
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.local_flow import Workers
from c4pipe.runners.runner import check_runner, run_job, spill_folder
from c4pipe.runners.runner_options import RunnerOptions


def write_index(
    folder: StoragePath, runner: RunnerOptions, progress: Progress, workers: Workers | None = None
) -> Index:
    """Writes the index of a finished corpus into the folder of the corpus, and returns it.

    An intact index of the same shards is left as it is, after all of its buckets are read. `workers` are processes that
    also work for other jobs (see `runners.run_job`).

    Raises UsageError for a folder that is no corpus, C4pipeError if a shard can't be read or a file can't be
    written, LostDataError if the runner lost data.
    """
    check_runner(runner)
    corpus = open_corpus(folder)
    plan = IndexPlan.of(corpus)
    target = folder / INDEX
    with only_run(folder):
        if index := _find_intact(folder, plan.shards):
            remove_tree(target / "_spill")  # left by a run that was stopped at its very end
            progress.note_complete(target, "delete it")
            return index
        (target / CONTENT).unlink(missing_ok=True)
        remove_tree(target)
        make_folder(target)
        shards = corpus.shards()
        with (
            spill_folder(runner, target) as spill,
            progress.wait("index", folder, plan.files, lambda: len(list_names(target) - {CONTENT, "_spill"})),
        ):

            def graph(flow: Flow) -> None:
                index_shards(flow, shards, replace(plan, corpus=str(folder.absolute()), spill=spill))

            run_job(graph, runner, len(shards), progress, workers)
        remove_tree(target / "_spill")
        clear_abandoned(target)
        found = read_index(folder)
    if found is None:
        raise LostDataError("the runner ended without the last of its steps; no index was written")
    return found[0]


def _find_intact(folder: StoragePath, shards: str) -> Index | None:
    """Returns the index of a corpus if it is of these shards, and all buckets are intact."""
    try:
        if (found := read_index(folder)) is None or found[0]["shards"] != shards:
            return None
        for kind, buckets in found[0]["buckets"].items():
            for number in range(len(buckets)):
                read_bucket(folder, digests_of(found[0], kind), kind, number)
    except (DamagedFileError, UsageError):
        return None
    return found[0]
