"""The cost of `c4pipe dedup` at scale: synthetic work files of any number and size, and the memory of all processes.

    python benchmarks/scale.py [--files 400] [--spans 500000] [--repeated 0.1] [--workers 2] [--folder DIR]

Each file has `--spans` spans of three sentences. A share of them, `--repeated`, occurs in several files, and one occurs
in every file. The work files have random hashes and sentences without meaning: only their sizes matter.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from c4pipe.clean.work_file import KeptPage, WorkWriter
from c4pipe.filters.spans import U64
from c4pipe.recipes.presets import C4

RECIPE = replace(C4.with_languages(["en"]), final=tuple(step for step in C4.final if step.rule != "language"))
"""The texts are in no language: edited pages are not judged again."""

UNITS = 50
"""Sentences of a page."""

UNIT_BYTES = 26
"""Bytes of a sentence, with the space after it."""

COMMON = 1_000_000
"""The number of spans that occur in several files."""


def make_work(folder: Path, files: int, spans: int, repeated: float) -> None:
    """Writes work files with `spans` spans each; the share `repeated` of them are common spans."""
    folder.mkdir(parents=True, exist_ok=True)
    common = np.random.default_rng(1).integers(0, 2**64 - 1, COMMON, dtype=np.uint64)
    draw = np.random.default_rng(2)
    letters = draw.integers(97, 123, (10_000, UNIT_BYTES - 2)).astype(np.uint8)
    sentences = [bytes(row).decode().capitalize() + "." for row in letters]
    for number in range(files):
        target = folder / f"CC-MAIN-20990101000000-20990101030000-{number:05}.warc.wet.gz.parquet"
        if not target.exists():
            _make_file(target, number, max(1, spans // (UNITS - 2)), common, repeated, sentences)


def _make_file(target: Path, number: int, pages: int, common: U64, repeated: float, sentences: list[str]) -> None:
    draw = np.random.default_rng([3, number])
    keys = draw.integers(0, 2**64 - 1, pages, dtype=np.uint64)
    hashes = draw.integers(0, 2**64 - 1, (pages, UNITS - 2), dtype=np.uint64)
    taken = draw.random(hashes.shape) < repeated
    hashes[taken] = common[draw.integers(0, COMMON, int(taken.sum()))]
    hashes[0, 0] = common[0]  # in every file
    words = draw.integers(0, len(sentences), (pages, UNITS))
    starts = range(0, UNITS * UNIT_BYTES, UNIT_BYTES)
    writer = WorkWriter(target)
    for row, key in enumerate(keys.tolist()):
        text = " ".join(sentences[word] for word in words[row].tolist())
        page = KeptPage(
            page_key=key,
            url=f"http://www.example.com/{number}/{row}",
            text=text,
            timestamp="2099-01-01T00:00:00Z",
            language="en",
            language_probability=0.999996,
            validation=False,
            dropped=None,
            unit_starts=starts,
            span_hashes=hashes[row],
        )
        writer.add(key, 4070908800000000, row, page)
    counts = {"pages.read": pages, "pages.cleaned": pages, "bytes.read": pages * UNITS * UNIT_BYTES}
    counts |= {"units.cleaned": pages * UNITS, "bytes.cleaned": pages * (UNITS * UNIT_BYTES - 1)}
    writer.finish(target.name.removesuffix(".parquet"), 1, RECIPE, {}, counts)


def tree_bytes(root: int) -> int:
    """Returns the memory of a process and its descendants: what each has for itself, and its share of the rest."""
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
    return sum(_pss(pid) for pid in members)


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def folder_bytes(folder: Path) -> int:
    """Returns the bytes of all files below a folder."""
    return sum(_size(path) for path in folder.rglob("*"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # it was moved
        return 0


def watch(command: list[str], output: Path) -> Iterator[tuple[float, int, int]]:
    """Runs a command, and yields at short intervals: seconds, memory of its processes, bytes in its output folder."""
    started = time.monotonic()
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            yield time.monotonic() - started, tree_bytes(process.pid), folder_bytes(output)
            time.sleep(1.0)
    yield time.monotonic() - started, 0, folder_bytes(output)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with status {process.returncode}")


def main() -> None:
    """Makes the work files, runs dedup and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--spans", type=int, default=500_000, help="of each file")
    parser.add_argument("--repeated", type=float, default=0.1, help="share of the spans that are all over the files")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where to work; kept if it is given")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="c4pipe-scale-"))
    started = time.monotonic()
    make_work(folder / "work", options.files, options.spans, options.repeated)
    work_bytes = folder_bytes(folder / "work")
    print(
        f"{options.files:,} work files, {work_bytes:,} bytes, written in {time.monotonic() - started:,.0f} s",
        flush=True,
    )
    command = [sys.executable, "-m", "c4pipe", "dedup", str(folder / "work"), "--output", str(folder / "corpus")]
    moments = list(watch([*command, "--workers", str(options.workers), "--quiet"], folder / "corpus"))
    seconds, memory, disk = (max(each) for each in zip(*moments, strict=True))
    rows = options.files * max(1, options.spans // (UNITS - 2)) * (UNITS - 1)
    print(f"{rows:,} rows in {seconds:,.0f} s, {rows / seconds:,.0f} a second")
    print(f"peak: {memory / 1e6:,.0f} MB of memory in all processes, {disk / 1e9:,.2f} GB in the output folder")
    if not options.folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
