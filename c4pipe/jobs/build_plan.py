"""The plan of `build` and `import`, and the end of both: a corpus of the files that are cleaned."""

from dataclasses import dataclass

from c4pipe.clean.work_folder import is_work_file
from c4pipe.corpus.manifest import Manifest
from c4pipe.dedup import publish
from c4pipe.dedup.known import find_known
from c4pipe.errors import LostDataError, UsageError
from c4pipe.io.paths import list_names
from c4pipe.jobs.clean_plan import CleanPlan, check_annotate_folder, plan_clean
from c4pipe.jobs.dedup import dedup
from c4pipe.jobs.dedup_plan import check_corpus_options, corpus_identity, plan_dedup
from c4pipe.jobs.options import BuildOptions, ImportOptions
from c4pipe.runners.events import Progress
from c4pipe.runners.local_flow import Workers


@dataclass(frozen=True)
class BuildPlan:
    """The plan of `build`: it has the plan of job 1. The plan of job 2 is made when the work files exist.

    Attributes:
        options: what the user asked for.
        clean: the plan of job 1.
    """

    options: BuildOptions | ImportOptions
    clean: CleanPlan


def plan_build(options: BuildOptions | ImportOptions, progress: Progress | None = None) -> BuildPlan:
    """Checks the options of both jobs, and looks up their recipe, lists and files. `progress` is as in `plan_clean`.

    Changes nothing. Raises UsageError for an option that can't be met, and if the folders hold something else.
    """
    check_corpus_options(options.folder, options.shards)
    check_annotate_folder(options, options.folder)
    plan = plan_clean(options, progress)
    inputs = list(dict.fromkeys((file.name, file.size, None) for file in plan.files))
    known = find_known(options.known_corpora, plan.recipe)
    identity = corpus_identity(plan.recipe, plan.lists.digests, inputs, options.formats, known=known)
    publish.check_folder(options.folder, identity)
    _check_work(plan)
    return BuildPlan(options, plan)


def write_corpus(plan: BuildPlan, progress: Progress, workers: Workers | None = None) -> Manifest:
    """Writes the corpus of a plan whose files are cleaned, and returns its manifest. Raises the errors of `dedup`."""
    manifest = dedup(plan_dedup(plan.options, {file.name for file in plan.clean.files}), progress, workers)
    known = {file["name"] for file in (*manifest["inputs"], *manifest["missing"])}
    if lost := [file.name for file in plan.clean.files if file.name not in known]:
        files = f"{plan.clean.file_count} {plan.clean.recipe.input_format} files"
        raise LostDataError(f"{len(lost)} of {files} are not in the corpus: {lost[0]}, ...")
    return manifest


def _check_work(plan: CleanPlan) -> None:
    """Raises UsageError if the work folder holds work files of other inputs, which job 2 would take, too."""
    work = plan.options.work_folder
    own = {plan.target(file).name for file in plan.files}
    others = sorted(name for name in list_names(work) - own if is_work_file(name))
    if others:
        raise UsageError(
            f"{work} also holds work files of other inputs ({others[0]}, ...): "
            "use them all with c4pipe dedup, delete the folder, or give build another --work"
        )
