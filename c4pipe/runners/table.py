"""The table of runners: all facts about each that `run_job`, the options and the command line use.

A package adds a runner by an entry point of the group `c4pipe.runners`, whose object is a `Runner`.
"""

import pkgutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from c4pipe.errors import UsageError

if TYPE_CHECKING:
    from c4pipe.runners.events import Progress
    from c4pipe.runners.flow import Flow
    from c4pipe.runners.runner_options import RunnerOptions

GROUP = "c4pipe.runners"
"""The group of entry points that add runners."""

_LOCAL = "c4pipe.runners.local_flow:LOCAL"
_NO_NAMES = ("local", "localrunner")
_NAMED = {
    "ray": "c4pipe.runners.engines:RAY",
    "spark": "c4pipe.runners.engines:SPARK",
    "slurm": "c4pipe.runners.slurm:SLURM",
}
_OTHERS = "c4pipe.runners.engines:BEAM"  # Beam has its own names, and takes the paths of classes

_SENTENCES = {
    "spark_master": "--spark-master {given} is only for --runner spark",
    "spark_settings": "{given} is a setting of Spark: it is only for --runner spark",
    "beam": "{given} is an option of a Beam runner, not of {title}: name one with --runner",
    "runner_options": "{given} is no option of {title}",
}
"""The options that only some runners have, each with the sentence for another runner."""


class Runner(NamedTuple):
    """A runner of jobs.

    Attributes:
        title: its name in sentences, such as `Spark itself`.
        run: runs a job to its end. It gets the function that connects the steps of the job, the options, the number of
            independent tasks, and the progress of the job, which it tells the runner's own id of the job.
        check: raises UsageError for options that the runner can't use. It starts nothing.
        read_options: returns the options after `--` as the field of `RunnerOptions` has them. Raises UsageError.
        options: the field of `RunnerOptions` for the options after `--`; "" if there are none.
        fields: further fields of `RunnerOptions` that this runner takes.
        module: the module that must be installed.
        package: the package of this module, by its name in sentences.
        install: the argument of `pip install` for the module.
        shares_files: whether bytes between two steps wait in files of the work folder, which all workers see.
        submits: whether jobs are submitted as batch scripts (`jobs/slurm.py`) and go on after the end of the command.
    """

    title: str
    run: "Callable[[Callable[[Flow], None], RunnerOptions, int, Progress], None]"
    check: "Callable[[RunnerOptions], None]" = lambda options: None
    read_options: Callable[[Sequence[str]], tuple[str, ...]] = tuple
    options: str = "runner_options"
    fields: tuple[str, ...] = ()
    module: str = ""
    package: str = ""
    install: str = ""
    shares_files: bool = False
    submits: bool = False

    def check_options(self, options: "RunnerOptions") -> None:
        """Raises UsageError if the runner is not installed or can't use the options. Starts nothing."""
        if options.workers is not None and not options.is_local:
            raise UsageError(
                f"--workers {options.workers} is only for this machine, and --runner is {options.runner}: "
                "leave one of them out"
            )
        if any(option.partition("=")[0] == "--runner" for option in options.beam):
            raise UsageError("--runner is among the options for Beam: name the runner with runner=")
        for field, sentence in _SENTENCES.items():
            given = getattr(options, field)
            if given and field not in (self.options, *self.fields):
                raise UsageError(sentence.format(given=given if isinstance(given, str) else given[0], title=self.title))
        if self.module and find_spec(self.module) is None:
            raise UsageError(
                f"--runner {options.runner} needs {self.package}, which is not installed: pip install {self.install}"
            )
        self.check(options)


def find_runner(name: str | None) -> Runner:
    """Returns the runner that `--runner` names, in any case; None is this machine. Imports no engine.

    A name that is not in the table is a runner of Beam: Beam's check says whether there is such a runner.
    Raises UsageError for a name of this machine, and if the entry point of a runner can't be imported.
    """
    lower = (name or "").lower()
    if lower in _NO_NAMES:
        raise UsageError(f"there is no runner {name}: leave out --runner to run on this machine")
    for entry in _entry_points() if name and lower not in _NAMED else ():
        if entry.name.lower() == lower:
            try:
                runner = entry.load()
            except (ImportError, AttributeError) as error:
                raise UsageError(f"--runner {name} can't be imported from {entry.value}: {error}") from error
            if not isinstance(runner, Runner):
                raise UsageError(f"--runner {name}: {entry.value} is not a Runner of c4pipe.runners.table")
            return runner
    found: Runner = pkgutil.resolve_name(_LOCAL if name is None else _NAMED.get(lower, _OTHERS))
    return found


def runner_names() -> tuple[str, ...]:
    """Returns the names in the table, without this machine and without those of Beam's runners."""
    return tuple(dict.fromkeys((*_NAMED, *(entry.name for entry in _entry_points()))))


def _entry_points() -> Any:
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)
