"""A folder from others with a pipe, a device or a folder in place of a file: each command ends at once."""

import contextlib
import io
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from c4pipe import read
from c4pipe.cli import main
from c4pipe.dedup import removals
from c4pipe.dedup.progress import StepTally, read_tallies
from c4pipe.errors import C4pipeError
from c4pipe.inspect.robots import read_part
from c4pipe.io.streams import cached_file
from tests.helpers.crawls import LISTS, ROOT, SAMPLES

BUILD = f"{SAMPLES[0]} --lists={{0}}/lists --keep-dropped=all --annotate={{0}}/notes --output={{0}}/corpus"
MADE = [
    f"build {BUILD} --format=parquet,tfrecord,json",
    "vocab {0}/corpus/en --output={0}/vocabulary --size=200",
    "tokens {0}/corpus --vocab={0}/vocabulary",
    "tokens {0}/corpus/en --vocab={0}/vocabulary --budget-subset=100",
    "tokens {0}/corpus --vocab={0}/vocabulary --format=megatron --output={0}/ids",
    "report {0}/corpus --opt-outs={0}/lists",
]
COMMANDS = [
    *MADE,
    "clean " + BUILD.replace("--output={0}/corpus", "--work={0}/corpus/_work"),
    "dedup {0}/corpus/_work --output={0}/new/corpus",
    "diff {0}/corpus {0}/corpus",
    "explain {0}/corpus --url=http://example.com/good",
    f"overlap {{0}}/corpus --against={ROOT}/samples/lists/evaluation/questions.jsonl",
    "vocab {0}/corpus/en --output={0}/new/vocabulary --size=200",
    "tokens {0}/ids/c4-en-train --find=0",
    "import {0}/notes --output={0}/new/imported",
]


def run(command: str, folder: Path) -> int:
    arguments = command.format(folder).split()
    quiet = [] if arguments[0] in ("diff", "explain") or "--find=0" in arguments else ["--quiet"]
    workers = ["--workers=1"] if quiet and arguments[0] != "report" else []
    return main.main([*arguments, *quiet, *workers])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with lists, and with all that the commands make."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(LISTS, folder / "lists")
    (folder / "lists" / "blocked").mkdir()
    (folder / "lists" / "blocked" / "opt_outs").write_text("example.com\n")
    for command in MADE:
        assert run(command, folder) == 0, command
    return folder


@pytest.fixture
def _little_memory() -> Iterator[None]:
    """A file without an end can't fill the memory."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 31), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def replace(path: Path, kind: str, victim: Path = Path("/dev/zero")) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(victim)


@pytest.mark.slow
@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize("kinds", [("pipe", "device"), ("folder",), ("link",)], ids="-".join)
def test_every_command_ends(
    kinds: tuple[str, ...], made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written into the target of a link, which may be read.

    A command is tried with the files of the folders that it names, and a file with the kinds in turn.
    """
    files = [path.relative_to(made) for path in sorted(made.rglob("*")) if path.is_file()]
    assert len(files) > 30
    folder, victim = tmp_path / "theirs", tmp_path / "victim"
    for number, file in enumerate(files):
        if "-validation-" in file.name:  # it is written and read as that of `train`
            continue
        shutil.copytree(made, folder)
        shutil.copy(made / file, victim)
        named = [command for command in COMMANDS if f"{{0}}/{file.parts[0]}" in command]
        for turn, command in enumerate(named, number):
            kind = kinds[turn % len(kinds)]
            replace(folder / file, kind, victim if kind == "link" else Path("/dev/zero"))
            signal.alarm(60)
            status = run(command, folder)
            error = capsys.readouterr().err
            assert status in (0, 1, 2), (file, command)
            assert (status == 0) or (error.startswith("c4pipe: ") and error.count("\n") == 1), (file, command, error)
            assert victim.read_bytes() == (made / file).read_bytes(), (file, command)
        replace(folder / file, kind)
        with contextlib.suppress(C4pipeError):
            assert len(list(read.documents(folder / "corpus"))) > 10
        shutil.rmtree(folder)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_part_of_a_list_of_robots(kind: str, tmp_path: Path) -> None:
    replace(tmp_path / "part.npz", kind)
    with pytest.raises(C4pipeError, match=r"part\.npz can't be read: i"):
        read_part(tmp_path / "part.npz", "keys")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_tally(kind: str, tmp_path: Path) -> None:
    replace(tmp_path / "urls-x.tally", kind)
    StepTally(str(tmp_path), "spans").add(1)
    assert read_tallies(str(tmp_path)) == {"spans": 1}


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_the_moved_spans(kind: str, tmp_path: Path) -> None:
    replace(tmp_path / removals.MOVED_SPANS, kind)
    with pytest.raises(C4pipeError, match=r"moved_spans\.parquet can't be read: i"):
        removals.read_moved(tmp_path, np.zeros(1, np.uint64))


@pytest.mark.parametrize("name", ["a.wet", "a.wet.sha256"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_file_of_the_cache(kind: str, name: str, tmp_path: Path) -> None:
    def download() -> contextlib.closing[io.BytesIO]:
        return contextlib.closing(io.BytesIO(b"a page"))

    file = cached_file(tmp_path, "http://h/a.wet", download)
    replace(file.with_name(name), kind)
    with pytest.raises(OSError, match=r"it is a pipe or a device, and no file|directory"):
        cached_file(tmp_path, "http://h/a.wet", download)
