"""What runs a job, as a user asks for it, and what is told of its progress."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from c4pipe.errors import UsageError
from c4pipe.io.options import Option

if TYPE_CHECKING:
    from c4pipe.runners.events import ProgressEvent

SPARK = "spark"
"""The runner that is Spark itself, without Beam, as `--runner` names it."""

_LOCAL_NAMES = ("local", "localrunner")  # not runners


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
            "spark, or a Beam runner, such as FlinkRunner, DataflowRunner or DirectRunner; its own options follow "
            "after --",
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


@dataclass(frozen=True, kw_only=True)
class RunnerOptions(WorkerOptions, _NamedRunner):
    """The runner of a job and its options. Making the record imports no runner; `check_runner` looks the runner up.

    `runner` is None for the processes of this machine, `spark` (in any case) for Spark itself, or a runner of Apache
    Beam, such as `FlinkRunner` (in any case), or the path of a class, such as `package.module.MyRunner`.

    Raises UsageError for an option that this runner does not have.
    """

    def __post_init__(self) -> None:
        if self.runner is not None and self.runner.lower() in _LOCAL_NAMES:
            raise UsageError(f"there is no runner {self.runner}: leave out --runner to run on this machine")
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--workers {self.workers}: give 1 or more")
        if self.workers is not None and self.runner is not None:
            raise UsageError(
                f"--workers {self.workers} is only for this machine, and --runner is {self.runner}: "
                "leave one of them out"
            )
        if self.spark_master is not None and not self.is_spark:
            raise UsageError(f"--spark-master {self.spark_master} is only for --runner {SPARK}")
        if self.spark_settings and not self.is_spark:
            raise UsageError(f"{self.spark_settings[0]} is a setting of Spark: it is only for --runner {SPARK}")
        for setting in self.spark_settings:
            name, equals, _ = setting.partition("=")
            if not (name and equals):
                raise UsageError(f"--conf {setting}: give a name and a value, as in --conf spark.executor.memory=2g")
        if self.beam and any(option.partition("=")[0] == "--runner" for option in self.beam):
            raise UsageError("--runner is among the options for Beam: name the runner with runner=")
        if self.beam and (self.runner is None or self.is_spark):
            where = "this machine" if self.runner is None else "Spark itself"
            raise UsageError(f"{self.beam[0]} is an option of a Beam runner, not of {where}: name one with --runner")

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
    def is_spark(self) -> bool:
        """Whether the runner is Spark itself, without Beam."""
        return self.runner is not None and self.runner.lower() == SPARK


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
