"""Options of commands besides the options of their jobs: output, log, and worker processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from c4pipe.errors import UsageError
from c4pipe.io.options import Option
from c4pipe.runners.machine_limits import PROCESS_BYTES, allowed_workers

if TYPE_CHECKING:
    from c4pipe.io.paths import StoragePath


class Shown:
    """How a command shows its progress: not at all if it is quiet, or as lines of JSON."""

    quiet = False
    json_progress = False


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class QuietOptions(Shown):
    """Whether results and progress are printed."""

    quiet: Annotated[bool, Option("print only errors")] = False


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LogOptions(Shown):
    """The log, and progress for programs."""

    log: Annotated[
        Path | None, Option("append to FILE what the command does and when it does it", "FILE", parse=Path)
    ] = None
    json_progress: Annotated[bool, Option("print progress and outcome as lines of JSON, for programs")] = False


@dataclass(frozen=True, kw_only=True)
class TerminalOptions(LogOptions, QuietOptions):
    """The output of a command."""

    @property
    def hides_messages(self) -> bool:
        """Whether the messages of another runner's client (job ids, links, states) are hidden."""
        return self.quiet or self.json_progress


def path_or_url(text: str) -> "StoragePath":
    """Returns a folder or file of this machine or of an object store."""
    from c4pipe.io.paths import storage_path

    return storage_path(text)


def readable_path(text: str) -> "StoragePath":
    """Returns a folder or file to read, of this machine or of any store."""
    from c4pipe.io.paths import storage_path

    return storage_path(text, reads=True)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CorpusArgument:
    """A finished corpus."""

    corpus: Annotated[
        "StoragePath", Option("folder of a finished corpus", "CORPUS", positional=True, parse=path_or_url)
    ]


def start_workers(workers: int | None, runner: str | None, inputs: Sequence[str] = ()) -> None:
    """Starts the server of a command's worker processes. It imports their modules while this process makes the plan.

    Does nothing for another runner, one worker, one file, or small files without a number of workers: then no worker
    starts.
    """
    files = [Path(each) for each in inputs if Path(each).is_file()]
    is_small = not workers and sum(file.stat().st_size for file in files) < PROCESS_BYTES
    needs_one = 0 < len(files) == len(inputs) and (len(files) == 1 or is_small)
    if runner is None and not needs_one and (workers or allowed_workers().most) > 1:
        from c4pipe.runners.worker_pool import start_server

        start_server("c4pipe.jobs.worker_imports")


def refuse_job_file(beam: Sequence[str], why: str) -> None:
    """Raises UsageError if a command of several jobs is to be written to one file, given the options for Beam."""
    if any(option.startswith("--output_executable_path") for option in beam):
        raise UsageError(f"--output_executable_path writes one job to a file, and {why}")
