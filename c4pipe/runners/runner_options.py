"""What runs a job, as a user asks for it, and what is told of its progress."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from c4pipe.errors import UsageError
from c4pipe.io.options import Option
from c4pipe.runners.table import Runner, find_runner, runner_in_table

if TYPE_CHECKING:
    from c4pipe.runners.events import ProgressEvent

_LOCAL_NAMES = ("local", "localrunner")  # not runners
_OF_RUNNERS = {
    "spark_master": "--spark-master {} is only for --runner spark",
    "spark_conf": "{} is a setting of Spark: it is only for --runner spark",
    "beam": "{} is an option of a Beam runner, not of {title}: name one with --runner",
    "runner_options": "{} is no option of {title}",
}
"""The options that only some runners have, each with the sentence for another runner."""


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How many processes of this machine run a job."""

    workers: Annotated[
        int | None,
        Option(
            "number of processes on this machine",
            "N",
            otherwise="one for each core that it may use",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class _NamedRunner:
    runner: Annotated[
        str | None,
        Option(
            "slurm, ray, spark, or a Beam runner, such as FlinkRunner, DataflowRunner or DirectRunner; its own options "
            "follow after --",
            "NAME",
            otherwise="this machine",
        ),
    ] = None
    spark_master: Annotated[
        str | None,
        Option(
            "the master for --runner spark, such as local[2] or spark://HOST:7077",
            "URL",
            otherwise="Spark's own setting",
        ),
    ] = None
    spark_conf: Annotated[
        Mapping[str, str] | Sequence[str] | None,
        Option('settings for --runner spark, such as {"spark.executor.memory": "2g"}', in_python=True),
    ] = ()
    beam: Annotated[
        Sequence[str], Option('options for a runner of Beam, such as ["--parallelism=8"]', in_python=True)
    ] = ()
    runner_options: Annotated[Sequence[str], Option("options for any other runner", in_python=True)] = ()


@dataclass(frozen=True, kw_only=True)
class RunnerOptions(WorkerOptions, _NamedRunner):
    """The runner of a job and its options. Making the record imports no runner; `check_runner` looks the runner up.

    `runner` is None for the processes of this machine, a name of the table of runners, such as `spark`, or a runner of
    Apache Beam, such as `FlinkRunner`, all in any case; or the path of a class of Beam, as `package.module.MyRunner`.

    Raises UsageError for an option that this runner does not have, if it is in c4pipe's own table.
    """

    def __post_init__(self) -> None:
        if self.runner is not None and self.runner.lower() in _LOCAL_NAMES:
            raise UsageError(f"there is no runner {self.runner}: leave out --runner to run on this machine")
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--workers {self.workers}: give 1 or more")
        if (runner := runner_in_table(self.runner)) is not None:  # to find any other runner, files are read
            self.check_fields(runner)

    def check_fields(self, runner: Runner) -> None:
        """Raises UsageError for an option that this runner does not have."""
        if self.workers is not None and not runner.is_local:
            raise UsageError(
                f"--workers {self.workers} is only for this machine, and --runner is {self.runner}: "
                "leave one of them out"
            )
        if any(option.partition("=")[0] == "--runner" for option in self.beam):
            raise UsageError("--runner is among the options for Beam: name the runner with runner=")
        for field, sentence in _OF_RUNNERS.items():
            given = self.spark_settings if field == "spark_conf" else getattr(self, field)
            if given and field not in (runner.options, *runner.fields):
                raise UsageError(sentence.format(given if isinstance(given, str) else given[0], title=runner.title))

    @property
    def spark_settings(self) -> tuple[str, ...]:
        """The settings of Spark, such as `spark.executor.memory=2g`."""
        given = self.spark_conf or ()
        return tuple(f"{name}={given[name]}" for name in given) if isinstance(given, Mapping) else tuple(given)

    @property
    def hides_messages(self) -> bool:
        """Whether the messages of another runner's client (job ids, links, states) are hidden."""
        return True

    @property
    def is_submitted(self) -> bool:
        """Whether the job can be submitted to Slurm."""
        return False

    @property
    def is_local(self) -> bool:
        """Whether all processes of the job are on this machine."""
        return find_runner(self.runner).is_local

    @property
    def shares_files(self) -> bool:
        """Whether bytes between two steps wait in files that all workers see."""
        return find_runner(self.runner).shares_files


@dataclass(frozen=True, kw_only=True)
class ProgressOptions:
    """What is told of a job."""

    progress: Annotated[
        "Callable[[ProgressEvent], None] | bool | None",
        Option(
            "True shows a bar in a terminal or notebook; a function is called about once a second with a "
            "`ProgressEvent`, in a thread of its own",
            in_python=True,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class JobOptions(ProgressOptions, RunnerOptions):
    """What runs a job, and what is told of it."""


def is_slurm(options: RunnerOptions) -> bool:
    """Tells whether options name Slurm."""
    return options.runner is not None and options.runner.lower() == "slurm"
