"""A runner of one's own needs no change of c4pipe: an entry point names it."""

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import c4pipe
from c4pipe.cli import main
from c4pipe.errors import UsageError
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.partitions import SUMS, Created, Joined, PartitionedFlow, StepOutput, groups, placed, work
from c4pipe.runners.runner import check_runner
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import Runner, runner_names
from tests.helpers.corpora import corpus_files
from tests.helpers.flows import oracle, words

ROOT = Path(__file__).resolve().parents[2]
CRAWL, LISTS = ROOT / "samples" / "crawl", ROOT / "samples" / "lists"


class OwnFlow(PartitionedFlow):
    """Runs each step in this process, by partitions."""

    count = 3

    def map(self, name: str, elements: Created | Joined, step: Step) -> Mapping[str, list[StepOutput]]:
        """Runs a step."""
        if isinstance(elements, Created):
            tasks: list[Iterable[Any]] = [[element] for element in elements.elements]
        else:
            numbers = range(1, 1 + self.count)
            parts = [[each for some in elements.shuffles for each in some[number]] for number in numbers]
            tasks = [groups(elements.names, elements.element, part) for part in parts]
        labels = {output: f"{name}: {output}" for output in step.outputs}
        packed = pickle.dumps(step)
        shuffled = _by_partition(
            each for task in tasks for each in placed(labels, step.sums, self.count, work(packed, task))
        )
        return {output: [StepOutput(shuffled, label)] for output, label in labels.items()}

    def combine(self, name: str, elements: list[StepOutput], add: Callable[[Iterable[Any]], Any]) -> Created:
        """Returns one element: the sum of all."""
        sums = (each for shuffled, label in elements for _, (of, each) in shuffled[SUMS] if of == label)
        return Created(name, [add(sums)])

    def shuffle(self, created: Created) -> list[StepOutput]:
        """Returns created pairs as the output of a step."""
        pairs = placed({"": created.name}, (), self.count, (("", pair) for pair in created.elements))
        return [StepOutput(_by_partition(pairs), created.name)]


def _by_partition(results: Iterable[tuple[int, Any]]) -> defaultdict[int, list[Any]]:
    shuffled = defaultdict(list)
    for each in results:
        shuffled[each[0]].append(each)
    return shuffled


def _run(graph: Callable[[Flow], None], options: RunnerOptions, tasks: int, progress: Progress) -> None:
    progress.runs_as("own-" + ",".join(options.runner_options))
    graph(OwnFlow())


def _check(options: RunnerOptions) -> None:
    if "--bad" in options.runner_options:
        raise UsageError("--bad is no option of my runner")


OWN = Runner(title="my runner", run=_run, check=_check)
MISSING = Runner(title="missing", run=_run, module="nowhere_at_all", package="Nowhere", install="nowhere")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installs a package with entry points, as pip does."""
    folder = tmp_path / "site" / "own-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    points = {
        "Own": f"{__name__}:OWN",
        "missing": f"{__name__}:MISSING",
        "gone": "nowhere:X",
        "odd": f"{__name__}:ROOT",
    }
    lines = [f"{name} = {value}\n" for name, value in points.items()]
    (folder / "entry_points.txt").write_text("".join(["[c4pipe.runners]\n", *lines]))
    monkeypatch.syspath_prepend(tmp_path / "site")


def test_the_flow_of_these_tests_does_what_the_graph_says(tmp_path: Path) -> None:
    texts = ["a b a", "", "b c", "dd a"]
    words(texts, tmp_path)(OwnFlow())
    assert [file.read_text() for file in tmp_path.iterdir()] == [oracle(texts)]


@pytest.mark.usefixtures("installed")
def test_a_runner_of_ones_own_gives_the_same_bytes(tmp_path: Path) -> None:
    given = ["build", str(CRAWL), "--lists", str(LISTS), "--quiet", "--log", str(tmp_path / "log"), "--output"]
    assert main.main([*given, str(tmp_path / "own"), "--runner", "own", "--", "--queue", "long"]) == 0
    assert main.main([*given, str(tmp_path / "here"), "--workers", "1"]) == 0
    assert corpus_files(tmp_path / "own") == corpus_files(tmp_path / "here")
    jobs: set[str | None] = set()
    options = {"runner": "OWN", "runner_options": ["x"], "progress": lambda event: jobs.add(event.runner_job_id)}
    c4pipe.build_corpus(CRAWL, output=tmp_path / "python", lists=LISTS, **options)  # type: ignore[arg-type]
    assert corpus_files(tmp_path / "python") == corpus_files(tmp_path / "here")
    assert "own-x" in jobs


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"runner": "own", "runner_options": ["--bad"]}, "^--bad is no option of my runner$"),
        ({"runner": "own", "workers": 2}, "^--workers 2 is only for this machine, and --runner is own"),
        ({"runner": "own", "beam": ["--x"]}, "^--x is an option of a Beam runner, not of my runner"),
        ({"runner_options": ["--queue"]}, "^--queue is no option of this machine$"),
        ({"runner": "spark", "runner_options": ["--queue"]}, "^--queue is no option of Spark itself$"),
        ({"runner": "missing"}, "^--runner missing needs Nowhere, which is not installed: pip install nowhere$"),
        ({"runner": "gone"}, "^--runner gone can't be imported from nowhere:X: No module named 'nowhere'$"),
        ({"runner": "odd"}, "^--runner odd: .*:ROOT is not a Runner of c4pipe.runners.table$"),
        ({"runner": "onw"}, "^--runner onw: there is no such runner; did you mean 'Own'"),
    ],
)
def test_a_mistake_with_a_runner_is_one_sentence(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_runner(RunnerOptions(**options))


@pytest.mark.usefixtures("installed")
def test_the_names_of_runners() -> None:
    assert {"spark", "Own"} <= set(runner_names())
