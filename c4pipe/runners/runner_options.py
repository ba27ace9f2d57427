"""What runs a job, as a user asks for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from c4pipe.errors import UsageError

SPARK = "spark"
"""The runner that is Spark itself, without Beam, as `--runner` names it."""

_LOCAL_NAMES = ("local", "localrunner")  # no runners: a user of another version or library may try them


@dataclass(frozen=True, kw_only=True)
class RunnerOptions:
    """What runs a job. To make it imports no runner; `check_runner` looks up what it names.

    Attributes:
        runner: None for the processes of this machine; `spark` (in any case) for Spark itself; or a runner of Apache
            Beam, such as `FlinkRunner` (in any case), or the path of a class, such as `package.module.MyRunner`.
        workers: the number of processes on this machine; None for one for each core (at most one for each task).
        beam: options for a runner of Beam, as on its command line, such as `("--parallelism=8",)`.
        spark_master: the master of Spark, such as `local[2]` or `spark://host:7077`; None for Spark's own setting.
        spark_conf: settings of Spark, such as `spark.executor.memory=2g`.
        quiet: whether the messages of another runner's client (job ids, links, states) are hidden.

    Raises UsageError for an option that this runner has not.
    """

    runner: str | None = None
    workers: int | None = None
    beam: tuple[str, ...] = ()
    spark_master: str | None = None
    spark_conf: tuple[str, ...] = ()
    quiet: bool = False

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
        if self.spark_conf and not self.is_spark:
            raise UsageError(f"{self.spark_conf[0]} is a setting of Spark: it is only for --runner {SPARK}")
        for setting in self.spark_conf:
            name, equals, _ = setting.partition("=")
            if not (name and equals):
                raise UsageError(f"--conf {setting}: give a name and a value, as in --conf spark.executor.memory=2g")
        if self.beam and any(option.partition("=")[0] == "--runner" for option in self.beam):
            raise UsageError("--runner is among the options for Beam: name the runner with runner=")
        if self.beam and (self.runner is None or self.is_spark):
            where = "this machine" if self.runner is None else "Spark itself"
            raise UsageError(f"{self.beam[0]} is an option of a Beam runner, not of {where}: name one with --runner")

    @classmethod
    def of_arguments(
        cls,
        runner: str | None,
        workers: int | None,
        spark_master: str | None,
        spark_conf: Mapping[str, str] | None,
        beam: Sequence[str],
    ) -> "RunnerOptions":
        """Returns the options for arguments of the Python API, which prints nothing."""
        return cls(
            runner=runner,
            workers=workers,
            beam=tuple(beam),
            spark_master=spark_master,
            spark_conf=tuple(f"{name}={value}" for name, value in (spark_conf or {}).items()),
            quiet=True,
        )

    @property
    def is_spark(self) -> bool:
        """Whether the runner is Spark itself, without Beam."""
        return self.runner is not None and self.runner.lower() == SPARK
