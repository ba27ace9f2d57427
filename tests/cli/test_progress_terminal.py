"""Progress on a real terminal of some width: the bar and the time left stay, the words give way, bytes move it."""

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
from tests.helpers.crawls import LISTS, sample_pages
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
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WET file that takes some seconds to clean."""
    file = tmp_path_factory.mktemp("crawl") / "one.warc.wet.gz"
    file.write_bytes(wet_bytes(sample_pages()) * 100)
    return file


@pytest.mark.parametrize("columns", [60, 80, 110])
def test_a_terminal_of_some_width(columns: int, one_file: Path, tmp_path: Path) -> None:
    command = ["clean", str(one_file), "--lists", str(LISTS), "--work", str(tmp_path / "w"), "--workers", "2"]
    lines = frames(on_terminal(command, columns))
    assert max(map(len, lines)) <= columns
    inside = [line for line in lines if re.search(r" [1-9]\d?% +\d+:\d\d:\d\d left", line)]
    assert inside, "bytes of the only file move the bar, and the time left follows"
    assert all(line.startswith("clean ") and len(re.findall("[━╸╺]", line)) >= 10 for line in inside)
    assert all("0 of 1 files" in line and " 0 pages" not in line for line in inside)
    assert any(" pages/s" in line for line in lines) == (columns > 60)
    assert any("dropped" in line for line in lines) == (columns > 80)
    assert "100% 0:00:" in lines[-1]
    assert [path.name for path in (tmp_path / "w").iterdir() if path.name.endswith(".tmp")] == []


def on_terminal(command: list[str], columns: int) -> str:
    """Returns what c4pipe prints on standard error where that is a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "c4pipe", *command],
        stdout=subprocess.DEVNULL,
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
