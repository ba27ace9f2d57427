"""The server that forks workers: what it loads, and how it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems start each worker by itself")

LOADED = """
import sys
import c4pipe.jobs.worker_imports
import c4pipe.runners.worker_pool  # the server has it, too

before = set(sys.modules)
from c4pipe.clean.steps import CleanWetFile
from c4pipe.dedup.write import Publish, WriteShard

print(sorted(set(sys.modules) - before))
"""

SLOW = "import time\nopen('begins', 'w')\ntime.sleep(1)\n"

STOPPED = """
import signal
from c4pipe.runners.worker_pool import start_server

signal.signal(signal.SIGINT, signal.default_int_handler)  # what starts the tests in the background may ignore it
start_server("slow")
try:
    import time
    time.sleep(60)
except KeyboardInterrupt:
    print("stopped")
"""


def _environment(*folders: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *folders)))}


def test_the_server_has_loaded_the_steps_of_both_jobs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], env=_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_server_that_still_imports_ends_without_a_word_after_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    program = subprocess.Popen(
        [sys.executable, "-c", STOPPED],
        cwd=tmp_path,
        env=_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(600):
        if (tmp_path / "begins").exists():
            break
        time.sleep(0.05)
    os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to the program and the server
    assert program.communicate(timeout=30) == ("stopped\n", "")
    assert program.returncode == 0
