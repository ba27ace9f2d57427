"""Spark in the table of runners, and its options."""

import re
from collections.abc import Callable, Sequence

from c4pipe.errors import UsageError
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import Runner

_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|yarn|(spark|k8s|mesos|sc)://.+")


def _check(options: RunnerOptions) -> None:
    master = options.spark_master
    if master is not None and not _MASTER.fullmatch(master):
        raise UsageError(
            f"--spark-master {master} is no master of Spark: give one such as local[2], spark://HOST:7077, yarn, "
            "k8s://https://HOST:6443 or sc://HOST:15002"
        )
    for setting in options.spark_settings:
        name, equals, _ = setting.partition("=")
        if not (name and equals):
            raise UsageError(f"--conf {setting}: give a name and a value, as in --conf spark.executor.memory=2g")


def _read(given: Sequence[str]) -> tuple[str, ...]:
    """Returns the settings of Spark among the options after `--`."""
    settings, left = [], list(given)
    while left:
        option, equals, setting = left.pop(0).partition("=")
        if option != "--conf":
            raise UsageError(f"{option}: with --runner spark, only --conf NAME=VALUE can follow --, repeatedly")
        settings.append(setting if equals or not left else left.pop(0))
    return tuple(settings)


def _run(graph: Callable[[Flow], None], options: RunnerOptions, tasks: int, progress: Progress) -> None:
    from c4pipe.runners.spark_runner import run_on_spark

    run_on_spark(graph, options, tasks, progress)


SPARK = Runner(
    title="Spark itself",
    run=_run,
    check=_check,
    read_options=_read,
    options="spark_conf",
    fields=("spark_master", "spark_settings"),
    module="pyspark",
    package="PySpark",
    install="'c4pipe[spark]'",
    shares_files=True,
)
