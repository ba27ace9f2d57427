"""Progress on a real terminal of some width: the bar and the time left stay, and the words give way."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from c4pipe.cli.progress import fitted
from tests.helpers.crawls import LISTS, SAMPLES, sample_pages
from tests.helpers.web import serve
from tests.helpers.wet import wet_bytes

WORDS = "3 of 8 files, 71,000 pages, 12 pages/s, dropped: language 61%, few_sentences 9%"


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (80, WORDS),
        (65, "3 of 8 files, 71,000 pages, 12 pages/s, dropped: language 61%"),
        (60, "3 of 8 files, 71,000 pages, 12 pages/s"),
        (27, "3 of 8 files, 71,000 pages"),
        (12, "3 of 8 files"),
        (11, ""),
        (-5, ""),
    ],
)
def test_the_last_parts_go_first(room: int, shown: str) -> None:
    assert fitted(WORDS, room) == shown


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """WET files that take some seconds to clean."""
    folder = tmp_path_factory.mktemp("crawl")
    for number in range(5):
        (folder / f"{number}.warc.wet.gz").write_bytes(wet_bytes(sample_pages()) * 50)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 110])
def test_a_terminal_of_some_width(columns: int, crawl: Path, tmp_path: Path) -> None:
    command = ["clean", str(crawl), "--lists", str(LISTS), "--work", str(tmp_path / "w"), "--workers", "1"]
    lines = frames(on_terminal(command, columns))
    assert max(map(len, lines)) <= columns
    inside = [line for line in lines if re.search(r" [1-9]\d?% +\d+:\d\d:\d\d left", line)]
    assert inside, "finished files move the bar, and the time left follows"
    assert all(line.startswith("clean ") and len(re.findall("[━╸╺]", line)) >= 10 for line in inside)
    assert all(re.search("[1-4] of 5 files", line) and " 0 pages" not in line for line in inside)
    assert any(" pages/s" in line for line in lines) == (columns > 60)
    assert any("dropped" in line for line in lines) == (columns > 80)
    assert re.search(r"100% \d:\d\d:", lines[-1])
    assert [path.name for path in (tmp_path / "w").iterdir() if path.name.endswith(".tmp")] == []


def test_sentences_end_at_words(tmp_path: Path) -> None:
    """On a terminal; a path is never cut. Standard output is no terminal here."""
    command = ["clean", str(SAMPLES[0]), "--lists", str(LISTS), "--work", str(tmp_path / "w"), "--workers", "1"]
    frames(on_terminal(command, 40))
    lines = frames(on_terminal(command, 40))
    said = f"c4pipe: {tmp_path}/w is complete already, and nothing was done: to make it again, give another --work,"
    assert f"{said} or delete it" in " ".join(lines)
    assert len(lines) > 3
    assert all(len(line) <= 40 or "/" in line for line in lines)


@pytest.mark.slow
def test_a_wait_is_above_the_bar(crawl: Path, tmp_path: Path) -> None:
    files = {path.name: path.read_bytes() for path in crawl.iterdir()}
    with serve(files, lambda path, number: "503" if number < 1 else None) as web:
        urls = [f"{web.url}/{name}" for name in files]
        command = ["clean", *urls, "--lists", str(LISTS), "--work", str(tmp_path / "w"), "--workers", "1"]
        lines = frames(on_terminal(command, 80))
    assert max(map(len, lines)) <= 80
    bars = [line for line in lines if line.startswith("clean ")]
    (wait,) = [line for line in lines if "waits: " in line]
    assert re.match(r"c4pipe: waits: \d\.warc\.wet\.gz: HTTP status 503 from 127\.0\.0\.1:\d+, try 1 of 8", wait)
    shares = [int(re.findall(r"(\d+)%", line)[0]) for line in bars]
    assert shares == sorted(shares)
    assert {20, 40, 60, 80, 100} <= set(shares)


def on_terminal(command: list[str], columns: int, *, with_results: bool = False) -> str:
    """Returns what c4pipe prints on standard error where that is a terminal, and perhaps on standard output, too."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "c4pipe", *command],
        stdout=theirs if with_results else subprocess.DEVNULL,
        stderr=theirs,
        env={**environment, "TERM": "xterm"},
    )
    os.close(theirs)
    pieces = []
    try:
        while piece := os.read(ours, 1 << 16):
            pieces.append(piece)
    except OSError:  # on Linux, the end of the last process that has the terminal
        pass
    finally:
        os.close(ours)
    assert process.wait() == 0
    return b"".join(pieces).decode()


def frames(printed: str) -> list[str]:
    """Returns the lines that were shown, one after the other in the same place."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed)
    return [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()]
