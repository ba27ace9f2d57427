"""A command imports and starts only what it uses."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from c4pipe.cli.main import make_parser
from c4pipe.cli.options import start_workers
from c4pipe.runners.machine_limits import PROCESS_BYTES, WorkerLimit
from c4pipe.runners.runner_options import RunnerOptions

SMALL = """
import sys
from c4pipe.cli.main import main
from c4pipe.runners.worker import lighten

lighten()  # as the command c4pipe does: pyarrow tries to import pandas, which imports much else
assert main([*sys.argv[1:], "samples/crawl", "--lists", "samples/lists", "--workers", "1"]) == 0
unused = {
    *("multiprocessing", "rich", "importlib.metadata", "email.utils", "c4pipe.text.english_words"),
    *("c4pipe.jobs.slurm", "c4pipe.jobs.index", "c4pipe.recipes.other_presets", "c4pipe.wet.html", "tomllib"),
    *("google_crc32c", "c4pipe.corpus.formats.json_lines", "numpy.ma", "c4pipe.corpus.opened"),
    *(("jinja2", "c4pipe.dedup", "c4pipe.report") if sys.argv[1] == "clean" else ()),
}
print(sorted(unused & sys.modules.keys()))
"""


@pytest.mark.parametrize("command", [("clean", "--work"), ("build", "--output")])
def test_a_command_in_one_process_imports_little(command: tuple[str, str], tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    given = [sys.executable, "-c", SMALL, *command, str(tmp_path / "folder")]
    done = subprocess.run(given, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("\n[]\n"), done.stdout + done.stderr


def test_only_the_command_that_is_named_has_its_options() -> None:
    commands = make_parser(["build", "clean", "--output", "corpus"]).commands
    assert list(commands) == ["build"]
    assert "--output" in commands["build"].option_names
    commands = make_parser(["help", "build", "clean"]).commands
    assert list(commands) == list(make_parser().commands)
    assert "--output" in commands["build"].option_names
    assert commands["clean"].option_names == ["-h", "--help"]


@pytest.mark.parametrize(
    ("workers", "runner", "inputs", "starts"),
    [
        (2, None, ["a.gz", "b.gz"], True),
        (2, None, ["crawl"], True),
        (2, None, [], True),
        (1, None, ["a.gz", "b.gz"], False),
        (2, None, ["a.gz"], False),
        (2, "spark", ["a.gz", "b.gz"], False),
        (0, "spark", ["a.gz", "b.gz"], False),
        (None, None, ["a.gz", "b.gz"], False),
        (None, None, ["a.gz", "large.gz"], True),
        (None, None, ["a.gz", "crawl"], True),
    ],
)
def test_the_server_is_started_for_workers_alone(
    workers: int | None,
    runner: str | None,
    inputs: list[str],
    starts: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.gz").touch()
    (tmp_path / "b.gz").touch()
    (tmp_path / "large.gz").write_bytes(bytes(PROCESS_BYTES))
    (tmp_path / "crawl").mkdir()
    started: list[str] = []
    monkeypatch.setattr("c4pipe.runners.worker_pool.start_server", started.append)
    monkeypatch.setattr("c4pipe.cli.options.allowed_workers", lambda: WorkerLimit(2, "two cores"))
    start_workers(workers, runner, inputs)
    assert started == ["c4pipe.jobs.worker_imports"] * starts


@pytest.mark.parametrize(
    ("options", "processes"), [({}, 3), ({"workers": 8}, 9), ({"runner": "spark"}, 9), ({"workers": 1}, 9)]
)
def test_small_tasks_of_this_machine_share_a_process(options: dict[str, Any], processes: int) -> None:
    found = RunnerOptions(**options)
    assert [found.useful_tasks(9, size, 10) for size in (20, 29, 900)] == [processes, processes, 9]


STOPPED = """
import os, signal, sys
from c4pipe.__main__ import run

class StopsAt:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, StopsAt())
run()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT that a process sends to itself")
@pytest.mark.parametrize("module", ["c4pipe.cli.main", "argparse"])
def test_ctrl_c_during_the_imports_is_no_traceback(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", STOPPED, module], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
