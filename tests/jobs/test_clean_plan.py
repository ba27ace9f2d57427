"""The plan of job 1 and the state of its work folder, which are data, without a run."""

from pathlib import Path

import pytest

from c4pipe.clean import work_folder
from c4pipe.errors import C4pipeError, LostDataError
from c4pipe.io.atomic import write_bytes
from c4pipe.jobs import clean, clean_run
from c4pipe.jobs.clean_plan import CleanPlan, WorkState, plan_clean, work_state
from c4pipe.jobs.clean_run import network_of_worker
from c4pipe.jobs.options import CleanOptions
from c4pipe.runners import runner
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner_options import RunnerOptions

ROOT = Path(__file__).resolve().parents[2]
CRAWL = ROOT / "samples" / "crawl"


def plan_of(work: Path, max_missing: int | None = None) -> CleanPlan:
    options = CleanOptions(inputs=CRAWL, work=work, recipe="noblocklist", max_missing=max_missing, workers=1)
    return plan_clean(options)


def state_names(state: WorkState) -> list[list[str]]:
    """The numbers of the files that are done, missing and open."""
    return [[file.name[-13] for file in files] for files in (state.done, state.missing, state.open)]


def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    plan = plan_of(tmp_path / "work")
    assert [file.name for file in plan.files] == sorted(path.name for path in CRAWL.iterdir())
    assert plan.recipe.name == "noblocklist"
    assert plan.listed.fingerprint == plan.recipe.fingerprint({})
    assert not (tmp_path / "work").exists()


def test_each_file_is_done_missing_or_open(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    first, second, third = plan.files
    assert state_names(work_state(plan)) == [[], [], ["0", "1", "2"]]
    write_bytes(plan.target(first), b"")
    work_folder.note_missing(plan.target(third), third.path, "HTTP status 404")
    assert state_names(work_state(plan)) == [["0"], ["2"], ["1"]]
    work_folder.note_missing(plan.target(first), first.path, "a work file is there all the same")
    write_bytes(plan.target(second), b"")
    assert state_names(work_state(plan)) == [["0", "1"], ["2"], []]


def leave_out(monkeypatch: pytest.MonkeyPatch, plan: CleanPlan, error: str | None) -> None:
    """Lets the runner lose its last task; with an error, a worker has recorded the file as missing."""
    run = runner.run_job

    def lossy(graph: object, runner: RunnerOptions, tasks: int, *others: object) -> None:
        def shorter(flow: Flow) -> None:
            create = flow.create
            flow.create = lambda name, elements: create(name, elements[:-1])  # type: ignore[method-assign]
            graph(flow)  # type: ignore[operator]

        run(shorter, runner, tasks)
        if error is not None:
            for file in work_state(plan).open:
                work_folder.note_missing(plan.target(file), file.path, error)

    monkeypatch.setattr(clean_run, "run_job", lossy)


def test_a_file_that_the_runner_lost_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(tmp_path)
    with monkeypatch.context() as patch:
        leave_out(patch, plan, None)
        with pytest.raises(LostDataError, match=r"the runner ended without cleaning 1 of 3 files: SAMPLE-\d+-\d{5}\."):
            clean.clean(plan, Progress())
    counts = clean.clean(plan, Progress())  # the same plan again cleans the file that is left
    assert counts["pages.read"] == 71


@pytest.mark.parametrize("max_missing", [None, 1, 0])
def test_missing_files_are_allowed_up_to_a_limit(
    max_missing: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, max_missing)
    leave_out(monkeypatch, plan, "HTTP status 404")
    if max_missing == 0:
        with pytest.raises(C4pipeError, match="1 of 3 files could not be downloaded: HTTP status 404"):
            clean.clean(plan, Progress())
    else:
        assert 0 < clean.clean(plan, Progress())["pages.read"] < 71
    assert len(work_state(plan).missing) == 1


@pytest.mark.parametrize(("tasks", "share"), [(1, 3e6), (2, 1.5e6), (3, 1e6), (100, 1e6)])
def test_processes_that_download_share_the_bandwidth(tasks: int, share: float) -> None:
    options = CleanOptions(inputs=CRAWL, work="work", bandwidth=3, workers=3)
    assert network_of_worker(options, tasks).bytes_per_second == share


def test_without_a_bandwidth_there_is_no_limit() -> None:
    assert network_of_worker(CleanOptions(inputs=CRAWL, work="work", workers=3), 3).bytes_per_second is None
