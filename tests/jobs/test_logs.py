"""The log of a run: when it began and ended, what it counted, and how it failed."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.errors import JobWritten, UsageError
from c4pipe.io.log import LOG
from c4pipe.jobs.clean import NOT_COMPILED
from c4pipe.jobs.logs import log_to
from c4pipe.native import kernels
from tests.helpers.logs import log_records

ROOT = Path(__file__).resolve().parents[2]
LISTS = ["--lists", str(ROOT / "samples" / "lists")]
BUILD = ["build", str(ROOT / "samples" / "crawl"), *LISTS, "--workers", "1"]


def test_the_log_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, output = tmp_path / "log", tmp_path / "c"
    command = [*BUILD, "--output", str(output), "--quiet", "--log", str(log)]
    assert main.main(command) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")
    made = manifest.read_manifest(output)
    assert made is not None
    found = log_records(log)
    versions = " ".join(f"{name}={version}" for name, version in made["versions"].items() if name != "text")
    assert found[0] == ("INFO", f"versions: {versions}")
    assert found[1] == ("INFO", f"kernels: {' '.join(f'{name}={kernel}' for name, kernel in kernels().items())}")
    assert found[2] == ("INFO", f"command: c4pipe {' '.join(command)}")
    messages = [re.sub(r"[\d.]+ s$", "N s", message) for _, message in found]
    stages = [message for message in messages if message.endswith(("begins", " N s", "ended"))]
    begun = ["clean: begins", "clean: done in N s", "dedup: begins", "dedup: done in N s", "ended"]
    assert stages == begun
    (damage,) = [message for level, message in found if level == "WARNING" and message != NOT_COMPILED]
    assert damage == (
        "SAMPLE-20300101000000-00001.warc.wet.gz is damaged: "
        "damage.bad_length=1 damage.gzip_corrupt=1 damage.not_utf8=1"
    )
    shown = {name: n for name, n in made["counts"].items() if not name.startswith("languages.")}
    counts = " ".join(f"{name}={number}" for name, number in shown.items())
    assert ("INFO", f"dedup: {counts}") in found
    assert any(message.startswith("clean: ") and "pages.read=71" in message for message in messages)
    for job in ("clean", "dedup"):
        assert any(re.fullmatch(rf"{job}: [\d.]+ CPU s, [\d,.]+ CPU-hours a TB of text", each) for _, each in found)
    # once more: what is there stays there, in the log too
    assert main.main(command) == 0
    assert log_records(log)[: len(found)] == found
    assert [message for _, message in log_records(log)[len(found) :]].count("ended") == 1


def test_the_log_of_an_error_has_its_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    command = ["clean", str(ROOT / "LICENSE"), *LISTS, "--work", str(tmp_path / "w"), "--quiet", "--log", str(log)]
    assert main.main(command) == 1
    said = f"no page was found in the input file: {ROOT / 'LICENSE'} has no record: it is plain text ("
    assert capsys.readouterr().err.startswith(f"c4pipe: {said}")
    level, message = log_records(log)[-1]
    assert level == "ERROR"
    assert message.startswith(f"C4pipeError: {said}")
    assert "; give WET files\nTraceback" in message
    assert 'jobs/clean.py"' in message


def test_what_is_logged(tmp_path: Path) -> None:
    """What c4pipe does, and warnings of libraries; not what they do."""
    log = tmp_path / "log"
    with log_to(log, ["clean", "a b"]):
        LOG.info("one")
        logging.getLogger("another").info("not told")
        logging.getLogger("another").warning("told")
        logging.getLogger("apache_beam.runners.worker.x").info("not told")
    assert [message for _, message in log_records(log)][2:] == ["command: c4pipe clean 'a b'", "one", "told", "ended"]
    assert LOG.level == logging.NOTSET
    logging.getLogger("c4pipe").warning("too late")
    assert "too late" not in log.read_text()


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--log .*nowhere/log can't be written"), log_to(tmp_path / "nowhere/log", []):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_log_into_a_pipe_does_not_wait(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match=r"pipe can't be written: it is a pipe that nobody reads"), log_to(pipe, []):
        pass
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with log_to(pipe, ["build"]):
        LOG.info("a line")
    text = os.read(reader, 100_000).decode()
    os.close(reader)
    assert "a line" in text
    assert text.endswith("ended\n")


def test_a_log_that_gets_full_does_not_end_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = tmp_path / "w"
    command = ["clean", str(ROOT / "samples" / "crawl"), *LISTS, "--workers", "1", "--work", str(work), "--quiet"]
    assert main.main([*command, "--log", "/dev/full"]) == 0
    printed = capsys.readouterr().err
    assert printed == (
        "c4pipe: --log /dev/full can't be written, and the run goes on without it: [Errno 28] No space left on device\n"
    )
    assert len(list(work.glob("*.parquet"))) == len(list((ROOT / "samples" / "crawl").iterdir()))


def test_a_log_obeys_nothing(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from c4pipe.jobs.logs import log_to\n"
    code += "from c4pipe.io.log import LOG\n"
    code += "with log_to(Path(sys.argv[1]), ['a\\x1b[2Jb']): LOG.info('one\\x9b31m\\u202etwo\\nthree \\udcff')"
    # In a process of its own: pytest keeps what is logged, and can't send a lone surrogate on.
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "log")], check=True)
    assert [message for _, message in log_records(tmp_path / "log")][2:4] == [
        "command: c4pipe 'a\ufffd[2Jb'",
        "one\ufffd31m\ufffdtwo\nthree \ufffd",
    ]


def test_a_job_that_was_written_to_a_file_is_no_error(tmp_path: Path) -> None:
    with pytest.raises(JobWritten), log_to(tmp_path / "log", []):
        raise JobWritten("the job is in x.jar")
    assert log_records(tmp_path / "log")[-1] == ("INFO", "the job is in x.jar")
