"""`build` and `import`: job 1, then job 2."""

from contextlib import ExitStack

from c4pipe.clean.work_folder import is_work_file
from c4pipe.corpus.manifest import Manifest
from c4pipe.dedup import publish
from c4pipe.dedup.known import find_known
from c4pipe.dedup.taken_down import find_taken_down
from c4pipe.errors import UsageError
from c4pipe.io.paths import list_names
from c4pipe.jobs.clean import clean
from c4pipe.jobs.clean_plan import CleanPlan, plan_clean
from c4pipe.jobs.dedup import write_corpus
from c4pipe.jobs.dedup_plan import check_corpus_options, corpus_identity, note_files
from c4pipe.jobs.options import BuildOptions, ImportOptions
from c4pipe.runners.events import Progress
from c4pipe.runners.local_flow import Workers
from c4pipe.runners.table import find_runner


def build(options: BuildOptions | ImportOptions, progress: Progress) -> Manifest:
    """Cleans files, writes their corpus, and returns its manifest. Raises the errors of `clean` and `dedup`."""
    check_corpus_options(options.folder, options.shards)
    return build_plan(options, plan_clean(options, progress), progress)


def build_plan(options: BuildOptions | ImportOptions, plan: CleanPlan, progress: Progress) -> Manifest:
    """Works as `build`, given the plan of job 1: job 2 is planned when the work files exist."""
    _check_folders(options, plan)
    note_files(options, progress)
    if find_runner(options.runner).submits:
        from c4pipe.jobs.slurm import build_on_slurm

        return build_on_slurm(options, plan, progress)
    with Workers() as workers, ExitStack() as locks:
        clean(plan, progress, workers, locks)
        return write_corpus(options, plan, progress, workers)


def _check_folders(options: BuildOptions | ImportOptions, plan: CleanPlan) -> None:
    """Raises UsageError if the output folder holds something else, or the work folder holds work files of other inputs,
    which job 2 would take, too. Changes nothing.
    """
    inputs = list(dict.fromkeys((file.name, file.size, None) for file in plan.files))
    known = find_known(options.known_corpora, plan.recipe)
    lists, taken_down = plan.listed.lists.digests, find_taken_down(options.folder)
    identity = corpus_identity(plan.recipe, lists, inputs, options.formats, known=known, taken_down=taken_down)
    publish.check_folder(options.folder, identity)
    work, own = options.work_folder, {plan.target(file).name for file in plan.files}
    others = sorted(name for name in list_names(work) - own if is_work_file(name))
    if others:
        raise UsageError(
            f"{work} also holds work files of other inputs ({others[0]}, ...): "
            "use them all with c4pipe dedup, delete the folder, or give build another --work"
        )
