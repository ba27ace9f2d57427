"""Runs a job's graph on Spark itself, through PySpark, in the active session or in a new session."""

import logging
import os
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from pyspark import RDD, SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.partitions import SUMS, Created, Joined, Output, PartitionedFlow, groups, placed, work
from c4pipe.runners.runner_options import RunnerOptions

Shuffled: TypeAlias = "RDD[tuple[int, tuple[str, Any]]]"
"""(number of a partition, (label, element)). The label names the step and its output that the element comes from."""


class SparkFlow(PartitionedFlow):
    """Runs each step when it is added, as a Spark job of its own. See `flow.Flow`."""

    def __init__(self, context: SparkContext, tasks: int) -> None:
        """Takes Spark's context, and the number of independent tasks of the job, which is each shuffle's number of
        partitions.
        """
        self._context = context
        self._partitions = max(context.defaultParallelism, tasks)

    def __enter__(self) -> "SparkFlow":
        return self

    def __exit__(self, *_: object) -> None:
        self._context.setLocalProperty("spark.job.description", None)

    def map(self, name: str, elements: Created | Joined, step: Step) -> Mapping[str, list[Output]]:
        """Runs a step to its end, and returns its outputs, by name."""
        labels = {output: f"{name}: {output}" for output in step.outputs}
        results = self._elements(elements).mapPartitions(partial(work, pickle.dumps(step)))
        self._describe(name)
        if not labels:
            self._context.runJob(results, _exhaust)
            return {}
        shuffled = self._shuffle(results.mapPartitions(partial(placed, labels, step.sums, self._partitions)))
        # This Spark job does the whole shuffle and reads one partition: Spark has no job that only shuffles.
        self._context.runJob(shuffled, _exhaust, [SUMS])
        return {output: [Output(shuffled, label)] for output, label in labels.items()}

    def combine(self, name: str, elements: list[Output], add: Callable[[Iterable[Any]], Any]) -> Created:
        """Returns one element: the sum of all."""
        self._describe(name)
        sums: list[Any] = []
        for shuffled, label in elements:
            sums += self._context.runJob(shuffled, partial(_sum, label, add), [SUMS])
        return Created(name, [add(sums)])

    def _describe(self, name: str) -> None:
        self._context.setLocalProperty("spark.job.description", name)  # Spark's pages show it

    def _elements(self, collection: Created | Joined) -> "RDD[Any]":
        """Returns the elements that a step processes."""
        if isinstance(collection, Created):
            return self._context.parallelize(collection.elements, max(1, len(collection.elements)))
        shuffles = collection.shuffles
        pairs = self._context.union(shuffles) if len(shuffles) > 1 else shuffles[0]
        return pairs.mapPartitions(partial(groups, collection.names, collection.element))

    def shuffle(self, created: Created) -> list[Output]:
        """Returns created pairs as the output of a step."""
        results = partial(placed, {"": created.name}, (), self._partitions)
        pairs = self._context.parallelize([("", pair) for pair in created.elements]).mapPartitions(results)
        return [Output(self._shuffle(pairs), created.name)]

    def _shuffle(self, results: Shuffled) -> Shuffled:
        shuffled: Shuffled = results.partitionBy(1 + self._partitions, _itself)
        return shuffled


def _itself(partition: int) -> int:
    return partition


def _sum(
    label: str, add: Callable[[Iterable[Any]], Any], placed: Iterable[tuple[int, tuple[str, Any]]]
) -> Iterable[Any]:
    return [add(element for _, (each, element) in placed if each == label)]


def _exhaust(results: Iterable[Any]) -> Iterable[Any]:
    """Reads all results, because Spark ends a worker process that leaves input unread, and the next one starts cold."""
    for _ in results:
        pass
    return ()


LOG = logging.getLogger("c4pipe")

_DEFAULTS = {
    # Rows are hashes, and pages are compressed: another compression takes time and saves nothing.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.log.level": "ERROR",
}
"""Settings of a new session where the user gives no others."""

_WORKER_DIED = "Python worker exited unexpectedly"  # in the message of Spark's error


def run_on_spark(
    graph: Callable[[Flow], None], options: RunnerOptions, tasks: int, runs_as: Callable[[str], None]
) -> None:
    """Runs a job to its end on Spark.

    An active session, as in a notebook, is used. Otherwise a session is started. It lives as long as this process, so
    the next job can use it.

    Args:
        graph: connects the steps of the job.
        options: the options of the runner; `spark_master` and `spark_conf` are for a new session.
        tasks: the number of independent tasks.
        runs_as: called with Spark's application id.

    Raises UsageError if the active session has another master, or cannot run RDDs; C4pipeError if Spark can't start or
    a worker process is killed; and the errors of Spark.
    """
    context = _context(options)
    runs_as(context.applicationId)
    LOG.info("runner: spark, Spark %s, master %s, web page %s", context.version, context.master, context.uiWebUrl)
    try:
        with SparkFlow(context, tasks) as flow:
            graph(flow)
    except Exception as error:
        if _WORKER_DIED in str(error):
            raise C4pipeError(
                "a worker process was killed, perhaps because memory ran out: give executors more memory beside their "
                "heap (spark.executor.memoryOverhead) or fewer cores, and the same command continues from here"
            ) from error
        raise


def _context(options: RunnerOptions) -> SparkContext:
    session = SparkSession.getActiveSession()
    if session is None:
        return _new_session(options).sparkContext
    try:
        context = session.sparkContext
    except Exception:  # of a session of Spark Connect; its class depends on the version
        raise UsageError(
            "this session is one of Spark Connect, which has no RDDs: use a session of the cluster itself"
        ) from None
    if options.spark_master not in (None, context.master):
        raise UsageError(f"--spark-master {options.spark_master}: there is a session of {context.master} already")
    return context


def _new_session(options: RunnerOptions) -> SparkSession:
    """Starts Spark, or connects to the Spark that `spark-submit` has started. Raises C4pipeError if that fails."""
    given = SparkConf(loadDefaults=False).set("spark.ui.showConsoleProgress", "false")
    if options.spark_master:
        given.setMaster(options.spark_master)
    # Java only moves bytes here: its second compiler takes seconds of a short job and saves none of a long one, and
    # its usual collector takes memory and saves no time.
    given.set("spark.driver.defaultJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    given.set("spark.executor.defaultJavaOptions", "-XX:+UseSerialGC")
    for setting in options.spark_settings:
        name, _, value = setting.partition("=")
        given.set(name, value)
    reading, writing = os.pipe()
    last_lines = deque[str](maxlen=5)
    logging_thread = threading.Thread(target=_log_lines, args=(reading, last_lines), name="Spark's log", daemon=True)
    logging_thread.start()
    try:
        gateway = launch_gateway(given, {"stderr": writing})
    except Exception as error:
        os.close(writing)
        logging_thread.join(5)
        why = next((line for line in reversed(last_lines) if line), str(error))
        raise C4pipeError(f"Spark can't start: {why} (Spark 4 needs Java 17 or newer)") from error
    os.close(writing)
    conf = SparkConf(_jvm=gateway.jvm)  # with the settings of Spark's files and of spark-submit
    for name, value in _DEFAULTS.items():
        conf.setIfMissing(name, value)
    if conf.get("spark.app.name", "pyspark-shell") == "pyspark-shell":
        conf.setAppName("c4pipe")
    # Without it, workers run the first python3 of their PATH.
    os.environ.setdefault("PYSPARK_PYTHON", conf.get("spark.pyspark.python") or sys.executable)
    SparkContext(conf=conf, gateway=gateway)
    return SparkSession.builder.getOrCreate()


def _log_lines(file: int, last_lines: deque[str]) -> None:
    """Logs what Spark's own process writes to its standard error, and keeps its last lines."""
    with os.fdopen(file, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            last_lines.append(line.rstrip())
            LOG.info("Spark: %s", line.rstrip())
