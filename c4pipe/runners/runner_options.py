"""The runner of a job, as a user asks for it, and the progress that is shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from c4pipe.errors import UsageError
from c4pipe.io.options import Option

if TYPE_CHECKING:
    from c4pipe.runners.events import ProgressEvent


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class WorkerOptions:
    """The number of processes of this machine for a job, and its progress."""

    workers: Annotated[
        int | None,
        Option("number of processes on this machine", "N", otherwise="one for each core, one for small inputs"),
    ] = None
    progress: Annotated[
        "Callable[[ProgressEvent], None] | bool | None",
        Option(
            "True shows a bar in a terminal or notebook; a function is called about once a second with a "
            "`ProgressEvent`, in a thread of its own",
            in_python=True,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunnerOptions(WorkerOptions):
    """The runner of a job and its options. Making the record imports no runner; `check_runner` looks the runner up.

    `runner` is None for the processes of this machine, a name of the table of runners, such as `spark`, or a runner of
    Apache Beam, such as `FlinkRunner`, all in any case; or the path of a class of Beam, as `package.module.MyRunner`.
    """

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
    is_submitted: ClassVar[bool] = False
    """Whether the job can be submitted to Slurm."""

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--workers {self.workers}: give 1 or more")

    def useful_tasks(self, tasks: int, size: int, least: int) -> int:
        """Returns the number of tasks; on this machine without --workers, at most one for each `least` of `size`."""
        return min(tasks, 1 + size // least) if self.is_local and not self.workers else tasks

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
    def is_local(self) -> bool:
        """Whether the job runs in processes of this machine."""
        return self.runner is None
