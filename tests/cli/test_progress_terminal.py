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

from c4pipe.cli.progress import fitted, without_wait
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


@pytest.mark.parametrize(
    ("words", "rest", "wait"),
    [
        (WORDS, WORDS, ""),
        (
            "1 of 2 files, waits: x, y from h, try 1 of 8, next in 3 s, 5 pages",
            "1 of 2 files, 5 pages",
            "waits: x, y from h, try 1 of 8, next in 3 s",
        ),
        (
            "1 of 2 files, 1,200 wait: x from h, try 1 of 8, next in 3 s",
            "1 of 2 files",
            "1,200 wait: x from h, try 1 of 8, next in 3 s",
        ),
    ],
)
def test_a_wait_is_told_apart(words: str, rest: str, wait: str) -> None:
    assert without_wait(words) == (rest, wait)


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WET file that takes some seconds to clean."""
    file = tmp_path_factory.mktemp("crawl") / "one.warc.wet.gz"
    file.write_bytes(wet_bytes(sample_pages()) * 250)
    return file


@pytest.mark.slow
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
def test_a_download_into_the_cache_moves_the_bar(one_file: Path, tmp_path: Path) -> None:
    """To the half, before the first page is cleaned; then pages move it on, and it never goes back."""
    with serve({"one.warc.wet.gz": one_file.read_bytes()}, lambda path, number: "503" if number < 1 else None) as web:
        command = ["clean", f"{web.url}/one.warc.wet.gz", "--lists", str(LISTS), "--work", str(tmp_path / "w")]
        lines = frames(
            on_terminal([*command, "--cache", str(tmp_path / "cache"), "--bandwidth", "2", "--workers", "1"], 80)
        )
    assert max(map(len, lines)) <= 80
    bars = [line for line in lines if line.startswith("clean ")]
    waits = [line for line in lines if line.startswith("waits: ")]
    assert waits, "it does not fit behind the bar, so it is below it"
    assert all(
        re.fullmatch(r"waits: HTTP status 503 from 127\.0\.0\.1:\d+, try 1 of 8, next in 1 s", each) for each in waits
    )
    shares = [int(re.findall(r"(\d+)%", line)[0]) for line in bars]
    assert shares == sorted(shares)
    assert {share for share in shares if 5 < share < 50}
    assert {share for share in shares if 50 < share < 100}
    assert all(" 0 pages" in line for line, share in zip(bars, shares, strict=True) if 0 < share < 50)


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
