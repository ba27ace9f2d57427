"""Real engines on this machine, each as a context that gives the options for Beam and ends what it started."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fetch import Engines

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.helpers.java import QUICK_JAVA
from tests.helpers.loopback import free_port as free_port
from tests.helpers.slurm_cluster import missing_programs, slurm_cluster

HOST = "127.0.0.1"
BOOT = Path(sys.executable).parent / "c4pipe-boot"
PROCESS = ["--environment_type=PROCESS", f"--environment_config={json.dumps({'command': str(BOOT)})}"]
SUBMITTED = ["--runner=PortableRunner", "--"]

_PACKAGES = [
    "lang",
    "lang.invoke",
    "lang.reflect",
    "io",
    "net",
    "nio",
    "util",
    "util.concurrent",
    "util.concurrent.atomic",
]  # of java.base, that Spark and Flink open for themselves where they are started by their own scripts
_OPENS = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _PACKAGES] + [
    f"--add-opens=java.base/sun.{name}=ALL-UNNAMED" for name in ("nio.ch", "nio.cs", "security.action", "util.calendar")
]
_JAVA = ["java", *QUICK_JAVA, *_OPENS]

_TASK_MANAGER = {
    "taskmanager.cpu.cores": "2",
    "taskmanager.memory.framework.heap.size": "128mb",
    "taskmanager.memory.framework.off-heap.size": "128mb",
    "taskmanager.memory.task.heap.size": "512mb",
    "taskmanager.memory.task.off-heap.size": "0b",
    "taskmanager.memory.managed.size": "512mb",
    "taskmanager.memory.network.min": "512mb",  # each of dedup's shuffles takes buffers: the default is too few
    "taskmanager.memory.network.max": "512mb",
    "taskmanager.memory.jvm-metaspace.size": "256mb",
    "taskmanager.memory.jvm-overhead.min": "192mb",
    "taskmanager.memory.jvm-overhead.max": "192mb",
}


@contextmanager
def local(workers: int) -> Iterator[list[str]]:
    """The local runner."""
    yield ["--workers", str(workers)]


@contextmanager
def slurm(folder: Path) -> Iterator[list[str]]:
    """A Slurm of two nodes without a common /tmp, whose arrays have at most three tasks; it needs root."""
    if os.geteuid() or missing_programs():
        sys.exit("Slurm needs root, and the programs that scripts/system-packages installs")
    with slurm_cluster(largest_array=3, shared=folder) as cluster:
        os.environ.update({name: cluster.environment[name] for name in ("SLURM_CONF", "PATH", "PYTHONPATH")})
        options = ["--cpus-per-task=2", "--mem-per-cpu=1G", "--files-per-task=1", "--array-parallelism=2"]
        yield ["--wait", "--runner", "slurm", "--", *options]


@contextmanager
def ray(folder: Path) -> Iterator[list[str]]:
    """A Ray cluster of a head, which has no work, and two nodes of a core each."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_health_check_period_ms": "500"}  # a lost node is found sooner
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 200 << 20})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, object_store_memory=200 << 20)
        os.environ["RAY_ADDRESS"] = cluster.address
        yield ["--runner=ray"]
    finally:
        os.environ.pop("RAY_ADDRESS", None)
        cluster.shutdown()


@contextmanager
def prism(engines: Engines, folder: Path) -> Iterator[list[str]]:
    """Beam's own portable engine."""
    yield ["--runner=PrismRunner", "--", f"--prism_location={engines.prism}", "--environment_type=LOOPBACK"]


@contextmanager
def spark_local(home: Path) -> Iterator[list[str]]:
    """Spark itself in one process, `local[2]`."""
    with _spark_environment(home):
        yield _native("local[2]")


@contextmanager
def spark_cluster(home: Path, folder: Path, conf: Sequence[str] = ()) -> Iterator[list[str]]:
    """Spark itself on a standalone cluster of a master and two workers."""
    with _spark_environment(home), spark_master(home, folder) as master:
        yield [*_native(master), *(part for setting in conf for part in ("--conf", setting))]


@contextmanager
def spark_connect(home: Path, folder: Path) -> Iterator[list[str]]:
    """A server of Spark Connect on the same cluster."""
    port = free_port()
    command = [str(home / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    settings = {"spark.connect.grpc.binding.port": port, "spark.driver.host": HOST, "spark.ui.enabled": "false"}
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    log = folder / "connect.log"
    with (
        _spark_environment(home),
        spark_master(home, folder) as master,
        started([*command, "--master", master, "spark-internal"], log) as program,
    ):
        wait(lambda: listens(port), "Spark Connect's server", log, program)
        yield ["--runner=spark", f"--spark-master=sc://{HOST}:{port}"]


@contextmanager
def spark_submit(home: Path, folder: Path) -> Iterator[list[str]]:
    """The same cluster, for `spark-submit`: gives the command, then the options for c4pipe."""
    script = folder / "submit.py"
    script.write_text("from c4pipe.cli.main import run\n\nrun()\n")
    with _spark_environment(home), spark_master(home, folder) as master:
        submit = [str(home / "bin" / "spark-submit"), "--master", master, "--conf", f"spark.driver.host={HOST}"]
        yield [" ".join([*submit, str(script)]), "--runner=spark"]


def _native(master: str) -> list[str]:
    return ["--runner=spark", f"--spark-master={master}", "--", "--conf", f"spark.driver.host={HOST}"]


@contextmanager
def _spark_environment(home: Path) -> Iterator[None]:
    """Makes commands use this Spark and its PySpark, and the Python of this process, as an administrator would."""
    values = {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if (home / "python").exists():  # not in the one that pip installs
        (py4j,) = (home / "python" / "lib").glob("py4j-*.zip")
        values["PYTHONPATH"] = f"{home / 'python'}:{py4j}"
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def beam_spark_local(engines: Engines, folder: Path) -> Iterator[list[str]]:
    """Spark in one process, `local[2]`, with workers that are threads of the client."""
    with _spark_job_server(engines, folder, "local[2]") as endpoint:
        yield [*SUBMITTED, f"--job_endpoint={endpoint}", "--environment_type=LOOPBACK"]


@contextmanager
def beam_spark_cluster(engines: Engines, folder: Path) -> Iterator[list[str]]:
    """A standalone cluster of a master and two workers, which start Beam's workers by a command."""
    with spark_master(engines.spark, folder) as master, _spark_job_server(engines, folder, master) as endpoint:
        yield [*SUBMITTED, f"--job_endpoint={endpoint}", *PROCESS]


@contextmanager
def beam_spark_submit(engines: Engines, folder: Path) -> Iterator[list[str]]:
    """The same cluster, for jobs in a jar: how to submit one, then the options for Beam."""
    with spark_master(engines.spark, folder) as master, _spark_job_server(engines, folder, "local[1]") as endpoint:
        submit = [str(engines.spark / "bin" / "spark-submit"), "--master", master, "--class"]
        submit += ["org.apache.beam.runners.spark.SparkPipelineRunner", "--conf", f"spark.driver.host={HOST}"]
        yield [" ".join(submit), *SUBMITTED, f"--job_endpoint={endpoint}", *PROCESS]


@contextmanager
def spark_master(home: Path, folder: Path) -> Iterator[str]:
    """A standalone Spark cluster; gives its master's address."""
    port, web = free_port(), free_port()
    start, deploy = str(home / "bin" / "spark-class"), "org.apache.spark.deploy."
    address = f"spark://{HOST}:{port}"
    with ExitStack() as stack:
        options = ["--host", HOST, "--port", str(port), "--webui-port", str(web)]
        log = folder / "master.log"
        program = stack.enter_context(started([start, f"{deploy}master.Master", *options], log))
        wait(lambda: _count(f"http://{HOST}:{web}/json/", "aliveworkers") == 0, "Spark's master", log, program)
        for number in (1, 2):
            host = f"127.0.0.{1 + number}"  # of its own: Spark tries no task twice at the same time on one host
            options = ["--host", host, "--cores", "1", "--memory", "2g", "--webui-port", "0"]
            options += ["--work-dir", str(folder / f"worker{number}"), address]
            log = folder / f"worker{number}.log"
            program = stack.enter_context(started([start, f"{deploy}worker.Worker", *options], log))
        wait(lambda: _count(f"http://{HOST}:{web}/json/", "aliveworkers") == 2, "Spark's two workers", log, program)
        yield address


@contextmanager
def _spark_job_server(engines: Engines, folder: Path, master: str) -> Iterator[str]:
    command = [*_JAVA, f"-Dspark.jars={engines.spark_jar}", f"-Dspark.driver.host={HOST}"]
    command += [f"-Dspark.local.dir={folder}", "-cp", f"{engines.spark_jar}:{engines.spark}/jars/*"]
    command += ["org.apache.beam.runners.spark.SparkJobServerDriver", f"--spark-master-url={master}"]
    with _job_server(command, folder) as endpoint:
        yield endpoint


@contextmanager
def flink_cluster(engines: Engines, folder: Path) -> Iterator[list[str]]:
    """A cluster of a JobManager and a TaskManager of two slots, which starts Beam's workers by a command."""
    rest = free_port()
    settings = {
        "jobmanager.rpc.address": HOST,
        "jobmanager.rpc.port": free_port(),
        "jobmanager.bind-host": HOST,
        "taskmanager.host": HOST,
        "taskmanager.bind-host": HOST,
        "taskmanager.numberOfTaskSlots": 2,
        "rest.address": HOST,
        "rest.port": rest,
        "rest.bind-address": HOST,
        "parallelism.default": 2,
        "restart-strategy.type": "fixed-delay",  # or a worker that dies takes its job along
        "restart-strategy.fixed-delay.attempts": 3,
        "restart-strategy.fixed-delay.delay": "1 s",
        "io.tmp.dirs": folder,
    }
    (folder / "config.yaml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
    java = [*_JAVA, "-cp", str(engines.flink_jar)]
    runtime = "org.apache.flink.runtime."
    configured = ["--configDir", str(folder)]
    with ExitStack() as stack:
        manager = [*java, "-Xmx1g", f"{runtime}entrypoint.StandaloneSessionClusterEntrypoint", *configured]
        stack.enter_context(started(manager, folder / "jobmanager.log"))
        sizes = [part for name, value in _TASK_MANAGER.items() for part in ("-D", f"{name}={value}")]
        tasks = [*java, "-Xmx1g", f"{runtime}taskexecutor.TaskManagerRunner", *configured, *sizes]
        log = folder / "taskmanager.log"
        program = stack.enter_context(started(tasks, log))
        slots = f"http://{HOST}:{rest}/overview"
        wait(lambda: _count(slots, "slots-available") == 2, "Flink's task manager", log, program)
        command = [*java, "org.apache.beam.runners.flink.FlinkJobServerDriver", f"--flink-master={HOST}:{rest}"]
        command += [f"--flink-conf-dir={folder}"]
        endpoint = stack.enter_context(_job_server(command, folder))
        yield [*SUBMITTED, f"--job_endpoint={endpoint}", "--parallelism=2", *PROCESS]


@contextmanager
def _job_server(command: list[str], folder: Path) -> Iterator[str]:
    port = free_port()
    options = [f"--job-port={port}", "--artifact-port=0", "--expansion-port=0", f"--artifacts-dir={folder}/staged"]
    log = folder / "jobs.log"
    with started([*command, *options], log) as program:
        wait(lambda: listens(port), "Beam's job server", log, program)
        yield f"{HOST}:{port}"


@contextmanager
def started(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that runs meanwhile, and writes to a log. What it started ends with it."""
    with log.open("w") as file:
        program = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield program
    finally:
        end(program)


def end(program: "subprocess.Popen[bytes]", seconds: float = 20.0) -> None:
    """Ends a program that leads a session, and what it started; kills what is left after some seconds."""
    program.terminate()
    with suppress(subprocess.TimeoutExpired):
        program.wait(seconds)
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def wait(
    ready: Callable[[], bool], what: str, log: Path, program: "subprocess.Popen[bytes]", seconds: float = 180.0
) -> None:
    """Returns when a service is ready.

    Args:
        ready: asks the service; it is asked again until it says so, or the time is over.
        what: the service, in words.
        log: the log of the program.
        program: the program that is or starts the service: once it has ended, there is nothing to wait for.
        seconds: the time limit, for a busy machine.

    Raises:
        SystemExit: the service did not start; the message is a sentence, and then the end of the log.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        if program.poll() is not None:
            sys.exit(f"{what} ended with status {program.returncode} while it started\n{log.read_text()[-3000:]}")
        if time.monotonic() > deadline:
            sys.exit(f"{what} was not ready after {seconds:.0f} s\n{log.read_text()[-3000:]}")
        time.sleep(0.2)


def _count(url: str, name: str) -> int | None:
    """Returns a number that a service reports; None while it answers nothing, an error, or only a part."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return int(json.load(response)[name])
    except (OSError, http.client.HTTPException, ValueError, TypeError, LookupError):
        return None


def answers(request: urllib.request.Request | str) -> bool:
    """Tells whether a service does what it is asked for by HTTP."""
    try:
        with urllib.request.urlopen(request, timeout=5):
            return True
    except (OSError, http.client.HTTPException):
        return False


def listens(port: int) -> bool:
    """Tells whether a program answers at a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
