"""`make engines` where a row fails, a service is slow, or a worker has nothing to do."""

import http.server
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRAWL = ROOT / "samples" / "crawl"
START = f"import sys; sys.path.insert(0, {str(ROOT / 'engines')!r})\n"
HALF_STARTED = [b"", b'{"alivewor', b'{"status": "STANDBY"}', b'{"aliveworkers": null}', b'{"aliveworkers": 2}']


def python(code: str, *given: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", START + textwrap.dedent(code), *map(str, given)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.spark
def test_rows_that_fail_do_not_stop_the_others(tmp_path: Path) -> None:
    """One engine whose tools are missing, one that is over its time, one without a busy worker, and one that works."""
    code = """
        import matrix
        from dataclasses import replace
        rows = matrix.engines_of
        def shorter(tools):
            known = rows(tools)
            local = replace(known["local-1"], vocabulary=False)
            idle = replace(local, killed="no such word")
            return known | {"late": replace(local, limit=0.1), "idle": idle, "local-1": local}
        matrix.engines_of = shorter
        matrix.main()
    """
    (tmp_path / "bin").mkdir()
    variables = {"PATH": str(tmp_path / "bin"), "C4PIPE_ENGINES": str(tmp_path / "engines"), "TMPDIR": str(tmp_path)}
    done = python(code, "--only", "spark-3.5-local,late,idle,local-1", "--input", CRAWL, **variables)
    assert done.returncode == 1
    _, *rows = done.stdout.splitlines()
    assert [row.split("FAILED")[-1].strip() for row in rows[:3]] == [
        "engines: this machine has no Java (java): install it, and run the same command again",
        "not done after 0.1 s",
        "no worker was killed: none was seen with an open file",
    ]
    assert rows[3].split()[:2] == ["local-1", "38"]
    (folder,) = tmp_path.glob("c4pipe-engines-*")
    assert done.stderr.splitlines()[-1] == f"the logs are in {folder}"
    assert {path.name for path in folder.iterdir()} == {"spark-3.5-local", "late", "idle", "local-1"}


@pytest.mark.spark
def test_a_row_that_does_not_exist_is_a_mistake() -> None:
    done = python("import matrix; matrix.main()", "--only", "local-1,sparkle")
    assert done.returncode == 1
    assert done.stderr.startswith("--only sparkle: the rows are local-1, local-2, ")


@pytest.mark.spark
def test_a_worker_is_killed_while_it_has_a_file_open_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "page").touch()
    code = """
        import subprocess, sys, time, matrix
        from pathlib import Path
        page = Path(sys.argv[1])
        # The marked process starts the one that works, as an executor of Spark does.
        wait = "sys.stdin.readline()"
        work = f"import sys; {wait}; file = open(sys.argv[1]); print('open', flush=True); {wait}"
        boss = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], sys.argv[2]])"
        started = [sys.executable, "-c", boss, work, str(page), "marked-worker"]
        worker = subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        before = matrix.kill_a_busy_worker("marked-worker", [page.parent]), worker.poll()
        worker.stdin.write("go on\\n"); worker.stdin.flush()
        worker.stdout.readline()
        other = matrix.kill_a_busy_worker("another-word", [page.parent]), worker.poll()
        print(before, other, matrix.kill_a_busy_worker("marked-worker", [page.parent]), worker.wait(10))
    """
    done = python(code, tmp_path / "page")
    assert done.stdout == "(False, None) (False, None) True -9\n", done.stderr


@pytest.fixture
def half_started() -> Iterator[str]:
    """The address of a service whose first answers are no numbers."""
    answers = iter(HALF_STARTED)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = next(answers)
            self.send_response(200 if body else 503)
            self.send_header("Content-Length", str(len(body) + (3 if body.endswith(b"r") else 0)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/json/"
        server.shutdown()


def test_a_service_that_is_starting_is_asked_again(half_started: str) -> None:
    code = """
        import sys, clusters
        print([clusters._count(sys.argv[1], "aliveworkers") for _ in range(5)])
    """
    assert python(code, half_started).stdout == "[None, None, None, None, 2]\n"


def test_a_service_that_ends_or_never_starts_is_a_sentence(tmp_path: Path) -> None:
    code = """
        import sys, clusters
        from pathlib import Path
        log = Path(sys.argv[1])
        with clusters.started(["sh", "-c", sys.argv[2]], log) as program:
            clusters.wait(lambda: False, "The service", log, program, 1.0)
    """
    ended = python(code, tmp_path / "log", "echo the port is taken; exit 3")
    assert (ended.returncode, ended.stderr) == (
        1,
        "The service ended with status 3 while it started\nthe port is taken\n\n",
    )
    late = python(code, tmp_path / "log", "echo I wait; sleep 60 & wait")
    assert (late.returncode, late.stderr) == (1, "The service was not ready after 1 s\nI wait\n\n")
