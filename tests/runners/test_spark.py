"""A job on Spark gives what this machine gives; work that is lost is done again; a failure is one sentence."""

import json
import re
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import c4pipe
from c4pipe.cli.console import MISSING
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.runners import spark_daemon
from c4pipe.runners.events import Progress
from c4pipe.runners.runner import run_job
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.worker import show_pandas
from tests.helpers.corpora import contents, corpus_files
from tests.helpers.flows import COUNTS, FAILURES, Fail, blocks, oracle, press_ctrl_c, words
from tests.helpers.s3 import store_of
from tests.helpers.web_data import by_data

if TYPE_CHECKING:
    from pyspark import SparkContext

ROOT = Path(__file__).resolve().parents[2]
CRAWL, LISTS = ROOT / "samples" / "crawl", ROOT / "samples" / "lists"
MASTER = "local[2,3]"
"""Two cores, and three attempts of each task."""

Run = Callable[..., None]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Runs a graph on Spark, by a context that lives as long as the tests of this module."""
    from pyspark import SparkContext

    options = RunnerOptions(runner="Spark", spark_master=MASTER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))  # for the steps of these tests: Spark's workers start with it
        show_pandas()  # as in a user's own process
        if left := SparkContext._active_spark_context:  # of another module's tests
            left.stop()
        yield lambda graph, tasks=2, **more: run_job(graph, options, tasks, **more)
        _context().stop()


def _context() -> "SparkContext":
    """Returns Spark's context, which a job leaves to the next one."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    assert context is not None
    return context


def test_a_job_after_a_context_was_stopped_starts_another(run: Run, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        texts = ["a b", "b"]
        run(words(texts, tmp_path / name))
        assert [file.read_text() for file in (tmp_path / name).iterdir()] == [oracle(texts)]
        _context().stop()


@pytest.mark.parametrize("tasks", [1, 7])
def test_spark_does_what_the_graph_says(run: Run, tmp_path: Path, tasks: int) -> None:
    texts = ["a b a", "", "b c", "dd a"]
    run(words(texts, tmp_path), tasks)
    assert [file.read_text() for file in tmp_path.iterdir()] == [oracle(texts)]


def test_work_of_killed_processes_is_done_again(run: Run, tmp_path: Path) -> None:
    notes: list[str] = []
    run(blocks(tmp_path), progress=Progress(on_note=notes.append))
    steps = [
        re.fullmatch(r'Spark tries 1 task of the step "(.+)" again: .* pages say why', each) for each in notes[-2:]
    ]
    assert [step and step[1] for step in steps] == ["Make blocks", "Count blocks"]
    assert {path.name for path in tmp_path.iterdir()} == {"killed", "killed too", "sum.json"}
    assert json.loads((tmp_path / "sum.json").read_text()) == COUNTS


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        *FAILURES,
        (None, C4pipeError, "^a worker process was killed, perhaps because memory ran out"),
    ],
)
def test_a_failed_step_is_one_sentence(
    run: Run, error: BaseException | None, kind: type[C4pipeError], says: str
) -> None:
    with pytest.raises(kind, match=says) as raised:
        run(lambda flow: flow.map("Fail", flow.create("One", [1]), Fail(error)))
    assert type(raised.value) is kind
    assert "\n" not in str(raised.value)


def test_spark_shows_the_names_of_the_steps(run: Run, tmp_path: Path) -> None:
    run(words(["a b"], tmp_path))
    context = _context()
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/jobs"
    with urllib.request.urlopen(url, timeout=30) as response:
        shown = {job.get("description") for job in json.load(response)}
    assert {"Start Python", "Split", "Sort"} <= shown  # the other steps run in this process
    assert context.getLocalProperty("spark.job.description") is None, "the user's own jobs have no name of ours"


@pytest.mark.parametrize("process", ["driver", "executor"])
def test_java_has_one_compiler_only(run: Run, process: str) -> None:
    run(lambda flow: None)
    options = _context().getConf().get(f"spark.{process}.defaultJavaOptions")
    assert options == "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def test_workers_of_the_command_have_the_installed_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's archive has no compiled modules; of another version than the installed PySpark, it stays first."""
    import pyspark

    home = Path(pyspark.__file__).parent
    archives = [*map(str, (home / "python" / "lib").glob("*.zip")), *map(str, (home / "jars").glob("spark-core_*.jar"))]
    for version, first in ((pyspark.__version__, ["lib"]), ("1.2.3", [*archives, "lib"])):
        monkeypatch.setattr(sys, "path", [*archives, "lib"])
        monkeypatch.setattr(
            spark_daemon, "distributions", lambda name, version=version: [SimpleNamespace(version=version)]
        )
        spark_daemon.prefer_installed()
        assert sys.path[: len(first)] == first
        assert sorted(sys.path) == sorted([*archives, "lib"])


def test_only_workers_of_the_command_hide_pandas(run: Run) -> None:
    """A user's own tasks can follow in the context that a function of Python has started."""
    run(lambda flow: None)
    assert _context().getConf().get("spark.python.daemon.module") is None


def test_another_python_of_the_workers_is_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run(lambda flow: None)
    monkeypatch.setattr(_context(), "pythonVer", "3.8")  # Spark compares it with that of its workers
    with pytest.raises(C4pipeError, match=r"^Spark's workers run another version of Python"):
        run(lambda flow: flow.map("Fail", flow.create("One", [1]), Fail(None)))


def test_another_master_than_that_of_the_session_is_refused(run: Run, tmp_path: Path) -> None:
    run(words(["a"], tmp_path))
    options = RunnerOptions(runner="spark", spark_master="spark://other:7077")
    with pytest.raises(UsageError, match=r"^--spark-master spark://other:7077: .* session .* local\[2,3\]"):
        run_job(lambda flow: None, options, 1)


def test_a_session_builds_the_same_bytes(run: Run, tmp_path: Path) -> None:
    """From Python, as in a notebook that has a session."""
    from pyspark.sql import SparkSession

    run(words(["a"], tmp_path / ""))
    SparkSession(_context())
    jobs: set[str | None] = set()
    with_spark, here = tmp_path / "spark", tmp_path / "here"
    c4pipe.build_corpus(
        CRAWL, output=with_spark, lists=LISTS, runner="spark", progress=lambda event: jobs.add(event.runner_job_id)
    )
    c4pipe.build_corpus(CRAWL, output=here, lists=LISTS, workers=1)
    assert corpus_files(with_spark) == corpus_files(here)
    assert any(job and job.startswith("local-") for job in jobs)


def test_the_command_builds_the_same_bytes_from_real_pages(largest_data: Path, tmp_path: Path) -> None:
    inputs = [str(path) for path in (*sorted((largest_data / "wet").glob("*.wet.gz"))[:3], largest_data / "broken")]
    given = [*inputs, "--lists", str(largest_data / "lists"), "--format", "parquet,json"]
    log = tmp_path / "log"
    on_spark = _command("build", *given, "--output", str(tmp_path / "spark"), "--runner", "spark", "--log", str(log))
    here = _command("build", *given, "--output", str(tmp_path / "here"))
    status = by_data(largest_data, shipped=MISSING, real=0)  # two of the project's broken files have no record
    assert on_spark.returncode == here.returncode == status, on_spark.stderr
    assert corpus_files(tmp_path / "spark") == corpus_files(tmp_path / "here")
    assert on_spark.stdout.rpartition("(")[0].replace("/spark", "/here") == here.stdout.rpartition("(")[0]
    assert "runner: spark, Spark " in log.read_text()
    noise = [line for line in on_spark.stderr.splitlines() if not line.startswith(("clean:", "dedup:", "Spark: "))]
    noise.remove("c4pipe: Spark starts: 10 to 20 seconds on an idle machine")
    assert [line for line in noise if line not in here.stderr.splitlines()] == []


def _command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "c4pipe", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_a_store_gets_the_same_bytes(moto: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = ["build", str(CRAWL), "--lists", str(LISTS), "--quiet"]
    with store_of(moto, {"bucket/other": b""}, monkeypatch) as store:
        spark = ["--runner", "spark", "--spark-master", "local[2]"]
        in_store = _command(*given, "--output", "s3://bucket/corpus", *spark)
        assert in_store.returncode == 0, in_store.stderr
        kinds = Counter(asked.partition(" ")[0] for asked in store.asked.elements() if "/_spill/" in asked)
        made = {key: store.get(f"bucket/{key}") for key in store.keys("bucket")}
    assert kinds["GET"] == kinds["HEAD"] > kinds["PUT"], "each task has one element and reads each file once"
    assert _command(*given, "--output", str(tmp_path / "here")).returncode == 0
    for name, data in contents(tmp_path / "here").items():
        assert name.startswith("_work/") or made[f"corpus/{name}"] == data


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (None, "Spark can't start Python on its workers: set PYSPARK_PYTHON to a path that"),
        ('exec {python} -I -S "$@"', "Spark's workers have no c4pipe of this version: install it in their Python"),
    ],
)
def test_a_python_that_the_workers_lack_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, says: str
) -> None:
    python = tmp_path / "python"
    if script:
        python.write_text(f"#!/bin/sh\n{script.format(python=sys.executable)}\n")
        python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    given = ["--lists", str(LISTS), "--output", str(tmp_path / "corpus"), "--runner", "spark"]
    ended = _command("build", str(CRAWL), *given, "--spark-master", "local[2]", "--quiet")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"c4pipe: {says}")
    assert ended.stderr.count("\n") == 1


def test_ctrl_c_ends_the_command(tmp_path: Path) -> None:
    """With one sentence and the status of Ctrl-C, while Spark works."""
    press_ctrl_c("spark", tmp_path)
