"""What the rule near_duplicate takes beside the MinHash of datatrove and text-dedup, on the same pages.

    python benchmarks/near_peers.py [--pages 10000] [--words 800] [--rounds 5] [--only NAME,...] [--write]

The pages are made, as long as those of a crawl: four of ten are copies of another page in which up to a tenth of the
words are others. Each peer has 5-grams of words, 14 bands of 8 numbers and one worker, reads the pages and writes those
that stay. Whole processes one after the other, start-up and children included, as in peers.py, in environments that it
makes. Measure on an idle machine.
"""

import argparse
import json
import math
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# Other packages are imported where they are used: the memory of the process that measures counts as a floor.
from contenders import MINHASH, corpus_pages, json_pages
from measuring import compile_clone, environment, machine, required
from results import Goal, publish, spread, written_by
from rounds import Peer, Row, Trial, measured, ratio

HEAD = "Near-duplicates"
RECIPE = 'base = "unfiltered"\noff = ["language"]\non = ["near_duplicate"]\n'
VOCABULARY = 50_000  # words, of which some are far more frequent than others
SIMILAR = 0.4
FILES = 4  # WET files at least
FILE_PAGES = 25_000  # pages of a WET file at most, as a crawl has

NOTES = """
- All numbers are of whole processes, with their start-up. CPU includes all child processes; memory is that of the
  largest process.
- c4pipe's row is its whole `build`: it also reads WET files, cleans pages, compares signatures before it drops a page,
  and writes report and manifest. datatrove reads and writes JSON Lines, text-dedup reads them and writes Arrow.
- c4pipe and datatrove have the same signatures. datatrove drops all pages of a cluster but one, c4pipe only those whose
  signatures are similar enough. text-dedup has other words and hashes, so other pages stay.
- For comparison: Data-Juicer 2.0 (https://arxiv.org/abs/2501.14755) says 2.8 hours on 1,280 cores for 5 TB: 717
  core-hours a TB, of wall time on a cluster with Ray, with pages and a machine that are not these.
- With a million pages of 100 words, at commit 0fbf3ce52a19: c4pipe 310.8 CPU seconds and 358 MB, text-dedup 413.9 and
  6,003 MB, datatrove 1,784.5 and 254 MB. The ratio grows with the length of the pages.
"""


def made_pages(number: int, words: int) -> Iterator[str]:
    """Yields texts."""
    import numpy as np
    from make_crawl import SIGMA

    rng = np.random.default_rng(7)
    letters = rng.integers(97, 123, (VOCABULARY, 12)).astype(np.uint8)
    lengths = rng.integers(2, 13, VOCABULARY)
    vocabulary = [bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)]
    originals: list[Any] = []
    for _ in range(number):
        if originals and rng.random() < SIMILAR:
            chosen = originals[rng.integers(len(originals))].copy()
            others = rng.random(len(chosen)) < rng.choice([0.0, 0.01, 0.02, 0.05, 0.1])
            chosen[others] = rng.integers(0, VOCABULARY, int(others.sum()))
        else:
            length = max(1, round(rng.lognormal(math.log(words) - SIGMA**2 / 2, SIGMA)))
            chosen = (VOCABULARY * rng.random(length) ** 3).astype(int)
            originals.append(chosen)
        sentences = (chosen[first : first + 15].tolist() for first in range(0, len(chosen), 15))
        yield "\n".join(" ".join(vocabulary[word] for word in each).capitalize() + "." for each in sentences)


def write(folder: Path, texts: Sequence[str]) -> list[str]:
    """Writes pages as WET files and as JSON Lines, and returns the paths of the WET files.

    The URL of a page ends with its number.
    """
    from c4pipe.wet.page import Page
    from tests.helpers.wet_writer import write_wet

    folder.mkdir()
    with (folder / "pages.jsonl").open("w") as lines:
        lines.writelines(json.dumps({"text": text, "id": str(row)}) + "\n" for row, text in enumerate(texts))
    pages = [
        Page(f"https://site{row % 97}.example/{row}", "2019-04-18T10:12:43Z", text, row, len(text))
        for row, text in enumerate(texts)
    ]
    files = [folder / f"CC-{number}.warc.wet.gz" for number in range(max(FILES, -(-len(pages) // FILE_PAGES)))]
    for file, path in enumerate(files):
        write_wet(path, pages[file :: len(files)])
    return list(map(str, files))


def c4pipe(trial: Trial, text: str = RECIPE) -> list[str]:
    """Returns the command of c4pipe."""
    recipe = trial.folder / "near.toml"
    recipe.write_text(text)
    base = [sys.executable, "-m", "c4pipe", "build", *trial.files, "--recipe", str(recipe)]
    return [*base, "--output", str(trial.folder / "out"), "--workers", "1", "--quiet"]


def without(trial: Trial) -> list[str]:
    """Returns the command of c4pipe without the rule."""
    return c4pipe(trial, RECIPE.replace('["near_duplicate"]', "[]"))


def datatrove(trial: Trial) -> list[str]:
    """Returns the command of datatrove in its environment."""
    pages = str(Path(trial.files[0]).parent)
    return [str(environment("datatrove")), "-c", MINHASH, pages, str(trial.folder / "out")]


def text_dedup(trial: Trial) -> list[str]:
    """Returns the command of text-dedup in its environment."""
    pages = str(Path(trial.files[0]).with_name("pages.jsonl"))
    python = str(environment("text-dedup"))
    given = ["--path", "json", "--data_files", pages, "--split", "train", "--column", "text", "--num_proc", "1"]
    given += ["--cache_dir", str(trial.folder / "cache"), "--output", str(trial.folder / "out")]
    given += ["--ngram", "5", "--num_perm", "112", "--b", "14", "--r", "8"]
    return ["env", "HF_HUB_OFFLINE=1", python, "-m", "text_dedup.minhash", *given]


def arrow_pages(folder: Path, output: str) -> int:
    """Counts the rows of the files that text-dedup wrote."""
    import pyarrow as pa

    count = 0
    for path in (folder / "out").glob("*.arrow"):
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            count += sum(map(len, stream))
    return count


PEERS = {
    "c4pipe": Peer("c4pipe build, with near_duplicate", c4pipe, corpus_pages),
    "without": Peer("the same without the rule", without, corpus_pages),
    "datatrove": Peer("datatrove, its four steps of MinHash", datatrove, json_pages, True),
    "text-dedup": Peer("text-dedup, text_dedup.minhash", text_dedup, arrow_pages),
}


def table(rows: Mapping[str, Row]) -> list[str]:
    """Returns the rows as a table of Markdown."""
    lines = ["| peer | runs | pages out | CPU s | wall s | peak MB | CPU / c4pipe |", "|---|--:|--:|--:|--:|--:|--:|"]
    for name, row in rows.items():
        if isinstance(row, str):
            values = [row, *[""] * 5]
        else:
            share = ratio(rows, "cpu", name, "c4pipe")
            values = [str(len(row.costs)), f"{row.pages:,}", spread(row.values("cpu")), spread(row.values("wall"))]
            values += [f"{max(row.values('peak')):.0f}", "" if share is None else f"{share:.2f}"]
        lines.append(f"| {' | '.join([PEERS[name].title, *values])} |")
    return lines


def main() -> int:
    """Measures the peers, prints what they took, and returns the exit status: 1 where the goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--words", type=int, default=800, help="of a page, on average: 7 kB")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each, but for datatrove, which runs once")
    parser.add_argument("--only", default=",".join(PEERS), help="some of: %(default)s")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        parser.error(f"--only has {unknown[0]!r}: the names are {', '.join(PEERS)}")
    compile_clone()
    title = f"{machine()}; --pages {options.pages} --words {options.words}"
    with tempfile.TemporaryDirectory() as name:
        texts = list(made_pages(options.pages, options.words))
        files, size = write(Path(name) / "crawl", texts), sum(len(text.encode()) for text in texts)
        rows = measured({each: PEERS[each] for each in names}, files, Path(), Path(name), options.rounds)
    goals = []
    if {"c4pipe", "datatrove"} <= set(names):
        goals.append(Goal("cpu of datatrove / c4pipe", ratio(rows, "cpu", "datatrove", "c4pipe"), "at least", 5))
    prices = {
        name: min(row.values("cpu")) / 3600 / size * 1e12 for name, row in rows.items() if not isinstance(row, str)
    }
    if {"c4pipe", "without"} <= set(prices):
        rule = prices["c4pipe"] - prices["without"]
        goals.append(Goal("CPU-hours a TB of text, the rule alone", rule, "at most", 100))
    page = [written_by("near_peers.py"), "", title, "", *table(rows), "", *(goal.line() for goal in goals)]
    said = ", ".join(f"{PEERS[name].title} {price:,.0f}" for name, price in prices.items())
    page.append(f"- CPU-hours a TB of text: {said}. The pages have {size:,} bytes of text.")
    versions = "; ".join([f"- Python {platform.python_version()}", required("datatrove"), required("text-dedup")])
    page += [*NOTES.strip().splitlines(), versions]
    return publish(HEAD, page, options.write, goals)


if __name__ == "__main__":
    sys.exit(main())
