"""Power cuts: what a disk holds after each rename of a command, if it drops all that was not fsynced.

A library in C, loaded into the command and its workers, tells of each fsync and rename. After a rename it waits until
the folder has been copied as the disk would hold it: a file that was not fsynced since its last change is empty.
"""

import os
import shutil
import socketserver
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

SOURCE = Path(__file__).with_name("power_cuts.c")


@dataclass
class Disk:
    """What is known of a folder on a disk.

    Attributes:
        folder: the folder.
        copies: the folder for copies, one for each rename.
        cuts: of each rename, its target and the copy.
        empty: targets of renames whose bytes were not on the disk, by the number of the rename.
        waiting: targets of renames whose folders were not fsynced since.
    """

    folder: Path
    copies: Path
    cuts: list[tuple[Path, Path]] = field(default_factory=list)
    empty: list[tuple[int, Path]] = field(default_factory=list)
    waiting: set[Path] = field(default_factory=set)
    synced: dict[int, str] = field(default_factory=dict)  # inode to size and time of change
    published: dict[int, Path] = field(default_factory=dict)
    errors: list[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        for path in self.folder.rglob("*"):  # it was there long before
            status = path.stat()
            self.synced[status.st_ino] = f"{status.st_size} {status.st_mtime_ns}"

    def fsync(self, inode: int, state: str) -> None:
        """Notes that a file or folder was fsynced."""
        self.synced[inode] = state
        self.waiting = {each for each in self.waiting if each.parent.stat().st_ino != inode}

    def rename(self, target: Path) -> None:
        """Copies the folder as the disk would hold it, if the rename was the last that came there."""
        if not target.is_relative_to(self.folder):
            return
        self.waiting = {each for each in self.waiting if each.exists()} | {target}
        for file in [target] if target.is_file() else target.rglob("*"):
            if file.is_file():
                self.published[file.stat().st_ino] = file
        copy = self.copies / f"{len(self.cuts):03}" / self.folder.name
        for path in sorted(self.folder.rglob("*")):
            place = copy / path.relative_to(self.folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                place.mkdir()
            elif self.is_safe(path):
                shutil.copy2(path, place)
            else:
                place.touch()
                if path.stat().st_ino in self.published:
                    self.empty.append((len(self.cuts), path))
        self.cuts.append((target, copy))

    def is_safe(self, path: Path) -> bool:
        """Tells whether a file's bytes are on the disk."""
        status = path.stat()
        return self.synced.get(status.st_ino) == f"{status.st_size} {status.st_mtime_ns}"


class _Teller(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        what, first, second = self.rfile.readline().decode("utf-8", "surrogateescape").rstrip("\n").split("\t")
        disk: Disk = self.server.disk  # type: ignore[attr-defined]
        try:
            if what == "fsync":
                disk.fsync(int(first), second)
            else:
                disk.rename(Path(second))
        except Exception as error:
            disk.errors.append(error)


def record(folder: Path, copies: Path, *arguments: str) -> Disk:
    """Runs a command of c4pipe, and returns what the disk holds of a folder after each rename."""
    disk = Disk(folder.resolve(), copies)
    copies.mkdir(parents=True)
    library = copies.parent / f"{copies.name}.so"
    with ExitStack() as stack:
        socket = f"{stack.enter_context(TemporaryDirectory())}/socket"  # its path may have at most 107 bytes
        compile_it = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", f'-DSOCKET="{socket}"', "-o", str(library)]
        subprocess.run([*compile_it, str(SOURCE), "-ldl"], check=True)
        server = stack.enter_context(socketserver.UnixStreamServer(socket, _Teller))
        server.disk = disk  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            environment = {**os.environ, "LD_PRELOAD": str(library)}
            subprocess.run([sys.executable, "-m", "c4pipe", *arguments, "--quiet"], env=environment, check=True)
        finally:
            server.shutdown()
            thread.join()
    assert not disk.errors
    return disk
