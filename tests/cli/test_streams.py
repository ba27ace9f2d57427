"""Standard input, output and error in any state: no traceback, and no result that is lost with status 0."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.crawls import LISTS

PYTHON = f"{sys.executable} -m c4pipe"
PAGE = Path(__file__).resolve().parents[2] / "README.md"
CLOSED = ["2>&-", ">&-", "<&-", "<&- >&-", "<&- >&- 2>&-"]
ENCODINGS = ["PYTHONIOENCODING=ascii", "PYTHONIOENCODING=latin-1:strict", "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0"]
FILE = next((LISTS.parent / "crawl").glob("*.gz"))
EXPLAIN = f"explain --lists {LISTS} {PAGE}"


def shell(line: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a line of Bash in which a pipeline has the status of its first command that fails."""
    command = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)


@pytest.mark.parametrize("closed", CLOSED)
def test_closed_streams(closed: str) -> None:
    done = shell(f"{PYTHON} recipes {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_no_file_of_a_build_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    for name, closed in (("open", ""), ("closed", "<&- >&- 2>&-")):
        done = shell(f"{PYTHON} build {FILE} --lists {LISTS} --output {tmp_path}/{name} {closed}")
        assert done.returncode == 0, done.stderr
    manifests = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("open", "closed")]
    assert manifests[0]["shards"] == manifests[1]["shards"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("command", ["recipes", EXPLAIN])
def test_a_character_that_the_encoding_lacks_is_an_escape(command: str, encoding: str) -> None:
    done = shell(f"{encoding} {PYTHON} {command}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_what_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("Źdźbło trawy — tak.\n" * 9)
    done = shell(f"PYTHONIOENCODING=latin-1 {PYTHON} explain --lists {LISTS} page | iconv -f latin1", tmp_path)
    assert "\\u0179d\\u017abło".replace("ł", "\\u0142") in done.stdout


@pytest.mark.parametrize("command", ["--help", "--version", "recipes", EXPLAIN])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_result_that_can_not_be_written_is_an_error(command: str) -> None:
    done = shell(f"{PYTHON} {command} >/dev/full")
    assert done.returncode == 1
    assert done.stderr == "c4pipe: standard output can't be written: no space left on device\n"


@pytest.mark.parametrize("command", ["--help", "recipes", EXPLAIN])
def test_a_reader_that_ends_early_gets_no_words(command: str) -> None:
    done = shell(f"{PYTHON} {command} | true")
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("lost", ["2>/dev/full", "2> >(true)"])
def test_a_run_goes_on_without_its_progress(tmp_path: Path, lost: str) -> None:
    done = shell(f"{PYTHON} clean {FILE} --lists {LISTS} --work {tmp_path}/work --json-progress {lost}")
    assert done.returncode == 0
    assert list((tmp_path / "work").glob("*.parquet"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has pipes of a chosen size")
def test_a_full_pipe_is_waited_for() -> None:
    small = "import fcntl, os; fcntl.fcntl(1, 1031, 4096); os.set_blocking(1, False)"  # 1031 is F_SETPIPE_SZ
    reader = "import sys, time; time.sleep(0.5); print(len(sys.stdin.read()))"
    done = shell(f"({sys.executable} -c '{small}'; {PYTHON} build --help) | {sys.executable} -c '{reader}'")
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 4096
