"""Runners of Beam: which one a name means, which options it takes, and that it gives the bytes of this machine."""

import re
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

from c4pipe.cli.main import main
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.runners import beam_runner
from c4pipe.runners.beam_runner import find_beam_runner as find_runner
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.runner import check_runner, run_job
from c4pipe.runners.runner_options import RunnerOptions

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "samples").glob("*/*.wet.gz"))
DIRECT = "DirectRunner (FnApiRunner, in memory)"

pytestmark = pytest.mark.beam


@pytest.mark.parametrize(
    ("given", "name", "runs"),
    [
        ("DirectRunner", DIRECT, "FnApiRunner"),
        ("directrunner", DIRECT, "FnApiRunner"),
        ("direct", DIRECT, "FnApiRunner"),
        ("SwitchingDirectRunner", DIRECT, "FnApiRunner"),
        ("apache_beam.runners.direct.DirectRunner", DIRECT, "FnApiRunner"),
        ("fnapirunner", "FnApiRunner (in memory)", "FnApiRunner"),
        ("BUNDLEBASEDDIRECTRUNNER", "BundleBasedDirectRunner", "BundleBasedDirectRunner"),
        ("prismrunner", "PrismRunner", "PrismRunner"),
        ("SparkRunner", "SparkRunner", "SparkRunner"),  # Beam's: Spark itself is `spark`
        ("flink", "FlinkRunner", "FlinkRunner"),
        (f"{__name__}.OwnRunner", f"{__name__}.OwnRunner", f"{__name__}.OwnRunner"),
    ],
)
def test_names(given: str, name: str, runs: str) -> None:
    runner = find_runner(RunnerOptions(runner=given))
    assert (str(runner), runner.runs) == (name, runs)


class OwnRunner(FnApiRunner):
    """A runner that Beam does not list."""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("FlinkRuner", r"^--runner FlinkRuner: there is no such runner; did you mean 'FlinkRunner' or "),
        ("sparc", r"did you mean 'spark'\?"),
        (
            "zzz",
            r"there are .*spark, .*BundleBasedDirectRunner, DataflowRunner, DirectRunner, FlinkRunner, FnApiRunner, ",
        ),
        ("", r"there is no such runner"),
        ("nowhere.at.Runner", r"can't be imported: No module named 'nowhere'"),
        ("apache_beam.NoRunner", r"can't be imported: .*NoRunner"),
        ("apache_beam.Pipeline", r"is not a runner of Beam"),
    ],
)
def test_names_of_no_runner(given: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_runner(RunnerOptions(runner=given))


@pytest.mark.parametrize(
    ("runner", "option"),
    [
        ("DirectRunner", "--direct_running_mode=in_memory"),
        ("FnApiRunner", "--direct_num_workers=1"),
        ("BundleBasedDirectRunner", "--no_direct_runner_use_stacked_bundle"),
        ("PrismRunner", "--prism_location=x"),
        ("FlinkRunner", "--parallelism=2"),
        ("PortableRunner", "--job_name=x"),
        (f"{__name__}.OwnRunner", "--direct_running_mode=in_memory"),
    ],
)
def test_options_that_beam_knows(runner: str, option: str) -> None:
    job_server = ("--job_endpoint=localhost:1",) * (runner == "PortableRunner")
    check_runner(RunnerOptions(runner=runner, beam=(option, *job_server)))


@pytest.mark.parametrize(
    ("runner", "option", "says"),
    [
        ("FlinkRunner", "--flink_mastr=x", "Beam has no option --flink_mastr=x; did you mean '--flink_master'"),
        (
            "FlinkRunner",
            "--parallelism=x",
            "Beam can't use its options: argument --parallelism: invalid int",
        ),
        ("DirectRunner", "--direct_running_mode=nonsense", "invalid choice: 'nonsense'"),
        ("DirectRunner", "--direct_running_mode=multi_processing", "--direct_running_mode multi_processing: Beam's Fn"),
        ("FnApiRunner", "--direct_running_mode=multi_threading", r"FnApiRunner loses data between several workers"),
        ("DirectRunner", "--direct_num_workers=0", "--direct_num_workers 0: Beam's FnApiRunner loses data"),
        ("DataflowRunner", "--region=x", "--runner DataflowRunner: Missing .* Missing required option: project"),
    ],
)
def test_options_that_no_job_can_have(runner: str, option: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_runner(RunnerOptions(runner=runner, beam=(option,)))


class Fail(Step):
    """Raises an error."""

    def process(self, element: str) -> Iterable[tuple[str, Any]]:
        raise OSError(f"no such file: {element}")


@pytest.mark.parametrize("runner", ["DirectRunner", "BundleBasedDirectRunner"])
def test_a_failure_is_one_sentence(runner: str) -> None:
    def graph(flow: Flow) -> None:
        flow.map("Fail", flow.create("One", ["a.wet"]), Fail())

    with pytest.raises(C4pipeError, match=r"^no such file: a\.wet$"):
        run_job(graph, RunnerOptions(runner=runner), tasks=1)


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["directrunner", "FnApiRunner", "BundleBasedDirectRunner"])
def test_the_sample_crawl_gives_the_bytes_of_this_machine(runner: str, tmp_path: Path, here: dict[str, bytes]) -> None:
    log = tmp_path / "log"
    assert build(tmp_path / "there", "--runner", runner, "--log", str(log)) == here
    name = str(find_runner(RunnerOptions(runner=runner)))
    assert ran(log) == [f"{name}, Apache Beam {beam.__version__}"] * 2


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The corpus of the sample crawl, built on this machine."""
    folder = tmp_path_factory.mktemp("here")
    corpus = build(folder / "corpus", "--workers", "2", "--log", str(folder / "log"))
    assert len(corpus) > 1
    assert ran(folder / "log") == ["this machine, 2 processes (--workers)"] * 2
    return corpus


@pytest.mark.slow
def test_real_pages_give_the_bytes_of_this_machine(tmp_path: Path, largest_data: Path) -> None:
    files = [*map(str, sorted((largest_data / "wet").glob("*.wet.gz")))]
    files += [str(largest_data / "pages" / "multilingual-handbook.warc.wet.gz")]
    given = [*files, "--recipe", "noblocklist", "--languages", "en,de,fr", "--shards", "2", "--quiet"]
    for name, options in (("here", ["--workers", "2"]), ("there", ["--runner", "DirectRunner"])):
        assert main(["build", *given, "--output", str(tmp_path / name), *options]) == 0
    here, there = (files_of(tmp_path / name) for name in ("here", "there"))
    assert len(here) >= 6
    assert here == there


def build(output: Path, *options: str) -> dict[str, bytes]:
    """Builds a corpus of the sample crawl; returns its files."""
    assert SAMPLES
    given = [*map(str, SAMPLES), "--lists", str(ROOT / "samples" / "lists"), "--quiet", "--output", str(output)]
    assert main(["build", *given, *options]) == 0
    return files_of(output)


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a corpus, with its manifest."""
    files = [path for path in folder.rglob("*") if path.is_file() and "_work" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def ran(log: Path) -> list[str]:
    """What ran, by the log of a command."""
    return re.findall(r"INFO runner: (.*)", log.read_text())


def test_a_server_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beam downloads job servers without a time limit."""
    monkeypatch.setattr(beam_runner, "DOWNLOAD_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        jar = f"http://127.0.0.1:{server.getsockname()[1]}/server.jar"
        options = RunnerOptions(
            runner="SparkRunner", beam=(f"--spark_job_server_jar={jar}", f"--jar_cache_dir={tmp_path}")
        )
        with pytest.raises(C4pipeError, match=r"has not answered for 0\.5 s: name a file, as with --prism_location"):
            run_job(lambda flow: flow.create("One", ["a"]), options, tasks=1)
    assert socket.getdefaulttimeout() is None
