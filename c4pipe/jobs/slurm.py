"""`build`, `clean` and `import` on Slurm: an array of tasks cleans the files, then one job makes the corpus.

All tasks write into one work folder, as the workers of other runners do. A submission has a folder inside it: the
batch scripts, the list of the tasks with their files, and a log of each task. Slurm
knows the tasks that are queued or run, by the paths of their scripts; the work folder shows the files that are done. So
no state is kept, and the same command submits all files that are neither done nor queued.
"""

import glob
import hashlib
import re
import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

from c4pipe.clean.progress import watch_clean
from c4pipe.clean.work_folder import missing_note
from c4pipe.corpus.manifest import Manifest, read_manifest
from c4pipe.dedup import publish
from c4pipe.dedup.progress import watch_dedup
from c4pipe.dedup.publishers import STAGING
from c4pipe.errors import C4pipeError, DamagedFileError, JobSubmitted, UsageError
from c4pipe.io.atomic import make_folder, write_bytes, write_text
from c4pipe.io.json_files import decode_checked_json, encode_checked_json, read_checked_json, write_checked_json
from c4pipe.io.lock import only_run
from c4pipe.io.options import shared_fields
from c4pipe.io.paths import list_names, read_file, remove_tree, storage_path
from c4pipe.io.words import first_of, format_count
from c4pipe.jobs.clean_plan import CleanPlan, check_state, prepare_work, work_state
from c4pipe.jobs.clean_run import finish_work, largest_first, run_clean
from c4pipe.jobs.dedup import write_corpus
from c4pipe.jobs.dedup_plan import plan_dedup
from c4pipe.jobs.options import BuildOptions, CleanOptions, ImportOptions
from c4pipe.lists.lists import LISTS_FOLDER, load_lists
from c4pipe.recipes.choose import ListedRecipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners import slurm
from c4pipe.runners.events import Progress
from c4pipe.runners.slurm import ActiveTask, SlurmOptions
from c4pipe.wet.inputs import FileSlice, InputFile

SUBMISSIONS = "_slurm"
"""The folder, inside a work folder, of the submissions to Slurm."""

TASKS_FILE = "tasks.json"
"""The list of the tasks of a submission, in its folder."""

DEDUP = "dedup"
"""The name of the job after the array: `dedup.sh` is its script, `dedup.log` its log."""

_PLAN = "plan.json"  # for the user alone: the URLs of the inputs may have secrets, which no other file has
_OPTIONS: Mapping[str, Any] = {"build": BuildOptions, "clean": CleanOptions, "import": ImportOptions}
_NOT_FOR_TASKS = {
    # the plan has what these name
    *("inputs", "lists", "links", "source", "recipe", "score", "label", "language_model"),
    *("runner", "runner_options", "wait", "progress"),
}
_SCRIPT = re.compile(r"clean-([0-9]{1,9})\.sh")
_MOST_TASKS = 1000  # unless the user says how many files a task has
_FILES_PER_CORE = 2
_PAUSES = (1, 4, 10, 20, 30)  # seconds: NFS caches the names in a folder for up to a minute (acdirmax of nfs(5))
_SILENT = 60  # times in a row that Slurm may not answer to --wait


class Submission(TypedDict):
    """The tasks of a submission.

    Attributes:
        files: the names of the work files of the whole job, without their endings.
        tasks: for each task, the numbers of its files.
        output: the folder of the corpus; "" if `clean` runs alone.
        accepts_missing: whether files may be missing.
    """

    files: list[str]
    tasks: list[list[int]]
    output: str
    accepts_missing: bool


def clean_on_slurm(plan: CleanPlan, progress: Progress) -> dict[str, int]:
    """Submits the missing files of a work folder. With `--wait`, waits for it, and returns the counts over all files.

    Raises JobSubmitted without `--wait`; the errors of `clean`, and C4pipeError if Slurm refuses or a task fails.
    """
    with only_run(plan.work):
        words = _submit(plan, progress)
    _wait_for_files(plan, progress, words)
    with only_run(plan.work):
        return finish_work(plan, progress)


def build_on_slurm(options: BuildOptions | ImportOptions, plan: CleanPlan, progress: Progress) -> Manifest:
    """Submits the missing steps of a corpus. With `--wait`, waits for it, and returns the manifest.

    Raises the errors of `clean_on_slurm`.
    """
    output = options.folder
    if not isinstance(output, Path):
        raise UsageError(f"--output {output}: --runner slurm needs a folder that all nodes share")
    with only_run(plan.work):
        manifest = _find_finished(options, plan, progress)
        words = "" if manifest else _submit(plan, progress, output)
    if manifest:
        return manifest
    _wait_for_files(plan, progress, words)
    check_missing(plan)
    corpus = plan_dedup(options, {file.name for file in plan.files})
    spill = str(output.absolute() / STAGING / "_spill")
    with watch_dedup(progress, output, corpus.shard_files, spill, corpus.page_counts):
        _wait_while_active(plan.work, DEDUP)
    manifest = read_manifest(output)
    if manifest is None:
        raise C4pipeError(f"dedup failed: c4pipe status {plan.work} says why; the same command submits it again")
    return manifest


def _find_finished(options: BuildOptions | ImportOptions, plan: CleanPlan, progress: Progress) -> Manifest | None:
    """Returns the manifest of the corpus if it is complete, and notes that."""
    output, state = options.folder, work_state(plan)
    if state.open or state.missing or read_manifest(output) is None:
        return None
    corpus = plan_dedup(options, {file.name for file in plan.files})
    manifest = publish.find_complete(output, corpus.identity, corpus.missing)
    if manifest:
        progress.note_complete(output)
    return manifest


def _submit(plan: CleanPlan, progress: Progress, output: Path | None = None) -> str:
    """Submits tasks for the files that are neither done nor queued, then `dedup`. Returns a sentence about it."""
    work = plan.work
    if not isinstance(work, Path):
        raise UsageError(f"--work {work}: --runner slurm needs a folder that all nodes share")
    options = slurm.parse_options(plan.options.runner_options)
    active = slurm.active_tasks(work / SUBMISSIONS)
    # A task that runs has unfinished files in the folder, which `prepare_work` would remove.
    state = check_state(plan, progress) if active else prepare_work(plan, progress)
    queued = files_of(active)
    names = {file.work_name for file in (*state.open, *state.missing)} - queued
    corpus = [task for task in active if task.script.stem == DEDUP]
    if any(not task.waits for task in corpus):
        names = set()  # it runs because all files are cleaned, or are missing and may be
    needs_corpus = output is not None and (bool(names) or not corpus)
    if not names and not needs_corpus:
        if active:
            return "nothing was submitted: all that is missing is queued or running"
        progress.note_complete(work, "give another --work, or delete it")
        return ""
    latest = max((int(each.name) for each in submissions(work)), default=0)
    folder = work / SUBMISSIONS / f"{latest + 1:03}"
    tasks = _divide_files(plan, names, options)
    _forget_plans(work, active)
    make_folder(folder)
    try:
        return _submit_scripts(plan, folder, tasks, options, active, output)
    except BaseException:
        remove_tree(folder)
        raise


def _submit_scripts(
    plan: CleanPlan,
    folder: Path,
    tasks: list[list[int]],
    options: SlurmOptions,
    active: Sequence[ActiveTask],
    output: Path | None,
) -> str:
    """Writes and submits the scripts of a submission: all of them, or none."""
    submission = Submission(
        files=[file.work_name for file in plan.files],
        tasks=tasks,
        output=str(output.absolute()) if output else "",
        accepts_missing=plan.options.max_missing is not None,
    )
    write_checked_json(folder / TASKS_FILE, submission)
    digest = _write_plan(plan, folder)
    largest = slurm.largest_array() if tasks else 1
    arrays, ids = list[str](), list[str]()
    try:
        for first in range(0, len(tasks), largest):
            limit = f"%{options.parallelism}" if options.parallelism else ""
            more = [f"--array=0-{min(largest, len(tasks) - first) - 1}{limit}"]
            if arrays and limit:  # one array after the other, so that no more tasks run at the same time
                more.append(f"--dependency=afterany:{arrays[-1]}")
            number = f"$(({first} + SLURM_ARRAY_TASK_ID))"
            arrays.append(_submit_script(folder, digest, f"clean-{first}", "_%a", options.clean, more, number))
            ids.append(arrays[-1])
        if output is not None:
            before = {task.job for task in active if task.array_index is not None}
            after = [f"afterok:{':'.join(arrays)}"] * bool(arrays) + [f"afterany:{':'.join(before)}"] * bool(before)
            more = [f"--dependency={','.join(after)}", "--kill-on-invalid-dep=yes"] if after else []
            ids.append(_submit_script(folder, digest, DEDUP, "", options.dedup, more, DEDUP))
            slurm.cancel([task.job for task in active if task.script.stem == DEDUP])
    except BaseException as error:
        try:
            slurm.cancel(ids)
        except C4pipeError:
            raise C4pipeError(f"{error}; before that, jobs were submitted: scancel {' '.join(ids)}") from error
        if isinstance(error, C4pipeError):
            raise C4pipeError(f"{error}; nothing was submitted") from error
        raise
    words = [f"dedup (job {ids[-1]})"] if output else []
    if tasks:
        count = format_count(sum(map(len, tasks)), "file")
        words = [f"{count} in {format_count(len(tasks), 'task')} (job {', '.join(arrays)})", *words]
    return f"submitted: {', then '.join(words)}"


def _write_plan(plan: CleanPlan, folder: Path) -> str:
    """Writes the plan of the tasks, and returns its digest. Nobody else can read it."""
    options = plan.options
    command, kind = next(each for each in _OPTIONS.items() if isinstance(options, each[1]))
    values = {name: value for name, value in shared_fields(options, kind).items() if name not in _NOT_FOR_TASKS}
    for name in {"output", "work", "cache", "annotate"} & {name for name, value in values.items() if value}:
        values[name] = str(storage_path(str(values[name])).absolute())
    if not isinstance(options, CleanOptions):
        values["known"] = [str(each.absolute()) for each in options.known_corpora]
    stored = {
        "command": command,
        "options": values,
        "recipe": plan.recipe.to_json(),
        "lists": plan.listed.lists.digests,
        "files": [(file.absolute_path, *file[1:]) for file in plan.files],
    }
    data = encode_checked_json(stored)
    write_bytes(folder / _PLAN, data, mode=0o600)
    return hashlib.sha256(data).hexdigest()


def _read_plan(folder: Path, digest: str) -> CleanPlan:
    """Returns the plan that was submitted. Raises UsageError if somebody has changed it since."""
    data = read_file(folder / _PLAN)
    if hashlib.sha256(data).hexdigest() != digest:
        raise UsageError(f"the plan in {folder} is not the one that was submitted: give the command again")
    stored = decode_checked_json(data, folder / _PLAN, dict)
    options = _OPTIONS[stored["command"]](**stored["options"], inputs=())
    files = [
        InputFile(path, name, size, FileSlice(*part) if part else None) for path, name, size, part in stored["files"]
    ]
    lists = load_lists(options.work_folder / LISTS_FOLDER, stored["lists"])
    listed = ListedRecipe(Recipe.from_json(stored["recipe"]), lists)
    return CleanPlan(options, listed, tuple(files), (), options.dropped)


def _forget_plans(work: Any, active: Sequence[ActiveTask] = ()) -> None:
    """Deletes the plans, whose addresses may have secrets, of the submissions that have no task left."""
    for folder in {*submissions(work)} - {task.script.parent for task in active}:
        (folder / _PLAN).unlink(missing_ok=True)


def _submit_script(
    folder: Path, digest: str, name: str, log: str, options: Sequence[Sequence[str]], more: Sequence[str], number: str
) -> str:
    """Writes a batch script into the folder of a submission, submits it, and returns the id of its job.

    Slurm copies the script, so nobody can change the digest of the plan in it.
    """
    path = folder / f"{name}.sh"
    stem = str(folder / name).replace("%", "%%")  # sbatch replaces %a and others
    job = "dedup" if name == DEDUP else "clean"
    own = [f"--job-name=c4pipe-{job}", f"--output={stem}{log}.log", "--open-mode=append", "--nodes=1", "--requeue"]
    command = shlex.join([sys.executable, "-m", "c4pipe.cli.slurm_task", str(folder), digest])
    lines = [f'{command} "{number}"', "status=$?", 'echo "c4pipe: status $status" >&2', "exit $status"]
    write_text(path, slurm.script([*([each] for each in own), *options, *([each] for each in more)], lines))
    return slurm.submit(path)


def _divide_files(plan: CleanPlan, names: set[str], options: SlurmOptions) -> list[list[int]]:
    """Returns the numbers of the files of each task."""
    numbers = [number for number, file in enumerate(plan.files) if file.work_name in names]
    size = options.files or max(_FILES_PER_CORE * options.cores, -(-len(numbers) // _MOST_TASKS))
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]


def submissions(work: Path) -> list[Path]:
    """Returns the folders of the submissions of a work folder, the oldest first."""
    names = filter(re.compile("[0-9]{3,9}").fullmatch, list_names(work / SUBMISSIONS))
    return [work / SUBMISSIONS / name for name in sorted(names, key=int)]


def read_submission(folder: Path) -> Submission:
    """Returns the tasks of a submission. Raises DamagedFileError, and C4pipeError if there are none."""
    found = read_checked_json(folder / TASKS_FILE, Submission)
    if found is None:
        raise C4pipeError(f"{folder} has no {TASKS_FILE}: delete that folder")
    if any(number >= len(found["files"]) for task in found["tasks"] for number in task):
        raise DamagedFileError(f"{folder / TASKS_FILE} has a task without its file: delete that folder")
    return found


def first_task(script: Path) -> int | None:
    """Returns the number of the first task of a script of `clean`; None for any other file."""
    match = _SCRIPT.fullmatch(script.name)
    return int(match[1]) if match else None


def files_of(tasks: Iterable[ActiveTask]) -> set[str]:
    """Returns the names of the files of some tasks."""
    by_folder: dict[Path, list[int]] = {}
    for task in tasks:
        if (first := first_task(task.script)) is not None:
            by_folder.setdefault(task.script.parent, []).append(first + (task.array_index or 0))
    names = set[str]()
    for folder, numbers in by_folder.items():
        submission = read_submission(folder)
        found = [submission["tasks"][number] for number in numbers if number < len(submission["tasks"])]
        names.update(submission["files"][file] for some in found for file in some)
    return names


def _wait_for_files(plan: CleanPlan, progress: Progress, words: str) -> None:
    """Waits for the tasks of `clean` if the options ask for it. Raises JobSubmitted if not."""
    if not plan.options.wait:
        if words:
            shown = plan.options.output if hasattr(plan.options, "output") and plan.options.work is None else plan.work
            raise JobSubmitted(f"{words}; c4pipe status {shown} shows how far it is")
        return
    if words:
        progress.note(f"{words}; Ctrl-C ends only this command, not the jobs")
    assert isinstance(plan.work, Path)
    with watch_clean(progress, plan.work, plan.loads):
        _wait_while_active(plan.work, "clean-")
    check_cleaned(plan)


def check_cleaned(plan: CleanPlan) -> None:
    """Raises C4pipeError if a file is not cleaned, after time for NFS, which shows new files only after a while."""
    for pause in [*_PAUSES, 0]:
        left = work_state(plan).open
        if not left:
            return
        time.sleep(pause)
    raise C4pipeError(
        f"{len(left):,} of {len(plan.files):,} files are not cleaned, {left[0].work_name} is the first: c4pipe status "
        f"{plan.work} says why; the same command submits them again"
    )


def _wait_while_active(work: Any, name: str) -> None:
    """Waits until no job of a work folder, whose script has this name, is queued or runs. Raises C4pipeError."""
    silent, seconds = 0, 0.5
    while silent < _SILENT:
        try:
            tasks = slurm.active_tasks(work / SUBMISSIONS)
        except C4pipeError:  # a controller that starts again
            silent += 1
            if silent == _SILENT:
                raise
        else:
            silent = 0
            if not any(task.script.name.startswith(name) for task in tasks):
                return
        time.sleep(seconds)
        seconds = min(10.0, 1.2 * seconds)


def check_missing(plan: CleanPlan) -> None:
    """Raises C4pipeError if files are missing and the options do not accept that: dedup needs all files."""
    missing = plan.missing()
    if missing and plan.options.max_missing is None:
        errors = "; ".join(first_of([each["error"] for each in missing], 1))
        raise C4pipeError(f"{errors}: the same command tries again to read it, --max-missing N goes on without it")


def run_task(folder: Path, digest: str, task: str, progress: Progress) -> None:
    """Runs a task of a submission: a slice of the files for a number, or the job after all tasks for `dedup`.

    `digest` is that of the plan that was submitted.

    Raises C4pipeError if a file is missing or can't be cleaned, or if the files are not complete for `dedup`;
    UsageError for another plan.
    """
    plan = _read_plan(folder, digest)
    submission = read_submission(folder)
    if task == DEDUP:
        check_cleaned(plan)
        check_missing(plan)
        finish_work(plan, progress)  # without the lock, which a command that asks for this run may have
        assert not isinstance(plan.options, CleanOptions)
        write_corpus(plan.options, plan, progress)
        _forget_plans(plan.work)
        return
    part = replace(plan, files=tuple(plan.files[number] for number in submission["tasks"][int(task)]))
    for file in part.files:  # remove the files of a task that was killed or has failed
        missing_note(part.target(file)).unlink(missing_ok=True)
        for unfinished in part.work.glob(f".{glob.escape(file.work_name)}.parquet.*.tmp"):
            unfinished.unlink(missing_ok=True)
    if left := largest_first(work_state(part).open):
        run_clean(part, left, progress)
    if left := list(work_state(part).open):
        raise C4pipeError(f"{left[0].work_name} was not cleaned")
    check_missing(part)
