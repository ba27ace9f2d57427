"""Time and memory of `c4pipe build` on synthetic WET files, compared with only decompressing and decoding them.

    python benchmarks/throughput.py [--files 4] [--pages 5000] [--workers 1] [--crawl DIR]

The crawl is written by tools/make_crawl.py of the folder `shared` beside the clone, which is not part of the project.
--crawl takes any other folder of WET files. Every figure is of whole processes with their children, on this machine:
compare the ratios, not the seconds.
"""

import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

DECODE = """
import sys
from c4pipe.wet.records import read_pages
pages = size = 0
for path in sys.argv[1:]:
    with open(path, "rb") as stream:
        for item in read_pages(stream):
            pages, size = pages + 1, size + getattr(item, "size", 0)  # damage has none
print(pages, size)
"""
"""Decompresses the files, splits them into records and decodes their text: the least that any pipeline must do."""


class Cost(NamedTuple):
    """The cost of a command: wall and CPU seconds, peak memory in MB of its largest process; its output and status."""

    wall: float
    cpu: float
    peak: float
    output: str
    status: int


def measure(command: Sequence[str]) -> Cost:
    """Runs a command in a process of its own, so that the figures of children are those of the command."""
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[Cost] = context.Queue()
    process = context.Process(target=_measure, args=(list(command), queue))
    process.start()
    cost = queue.get()
    process.join()
    return cost


def _measure(command: list[str], queue: "multiprocessing.Queue[Cost]") -> None:
    started = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.monotonic() - started
    queue.put(Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.stdout, done.returncode))


def made_crawl(folder: Path, files: int, pages: int) -> list[str]:
    """Writes synthetic WET files of real pages, and returns their paths."""
    tool = SHARED / "tools" / "make_crawl.py"
    if not tool.exists():
        sys.exit(
            f"{tool} does not exist: give WET files and lists, as --crawl tests/data/pages --lists tests/data/lists"
        )
    arguments = [str(folder), "--files", str(files), "--pages", str(pages)]
    subprocess.run([sys.executable, str(tool), *arguments], check=True, stdout=subprocess.DEVNULL)
    return sorted(map(str, folder.glob("*.wet.gz")))


def main() -> None:
    """Prints the figures of decoding and of a build, and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--pages", type=int, default=5000, help="pages in each file")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--crawl", type=Path, help="a folder of WET files, instead of synthetic ones")
    parser.add_argument("--lists", type=Path, default=SHARED / "data" / "lists")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = (
            sorted(map(str, options.crawl.glob("*.wet.gz")))
            if options.crawl
            else made_crawl(folder / "crawl", options.files, options.pages)
        )
        decode = measure([sys.executable, "-c", DECODE, *paths])
        pages, size = map(int, decode.output.split() or (0, 0))
        build = [sys.executable, "-m", "c4pipe", "build", *paths, "--lists", str(options.lists)]
        built = measure([*build, "--output", str(folder / "corpus"), "--workers", str(options.workers), "--quiet"])
    if decode.status or built.status:
        sys.exit("a command failed; its error is above")
    print(f"{len(paths)} files, {pages:,} pages, {size / 1e6:,.0f} MB of text, {os.cpu_count()} cores")
    print(f"{'':24}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'pages/s':>9}")
    for what, cost in (("decompress and decode", decode), (f"build, {options.workers} worker(s)", built)):
        print(f"{what:24}{cost.wall:9.1f}{cost.cpu:9.1f}{cost.peak:9.0f}{pages / cost.wall:9,.0f}")
    print(f"CPU of build / CPU of decoding: {built.cpu / decode.cpu:.1f}")


if __name__ == "__main__":
    main()
