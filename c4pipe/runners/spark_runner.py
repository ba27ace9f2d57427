"""Runs a job's graph on Spark itself, through PySpark, in the session that is there or in a new one."""

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.spark_flow import SparkFlow

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

    A session that is there is used, as in a notebook. Else one is started, which lives as long as this process, for the
    next job.

    Args:
        graph: connects the steps of the job.
        options: what runs the job; `spark_master` and `spark_conf` are for a new session.
        tasks: the number of independent tasks.
        runs_as: called with Spark's application id.

    Raises UsageError where the session that is there is of another master, or cannot run RDDs; C4pipeError where Spark
    can't start or a worker process is killed; and what Spark raises.
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
    """Starts Spark, or connects to the one that `spark-submit` has started. Raises C4pipeError where it can't."""
    given = SparkConf(loadDefaults=False).set("spark.ui.showConsoleProgress", "false")
    if options.spark_master:
        given.setMaster(options.spark_master)
    # Java only moves bytes here: its second compiler takes seconds of a short job and saves none of a long one, and
    # its usual collector takes memory and saves no time.
    given.set("spark.driver.defaultJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    given.set("spark.executor.defaultJavaOptions", "-XX:+UseSerialGC")
    for setting in options.spark_conf:
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
    conf = SparkConf(_jvm=gateway.jvm)  # with what the files of Spark and spark-submit say
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
