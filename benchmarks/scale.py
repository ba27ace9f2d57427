"""The cost of `c4pipe dedup` at scale: synthetic work files of any number and size, and the memory of all processes.

    python benchmarks/scale.py [--files 400] [--spans 500000] [--repeated 0.1] [--bytes 26] [--workers 2]
        [--folder DIR]

Each file has `--spans` spans of three sentences. A share of them, `--repeated`, occurs in several files, and one occurs
in every file. The work files have random hashes and sentences without meaning: only their sizes matter.
"""

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from measuring import folder_bytes, machine, watch

from c4pipe.clean.side_files import CleanedFile, KeptPage, WorkFile
from c4pipe.recipes.presets import C4
from c4pipe.text.hashes import U64

RECIPE = replace(C4.with_languages(["en"]), final=tuple(rule for rule in C4.final if rule.name != "language"))
"""The texts are in no language: edited pages are not judged again."""

UNITS = 50
"""Sentences of a page."""

COMMON = 1_000_000
"""The number of spans that occur in several files."""


def make_work(
    folder: Path, files: int, spans: int, repeated: float, unit: int, dropped: int = 0, first: int = 0
) -> None:
    """Writes work files with `spans` spans each, of sentences of `unit` bytes; the share `repeated` is common.

    Each file has `dropped` tombstones. `first` is the number of the first file; a number stands for its pages.
    """
    folder.mkdir(parents=True, exist_ok=True)
    common = np.random.default_rng(1).integers(0, 2**64 - 1, COMMON, dtype=np.uint64)
    draw = np.random.default_rng(2)
    letters = draw.integers(97, 123, (10_000, unit - 2)).astype(np.uint8)
    sentences = [bytes(row).decode().capitalize() + "." for row in letters]
    for number in range(first, first + files):
        target = folder / f"CC-MAIN-20990101000000-20990101030000-{number:05}.warc.wet.gz.parquet"
        if not target.exists():
            _make_file(target, number, max(1, spans // (UNITS - 2)), common, repeated, sentences, dropped)


def _make_file(
    target: Path, number: int, pages: int, common: U64, repeated: float, sentences: list[str], dropped: int
) -> None:
    unit = len(sentences[0]) + 1
    draw = np.random.default_rng([3, number])
    keys = draw.integers(0, 2**64 - 1, pages, dtype=np.uint64)
    hashes = draw.integers(0, 2**64 - 1, (pages, UNITS - 2), dtype=np.uint64)
    taken = draw.random(hashes.shape) < repeated
    hashes[taken] = common[draw.integers(0, COMMON, int(taken.sum()))]
    hashes[0, 0] = common[0]  # in every file
    words = draw.integers(0, len(sentences), (pages, UNITS))
    starts = range(0, UNITS * unit, unit)
    writer = WorkFile(target, RECIPE, {})
    for row, key in enumerate(keys.tolist()):
        text = " ".join(sentences[word] for word in words[row].tolist())
        page = KeptPage(
            page_key=key,
            url=f"http://www.example.com/{number}/{row}",
            text=text,
            encoded=text.encode(),
            timestamp="2099-01-01T00:00:00Z",
            language="en",
            language_probability=0.999996,
            validation=False,
            dropped=None,
            unit_starts=starts,
            span_hashes=hashes[row],
        )
        writer.add_page(key, 4070908800000000, row, page)
    for row, key in enumerate(draw.integers(0, 2**64 - 1, dropped, dtype=np.uint64).tolist()):
        writer.add_page(key, 4070908800000000, pages + row, None)
    counts = {
        "pages.read": pages + dropped,
        "pages.dropped.language": dropped,
        "pages.cleaned": pages,
        "bytes.read": pages * UNITS * unit,
    }
    counts |= {"units.cleaned": pages * UNITS, "bytes.cleaned": pages * (UNITS * unit - 1)}
    writer.finish(CleanedFile(target.name.removesuffix(".parquet"), 1, "", "", counts))


def main() -> None:
    """Makes the work files, runs dedup and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--spans", type=int, default=500_000, help="of each file")
    parser.add_argument("--repeated", type=float, default=0.1, help="share of the spans that are all over the files")
    parser.add_argument("--bytes", type=int, default=26, help="of a sentence, with the space after it")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where to work; kept if it is given")
    options = parser.parse_args()
    print(machine(), flush=True)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="c4pipe-scale-"))
    started = time.monotonic()
    make_work(folder / "work", options.files, options.spans, options.repeated, options.bytes)
    work_bytes = folder_bytes(folder / "work")
    print(
        f"{options.files:,} work files, {work_bytes:,} bytes, written in {time.monotonic() - started:,.0f} s",
        flush=True,
    )
    command = [sys.executable, "-m", "c4pipe", "dedup", str(folder / "work"), "--output", str(folder / "corpus")]
    took = watch([*command, "--workers", str(options.workers), "--quiet"], folder / "corpus")
    pages = options.files * max(1, options.spans // (UNITS - 2))
    spans, rows = pages * (UNITS - 2), pages * (UNITS - 1)
    print(f"{rows:,} rows ({spans:,} of spans, the others of URLs) in {took.wall:,.0f} s, {took.cpu:,.0f} s of CPU")
    print(f"{rows / took.wall:,.0f} rows a second, {rows / took.cpu:,.0f} rows a second a core")
    print(
        f"peak: {took.memory / 1e6:,.0f} MB of memory in all processes, {took.disk / 1e9:,.2f} GB in the output folder"
    )
    if not options.folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
