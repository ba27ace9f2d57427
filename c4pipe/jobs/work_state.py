"""Which files of a plan of job 1 are cleaned, and whether what was written for them is whole."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from c4pipe.clean import dropped_pages, examples, work_folder
from c4pipe.clean.annotated_folder import check_annotated_file
from c4pipe.clean.dropped_pages import note_unaudited
from c4pipe.clean.work_file import check_pages
from c4pipe.clean.work_folder import check_done, check_ends, read_named_header, set_aside
from c4pipe.errors import C4pipeError, DamagedFileError
from c4pipe.io.atomic import clear_abandoned
from c4pipe.io.json_files import write_checked_json
from c4pipe.io.paths import StoragePath, list_names, storage_path
from c4pipe.io.streams import InputOpener, digest_ends
from c4pipe.jobs.clean_plan import CleanPlan
from c4pipe.lists.lists import LISTS_FOLDER
from c4pipe.runners.events import Progress
from c4pipe.runners.machine_limits import allowed_cores
from c4pipe.wet.inputs import InputFile


@dataclass(frozen=True)
class WorkState:
    """The state of a work folder: each file of a plan is in one of these three groups.

    Attributes:
        done: files that have a work file, and an annotated file if the options ask for it.
        missing: files that are recorded as missing: they could not be downloaded, or have no record.
        open: all other files.
    """

    done: tuple[InputFile, ...]
    missing: tuple[InputFile, ...]
    open: tuple[InputFile, ...]


def work_state(plan: CleanPlan) -> WorkState:
    """Returns the state of the folders of a plan, from one listing of the names in them."""
    present = list_names(plan.work)
    annotate = plan.options.annotation
    annotated = list_names(storage_path(annotate.folder)) if annotate else set()
    done, absent, open_files = [], [], []
    for file in plan.files:
        target = plan.target(file)
        if target.name in present and (annotate is None or annotate.path(file.work_name).name in annotated):
            done.append(file)
        elif work_folder.missing_note(target).name in present:
            absent.append(file)
        else:
            open_files.append(file)
    return WorkState(tuple(done), tuple(absent), tuple(open_files))


_REQUESTS = 16  # to a store, at the same time


def check_state(plan: CleanPlan, progress: Progress) -> WorkState:
    """Checks the done files of a plan, and returns the state of its work folder.

    A damaged work file is set aside, with a note, and counts as not done. In an object store only the headers are read,
    because the store checks its objects itself.

    Raises UsageError if another recipe, other lists or another input were used; C4pipeError if an input can't be
    read.
    """
    state = work_state(plan)
    local = isinstance(plan.work, Path)
    inputs = InputOpener(plan.options.network)
    with ThreadPoolExecutor(allowed_cores().most if local else _REQUESTS, thread_name_prefix="done") as pool:
        damaged = list(pool.map(partial(_damage, plan, inputs), state.done))
    if not any(damaged):
        return state
    for file, damage in zip(state.done, damaged, strict=True):
        if damage:
            _set_aside(plan.target(file), *damage, progress)
    return work_state(plan)


def _damage(plan: CleanPlan, inputs: InputOpener, file: InputFile) -> tuple[StoragePath, DamagedFileError] | None:
    """Returns the damaged file of a done input, and the error about it; None if no file is damaged."""
    target = plan.target(file)
    suspect = target
    try:
        header = read_named_header(target)
        check_done(target, header, file.size, plan.recipe, plan.listed.fingerprint)
        if file.size is not None:
            ends = _ends(inputs, file.path, file.size)
            check_ends(target, header, ends)
        if isinstance(target, Path):
            check_pages(target)
            suspect = examples.examples_file(target)
            examples.stored_examples(target)
        if annotate := plan.options.annotation:
            suspect = annotate.path(file.work_name)
            check_annotated_file(annotate, file.work_name, plan.recipe, plan.listed.fingerprint, header.ends_sha256)
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


def prepare_work(plan: CleanPlan, progress: Progress) -> WorkState:
    """Prepares the work folder and returns its state. Records of missing files are removed: these files are tried
    again.
    """
    clear_abandoned(plan.work)
    clear_abandoned(plan.work / LISTS_FOLDER)
    if plan.options.annotation:
        clear_abandoned(storage_path(plan.options.annotation.folder))
    plan.listed.lists.save(plan.work / LISTS_FOLDER)
    state = check_state(plan, progress)
    if state.missing or state.open:
        write_checked_json(plan.work / work_folder.PLANNED, {"files": [file.work_name for file in plan.files]})
    for file in state.missing:
        work_folder.missing_note(plan.target(file)).unlink(missing_ok=True)
    _note_dropped(plan, state, progress)
    return state


def _note_dropped(plan: CleanPlan, state: WorkState, progress: Progress) -> None:
    """Deletes dropped-page files of inputs that are cleaned again. Warns about finished inputs that have none."""
    keep = plan.dropped
    if keep:
        dropped_pages.clear(keep, (file.work_name for file in (*state.missing, *state.open)), "clean")
        note_unaudited(keep, [file.work_name for file in state.done], "clean", progress)
