"""Faults and kills at random: nothing is lost, and the corpus is that of an undisturbed run, byte for byte.

A short form runs with the other tests. C4PIPE_LONG=1 runs the long one, whose figures are in docs/reliability.md.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.crawls import CRAWL, LISTS, build, files_of, made_crawl
from tests.helpers.web import serve

LONG = "C4PIPE_LONG" in os.environ
ROUNDS = 12 if LONG else 1
KILLS = 20 if LONG else 2
KINDS = ["503", "403", "429", "cut", "reset"] * 5 + ["no ranges"] * 2 + ["stall"]


def mirror(folder: Path, files: dict[str, bytes]) -> Path:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


@pytest.mark.slow
def test_faults_over_forty_files_lose_nothing(tmp_path: Path) -> None:
    files = made_crawl(40)
    build(tmp_path / "w", tmp_path / "c", (CRAWL,), str(mirror(tmp_path / "mirror", files)))
    faults = 0
    for number in range(ROUNDS):
        draw = random.Random(number)
        script: dict[tuple[str, int], str | None] = {}

        def fault(
            path: str, asked: int, draw: random.Random = draw, script: dict[tuple[str, int], str | None] = script
        ) -> str | None:
            return script.setdefault(
                (path, asked), draw.choice(KINDS) if asked < (4 if path.endswith("paths.gz") else 9) else None
            )

        with serve(files, fault) as web:
            build(tmp_path / f"w{number}", tmp_path / f"c{number}", (CRAWL,), web.url)
        faults += sum(n for kind, n in web.faults.items() if kind != "none")
        assert {kind for kind, n in web.faults.items() if n} == {*KINDS, "none"}
        assert files_of(tmp_path / "c") == files_of(tmp_path / f"c{number}")
        assert files_of(tmp_path / "w") == files_of(tmp_path / f"w{number}")
    assert faults >= 200 * ROUNDS
    print(f"\n{faults:,} faults survived")


@pytest.mark.slow
@pytest.mark.parametrize("job", ["clean", "dedup", "write"])
def test_killed_at_any_moment(job: str, tmp_path: Path) -> None:
    crawl = mirror(tmp_path / "mirror", made_crawl(40))
    clean = ["clean", CRAWL, "--source", str(crawl), "--lists", str(LISTS), "--work"]
    dedup = ["dedup", str(tmp_path / "work"), "--shards", "4", "--output"]
    run(*clean, str(tmp_path / "work"))
    if job != "clean":
        run(*dedup, str(tmp_path / "whole"))
    command, target = (clean, tmp_path / "again") if job == "clean" else (dedup, tmp_path / "corpus")
    whole = tmp_path / ("work" if job == "clean" else "whole")
    started = time.monotonic()
    run(*command, str(tmp_path / "timed"))
    seconds = time.monotonic() - started if job != "write" else 0.4  # from the first shard to the last, about
    draw, killed = random.Random(1), 0
    for _ in range(10 * KILLS):
        if start_and_kill(target if job == "write" else None, draw.uniform(0, seconds), *command, str(target)):
            killed += 1
        elif job != "clean" or killed < KILLS:  # it came to its end: another corpus is begun
            assert files_of(target) == files_of(whole)
            target = target.with_name(target.name + "+")
        if killed == KILLS:
            break
    run(*command, str(target))
    assert killed == KILLS
    assert files_of(target) == files_of(whole)
    print(f"\n{killed} kills of {job} survived")


def start_and_kill(writes: Path | None, seconds: float, *arguments: str) -> bool:
    """Kills c4pipe and its workers after a while (since it began to write a corpus); False where it had ended."""
    command = [sys.executable, "-m", "c4pipe", *arguments, "--workers", "2", "--quiet"]
    with subprocess.Popen(command, start_new_session=True) as process:
        while writes and process.poll() is None and not any(writes.glob("_building/*/*c4-*")):
            time.sleep(0.01)
        try:
            assert process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return True
    return False


def run(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "c4pipe", *arguments, "--workers", "2", "--quiet"], check=True)
