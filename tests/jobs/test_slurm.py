"""`--runner slurm` and `status`, on a real Slurm of two nodes that share no /tmp."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.crawls import LISTS, files_of, made_crawl
from tests.helpers.loopback import Handler, listen
from tests.helpers.slurm_cluster import Cluster, slurm_cluster

pytestmark = pytest.mark.slurm

FILES = 3
SMALL = ["--cpus-per-task=1", "--mem-per-cpu=1G", "--files-per-task=1"]
Ended = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with slurm_cluster() as started:
        for name, data in made_crawl(FILES).items():
            if name.endswith(".wet.gz"):
                path = started.shared / "crawl" / Path(name).name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
        yield started


@pytest.fixture(scope="module")
def local(cluster: Cluster) -> dict[str, bytes]:
    """The files of the corpus of a local run."""
    assert c4pipe(cluster, "build", "crawl", "--output", "local", "--workers", "1").returncode == 0
    return corpus(cluster, "local")


@pytest.fixture
def folder(cluster: Cluster) -> Iterator[Path]:
    """The folder of an output; what a test leaves in the queue is cancelled."""
    path = cluster.shared / "out"
    yield path
    cluster.run("scancel", "--user=root")
    cluster.wait()
    shutil.rmtree(path, ignore_errors=True)


def c4pipe(cluster: Cluster, command: str, *arguments: str) -> Ended:
    lists = [] if command == "status" else ["--lists", str(LISTS), "--quiet"]
    return cluster.run(sys.executable, "-m", "c4pipe", command, *arguments[:1], *lists, *arguments[1:])


def submit(cluster: Cluster, *arguments: str, options: Sequence[str] = ()) -> Ended:
    return c4pipe(cluster, *arguments, "--runner", "slurm", "--", *SMALL, *options)


def corpus(cluster: Cluster, name: str) -> dict[str, bytes]:
    return {path: data for path, data in files_of(cluster.shared / name).items() if not path.startswith("_work/")}


def status(cluster: Cluster, name: str = "out") -> tuple[int, str]:
    ended = c4pipe(cluster, "status", name)
    assert not ended.stderr or ended.returncode == 2, ended.stderr
    return ended.returncode, ended.stdout


@contextmanager
def gated_web(data: dict[str, bytes], name: str) -> Iterator[tuple[str, threading.Event]]:
    """Serves files, of which one is not sent before an event."""
    gate = threading.Event()

    class Gated(Handler):
        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            if path == name:
                gate.wait(60)
            self.send_response(200)
            self.send_header("Content-Length", str(len(data[path])))
            self.end_headers()
            self.wfile.write(data[path])

    with listen(Gated) as url:
        try:
            yield url, gate
        finally:
            gate.set()


@contextmanager
def stuck_task(cluster: Cluster, *command: str) -> Iterator[tuple[int, threading.Event, dict[str, bytes]]]:
    """Submits the files of the crawl, of which the second waits in its task.

    Yields the id of the task's process, the event that lets it go on, and the files that a server sends.
    """
    data = {path.name: path.read_bytes() for path in sorted((cluster.shared / "crawl").iterdir())}
    with gated_web(data, list(data)[1]) as (url, gate):
        (cluster.shared / "files.txt").write_text("".join(f"{url}/{name}\n" for name in data))
        ended = submit(cluster, command[0], "@files.txt", *command[1:])
        assert ended.returncode == 0, ended.stderr
        until(lambda: len([each for each in cluster.queue() if "_" in each[0]]) == 1)
        (process,) = until(lambda: processes(cluster, "1"))
        yield process, gate, data


def processes(cluster: Cluster, task: str) -> list[int]:
    """The ids of the processes of a task's Python."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "c4pipe.cli.slurm_task" in words and words[-2] == task and words[-4].startswith(str(cluster.shared)):
            found.append(int(path.parent.name))
    return found


def until(condition: "Callable[[], object]", seconds: float = 30) -> "list[int]":
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found  # type: ignore[return-value]


def test_one_command_makes_the_corpus_of_a_local_run(cluster: Cluster, folder: Path, local: dict[str, bytes]) -> None:
    ended = submit(cluster, "build", "crawl", "--output", "out", options=["--dedup-mem=2G", "--array-parallelism=2"])
    assert ended.returncode == 0
    assert f"submitted: {FILES} files in {FILES} tasks (job " in ended.stderr
    assert "c4pipe status out" in ended.stderr
    again = submit(cluster, "build", "crawl", "--output", "out")
    assert "nothing was submitted" in again.stderr
    cluster.wait()
    assert corpus(cluster, "out") == local
    assert status(cluster)[0] == 0
    assert "out is a complete corpus" in status(cluster)[1]
    assert "out is a complete corpus" in status(cluster, "out/_work")[1]
    assert submit(cluster, "build", "crawl", "--output", "out").returncode == 0
    assert cluster.queue() == []


def test_what_known_corpora_have_is_left_out(cluster: Cluster, folder: Path) -> None:
    first = f"crawl/{min(path.name for path in (cluster.shared / 'crawl').iterdir())}"
    known = ["--known", "first"]
    assert c4pipe(cluster, "build", first, "--output", "first", "--workers", "1", "--index").returncode == 0
    assert c4pipe(cluster, "build", "crawl", "--output", "rest", "--workers", "1", *known).returncode == 0
    assert submit(cluster, "build", "crawl", "--output", "out", *known).returncode == 0
    cluster.wait()
    assert corpus(cluster, "out") == corpus(cluster, "rest")
    assert json.loads((folder / "manifest.json").read_bytes())["counts"]["pages.dropped.known_url"] > 0


def test_one_file_alone_has_the_secrets_of_urls_and_nobody_else_can_read_it(
    cluster: Cluster, folder: Path, local: dict[str, bytes]
) -> None:
    class Store(Handler):
        def do_GET(self) -> None:
            name, _, secret = self.path[1:].partition("?")
            assert secret == "sig=SECRET"
            data = (cluster.shared / "crawl" / name).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def secrets() -> list[Path]:
        return [path for path in folder.rglob("*") if path.is_file() and b"SECRET" in path.read_bytes()]

    names = sorted(path.name for path in (cluster.shared / "crawl").iterdir())
    with listen(Store) as url:
        server = url.replace("://", "://me:SECRET@")
        (cluster.shared / "files.txt").write_text("".join(f"{server}/{name}?sig=SECRET\n" for name in names))
        ended = submit(cluster, "build", "@files.txt", "--output", "out", options=["--hold"])
        submission = folder / "_work" / "_slurm" / "001"
        assert secrets() == [submission / "plan.json"]
        assert (submission / "plan.json").stat().st_mode & 0o777 == 0o600
        plan = (submission / "plan.json").read_bytes()
        (submission / "plan.json").write_bytes(plan.replace(b'"parquet"', b'"json"'))
        digest = (submission / "dedup.sh").read_text().split()[-10].strip("'")
        task = cluster.run(sys.executable, "-m", "c4pipe.cli.slurm_task", str(submission), digest, "0")
        assert task.returncode == 2
        said = f"the plan in {submission} is not the one that was submitted: give the command again"
        assert task.stderr == f"c4pipe: {said}\n"
        (submission / "plan.json").write_bytes(plan)
        cluster.output("scontrol", "release", ",".join(re.findall(r"job ([0-9]+)", ended.stderr)))
        cluster.wait()
    assert corpus(cluster, "out") == local
    assert secrets() == []


def test_the_work_folder_of_a_run_with_another_output(cluster: Cluster, folder: Path) -> None:
    """`status` opens nothing outside of the folder: it names the other folder."""
    assert submit(cluster, "build", "crawl", "--output", "out", "--work", "out-work").returncode == 0
    cluster.wait()
    code, text = status(cluster, "out-work")
    assert (code, text.splitlines()[1:]) == (
        0,
        [f"the corpus was written: c4pipe status {folder}", f"{folder}-work is complete"],
    )
    assert "out is a complete corpus" in status(cluster)[1]


def test_failed_tasks_stop_dedup_and_are_submitted_again_alone(
    cluster: Cluster, folder: Path, local: dict[str, bytes]
) -> None:
    bad = cluster.shared / "crawl" / "00002.warc.wet.gz"
    good = bad.read_bytes()
    bad.write_bytes(gzip.compress(b"not a record\n"))
    with stuck_task(cluster, "build", "--output", "out") as (process, gate, data):
        code, text = status(cluster)
        assert "files running  1" in text
        assert "dedup waits (job " in text
        os.kill(process, signal.SIGKILL)
        cluster.wait()
        code, text = status(cluster)
        assert code == 1
        assert [line.split() for line in text.splitlines()[:3]] == [
            ["files", "done", "1"],
            ["files", "failed", "1"],
            ["files", "missing", "1"],
        ]
        assert "00001.warc.wet.gz: its process was killed by signal 9" in text
        assert "/00002.warc.wet.gz has no " in text
        assert "dedup is not in the queue: Slurm cancels it when a task fails" in text
        assert "the command that submitted it submits what is left" in text
        assert not (folder / "manifest.json").exists()
        bad.write_bytes(good)
        data[bad.name] = good
        gate.set()
        ended = submit(cluster, "build", "@files.txt", "--wait", "--output", "out")
    assert ended.returncode == 0, ended.stderr
    assert corpus(cluster, "out") == local
    assert len(list((folder / "_work/_slurm/002").glob("clean-*.log"))) == 2


def test_a_requeued_task_of_clean_goes_on(cluster: Cluster) -> None:
    with stuck_task(cluster, "clean", "--work", "two") as (_, gate, _):
        (task,) = [name for name, state in cluster.queue() if state == "RUNNING"]
        cluster.output("scontrol", "requeue", task)
        gate.set()
        assert c4pipe(cluster, "clean", "@files.txt", "--work", "one", "--workers", "1").returncode == 0
        cluster.wait()
    log = (cluster.shared / "two/_slurm/001/clean-0_1.log").read_text()
    assert "DUE TO JOB REQUEUE" in log
    two = {name: data for name, data in files_of(cluster.shared / "two").items() if not name.startswith("_slurm/")}
    assert two == files_of(cluster.shared / "one")
    assert status(cluster, "two") == (0, f"files done  {FILES}\n{cluster.shared / 'two'} is complete\n")
    assert submit(cluster, "clean", "@files.txt", "--wait", "--work", "two").returncode == 0
    assert cluster.queue() == []


def test_more_tasks_than_an_array_may_have_are_several_arrays(cluster: Cluster, folder: Path) -> None:
    files = cluster.shared / "many"
    files.mkdir()
    data = next((cluster.shared / "crawl").iterdir()).read_bytes()
    for number in range(1200):
        (files / f"{number:04}.warc.wet.gz").write_bytes(data)
    ended = submit(cluster, "build", "many", "--output", "out", options=["--hold"])
    assert "submitted: 1,200 files in 1,200 tasks (job " in ended.stderr
    assert len(cluster.queue()) == 1200 + 1
    scripts = sorted((folder / "_work/_slurm/001").glob("clean-*.sh"))
    assert [line for path in scripts for line in path.read_text().splitlines() if "--array" in line] == [
        "#SBATCH --array=0-1000",
        "#SBATCH --array=0-198",
    ]
    code, text = status(cluster)
    assert code == 5
    assert "1,200" in text
    assert "JobHeldUser" in text


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--partion=cpu", "sbatch refused: unrecognized option '--partion=cpu'; nothing was submitted"),
        ("--partition=gpu", "sbatch refused: invalid partition specified: gpu; "),
        ("--dedup-mem=1000G", "sbatch refused: Memory specification can not be satisfied; "),
    ],
)
def test_what_sbatch_refuses_is_one_sentence_and_leaves_nothing(
    cluster: Cluster, folder: Path, option: str, sentence: str
) -> None:
    ended = submit(cluster, "build", "crawl", "--output", "out", options=[option])
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"c4pipe: {sentence}")
    assert ended.stderr.count("\n") == 1
    assert cluster.queue() == []
    assert list((folder / "_work/_slurm").iterdir()) == []


def test_a_corpus_is_built_again_from_its_manifest(cluster: Cluster, folder: Path, local: dict[str, bytes]) -> None:
    command = ("rebuild", "local", "--inputs", "crawl", "--output", "out")
    assert "submitted: 3 files" in submit(cluster, *command).stderr
    cluster.wait()
    assert submit(cluster, *command).returncode == 0
    assert corpus(cluster, "out") == local
