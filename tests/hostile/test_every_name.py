"""Every name that c4pipe makes below a user's folder, at any depth, as a link, a pipe, a device or a folder of others.

Nothing outside changes, no command waits, and each error is one sentence.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from c4pipe.cli import main
from tests.helpers.crawls import LISTS, SAMPLES

OPTIONS = f"--lists={LISTS} --keep-dropped=all"
MADE = [
    f"build {SAMPLES[0]} {OPTIONS} --output={{0}}/first",
    f"build {SAMPLES[0]} {OPTIONS} --output={{0}}/corpus",
    f"clean {SAMPLES[1]} {OPTIONS} --work={{0}}/work",
    f"clean {SAMPLES[2]} {OPTIONS} --work={{0}}/third",
    "add {0}/corpus {0}/work",
    f"clean {SAMPLES[1]} {OPTIONS} --work={{0}}/slurm --runner=slurm -- --partition=cpu",
]
COMMANDS = [
    "add {0}/corpus {0}/third",
    "takedown {0}/corpus --urls={0}.txt --in-place",
    "takedown {0}/corpus --urls={0}.txt --output={0}/new",
    "index {0}/first",
    f"build {SAMPLES[1]} {OPTIONS} --output={{0}}/new",
    "dedup {0}/third {0}/work --output={0}/new",
    f"clean {SAMPLES[1]} {SAMPLES[2]} {OPTIONS} --work={{0}}/slurm --runner=slurm -- --partition=cpu",
    "status {0}/slurm",
    "status {0}/corpus",
]
KINDS = ("pipe", "device", "folder", "link")
SLURM = {"sbatch": "echo 7", "squeue": "", "scancel": "", "scontrol": "echo MaxArraySize = 1001"}
"""The programs of a Slurm that takes every job and runs none. tests/jobs/test_slurm.py has a real one."""

LEFT_OUT = re.compile(r"[0-9a-f]{16}|\.lock$|-0000[1-9]-of-")  # random names, and those that are made as others


def run(command: str, folder: Path) -> int:
    words, mark, runner = command.format(folder).partition(" --runner")
    quiet = [] if words.startswith("status") else ["--quiet"]
    workers = ["--workers=1"] if quiet and not mark else []
    return main.main([*words.split(), *quiet, *workers, *f"{mark}{runner}".split()])


@contextmanager
def seen_paths(inside: Path) -> Iterator[set[Path]]:
    """Yields the paths in a folder that Python opens, makes, lists, moves or deletes meanwhile."""
    seen, is_on = set[Path](), True

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if is_on and event.startswith(("open", "os.", "shutil.")):
            paths = [str(each) for each in arguments[:2] if isinstance(each, str | os.PathLike)]
            seen.update(Path(each).relative_to(inside) for each in paths if each.startswith(f"{inside}/"))

    sys.addaudithook(hook)
    yield seen
    is_on = False


def state(path: Path) -> dict[str, bytes | None]:
    return {str(each): each.read_bytes() if each.is_file() else None for each in (path, *sorted(path.rglob("*")))}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A corpus, a corpus of two parts with an index, work folders, and a submission to Slurm with its logs."""
    folder, programs = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("programs")
    for name, line in SLURM.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(programs), prepend=os.pathsep)
        patch.setattr(os, "fsync", lambda descriptor: None)  # there is no power cut here
        for command in MADE:
            assert run(command, folder) == 0, command
        for name in ("clean-0_0.log", "dedup.log"):
            (folder / "slurm" / "_slurm" / "001" / name).write_text("c4pipe: it failed\nc4pipe: status 1\n")
        yield folder


def own_folders(command: str) -> set[str]:
    return set(re.findall(r"\{0\}/([\w-]+)", command))


def copy_made(command: str, made: Path, folder: Path) -> None:
    for name in own_folders(command) & {each.name for each in made.iterdir()}:
        shutil.copytree(made / name, folder / name)
    Path(f"{folder}.txt").write_text("https://kitchen.example.com/bread/plain-white-loaf\n")


def find_names(command: str, made: Path, folder: Path) -> dict[Path, bool]:
    """Runs a command. Returns the names in the folders that it names, and whether each is a folder."""
    copy_made(command, made, folder)
    with seen_paths(folder) as seen:
        assert run(command, folder) in (0, 1), command
    there = {path.relative_to(root) for root in (made, folder) for path in root.rglob("*")}
    own = own_folders(command)
    names = sorted(each for each in seen | there if len(each.parts) > 1 and each.parts[0] in own)
    above = {parent for each in names for parent in each.parents}
    return {
        each: each in above or (made / each).is_dir() or (folder / each).is_dir()
        for each in names
        if not LEFT_OUT.search(each.name)
    }


def put(kind: str, path: Path, victim: Path) -> None:
    """Puts something of others in place of a name."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else victim)


@pytest.mark.slow
def test_every_name(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder is tried as a link with each command that names one above it, and each name with one kind in turn."""
    found = {each: find_names(each, made, tmp_path / f"seen{n}") for n, each in enumerate(COMMANDS)}
    assert len({name for names in found.values() for name in names}) > 150
    place = tmp_path / "place"
    tried = set[Path]()
    for command, names in found.items():
        for name, is_folder in names.items():
            kinds = ["link"] if is_folder else []
            kinds += [] if name in tried else [KINDS[len(tried) % len(KINDS)]]
            tried.add(name)
            for kind in kinds:
                check(command, name, kind, is_folder, made, place)
                error = capsys.readouterr().err
                assert "Traceback" not in error
                assert error.count("\n") <= 1, (command, name, kind, error)
                shutil.rmtree(place)


def check(command: str, name: Path, kind: str, is_folder: bool, made: Path, place: Path) -> None:
    place.mkdir()
    theirs, victim = place / "theirs", place / "victim"
    copy_made(command, made, theirs)
    if is_folder:  # also a corpus, whose manifest could be replaced
        shutil.copytree(next(each for each in (theirs / name, made / "first") if each.is_dir()), victim)
        (victim / ".x.tmp").write_text("years of work")
    else:
        victim.write_bytes((theirs / name).read_bytes() if (theirs / name).is_file() else b"{}")
    before = state(victim)
    put(kind, theirs / name, victim)
    assert run(command, theirs) in (0, 1, 2, 3), (command, name, kind)
    assert state(victim) == before, (command, name, kind)
