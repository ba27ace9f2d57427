"""Runs a job's graph on Spark itself, through PySpark, in the active context or session, or in a new context.

Each step is one job of Spark, with the step's name as its description. Spark only runs tasks, as an RDD of pickled
elements: Spark's SQL would take a third of a small job's CPU. Spark Connect has no RDDs, and gets DataFrames. Rows and
pages between two steps wait in files that all workers see (`Spill`), and this process holds references to them: nothing
is stored twice, and no step runs twice. A worker process keeps the step that it has set up.
"""

import contextlib
import os
import pickle
import socket
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.log import LOG
from c4pipe.io.words import error_reason, format_count
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.local_flow import Collection, LocalFlow, Sum, by_name
from c4pipe.runners.partitions import apply_in_arrow, apply_step
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.worker import show_pandas

if TYPE_CHECKING:
    from pyspark import SparkContext

_LEAST_TASKS = 200
"""How many tasks a step has, unless it has fewer elements or the job has more tasks."""

_LONGEST_RUN = 32
"""Elements of a task of a step whose data go through a store: its machine has a copy of the data."""

_LOOK_SECONDS = 10.0
"""Between two looks at how many tasks of a job have failed."""


class SparkFlow(LocalFlow):
    """Runs each step when it is added, as a Spark job of its own; a step whose input is a sum, in this process."""

    def __init__(self, spark: "SparkContext | SparkSession", tasks: int, progress: Progress) -> None:
        """Takes Spark's context or a session of Spark Connect, the job's number of independent tasks, its progress."""
        super().__init__(1)
        self._spark, self._tasks, self._progress = spark, max(tasks, _LEAST_TASKS), progress

    def map(self, name: str, elements: list[Any], step: Step) -> Mapping[str, Collection]:
        """Runs a step to its end, and returns its outputs, by name."""
        if isinstance(elements, Sum):
            return super().map(name, elements, step)
        return by_name(step, self._run(name, elements, step))

    def _run(self, name: str, elements: Sequence[Any], step: Step) -> Iterator[list[tuple[str, Any]]]:
        """Yields the outputs of each element."""
        if not elements:
            return
        most = max(_LEAST_TASKS, -(-len(elements) // _LONGEST_RUN)) if step.in_runs else self._tasks
        count = min(len(elements), most)
        bounds = pairwise(len(elements) * number // count for number in range(count + 1))
        runs = [pickle.dumps(elements[first:end]) for first, end in bounds]
        done = deque(_collect(self._spark, name, pickle.dumps(step), runs, self._progress))
        while done:
            yield pickle.loads(done.popleft())


def _collect(spark: Any, name: str, packed: bytes, runs: list[bytes], progress: Progress) -> Iterable[bytes]:
    """Runs a pickled step as a job of Spark. Returns the pickled outputs of each pickled run of elements."""
    tasks = max(1, len(runs))
    with _follow_job(spark, name, progress):
        if not is_remote():
            made: list[bytes] = spark.parallelize(runs, tasks).mapPartitions(partial(apply_step, packed)).collect()
            return made
        rows = spark.createDataFrame([(run,) for run in runs], "run binary")
        # From one partition, Spark gives each of the others the same number of rows.
        rows = rows.coalesce(1).repartition(tasks).mapInArrow(partial(apply_in_arrow, packed), "result binary")
        return [row[0] for row in rows.collect()]


@contextlib.contextmanager
def _follow_job(spark: Any, name: str, progress: Progress) -> Iterator[None]:
    """Gives Spark's job inside of the `with` block a name, which Spark's pages show, and notes its failed tasks."""
    with contextlib.ExitStack() as ending:
        if is_remote():
            tag = name.replace(",", " ")
            spark.addTag(tag)
            ending.callback(spark.removeTag, tag)
        else:
            spark.setLocalProperty("spark.job.description", name)
            ending.callback(spark.setLocalProperty, "spark.job.description", None)
            ended = threading.Event()
            watching = threading.Thread(target=_watch_tasks(spark, name, progress, ended), daemon=True)
            watching.start()
            ending.callback(watching.join)
            ending.callback(ended.set)
        yield


def _watch_tasks(spark: "SparkContext", name: str, progress: Progress, ended: threading.Event) -> Callable[[], None]:
    """Returns a function that notes how many tasks of the next job have failed; each note has twice as many."""
    status = spark.statusTracker()
    find_jobs = partial(status.getJobIdsForGroup, spark.getLocalProperty("spark.jobGroup.id"))  # of this thread
    earlier = set(find_jobs())

    def watch() -> None:
        told, is_last = 0, False
        with contextlib.suppress(Exception):  # Java has ended: the job itself says so
            while not is_last:
                is_last = ended.wait(_LOOK_SECONDS)
                jobs = map(status.getJobInfo, set(find_jobs()) - earlier)
                stages = [status.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
                failed = sum(stage.numFailedTasks for stage in stages if stage)
                if failed > 2 * told:
                    told, tasks = failed, f'{format_count(failed, "task")} of the step "{name}"'
                    progress.note(f"Spark tries {tasks} again: a worker was lost, or an error came; its pages say why")

    return watch


_CONNECT_PORT = 15002  # Spark's default

_NOT_THERE = (
    "Spark's workers have no c4pipe of this version: install it in their Python (PYSPARK_PYTHON, for a Spark Connect "
    "server where it starts)"
)
_SENTENCES = {
    "Python worker exited unexpectedly": (
        "a worker process was killed, perhaps because memory ran out: give executors more memory beside their "
        "heap (spark.executor.memoryOverhead) or fewer cores, and the same command continues from here"
    ),
    "PYTHON_VERSION_MISMATCH": (
        f"Spark's workers run another version of Python than {sys.version_info[0]}.{sys.version_info[1]}, which runs "
        "this command: set PYSPARK_PYTHON, for a Spark Connect server where it starts, to a Python of this version "
        "that has c4pipe"
    ),
    "Cannot run program": (
        "Spark can't start Python on its workers: set PYSPARK_PYTHON to a path that each of them has, of a Python with "
        "c4pipe"
    ),
    "No module named 'c4pipe'": _NOT_THERE,
    "c4pipe.runners.spark_daemon's stdout": _NOT_THERE,
    "No module named 'pyarrow'": _NOT_THERE,
}
"""Words in the message of Spark's error, and the sentence for the user."""


def run_on_spark(graph: Callable[[Flow], None], options: RunnerOptions, tasks: int, progress: Progress) -> None:
    """Runs a job to its end on Spark.

    An active context or session, as in a notebook, is used. Otherwise a context is started. It lives as long as this
    process, so the next job can use it.

    Args:
        graph: connects the steps of the job.
        options: the options of the runner; `spark_master` and `spark_conf` are for a new context.
        tasks: the number of independent tasks.
        progress: gets Spark's application id, or the id of a session of Spark Connect.

    Raises UsageError if the active session has another master; C4pipeError if Spark can't start or be reached, if a
    worker process is killed, or if the workers' Python can't work for this one; and the errors of Spark.
    """
    own = show_pandas()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        try:
            spark = _find_spark(options, progress, own)
            if is_remote():
                progress.runs_as(spark.client._session_id)
                LOG.info("runner: spark, Spark %s, Spark Connect at %s", spark.version, spark.client.host)
            else:
                progress.runs_as(spark.applicationId)
                LOG.info("runner: spark, Spark %s, master %s, web page %s", spark.version, spark.master, spark.uiWebUrl)
            with SparkFlow(spark, tasks, progress) as flow:
                graph(flow)
        except Exception as error:
            text = str(error)
            for sign, sentence in _SENTENCES.items():
                if sign in text:
                    raise C4pipeError(sentence) from error
            raise


def _find_spark(options: RunnerOptions, progress: Progress, own: bool) -> Any:
    """Returns Spark's context, or a session of Spark Connect; `own` tells whether this process runs nothing else."""
    master = options.spark_master
    if master.startswith("sc://") if master else is_remote() or "SPARK_REMOTE" in os.environ:
        return _connect_session(options)
    if is_remote():
        raise UsageError(f"--spark-master {master}: there is a session of Spark Connect already")
    context = _active_context()
    if context is not None and master not in (None, context.master):
        raise UsageError(f"--spark-master {master}: there is a session of {context.master} already")
    if context is None:
        progress.note("Spark starts: 10 to 20 seconds on an idle machine")
        context = _new_context(options, own)
        _collect(context, "Start Python", b"", [], progress)  # the wrong Python fails before the work begins
    return context


def _active_context() -> "SparkContext | None":
    """Returns the context of this process, also of a session; None without any."""
    # Deferred: it is not in the package that has only Spark Connect (pyspark-client).
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def _connect_session(options: RunnerOptions) -> SparkSession:
    """Returns the active session of Spark Connect, or a new session.

    Raises UsageError if there is a session of another server, or for a setting that only the server can have;
    C4pipeError if no server answers.
    """
    url = options.spark_master or os.environ.get("SPARK_REMOTE")
    server = urlsplit(url or "")
    shown = f"sc://{server.hostname}:{server.port or _CONNECT_PORT}"  # the rest of the URL can have a token
    if options.spark_master and not is_remote() and (classic := _active_context()):
        raise UsageError(f"--spark-master {shown}: there is a session of {classic.master} already")
    if server.hostname and not (is_remote() or getproxies().keys() - {"no"}):  # PySpark would try again for ten minutes
        try:
            socket.create_connection((server.hostname, server.port or _CONNECT_PORT), 10).close()
        except OSError as error:
            raise C4pipeError(
                f"{shown}: no Spark Connect server answers there ({error_reason(error)}); start it, or correct the "
                "address"
            ) from None
    if url and url.startswith("local"):  # PySpark starts the server
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        if is_remote():
            from pyspark.sql.connect.session import SparkSession as ConnectSession

            builder: Any = ConnectSession.builder
        else:
            builder = SparkSession.builder
        session: SparkSession = (builder.remote(url) if url else builder).getOrCreate()
    except ImportError as error:
        raise C4pipeError(f"Spark Connect needs more packages: pip install 'c4pipe[spark]' ({error})") from error
    if server.hostname and options.spark_master and session.client.host != server.hostname:
        raise UsageError(f"--spark-master {shown}: there is a session of {session.client.host} already")
    for setting in options.spark_settings:
        name, _, value = setting.partition("=")
        if not session.conf.isModifiable(name):
            raise UsageError(f"--conf {setting} is a setting of the server of Spark Connect: give it where it starts")
        session.conf.set(name, value)
    return session


def _new_context(options: RunnerOptions, own: bool) -> "SparkContext":
    """Starts Spark, or connects to the Spark that `spark-submit` has started. Raises C4pipeError if that fails."""
    from pyspark import SparkConf, SparkContext  # deferred as in `_active_context`

    given = SparkConf(loadDefaults=False).set("spark.ui.showConsoleProgress", "false")
    if options.spark_master:
        given.setMaster(options.spark_master)
    # Java only moves bytes here: its second compiler takes seconds of a short job and saves none of a long one, and
    # its usual collector takes memory and saves no time.
    for process in ("driver", "executor"):
        given.set(f"spark.{process}.defaultJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    given.setAll(setting.partition("=")[::2] for setting in options.spark_settings)
    started = SparkContext._gateway  # by a session that was stopped since: a process has one Java
    gateway = started or _start_java(given)
    conf = SparkConf(_jvm=gateway.jvm)  # with the settings of Spark's files and of spark-submit
    conf.setAll(given.getAll() if started else [])
    conf.setIfMissing("spark.log.level", "ERROR")
    if own:  # its workers have no pandas, and tasks of a user's own could need it
        conf.setIfMissing("spark.python.daemon.module", "c4pipe.runners.spark_daemon")
    if conf.get("spark.app.name", "pyspark-shell") == "pyspark-shell":
        conf.setAppName("c4pipe")
    # Without it, workers run the first python3 of their PATH.
    os.environ.setdefault("PYSPARK_PYTHON", conf.get("spark.pyspark.python") or sys.executable)
    return SparkContext(conf=conf, gateway=gateway)


def _start_java(given: Any) -> Any:
    """Starts Java with the settings `given`, a `SparkConf`, and returns the gateway to it.

    Raises C4pipeError if that fails.
    """
    from pyspark.java_gateway import launch_gateway

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
    return gateway


def _log_lines(file: int, last_lines: deque[str]) -> None:
    """Logs what Spark's own process writes to its standard error, and keeps its last lines."""
    with os.fdopen(file, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            last_lines.append(line.rstrip())
            LOG.info("Spark: %s", line.rstrip())
