"""`status`: the progress of a run, from its folders, its lock, Slurm, and the logs of Slurm's tasks."""

import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from c4pipe.clean.work_folder import MISSING_ENDING, PLANNED, WORK_FOLDER, PlannedFiles, is_work_file, missing_files
from c4pipe.corpus.manifest import read_manifest, sum_inputs
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.json_files import read_intact_json
from c4pipe.io.lock import lock_owner
from c4pipe.io.paths import StoragePath, list_names, open_file
from c4pipe.io.words import error_reason, first_of, format_count, visible
from c4pipe.jobs import slurm
from c4pipe.runners.slurm import ActiveTask, active_tasks
from c4pipe.wet.inputs import part_of

_LOG_END = 20_000  # bytes of a log that are read
_STEP_ENDED = re.compile(r"slurmstepd[^:]*: error: (?:\*\*\* \w+ \S+ ON \S+ )?(.*?)(?: \*\*\*)?$")
_PROGRESS = re.compile("(clean|dedup): ")


State = Literal["complete", "running", "stopped", "unknown"]


@dataclass(frozen=True)
class RunStatus:
    """The progress of a run.

    Attributes:
        state: of the run: `complete` if nothing is left to do, `stopped` if work is left that is neither queued nor
            running; `unknown` if that can't be seen, as in a store, which has no locks.
        files: the number of files in each state.
        files_total: the number of files of the whole run; 0 if the folder does not say it.
        sentences: reasons of failures, and the next step.
    """

    state: State
    files: Mapping[str, int]
    files_total: int
    sentences: Sequence[str]


def run_status(folder: StoragePath) -> RunStatus:
    """Returns the progress of the run that writes a folder: a corpus, or a work folder. Changes nothing.

    Raises UsageError if the folder is of no run.
    """
    status = _look(folder)
    return _look(folder) if status.state == "stopped" else status  # it may have come to its end during the first look


def _look(folder: StoragePath) -> RunStatus:
    manifest = read_manifest(folder)
    if manifest:
        counts = {"done": sum_inputs(manifest).files, "missing": len(manifest["missing"])}
        pages = format_count(manifest["counts"].get("pages.kept", 0), "page")
        corpus = f"{folder} is a complete corpus: {pages} in {format_count(len(manifest['shards']), 'file')}"
        corpus += f", {format_count(len(manifest['parts']), 'part')}" if "parts" in manifest else ""
        missing_errors = first_of([each["error"] for each in manifest["missing"]])
        return RunStatus("complete", counts, 0, [*missing_errors, corpus])
    work = (folder / WORK_FOLDER if (folder / WORK_FOLDER).is_dir() else folder).absolute()
    names = list_names(work)
    done = {name.removesuffix(".parquet") for name in names if is_work_file(name)}
    missing = {name.removesuffix(MISSING_ENDING) for name in names if name.endswith(MISSING_ENDING)}
    if isinstance(work, Path) and (folders := slurm.submissions(work)):
        return _slurm_status(work, folders, done, missing)
    planned = (read_intact_json(work / PLANNED, PlannedFiles) or {"files": ()})["files"]
    left = [name for name in planned if name not in done and part_of(name)[0] not in missing]
    is_work = bool(planned) and work == folder.absolute()
    places = {**({} if is_work else {"dedup": folder}), "clean" if left else "the command": work}
    owners = {job: lock_owner(place) for job, place in places.items() if isinstance(place, Path)}
    runs = [f"{job} runs: {owner}" for job, owner in owners.items() if owner][:1]
    has_files = planned or ("lists" in names and (done or missing))
    if not (has_files or runs):
        raise UsageError(f"{folder} is the folder of no run: give the --output or the --work folder of one")
    ended: State = "complete" if is_work and not left else "stopped" if owners else "unknown"
    errors = first_of([note["error"] for note in missing_files([work])])
    counts = {"done": len(done.intersection(planned or done)), "missing": len(missing)} if has_files else {}
    sentences = [*errors, *(runs or [f"{folder} {_ADVICE[ended]}"])]
    return RunStatus("running" if runs else ended, counts, len(planned), sentences)


_ADVICE = {
    "complete": "is complete",
    "stopped": "has no run at work: the command that made it continues from here",
    "unknown": "is not complete, and a store does not say whether a run is at work: if none is, the command that made "
    "it continues from here",
}
"""What is said about a folder without a run at work, by its state."""


def _slurm_status(work: Path, folders: Sequence[Path], done: set[str], missing: set[str]) -> RunStatus:
    submissions = {folder: slurm.read_submission(folder) for folder in folders}
    latest = submissions[folders[-1]]
    is_inside = os.path.realpath(latest["output"]) == os.path.realpath(work.parent)
    if is_inside and read_manifest(work.parent):  # a work folder of others can name any other folder
        return run_status(work.parent)
    sentences, active, others = list[str](), list[ActiveTask](), "failed"
    try:
        active = active_tasks(work / slurm.SUBMISSIONS)
    except C4pipeError as error:
        others = "not done"
        sentences.append(f"which tasks are queued or run is not known: {error}")
    waiting, running = (slurm.files_of([task for task in active if task.waits is each]) for each in (True, False))
    states, left = Counter[str](), set[str]()
    for name in latest["files"]:
        state = next((state for state, names in (
            ("done", done), ("running", running), ("waiting", waiting), ("missing", missing)
        ) if (part_of(name)[0] if names is missing else name) in names), "")  # fmt: skip
        states[state or others] += 1
        if not state:
            left.add(name)
    failed = _failures(submissions, left) if others == "failed" else ()
    sentences += first_of([*failed, *(note["error"] for note in missing_files([work]))])
    corpus = next((task for task in active if task.script.stem == slurm.DEDUP), None)
    reason = _reason(folders[-1] / "dedup.log")
    is_written = bool(latest["output"]) and not is_inside and not corpus and reason == ""
    if corpus:
        reasons = ", ".join(sorted({task.reason for task in active if task.waits and task is not corpus}))
        if reasons:
            sentences.append(f"tasks wait: {reasons} (the reason as squeue names it)")
        sentences.append(f"dedup {'waits' if corpus.waits else 'runs'} (job {corpus.job}, {corpus.reason})")
    elif reason:
        sentences.append(f"dedup failed: {reason}")
    elif is_written:
        sentences.append(f"the corpus was written: c4pipe status {latest['output']}")
    elif latest["output"] and others == "failed":
        sentences.append("dedup is not in the queue: Slurm cancels it when a task fails")
    lacking = bool(left) or (bool(missing) and not latest["accepts_missing"])
    stopped = lacking or (bool(latest["output"]) and not (corpus or is_written))
    complete = not (active or stopped) and (is_written or not latest["output"])
    is_known = others == "failed"
    if complete:
        sentences.append(f"{work} is complete")
    elif stopped and is_known:
        sentences.append("the command that submitted it submits what is left")
    order = ("done", "running", "waiting", others, "missing")
    files = {state: states[state] for state in order if states[state]}
    ended: State = "complete" if complete else "stopped" if is_known else "unknown"
    return RunStatus(ended if complete or stopped else "running", files, 0, sentences)


def _failures(submissions: Mapping[Path, slurm.Submission], names: set[str]) -> Iterator[str]:
    """Yields a sentence for each task that has not cleaned its files, given the names of the files left."""
    left = set(names)
    for folder, submission in reversed(list(submissions.items())):
        starts = map(slurm.first_task, folder.iterdir())
        offsets = sorted(first for first in starts if first is not None)
        for number, task in enumerate(submission["tasks"]):
            own = [submission["files"][file] for file in task if submission["files"][file] in left]
            if own and offsets:
                left.difference_update(own)
                first = offsets[bisect_right(offsets, number) - 1]
                log = folder / f"clean-{first}_{number - first}.log"
                of_task = " ".join(first_of(own, 1))
                yield f"{of_task}: {_reason(log) or 'its task was cancelled before it began'} ({log.name})"


def _reason(log: Path) -> str | None:
    """Returns why the job of a log failed, in words; "" if it has succeeded, None without a log."""
    try:
        with open_file(log) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_END))
            lines = file.read(_LOG_END).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"its log can't be read: {error_reason(error)}"
    for line in reversed([line.strip() for line in lines if line.strip()]):
        status = re.fullmatch("c4pipe: status ([0-9]+)", line)
        if status and status[1] == "0":
            return ""
        if status and int(status[1]) > 128:
            return f"its process was killed by signal {int(status[1]) - 128}, perhaps because memory ran out"
        if ended := _STEP_ENDED.match(line):
            return visible(f"Slurm says {ended[1]}")
        if _PROGRESS.match(line):
            break
        if not status:
            return visible(line.removeprefix("c4pipe: "))
    return "its log has no reason: it was killed, or its node was lost; sacct may say more"
