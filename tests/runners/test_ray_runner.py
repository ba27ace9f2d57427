"""A job on Ray gives what this machine gives; lost work is done again; a failure is one sentence."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import c4pipe
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.runner import check_runner, run_job
from c4pipe.runners.runner_options import RunnerOptions
from tests.helpers.corpora import corpus_files
from tests.helpers.flows import FAILURES, Fail, joined, oracle, press_ctrl_c, words

ROOT = Path(__file__).resolve().parents[2]
CRAWL, LISTS = ROOT / "samples" / "crawl", ROOT / "samples" / "lists"
OPTIONS = RunnerOptions(runner="Ray")

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # Ray's own
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of two nodes on this machine, which RAY_ADDRESS names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_health_check_period_ms", "500")  # a lost node is found sooner
        patch.setenv("PYTHONPATH", str(ROOT))  # for the steps of these tests: workers start with it
        import ray
        from ray.cluster_utils import Cluster

        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 200 << 20})
        made.add_node(num_cpus=1, object_store_memory=200 << 20)
        patch.setenv("RAY_ADDRESS", made.address)
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.fixture
def run(cluster: Any) -> Callable[..., None]:
    """Runs a graph on the cluster."""
    return lambda graph, tasks=2: run_job(graph, OPTIONS, tasks)


class Slow(Step):
    """A number to itself, after a while."""

    outputs = ("numbers",)

    def process(self, element: int) -> Iterator[tuple[str, Any]]:
        time.sleep(2)
        yield "numbers", (element, b"")


def test_the_user_is_told_that_no_task_ends(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c4pipe.runners.ray_runner._QUIET_MINUTES", 0.01)
    notes: list[str] = []
    graph = lambda flow: flow.map("Wait here", flow.create("One", [1]), Slow())  # noqa: E731
    run_job(graph, OPTIONS, 1, Progress(on_note=notes.append))
    for note, minutes in zip(notes[:2], ("0.01", "0.02"), strict=True):  # the whole time, not that since the last note
        assert note.startswith(f'Ray: no task of the step "Wait here" has ended for {minutes} minutes:')


@pytest.mark.parametrize("tasks", [1, 7])
def test_ray_does_what_the_graph_says(run: Callable[..., None], tmp_path: Path, tasks: int) -> None:
    texts = ["a b a", "", "b c", "dd a"]
    run(words(texts, tmp_path), tasks)
    assert [file.read_text() for file in tmp_path.iterdir()] == [oracle(texts)]


class Big(Step):
    """A number to blocks of bytes, and to a sum; the first attempt of one number is killed when it is half done."""

    outputs = ("blocks", "sums")
    sums = ("sums",)

    def __init__(self, folder: Path, dies: int) -> None:
        self._folder, self._dies = folder, dies

    def process(self, element: int) -> Iterator[tuple[str, Any]]:
        mark = self._folder / "killed"
        yield "sums", {str(element): 1}
        for part in range(20):
            yield "blocks", (part, bytes([element]) * 200_000)
            if element == self._dies and part == 10 and not mark.exists():
                mark.write_text("")
                os.kill(os.getpid(), signal.SIGKILL)
        with (self._folder / "attempts").open("a") as attempts:
            attempts.write(f"{element}\n")


class Count(Step):
    """A group of blocks to how many bytes of each number it has."""

    outputs = ("counts",)
    sums = ("counts",)

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[tuple[str, Any]]:
        part, blocks = element
        yield "counts", {str((part, block[0])): len(block) for block in blocks}


class Keep(Step):
    """Writes its element to a file, and the name of its task."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def process(self, element: Mapping[str, int]) -> Iterable[tuple[str, Any]]:
        import ray

        self._path.write_text(json.dumps([ray.get_runtime_context().get_task_name(), element]))
        return ()


def test_work_of_killed_processes_and_lost_nodes_is_done_again(
    run: Callable[..., None], cluster: Any, tmp_path: Path
) -> None:
    """The second node is lost with the blocks that it has, after the step that made them."""

    def graph(flow: Flow) -> None:
        made = flow.map("Make blocks", flow.create("Numbers", range(6)), Big(tmp_path, dies=4))
        assert (tmp_path / "attempts").read_text().count("\n") >= 6
        cluster.remove_node(next(node for node in cluster.list_all_nodes() if not node.head), allow_graceful=False)
        cluster.add_node(num_cpus=1, object_store_memory=200 << 20)
        counted = flow.map("Count blocks", flow.group_by_key("Group blocks", made["blocks"]), Count())
        both = flow.flatten("Both", made["sums"], counted["counts"])
        flow.map("Keep", flow.combine("Add up", both, joined), Keep(tmp_path / "sum.json"))

    run(graph, 6)
    assert (tmp_path / "killed").exists()
    assert (tmp_path / "attempts").read_text().count("\n") > 6, "the lost node had no block"
    counts = {str((part, number)): 200_000 for part in range(20) for number in range(6)}
    task, found = json.loads((tmp_path / "sum.json").read_text())
    assert found == {**{str(n): 1 for n in range(6)}, **counts}
    assert task == "Keep", "Ray's dashboard shows the names of the steps"


class Touch(Step):
    """Writes a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def process(self, element: int) -> Iterable[tuple[str, Any]]:
        (self._folder / str(element)).touch()
        return ()


def test_a_bounded_number_of_tasks_waits(run: Callable[..., None], tmp_path: Path) -> None:
    waiting: list[int] = []

    class Numbers(list[int]):
        def __iter__(self) -> Iterator[int]:
            for number in range(len(self)):
                waiting.append(number - len(list(tmp_path.iterdir())))
                yield number

    run(lambda flow: flow.map("Touch", flow.create("Numbers", Numbers([0] * 40)), Touch(tmp_path)), 40)
    assert len(list(tmp_path.iterdir())) == len(waiting) == 40
    assert 2 <= max(waiting) <= 8, "two cores have eight tasks"


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        *FAILURES,
        (None, C4pipeError, "^a worker process of Ray was killed 5 times, perhaps because memory ran out"),
    ],
)
def test_a_failed_step_is_one_sentence(
    run: Callable[..., None], error: BaseException | None, kind: type[C4pipeError], says: str
) -> None:
    with pytest.raises(kind, match=says) as raised:
        run(lambda flow: flow.map("Fail", flow.create("One", [1]), Fail(error)))
    assert type(raised.value) is kind
    assert "\n" not in str(raised.value)


def test_other_versions_on_a_worker_are_one_sentence(
    run: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("c4pipe.runners.ray_runner._versions", lambda: "c4pipe 9 with Python 3.99")
    says = r"^a worker of Ray has c4pipe \S+ with Python 3\.\d+, and this command c4pipe 9 with Python 3.99: install "
    with pytest.raises(C4pipeError, match=says):
        run(words(["a"], tmp_path))


def test_a_session_builds_the_same_bytes(run: Callable[..., None], tmp_path: Path) -> None:
    """From Python, as in a notebook that has initialised Ray, and which goes on to use it."""
    import ray

    run(words(["a"], tmp_path))
    jobs: set[str | None] = set()
    c4pipe.build_corpus(
        CRAWL, output=tmp_path / "ray", lists=LISTS, runner="ray", progress=lambda event: jobs.add(event.runner_job_id)
    )
    c4pipe.build_corpus(CRAWL, output=tmp_path / "here", lists=LISTS, workers=1)
    assert corpus_files(tmp_path / "ray") == corpus_files(tmp_path / "here")
    assert any(job and job.startswith("ray-") for job in jobs)
    assert ray.is_initialized()


class Sleep(Step):
    """Says that it has begun, and sleeps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def process(self, element: int) -> Iterable[tuple[str, Any]]:
        (self._folder / str(element)).touch()
        time.sleep(600)
        return ()


def test_ctrl_c_cancels_the_tasks(run: Callable[..., None], tmp_path: Path) -> None:
    """In a notebook, whose process goes on: the cores are free for the next job."""

    def press() -> None:
        while not list(tmp_path.glob("?")):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        run(lambda flow: flow.map("Sleep", flow.create("Numbers", range(4)), Sleep(tmp_path)))
    (tmp_path / "next").mkdir()
    started = time.monotonic()
    run(words(["a"], tmp_path / "next"))
    assert time.monotonic() - started < 120
    assert not (tmp_path / "3").exists()


def test_ctrl_c_ends_the_command(cluster: Any, tmp_path: Path) -> None:
    """With one sentence and the status of Ctrl-C, while Ray works."""
    press_ctrl_c("ray", tmp_path)


def test_no_cluster_is_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "c4pipe", "build", str(CRAWL), "--lists", str(LISTS), "--quiet"]
    command += ["--output", str(tmp_path / "corpus"), "--runner", "ray"]
    environment = {**os.environ, "RAY_ADDRESS": "127.0.0.1:1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("c4pipe: there is no Ray cluster at 127.0.0.1:1 (RAY_ADDRESS): start one with ")
    assert done.stderr.count("\n") == 1


def test_mistakes_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    with pytest.raises(UsageError, match=r"^RAY_ADDRESS is ray://head:10001, and c4pipe works on a node of the "):
        check_runner(OPTIONS)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"^--runner Ray needs Ray, .* not installed: pip install 'c4pipe\[ray\]'$"):
        check_runner(OPTIONS)
