"""`build` and `import`: job 1, then job 2."""

from c4pipe.corpus.manifest import Manifest
from c4pipe.jobs.build_plan import BuildPlan, write_corpus
from c4pipe.jobs.clean import clean
from c4pipe.jobs.dedup_plan import note_files
from c4pipe.jobs.slurm import build_on_slurm
from c4pipe.runners.events import Progress
from c4pipe.runners.local_flow import Workers
from c4pipe.runners.table import find_runner


def build(plan: BuildPlan, progress: Progress) -> Manifest:
    """Cleans the files of a plan, writes their corpus, and returns its manifest. Raises the errors of `clean` and
    `dedup`.
    """
    note_files(plan.options, progress)
    if find_runner(plan.options.runner).submits:
        return build_on_slurm(plan, progress)
    with Workers() as workers:
        clean(plan.clean, progress, workers)
        return write_corpus(plan, progress, workers)
