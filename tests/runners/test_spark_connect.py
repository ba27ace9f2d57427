"""A job through a server of Spark Connect, which has no RDDs: the local bytes, and failures that are one sentence."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.corpora import contents
from tests.helpers.flows import COUNTS, oracle
from tests.helpers.java import QUICK_JAVA
from tests.helpers.loopback import free_port

ROOT = Path(__file__).resolve().parents[2]
CRAWL, LISTS = ROOT / "samples" / "crawl", ROOT / "samples" / "lists"

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of Spark Connect with two cores, which tries each task three times; gives its URL."""
    import pyspark

    port = free_port()
    home = Path(pyspark.__file__).parent
    folder = tmp_path_factory.mktemp("server")
    given = {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    command = [str(home / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["--master", "local[2,3]", "--conf", f"spark.connect.grpc.binding.port={port}"]
    command += ["--driver-java-options", f"{' '.join(QUICK_JAVA)} -Djava.io.tmpdir={folder}"]
    command += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false", "spark-internal"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env={**os.environ, **given}, stdout=log, stderr=log, cwd=folder)
    try:
        end = time.monotonic() + 120
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail((folder / "log").read_text()[-3000:])
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
        if request.session.testsfailed:
            print((folder / "log").read_text()[-5000:])


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, timeout=300, env=environment
    )


def test_the_command_builds_the_same_bytes(server: str, tmp_path: Path) -> None:
    given = ["-m", "c4pipe", "build", str(CRAWL), "--lists", str(LISTS), "--format", "parquet,json"]
    log = tmp_path / "log"
    spark = ["--runner", "spark", "--spark-master", server, "--log", str(log)]
    connected = _run(*given, "--output", str(tmp_path / "connect"), *spark)
    here = _run(*given, "--output", str(tmp_path / "here"), "--workers", "1")
    assert connected.returncode == here.returncode == 0, connected.stderr
    corpora = [contents(tmp_path / name) for name in ("connect", "here")]
    for corpus in corpora:
        for name in [name for name in corpus if name.startswith("_work/.")]:
            del corpus[name]
    assert corpora[0] == corpora[1]
    assert "Spark Connect at 127.0.0.1" in log.read_text()
    noise = [line for line in connected.stderr.splitlines() if not line.startswith(("clean:", "dedup:"))]
    assert [line for line in noise if line not in here.stderr.splitlines()] == []


def test_a_session_of_connect_runs_jobs_and_tells_failures(server: str, tmp_path: Path) -> None:
    """In a program that has the session, as a notebook."""
    program = _run("-m", "tests.helpers.connect_client", server, str(tmp_path))
    assert program.returncode == 0, program.stderr
    said = json.loads(program.stdout)
    assert said["words"] == said["blocks"] == said["this server"] == said["of the session"] == ""
    assert [file.read_text() for file in (tmp_path / "words").iterdir()] == [oracle(["a b a", "", "b c", "dd a"])]
    assert json.loads((tmp_path / "blocks" / "sum.json").read_text()) == COUNTS
    assert {path.name for path in (tmp_path / "blocks").iterdir()} == {"killed", "killed too", "sum.json"}
    assert said["system"] == "C4pipeError: /c: no space left on device"
    assert said["lost"] == "LostDataError: the shuffle lost 3 rows"
    assert said["killed"].startswith("C4pipeError: a worker process was killed, perhaps because memory ran out")
    assert said["python"].startswith("C4pipeError: Spark's workers run another version of Python than ")
    assert "PYSPARK_PYTHON" in said["python"]
    assert said["classic"] == "UsageError: --spark-master local[2]: there is a session of Spark Connect already"
    assert (
        said["another server"] == "UsageError: --spark-master sc://other:15002: there is a session of 127.0.0.1 already"
    )
    assert said["of the server"].startswith("UsageError: --conf spark.executor.memory=2g is a setting of the server")
    assert (said["setting"], said["tags"], said["ids"]) == ("3", "", "")


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    spark = ["--runner", "spark", "--spark-master", "sc://127.0.0.1:9"]
    ended = _run("-m", "c4pipe", "build", str(CRAWL), "--lists", str(LISTS), "--output", str(tmp_path / "c"), *spark)
    assert ended.returncode == 1
    assert "sc://127.0.0.1:9: no Spark Connect server answers there" in ended.stderr
    assert "Traceback" not in ended.stderr
