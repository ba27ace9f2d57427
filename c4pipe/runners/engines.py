"""The entries of Ray, Spark and Beam in the table of runners. An engine is imported when a job runs on it."""

import os
import re
from collections.abc import Callable, Sequence

from c4pipe.errors import UsageError
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import Runner

_Graph = Callable[[Flow], None]
_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|yarn|(spark|k8s|mesos|sc)://.+")


def _run_on_ray(graph: _Graph, options: RunnerOptions, tasks: int, progress: Progress) -> None:
    from c4pipe.runners.ray_runner import run_on_ray

    run_on_ray(graph, tasks, progress)


def _check_ray(options: RunnerOptions) -> None:
    address = os.environ.get("RAY_ADDRESS", "")
    if "://" in address:
        raise UsageError(
            f"RAY_ADDRESS is {address}, and c4pipe works on a node of the cluster itself: give HOST:PORT of its head "
            "node, or run the command there with ray job submit"
        )


def _refuse_options(given: Sequence[str]) -> tuple[str, ...]:
    raise UsageError(f"{given[0]}: --runner ray takes no options after --; RAY_ADDRESS names the cluster")


RAY = Runner(
    title="Ray",
    run=_run_on_ray,
    check=_check_ray,
    read_options=_refuse_options,
    options="",
    module="ray",
    package="Ray",
    install="'c4pipe[ray]'",
)


def _run_on_spark(graph: _Graph, options: RunnerOptions, tasks: int, progress: Progress) -> None:
    from c4pipe.runners.spark_runner import run_on_spark

    run_on_spark(graph, options, tasks, progress)


def _check_spark(options: RunnerOptions) -> None:
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


def _read_settings(given: Sequence[str]) -> tuple[str, ...]:
    """Returns the settings of Spark among the options after `--`."""
    settings, left = [], list(given)
    while left:
        option, equals, setting = left.pop(0).partition("=")
        if option != "--conf":
            raise UsageError(f"{option}: with --runner spark, only --conf NAME=VALUE can follow --, repeatedly")
        settings.append(setting if equals or not left else left.pop(0))
    return tuple(settings)


SPARK = Runner(
    title="Spark itself",
    run=_run_on_spark,
    check=_check_spark,
    read_options=_read_settings,
    options="spark_conf",
    fields=("spark_master", "spark_settings"),
    module="pyspark",
    package="PySpark",
    install="'c4pipe[spark]'",
    shares_files=True,
)


def _run_on_beam(graph: _Graph, options: RunnerOptions, tasks: int, progress: Progress) -> None:
    from c4pipe.runners.beam_runner import run_on_beam

    run_on_beam(graph, options, progress)


def _check_beam(options: RunnerOptions) -> None:
    from c4pipe.runners.beam_runner import find_beam_runner

    find_beam_runner(options)


BEAM = Runner(
    title="a Beam runner",
    run=_run_on_beam,
    check=_check_beam,
    options="beam",
    module="apache_beam",
    package="Apache Beam",
    install="apache-beam",
)
