"""Slurm in the table of runners: the options after `--`, and the programs of Slurm that c4pipe calls.

Slurm runs no graph: it runs commands on nodes. So a job that Slurm can run is submitted as batch scripts
(`jobs/slurm.py`), and any other job is refused. Slurm's documentation describes the programs and their options:
https://slurm.schedmd.com/sbatch.html, squeue.html and job_array.html.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.words import CONTROL, visible
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import Runner

_OWN = {"--array-parallelism": "64", "--files-per-task": "100"}  # and an example of each
_SET_BY_C4PIPE = (
    *("--array", "-a", "--dependency", "-d", "--output", "-o", "--error", "-e", "--wrap", "--parsable", "--test-only"),
    *("--wait", "-W", "--kill-on-invalid-dep", "--open-mode"),
)
_DEDUP = "--dedup-"  # --dedup-mem=200G is --mem=200G for the job `dedup` alone
_DEFAULTS = (
    (("--cpus-per-task", "-c"), ("--cpus-per-task=8",)),
    (("--mem", "--mem-per-cpu", "--mem-per-gpu"), ("--mem-per-cpu=2G",)),
)
_SECONDS = 120  # for an answer of Slurm: a controller that starts again is silent for a minute


class SlurmOptions(NamedTuple):
    """The options after `--`.

    Attributes:
        clean: the options of sbatch for the tasks of `clean`, each with its value.
        dedup: the same for the job `dedup`.
        parallelism: how many tasks of an array run at the same time; None for as many as Slurm starts.
        files: how many files a task has; None to leave it to c4pipe.
    """

    clean: tuple[tuple[str, ...], ...]
    dedup: tuple[tuple[str, ...], ...]
    parallelism: int | None
    files: int | None

    @property
    def cores(self) -> int:
        """The cores that a task of `clean` asks for."""
        for option in reversed(self.clean):
            match = re.fullmatch(r"(?:--cpus-per-task[= ]|-c ?)([0-9]+)", " ".join(option))
            if match:
                return int(match[1])
        return 1


def parse_options(given: Sequence[str]) -> SlurmOptions:
    """Returns the options after `--`. Raises UsageError for an option that c4pipe sets itself, and for a bad number."""
    common, dedup, own = list[tuple[str, ...]](), list[tuple[str, ...]](), dict[str, int]()
    left = list(given)
    while left:
        words = [left.pop(0)]
        if left and not left[0].startswith("-") and "=" not in words[0]:
            words.append(left.pop(0))
        name = _name(words)
        if not name.startswith("-") or CONTROL.search(" ".join(words)):
            raise UsageError(
                f"{visible(words[0])} is no option of sbatch: give options such as --partition=cpu after --"
            )
        if name in _SET_BY_C4PIPE:
            advice = "give --wait before the --" if name in ("--wait", "-W") else "leave it out"
            raise UsageError(f"{name} is set by c4pipe with --runner slurm: {advice}")
        if name in _OWN:
            own[name] = _number(words)
        elif name.startswith(_DEDUP):
            dedup.append((f"--{words[0].removeprefix(_DEDUP)}", *words[1:]))
        else:
            common.append(tuple(words))
    jobs = _completed(common), _completed(common, dedup)
    return SlurmOptions(*jobs, own.get("--array-parallelism"), own.get("--files-per-task"))


def _number(words: Sequence[str]) -> int:
    name, _, value = " ".join(words).replace("=", " ").partition(" ")
    if not re.fullmatch("0*[1-9][0-9]{0,8}", value):
        raise UsageError(f"{' '.join(words)}: give a number above 0, such as {name}={_OWN[name]}")
    return int(value)


def _completed(common: list[tuple[str, ...]], own: Sequence[tuple[str, ...]] = ()) -> tuple[tuple[str, ...], ...]:
    """Returns the options of a job: common options, its own, and defaults of cores and memory.

    sbatch refuses two options that ask for memory, so an option of a kind replaces all others of this kind.
    """
    for kind, default in _DEFAULTS:
        if any(_name(option) in kind for option in own):
            common = [option for option in common if _name(option) not in kind]
        elif not any(_name(option) in kind for option in common):
            common = [default, *common]
    return (*common, *own)


def _name(option: Sequence[str]) -> str:
    return option[0].partition("=")[0] if option[0].startswith("--") else option[0][:2]


def script(options: Sequence[Sequence[str]], command: Sequence[str]) -> str:
    """Returns a batch script, given options of sbatch, each with its value, and lines of shell."""
    lines = [f"#SBATCH {' '.join(map(_quoted, option))}" for option in options]
    return "\n".join(["#!/bin/sh", *lines, *command, ""])


def _quoted(word: str) -> str:
    """Quotes a word as sbatch reads its lines in a script."""
    if re.fullmatch(r"[\w@%+=:,./\[\]*^~-]+", word, re.ASCII):
        return word
    return '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'


def submit(path: Path) -> str:
    """Submits a batch script, and returns the id of the job. Raises C4pipeError with sbatch's own reason."""
    return _slurm("sbatch", "--parsable", str(path)).strip().partition(";")[0]


def cancel(ids: Sequence[str]) -> None:
    """Cancels jobs. Raises C4pipeError."""
    if ids:
        _slurm("scancel", *ids)


def largest_array() -> int:
    """Returns how many tasks an array can have. Raises C4pipeError."""
    match = re.search(r"^MaxArraySize\s*=\s*([0-9]+)", _slurm("scontrol", "show", "config"), re.MULTILINE)
    return max(1, int(match[1])) if match else 1001


class ActiveTask(NamedTuple):
    """A job, or a task of an array, that is queued or runs.

    Attributes:
        job: the id of the job or of the array.
        array_index: the index in the array; None for a job that is no array.
        state: as squeue names it, such as `PENDING`.
        reason: why it waits, as squeue names it.
        script: the batch script.
    """

    job: str
    array_index: int | None
    state: str
    reason: str
    script: Path

    @property
    def waits(self) -> bool:
        """Whether it does not run yet."""
        return self.state in ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD")


def active_tasks(folder: Path) -> list[ActiveTask]:
    """Returns the user's jobs and tasks, queued or running, whose scripts are in folders inside a folder.

    Raises C4pipeError.
    """
    found, is_inside = [], dict[Path, bool]()
    for line in _slurm("squeue", "--me", "--noheader", "--array", "--format=%F|%K|%T|%r|%o").splitlines():
        job, index, state, reason, path = (*line.split("|", 4), "", "", "", "")[:5]
        script = Path(path)
        other = script.parent.parent
        if other.name == folder.name and other not in is_inside:  # the folder may have several paths
            is_inside[other] = other.is_dir() and other.samefile(folder)
        if is_inside.get(other):
            script = folder / script.parent.name / script.name
            found.append(ActiveTask(job, int(index) if index.isdigit() else None, state, reason, script))
    return found


def _slurm(program: str, *arguments: str) -> str:
    """Runs a program of Slurm, and returns its output. Raises C4pipeError, with its own reason in one sentence."""
    try:
        ended = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except OSError as error:
        raise C4pipeError(
            f"{program} can't be run: {error.strerror}; give the command on a machine with Slurm"
        ) from None
    except subprocess.TimeoutExpired:
        raise C4pipeError(f"{program} did not answer in {_SECONDS} s: give the command again later") from None
    if ended.returncode:
        reason = _reason(ended.stderr) or f"status {ended.returncode}"
        if program == "squeue":  # it is asked first, and refuses nothing
            raise C4pipeError(
                f"Slurm does not answer: give the command on a login node of a cluster (squeue: {reason})"
            )
        raise C4pipeError(f"{program} refused: {reason}")
    return ended.stdout


def _reason(text: str) -> str:
    """Returns the messages of a program of Slurm as one sentence."""
    lines = [re.sub(r"^\w+: (?:(?:error|fatal): )?", "", line).strip() for line in text.splitlines()]
    return visible("; ".join(line for line in lines if line and not line.startswith("Try ")))


def _check(options: RunnerOptions) -> None:
    if not options.is_submitted:
        raise UsageError(
            "--runner slurm is for build, clean and import; any other command runs on one node, without --runner: "
            "sbatch --wrap 'c4pipe ...'"
        )
    parse_options(options.runner_options)
    if shutil.which("sbatch") is None:
        raise UsageError("--runner slurm: this machine has no sbatch; give the command on a login node of the cluster")


def _run(graph: Callable[[Flow], None], options: RunnerOptions, tasks: int, progress: Progress) -> None:
    _check(options)
    raise UsageError("--runner slurm can't run this job: leave out --runner")


def _read(given: Sequence[str]) -> tuple[str, ...]:
    parse_options(given)
    return tuple(given)


SLURM = Runner(title="Slurm", run=_run, check=_check, read_options=_read, submits=True)
