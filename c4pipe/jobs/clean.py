"""Job 1, `clean`: WET files to work files, on the runner that the options name."""

from contextlib import ExitStack

from c4pipe.io.lock import has_locks, only_run
from c4pipe.io.paths import storage_path
from c4pipe.jobs.clean_plan import CleanPlan, prepare_work
from c4pipe.jobs.clean_run import finish_work, largest_first, run_clean
from c4pipe.jobs.logs import log_cost
from c4pipe.jobs.options import CleanOptions
from c4pipe.native import kernels
from c4pipe.runners.events import Progress
from c4pipe.runners.local_flow import Workers
from c4pipe.runners.table import find_runner
from c4pipe.runners.worker import cpu_seconds

NOT_COMPILED = "the C extensions are not compiled, so clean takes about 3 times as long: see docs/install.md"


def clean(
    plan: CleanPlan, progress: Progress, workers: Workers | None = None, locks: ExitStack | None = None
) -> dict[str, int]:
    """Writes a work file for each open file of a plan, and returns the counts over all files.

    A file that can't be downloaded, or has no record, is recorded as missing in the work folder; the next run tries it
    again. Files with records but without a page are named in a note.
    `workers` are processes that also work for other jobs (see `runners.run_job`). `locks` keeps the folders locked for
    the next job: `c4pipe status` sees no gap between the two.

    Raises UsageError if an existing work file is of another recipe or input, or if another run works in the folder;
    C4pipeError if a file can't be read or written, if too many are missing, or if the inputs hold no page;
    LostDataError if the runner ended before all files were cleaned; JobSubmitted as `clean_on_slurm`.
    """
    for text in plan.notes:
        progress.note(text)
    if (cache := plan.options.network.cache) and not has_locks(cache):
        progress.note(f"--cache {cache}: its file system has no locks (flock), so downloaded files are not kept")
    if find_runner(plan.options.runner).submits:
        from c4pipe.jobs.slurm import clean_on_slurm

        return clean_on_slurm(plan, progress)
    annotate = plan.options.annotation
    with ExitStack() as own_locks:
        locks = locks or own_locks
        locks.enter_context(only_run(plan.options.work_folder))
        if annotate:
            locks.enter_context(only_run(storage_path(annotate.folder)))
        state = prepare_work(plan, progress)
        tasks = largest_first((*state.missing, *state.open))
        before, tally = cpu_seconds(), None
        if tasks:
            if plan.options.is_local and "python" in kernels().values():
                progress.note(NOT_COMPILED)
            tally = run_clean(plan, tasks, progress, workers)
        elif isinstance(plan.options, CleanOptions):  # else job 2 follows
            progress.note_complete(plan.work, "give another --work, or delete it")
        spent = cpu_seconds() - before
        counts = finish_work(plan, progress, tally)
        if tasks and not state.done and plan.options.is_local:  # the whole job ran in this call
            log_cost("clean", spent, counts.get("bytes.read", 0))
        return counts
