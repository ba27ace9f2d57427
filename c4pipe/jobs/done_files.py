"""Looks at what earlier runs of job 1 left for the files of a plan: is each work file still what was written?"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from c4pipe.clean import examples
from c4pipe.clean.annotated_folder import check_annotated_file
from c4pipe.clean.work_folder import check_done, check_ends, set_aside
from c4pipe.clean.work_reader import check_pages, read_header
from c4pipe.errors import C4pipeError, DamagedFileError
from c4pipe.io.ends_digest import digest_ends
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import InputOpener
from c4pipe.jobs.clean_plan import CleanPlan, WorkState, work_state
from c4pipe.runners.events import Progress
from c4pipe.wet.inputs import InputFile

_REQUESTS = 16  # to a store, at the same time


def check_state(plan: CleanPlan, progress: Progress) -> WorkState:
    """Returns how far the work folder of a plan is, after its done files were checked.

    A damaged work file is set aside, with a note, and counts as not done. Of a store, only headers are read: it checks
    its objects itself.

    Raises UsageError where another recipe, other lists or another input were used; C4pipeError where an input can't be
    read.
    """
    state = work_state(plan)
    local = isinstance(plan.work, Path)
    inputs = InputOpener(plan.options.network)
    with ThreadPoolExecutor((os.cpu_count() or 1) if local else _REQUESTS, thread_name_prefix="done") as pool:
        damaged = list(pool.map(partial(_damage, plan, inputs), state.done))
    if not any(damaged):
        return state
    for file, damage in zip(state.done, damaged, strict=True):
        if damage:
            _set_aside(plan.target(file), *damage, progress)
    return work_state(plan)


def _damage(plan: CleanPlan, inputs: InputOpener, file: InputFile) -> tuple[StoragePath, DamagedFileError] | None:
    """Returns which file of a done input is damaged, and the error about it; None for no file."""
    target = plan.target(file)
    suspect = target
    try:
        header = read_header(target)
        check_done(target, header, file.size, plan.recipe, plan.fingerprint)
        if file.size is not None:
            ends = plan.ends.get(file.name) or _ends(inputs, file.path, file.size)
            check_ends(target, header, ends)
        if isinstance(target, Path):
            check_pages(target)
            suspect = examples.examples_file(target)
            examples.read_examples(target)
        if plan.options.annotate:
            suspect = plan.options.annotate.path(file.name)
            check_annotated_file(plan.options.annotate, file.name, plan.fingerprint, header.ends_sha256)
    except DamagedFileError as error:
        return suspect, error
    return None


def _ends(inputs: InputOpener, path: str, size: int) -> str:
    try:
        return digest_ends(partial(inputs.read_range, path), size)
    except OSError as error:
        raise C4pipeError(f"{path} can't be compared with its work file: {error}") from error


def _set_aside(target: StoragePath, path: StoragePath, error: DamagedFileError, progress: Progress) -> None:
    try:
        aside = set_aside(path)
        target.unlink(missing_ok=True)
    except OSError as refused:
        raise C4pipeError(f"{path} is damaged and can't be renamed: {refused}") from error
    reason = str(error).partition("; ")[0]
    progress.note(f"{reason}; it is now {aside.name}, and its input file is cleaned again")
