"""`c4pipe dedup` of the hundredth crawl beside 99 known corpora, at a thousandth of the rows.

    python benchmarks/many_crawls.py [--files 72000] [--known 99] [--workers 2] [--folder DIR]

Work files, groups, buckets and files of indexes are as many as those of a crawl of 72,000 WET files with 99 such crawls
before it; each has a thousandth of the rows. So it shows what grows with the number of files and not with their size:
memory, open files, time. The pages of the work files are those of scale.py: a tenth of their spans is common, and the
first known corpus has all of these. What a bucket of real size takes is measured, too, and what headers and lists of
buckets take in memory.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measuring import folder_bytes, machine, watch
from scale import COMMON, RECIPE, make_work

from c4pipe.clean.work_file import URL_ROW
from c4pipe.clean.work_folder import find_work_files, read_headers
from c4pipe.corpus.manifest import read_manifest
from c4pipe.dedup.known import (
    CONTENT,
    INDEX,
    INDEX_FORMAT,
    INDEX_VERSION,
    SPAN_HASHES,
    URL_HASHES,
    Known,
    KnownHashes,
    bucket_path,
    compared_by,
    digest_of_shards,
)
from c4pipe.dedup.shuffle import SPAN_ROW, bucket_bits
from c4pipe.io.json_files import write_checked_json
from c4pipe.text.hashes import U64

SMALLER = 1000
"""One row stands for so many."""

PAGES, KEPT, SPANS_OF_FILE = 40_000, 4_167, 100_000
"""Pages, kept pages and their spans of a WET file: the estimates of docs/scale.md."""

CRAWL = 72_000
"""WET files of a crawl."""

RUN = f"""
from c4pipe.dedup import shuffle
shuffle.BUCKET_BYTES //= {SMALLER}
shuffle.FEW_ROWS //= {SMALLER}
from c4pipe.cli.main import main
raise SystemExit(main())
"""
"""The command c4pipe with buckets of a thousandth of their size: as many of them as a whole crawl has."""


def make_known(corpus: Path, manifest: Path, number: int, files: int, also: U64) -> None:
    """Writes a corpus of that many files, only its manifest and its index; the index has the spans `also`, too."""
    (corpus / INDEX).mkdir(parents=True)
    shutil.copy(manifest, corpus)
    found = read_manifest(corpus)
    assert found
    buckets = dict[str, list[dict[str, object]]]()
    for kind, rows, row in ((URL_HASHES, files * KEPT, URL_ROW), (SPAN_HASHES, files * SPANS_OF_FILE, SPAN_ROW)):
        bits = bucket_bits(rows, row.itemsize)
        step = 2**64 * SMALLER // rows
        hashes = np.arange(rows // SMALLER, dtype=np.uint64) * np.uint64(step) + np.uint64(number)
        hashes = np.unique(np.concatenate([hashes, also])) if kind == SPAN_HASHES and len(also) else hashes
        ends = np.searchsorted(hashes, np.arange(1, 1 << bits, dtype=np.uint64) << np.uint64(64 - bits))
        buckets[kind] = []
        for each, some in enumerate(np.split(hashes, ends)):
            Path(str(bucket_path(corpus, kind, each, 1 << bits))).write_bytes(some.tobytes())
            buckets[kind].append({"rows": len(some), "sha256": hashlib.sha256(some.tobytes()).hexdigest()})
    shards = digest_of_shards(found)
    index = {
        "format": INDEX_FORMAT,
        "version": INDEX_VERSION,
        "shards": shards,
        "compared": compared_by(RECIPE),
        "buckets": buckets,
    }
    write_checked_json(corpus / INDEX / CONTENT, index)


def measure_bucket(folder: Path, kind: str, bits: int, there: int, new_bits: int, new: int) -> float:
    """Returns the CPU seconds that a bucket of a new crawl takes with a bucket of a known corpus, given their rows."""
    draw = np.random.default_rng(4)
    rows = np.sort(draw.integers(0, 2 ** (64 - bits), there, dtype=np.uint64)).tobytes()
    hashes = np.sort(draw.integers(0, 2 ** (64 - new_bits), new, dtype=np.uint64))
    (folder / INDEX).mkdir(parents=True)
    Path(str(bucket_path(folder, kind, 0, 1 << bits))).write_bytes(rows)
    buckets = {kind: [{"rows": there, "sha256": hashlib.sha256(rows).hexdigest()}] * (1 << bits)}
    index = {"format": INDEX_FORMAT, "version": INDEX_VERSION, "shards": "0" * 64, "compared": {}, "buckets": buckets}
    write_checked_json(folder / INDEX / CONTENT, index)
    known = KnownHashes([known_of(folder)] * 4)
    before = time.process_time()
    known.mask(kind, hashes)
    return (time.process_time() - before) / 4


def known_of(corpus: Path) -> Known:
    """Returns the index of a corpus, as the steps of dedup get it."""
    return Known(str(corpus), hashlib.sha256((corpus / INDEX / CONTENT).read_bytes()).hexdigest())


def measure_buckets(folder: Path) -> None:
    """Prints what buckets of real size take, and a whole crawl with a known corpus of as large a crawl."""
    crawl = 0.0
    for kind, rows, row, new in (
        (SPAN_HASHES, CRAWL * SPANS_OF_FILE, SPAN_ROW, CRAWL * SPANS_OF_FILE),
        (URL_HASHES, CRAWL * KEPT, URL_ROW, CRAWL * PAGES),
    ):
        bits, new_bits = bucket_bits(rows, row.itemsize), bucket_bits(new, row.itemsize)
        took = measure_bucket(folder / f"bucket-{kind}", kind, bits, rows >> bits, new_bits, new >> new_bits)
        crawl += took * (1 << new_bits)
        print(f"a bucket of {kind}, {new >> new_bits:,} hashes among {rows >> bits:,}: {took * 1000:.0f} ms of CPU")
    size = 8 * CRAWL * (SPANS_OF_FILE + KEPT)
    print(f"a crawl with the index of another: {crawl:,.0f} s of CPU, {size / crawl / 1e6:,.0f} MB of index a second")


def memory_of(make: Callable[[], object]) -> int:
    """Returns the bytes that an object takes in this process."""
    before = memory()
    made = make()
    return memory() - before if made else 0


def memory() -> int:
    """Returns the memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> None:
    """Makes the work files and the known corpora, runs dedup without and with them, and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=CRAWL)
    parser.add_argument("--known", type=int, default=99)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where to work; kept if it is given")
    options = parser.parse_args()
    print(machine(), flush=True)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="c4pipe-crawls-"))
    measure_buckets(folder)
    started = time.monotonic()
    make_work(folder / "work", options.files, SPANS_OF_FILE // SMALLER, 0.1, 26, (PAGES - KEPT) // SMALLER)
    print(f"{options.files:,} work files, {folder_bytes(folder / 'work'):,} bytes, {time.monotonic() - started:,.0f} s")
    known: list[str] = []
    for number in range(options.known + 1):
        output = folder / f"corpus-{len(known)}"
        command = [sys.executable, "-c", RUN, "dedup", str(folder / "work"), "--output", str(output), *known]
        if number in (0, options.known):
            shutil.rmtree(output, ignore_errors=True)
            took = watch([*command, "--workers", str(options.workers), "--quiet"], output)
            manifest = output / "manifest.json"
            counts = json.loads(manifest.read_bytes())["counts"]
            print(
                f"{number} known corpora: {took.wall:,.0f} s, {took.cpu:,.0f} s of CPU, {took.memory / 1e6:,.0f} MB of "
                f"memory in all processes, {took.disk / 1e9:,.2f} GB; {counts.get('spans.known', 0):,} known spans; "
                f"manifest of {manifest.stat().st_size:,} bytes",
                flush=True,
            )
        corpus = folder / "known" / f"{number}"
        if not corpus.exists():
            also = np.random.default_rng(1).integers(0, 2**64 - 1, COMMON, dtype=np.uint64)
            make_known(corpus, manifest, number, options.files, also if not number else also[:0])
        known += ["--known", str(corpus)]
    lists = memory_of(lambda: KnownHashes(map(known_of, (folder / "known").iterdir())))
    headers = memory_of(lambda: read_headers(find_work_files([folder / "work"])))
    print(f"memory: {lists / 1e6:,.0f} MB for the lists of all buckets, {headers / options.files:,.0f} B for a header")
    if not options.folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
