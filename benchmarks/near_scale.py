"""The cost of the rule near_duplicate at scale: work files of made signatures, and the time and memory of `dedup`.

    python benchmarks/near_scale.py [--files 100] [--pages 10000] [--similar 0.4] [--workers 2] [--folder DIR]

Each file has `--pages` pages of a short text. A share of them, `--similar`, are copies of pages that are in several
files, in which some numbers of the signature are others. One page in a hundred is the same everywhere. So what is
measured is the work on signatures, not that on texts. `dedup` runs with the rule, then without it.
"""

import argparse
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from measuring import Scale, folder_bytes, watch

from c4pipe.clean.side_files import CleanedFile, KeptPage, WorkFile
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe import Recipe
from c4pipe.text import minhash

WITHOUT = RECIPES["unfiltered"].without("language")
WITH = replace(WITHOUT, name="near").adding("corpus", NearDuplicate())
BANDS, NUMBERS = 14, 112
ORIGINALS = 50_000
"""The number of pages that have copies."""

EVERYWHERE = 0.01
"""The share of pages that are the same one."""


def make_file(target: Path, number: int, pages: int, similar: float, recipe: Recipe) -> None:
    """Writes a work file."""
    draw = np.random.default_rng([5, number])
    originals = np.random.default_rng(4).integers(0, 2**61 - 1, (ORIGINALS, NUMBERS), dtype=np.uint64)
    signatures = draw.integers(0, 2**61 - 1, (pages, NUMBERS), dtype=np.uint64)
    kind = draw.random(pages)
    copies = np.flatnonzero(kind < similar)
    changed = draw.random((len(copies), NUMBERS)) < draw.choice([0.02, 0.05, 0.1, 0.2], len(copies))[:, None]
    source = originals[draw.integers(0, ORIGINALS, len(copies))]
    signatures[copies] = np.where(changed, signatures[copies], source)
    signatures[kind > 1 - EVERYWHERE] = originals[0]
    keys = draw.integers(0, 2**64 - 1, pages, dtype=np.uint64)
    writer = WorkFile(target, recipe, {})
    for row, key in enumerate(keys.tolist()):
        text = "A short text. " * (1 + key % 7)
        page = KeptPage(
            page_key=key,
            url=f"http://www.example.com/{number}/{row}",
            text=text,
            encoded=text.encode(),
            timestamp="2099-01-01T00:00:00Z",
            language="und",
            language_probability=0.0,
            validation=False,
            dropped=None,
            unit_starts=(),
            span_hashes=np.empty(0, np.uint64),
            band_hashes=minhash.band_hashes(signatures[row], BANDS),
            minima=minhash.short_minima(signatures[row]),
        )
        writer.add_page(key, 4070908800000000, row, page)
    counts = {"pages.read": pages, "pages.cleaned": pages, "bytes.read": pages, "bytes.cleaned": pages}
    writer.finish(CleanedFile(target.name.removesuffix(".parquet"), 1, "", "", counts))


def measure(folder: Path, recipe: Recipe, options: argparse.Namespace) -> Scale:
    """Runs `dedup`, prints what it took, and returns that."""
    work, corpus = folder / f"work-{recipe.name}", folder / f"corpus-{recipe.name}"
    work.mkdir(parents=True, exist_ok=True)
    for number in range(options.files):
        target = work / f"CC-MAIN-20990101000000-20990101030000-{number:05}.warc.wet.gz.parquet"
        if not target.exists():
            make_file(target, number, options.pages, options.similar, recipe)
    print(f"{recipe.name}: work files of {folder_bytes(work) / 1e6:,.0f} MB", flush=True)
    command = [sys.executable, "-m", "c4pipe", "dedup", str(work), "--output", str(corpus), "--quiet"]
    took = watch([*command, "--workers", str(options.workers)], corpus)
    memory = f"{took.memory / 1e6:,.0f} MB of memory in all processes"
    print(f"{recipe.name}: {took.wall:,.1f} s, {took.cpu:,.1f} s of CPU, {memory}")
    print(f"{recipe.name}: {took.disk / 1e9:,.2f} GB in the output folder at most", flush=True)
    return took


def main() -> None:
    """Makes the work files, runs dedup on them and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--pages", type=int, default=10_000, help="of each file")
    parser.add_argument("--similar", type=float, default=0.4, help="share of the pages that have copies elsewhere")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where to work; kept if it is given")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="c4pipe-near-"))
    with_rule, without = (measure(folder, recipe, options).cpu for recipe in (WITH, WITHOUT))
    rows = options.files * options.pages * BANDS
    print(f"{rows:,} rows of bands: {(with_rule - without) / rows * 1e6:.2f} microseconds of CPU each")
    if not options.folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
