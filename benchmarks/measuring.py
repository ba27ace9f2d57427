"""What the benchmarks share: what a command takes, synthetic WET files, and the environments of peers.

It imports nothing of c4pipe: the memory of the process that measures is a floor for that of what it starts.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE.parent / "requirements"
DATA = HERE.parent / "tests" / "data"
"""The pages and lists of every clone."""

# Users have compiled bytecode. With this variable, whatever is measured would compile its modules at each start.
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment variables of what is measured."""

RELEASES = {"dolma": ((3, 10), (3, 13)), "training-peers": ((3, 11), (3, 14))}
"""The first Python for which all packages of an environment have releases, and the first for which they have none."""


class NotMeasured(Exception):
    """Why a peer has no figures."""


class Cost(NamedTuple):
    """The cost of a command: wall and CPU seconds, peak memory in MB of its largest process; its output and status."""

    wall: float
    cpu: float
    peak: float
    output: str
    status: int


def measure(command: Sequence[str]) -> Cost:
    """Runs a command, and returns its cost with that of its children.

    A process of its own starts the command: the memory of the one that does is a floor for the figure.
    """
    helper = [sys.executable, "-I", "-S", __file__, *command]
    return Cost(*json.loads(subprocess.run(helper, stdout=subprocess.PIPE, check=True, env=ENVIRON).stdout))


def _measure(command: Sequence[str]) -> Cost:
    adopt_orphans()
    started = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    wall = time.monotonic() - started
    wait_for_all()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return Cost(wall, cpu_of_children(), peak, done.stdout, done.returncode)


def adopt_orphans() -> None:
    """Makes this process the parent of what a measured command leaves behind, as a server of workers that still ends.

    On Linux only (prctl(2), PR_SET_CHILD_SUBREAPER): elsewhere, the CPU seconds of such processes are not known.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def wait_for_all() -> None:
    """Waits for all child processes, so that their CPU seconds count."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


class Scale(NamedTuple):
    """What a command took at scale: wall and CPU seconds, and the most bytes of all its processes and of a folder."""

    wall: float
    cpu: float
    memory: int
    disk: int


def watch(command: Sequence[str], folder: Path) -> Scale:
    """Runs a command, and looks once a second at the memory of all its processes and at the size of a folder."""
    adopt_orphans()
    before, started, memory, disk = cpu_of_children(), time.monotonic(), 0, 0
    process = subprocess.Popen(command, env=ENVIRON)
    while process.poll() is None:
        memory, disk = max(memory, tree_bytes(process.pid)), max(disk, folder_bytes(folder))
        time.sleep(1.0)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with status {process.returncode}")
    wall = time.monotonic() - started
    wait_for_all()
    return Scale(wall, cpu_of_children() - before, memory, max(disk, folder_bytes(folder)))


def cpu_of_children() -> float:
    """Returns the CPU seconds of all child processes that have ended and were waited for, with their own children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tree_bytes(root: int) -> int:
    """Returns the memory of a process and its descendants: what each has for itself, and its share of the rest."""
    return sum(_pss(pid) for pid in descendants(root))


def tree_cpu(root: int) -> dict[tuple[int, str], float]:
    """Returns the CPU seconds of each descendant of a process by its id and start.

    A parent that ignores SIGCHLD, as Ray does, hides what its children used from `cpu_of_children`.
    """
    used = {}
    for pid in descendants(root) - {root}:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used[pid, fields[19]] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def descendants(root: int) -> set[int]:
    """Returns a process, and all processes that it started, and so on."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(status.parent.name)] = int(fields[1])
    members = {root}
    while more := {pid for pid, parent in parents.items() if parent in members} - members:
        members |= more
    return members


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def folder_bytes(folder: Path) -> int:
    """Returns the bytes of all files below a folder. Another process may remove files and folders meanwhile."""
    return sum(_sizes(folder))


def _sizes(folder: Path) -> Iterator[int]:
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                yield Path(parent, name).stat().st_size


def made_crawl(folder: Path, files: int, pages: int, data: Path) -> list[str]:
    """Writes synthetic WET files of the pages in a folder such as `DATA`, and returns their paths."""
    run(str(HERE / "make_crawl.py"), str(folder), "--files", str(files), "--pages", str(pages), "--data", str(data))
    return sorted(map(str, folder.glob("*.wet.gz")))


def of_data(data: Path) -> str:
    """Returns a folder of pages in words, for results.md."""
    return "tests/data" if data == DATA else "another folder"


def made_corpus(folder: Path, pages: int, pieces: int, data: Path) -> tuple[Path, Path]:
    """Builds a corpus of synthetic WET files, and a vocabulary of it.

    Args:
        folder: an empty folder.
        pages: the number of pages in each of four files.
        pieces: the size of the vocabulary.
        data: the folder of pages and lists, such as `DATA`.

    Returns:
        the folder of the corpus, with Parquet and TFRecord shards of English, and that of the vocabulary.
    """
    files = made_crawl(folder / "crawl", 4, pages, data)
    corpus, vocabulary = folder / "corpus", folder / "vocabulary"
    source = [*files, "--lists", str(data / "lists"), "--output", str(corpus), "--format", "parquet,tfrecord"]
    run("-m", "c4pipe", "build", *source, "--quiet")
    run("-m", "c4pipe", "vocab", str(corpus / "en"), "--size", str(pieces), "--output", str(vocabulary), "--quiet")
    return corpus, vocabulary


def run(*arguments: str) -> None:
    """Runs Python with these arguments. Ends this process where it fails, after its own words."""
    if status := subprocess.run([sys.executable, *arguments], env=ENVIRON, check=False).returncode:
        sys.exit(f"{' '.join(arguments[:3])} ended with status {status}")


def compile_clone() -> None:
    """Compiles c4pipe, and the programs of peers that are here, to bytecode: pip did so for all other packages."""
    folders = [str(HERE.parent / name) for name in ("c4pipe", "parity")]
    if subprocess.run([sys.executable, "-m", "compileall", "-q", *folders], env=ENVIRON, check=False).returncode:
        sys.exit(f"not all modules in {' and '.join(folders)} could be compiled to bytecode: can you write there?")


def has_release(name: str) -> bool:
    """Tells whether the packages of a peer's environment have releases for this Python."""
    first, end = RELEASES.get(name, ((3,), (4,)))
    return first <= sys.version_info < end


def environment(name: str) -> Path:
    """Returns the Python of a peer's environment, from `requirements/<name>.txt`; makes it where the cache lacks it.

    Raises NotMeasured where its packages have no releases for this Python, or can't be installed.
    """
    if not has_release(name):
        raise NotMeasured(f"{name} has no release for this Python")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "c4pipe" / "peers" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another benchmark may be making it
        return _made(name, folder)


def _made(name: str, folder: Path) -> Path:
    locks = [REQUIREMENTS / f"{each}.txt" for each in ("build", name)]
    python, stamp = folder / "bin" / "python", folder / "made"
    content = "\n".join([sys.version, *(lock.read_text() for lock in locks)])
    if not stamp.exists() or stamp.read_text() != content:
        print(f"making the environment of {name}", file=sys.stderr, flush=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        build, packages = ([*pip, "--requirement", str(lock)] for lock in locks)
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            build,
            [*packages, "--no-build-isolation", "--use-pep517"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NotMeasured(f"its environment can't be set up: {last_line(done.stderr or done.stdout)}")
        stamp.write_text(content)
    return python


def required(name: str) -> str:
    """Returns the packages of a peer's environment, with their versions."""
    given = (REQUIREMENTS / f"{name}.in").read_text().splitlines()
    return ", ".join(each.partition(" ;")[0] for each in given if each[:1].isalpha())


def last_line(text: str) -> str:
    """Returns the last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no word about it")


def machine() -> str:
    """Returns the processor and how busy it is, for it changes the figures."""
    info = Path("/proc/cpuinfo")
    names = re.findall("model name.*: (.+)", info.read_text()) if info.exists() else []
    model = names[0] if names else platform.machine()
    return f"{os.cpu_count()} cores, {model}, load {os.getloadavg()[0]:.1f} before the start"


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1:])))
