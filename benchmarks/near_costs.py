"""Where the CPU time of the rule near_duplicate goes, and what a cache of signatures would save on exact copies.

    python benchmarks/near_costs.py [--pages 3000] [--bytes 7000] [--rounds 3] [--crawl 3000000] [--write]

The pages are pieces of those of tests/data, in which each seventh word is one of 50,000 made words. Three crawls: in
the first, four of ten pages are copies of another page in which up to a tenth of the words are others; in the second,
66 of 100 pages are exact copies, as in the crawl of Olmo 3; the third has pages as long as those of FineWeb. Whole
builds with and without the rule in turn give the sums, clocks around its functions the shares. All times are of CPU.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import tracemalloc
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from measuring import DATA, ENVIRON, compile_clone, machine
from near_peers import PEERS, RECIPE, write
from parts import Clock, build
from results import publish, written_by
from rounds import Row, measured

HEAD = "Near-duplicates: where the time goes"
COPIES = 0.66  # exact deduplication removed this share of Olmo 3's crawl
FINEWEB_BYTES, FINEWEB_PAGES, FASTDEDUP_CPU = 3100, 14_868_862, 12_319
KEPT = 65_536  # texts whose signatures a worker keeps
NEW_WORD, VOCABULARY = 7, 50_000  # each seventh word is another one
SIGNATURE = ("simplified text", "tokens", "SHA-1", "permutations", "bands")
STEPS = {
    "ReadBands": "read bands",
    "FindCandidates": "find candidates",
    "SendSignatures": "send signatures",
    "CompareSignatures": "compare signatures",
    "ConnectPages": "connect pages",
    "ChoosePages": "choose pages",
}
NOTES = """
- The sums are the least CPU seconds of whole builds with the rule, less the least of those without it. Clocks are
  around the functions in further builds of one process; SHA-1 is the same function with one permutation. The rest is
  what the clocks don't show: more imports, larger work files, rows to other steps, less what dropped pages no longer
  cost. It also has the noise of a busy machine, of some CPU-hours a TB with few pages.
- The cache has the signatures of the last 65,536 texts of a worker by a hash of the text (BLAKE2). In the table
  of hits, one worker reads the whole crawl; each further worker has fewer hits. Floor: each distinct text has one
  signature. That needs a shuffle of all hashes before the signatures, whose cost is not in the figure.
- Hits and floor are computed as if all signatures cost the same. The cache as measured saves less, as the first page of
  a text has most of the new words, and the tokenizer remembers words. So what is left with it is the nearer floor.
- So the cache pays if a worker meets copies within 65,536 texts: in a crawl of some 100,000 pages, which costs little
  anyway. A month of Common Crawl has more than two billion pages, so few of its copies are that near each other.
- 66 % of copies: exact deduplication of Olmo 3 (https://arxiv.org/abs/2512.13961), of all crawls together. How copies
  are spread is not published: `even` copies any of the texts, `skewed` any earlier page, so few texts have most
  copies.
- fastdedup: 12,129 s in user mode, 190 s in the system, 24.1 million kB, as its repository has them
  (https://github.com/wapplewhite4/fastdedup, `rust_fuzzy.time.txt`), for 14,868,862 pages of FineWeb's sample-10BT on
  AMD EPYC Milan, by 3-grams of characters. Their mean length is assumed: 10 billion tokens (FineWeb's card) of 4.6
  bytes.
- c4pipe's CPU seconds for a million pages are extrapolated linearly from one run of whole builds. Its memory is that
  of the largest process for these pages alone: of a million pages, near_scale.py measured 0.5 GB in all processes.
"""


def made_texts(number: int, size: int, similar: float, exact: float) -> Iterator[str]:
    """Yields texts of about a size in bytes, of which some are similar to an earlier one or its exact copies."""
    from make_crawl import texts

    draw = random.Random(0)
    source = " ".join(text for folder in ("pages", "wet") for text in texts(DATA / folder)).split(" ")
    per_word = len(" ".join(source).encode()) / len(source)
    vocabulary = ["".join(draw.choices("aeinorstlu", k=7)) for _ in range(VOCABULARY)]
    originals: list[list[str]] = []
    for _ in range(number):
        kind = draw.random() if originals else 1.0
        if kind < similar + exact:
            words = list(draw.choice(originals))
            for place in draw.sample(range(len(words)), int(draw.choice([0, 0.02, 0.05, 0.1]) * len(words))):
                words[place] = words[place] if kind < exact else draw.choice(vocabulary)
        else:
            count = max(5, int(draw.uniform(0.5, 1.5) * size / per_word))
            first = draw.randrange(max(1, len(source) - count))
            words = source[first : first + count]
            words[::NEW_WORD] = [draw.choice(vocabulary) for _ in words[::NEW_WORD]]
            originals.append(words)
        yield " ".join(words)


def hit_rate(pages: int, skewed: bool) -> float:
    """Returns the share of the pages of a made crawl whose text is among the KEPT texts that were last used."""
    draw, seen, kept, hits = random.Random(0), array("I"), OrderedDict[int, None](), 0
    for number in range(pages):
        is_copy = bool(seen) and draw.random() < COPIES
        text = seen[draw.randrange(len(seen))] if is_copy else number
        if skewed or not is_copy:
            seen.append(text)
        hits += text in kept
        kept[text] = None
        kept.move_to_end(text)
        if len(kept) > KEPT:
            kept.popitem(last=False)
    return hits / pages


def clocked(crawl: Path, recipe: Path, is_cached: bool) -> dict[str, float]:
    """Builds a corpus with clocks around the rule, and returns the seconds of its parts."""
    from c4pipe.clean import side_files
    from c4pipe.dedup import near_duplicates
    from c4pipe.text import minhash

    texts: Any = minhash
    keepers: Any = side_files.PageKeeper
    clock, kernel, signature = Clock(), texts.text_kernel, keepers._signature
    kept: OrderedDict[bytes, Any] = OrderedDict()

    def cached(keeper: Any, page: Any) -> Any:
        key = blake2b(page.encoded, digest_size=16).digest()
        kept[key] = made = kept.pop(key, None) or signature(keeper, page)
        if len(kept) > KEPT:
            kept.popitem(last=False)
        return made

    def twice(words: Any, ends: Any, ngram: int, *permutations: Any) -> Any:
        kernels.single(words, ends, ngram, *(each[:1] for each in permutations))
        return kernel.minima(words, ends, ngram, *permutations)

    texts.text_kernel = kernels = SimpleNamespace(minima=twice, single=kernel.minima)
    clock.around(kernels, "single", "SHA-1")
    clock.around(kernels, "minima", "permutations")
    clock.around(minhash, "simplify", "simplified text")
    clock.around(minhash, "joined_words", "tokens")
    clock.around(minhash, "band_hashes", "bands")
    if is_cached:
        keepers._signature = cached
    clock.around(keepers, "_signature", "cache")
    for name in STEPS:
        clock.around_items(getattr(near_duplicates, name), "run", name)
    with tempfile.TemporaryDirectory() as name:
        build(clock, sorted(map(str, crawl.glob("*.wet.gz"))), str(recipe), DATA / "lists", Path(name))
    clock.seconds["permutations"] -= clock.seconds["SHA-1"]
    clock.seconds["tokens"] += clock.seconds.pop("minhash", 0)
    return clock.seconds


class Crawl(NamedTuple):
    """What was measured of a made crawl: bytes of text, whole builds, and seconds of parts without and with a cache."""

    size: int
    rows: Mapping[str, Row]
    parts: Sequence[Mapping[str, float]]

    def hours(self, seconds: float) -> float:
        """Returns CPU-hours a TB of text."""
        return seconds / 3600 / self.size * 1e12

    @property
    def rule(self) -> float:
        """The CPU seconds of the rule."""
        whole, without = (row for row in self.rows.values() if not isinstance(row, str))
        return min(whole.values("cpu")) - min(without.values("cpu"))

    def signatures(self, cache: int) -> float:
        """Returns the CPU seconds of all signatures, without a cache (0) or with it (1)."""
        return sum(self.parts[cache][name] for name in SIGNATURE)


def measure(folder: Path, texts: list[str], rounds: int, caches: Sequence[str]) -> Crawl:
    """Builds a made crawl with and without the rule in turn, then with clocks."""
    folder.mkdir()
    files = write(folder / "crawl", texts)
    peers = {name: PEERS[name] for name in ("c4pipe", "without")}
    rows = measured(peers, files, Path(), folder, rounds)
    recipe = folder / "near.toml"
    recipe.write_text(RECIPE)
    command = [sys.executable, __file__, "--clocked", str(folder / "crawl"), str(recipe)]
    runs: list[list[dict[str, float]]] = [[] for _ in caches]
    for _ in range(rounds):
        for run, cache in zip(runs, caches, strict=True):
            done = subprocess.run([*command, cache], env=ENVIRON, stdout=subprocess.PIPE, text=True, check=True)
            run.append(json.loads(done.stdout))
    parts = [{name: min(each[name] for each in run) for name in run[0]} for run in runs]
    return Crawl(sum(len(text.encode()) for text in texts), rows, parts)


def shares(crawl: Crawl) -> list[str]:
    """Returns the parts of the rule as a table of Markdown."""
    seconds = {f"job 1: {name}": crawl.parts[0][name] for name in SIGNATURE}
    seconds |= {f"job 2: {title}": crawl.parts[0][name] for name, title in STEPS.items()}
    seconds["the rest"] = crawl.rule - sum(seconds.values())
    seconds["the rule"] = crawl.rule
    lines = ["| part | CPU-hours a TB | share |", "|---|--:|--:|"]
    lines += [f"| {name} | {crawl.hours(each):.1f} | {each / crawl.rule:.0%} |" for name, each in seconds.items()]
    return lines


def savings(crawl: Crawl, pages: int) -> list[str]:
    """Returns what a cache saves, by the size of a crawl, as a table of Markdown."""
    made, rule = crawl.signatures(0), crawl.hours(crawl.rule)
    looked_up = crawl.parts[1]["cache"] - crawl.parts[0]["cache"]
    lines = ["| crawl | hits, even | CPU-hours a TB | hits, skewed | CPU-hours a TB |", "|---|--:|--:|--:|--:|"]
    for size in (pages // 100, pages // 10, pages):
        cells = [f"{size:,} pages"]
        for skewed in (False, True):
            hits = hit_rate(size, skewed)
            cells += [f"{hits:.1%}", f"{rule - crawl.hours(hits * made - looked_up):.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    saved = crawl.hours(made - crawl.signatures(1) - looked_up)
    return [
        *lines,
        "",
        f"- The rule without a cache: {rule:.1f} CPU-hours a TB, of which signatures {crawl.hours(made):.1f}.",
        f"- With a cache that has all texts of this crawl: {saved:.1f} saved, {rule - saved:.1f} are left.",
        f"- Floor: {rule - crawl.hours(made * COPIES):.1f}. To hash and look up texts: {crawl.hours(looked_up):.1f}.",
        f"- A full cache has {kept_bytes() / 1e6:.0f} MB in each worker.",
    ]


def kept_bytes() -> int:
    """Returns the bytes of memory of a full cache."""
    import numpy as np

    tracemalloc.start()
    full = OrderedDict(
        (bytes(16) + str(each).encode(), (np.zeros(14, "u8"), np.zeros(112, "u2"))) for each in range(KEPT)
    )
    return tracemalloc.get_traced_memory()[0] if full else 0


def beside_fastdedup(crawl: Crawl, pages: int) -> list[str]:
    """Returns CPU seconds for a million pages, and memory, as a table of Markdown."""
    lines = ["| | pages | CPU s | CPU s for a million pages | peak MB |", "|---|--:|--:|--:|--:|"]
    for name, row in crawl.rows.items():
        assert not isinstance(row, str), row
        cpu = min(row.values("cpu"))
        cells = [f"{pages:,}", f"{cpu:.1f}", f"{cpu / pages * 1e6:,.0f}", f"{max(row.values('peak')):.0f}"]
        lines.append(f"| {PEERS[name].title} | {' | '.join(cells)} |")
    fastdedup = f"{FINEWEB_PAGES:,} | {FASTDEDUP_CPU:,} | {FASTDEDUP_CPU / FINEWEB_PAGES * 1e6:,.0f} | 23,538"
    return [*lines, f"| fastdedup, as published | {fastdedup} |"]


def main() -> None:
    """Measures the three crawls, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=3000, help="of each of the first two crawls")
    parser.add_argument("--bytes", type=int, default=7000, help="of their pages, on average")
    parser.add_argument("--short-pages", type=int, default=25_000, help="of the third crawl")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--crawl", type=int, default=3_000_000, help="pages of the crawl for which hits are counted")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    parser.add_argument("--clocked", nargs=3, help=argparse.SUPPRESS)  # of the process with clocks
    options = parser.parse_args()
    if options.clocked:
        crawl, recipe, cache = options.clocked
        print(json.dumps(clocked(Path(crawl), Path(recipe), cache == "cache")))
        return
    compile_clone()
    title = (
        f"{machine()}; {options.pages:,} pages of {options.bytes:,} bytes, {options.short_pages:,} of {FINEWEB_BYTES:,}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder, rounds = Path(name), options.rounds
        near = measure(folder / "1", [*made_texts(options.pages, options.bytes, 0.4, 0)], rounds, [""])
        exact = measure(folder / "2", [*made_texts(options.pages, options.bytes, 0, COPIES)], rounds, ["", "cache"])
        short = measure(folder / "3", [*made_texts(options.short_pages, FINEWEB_BYTES, 0.01, 0)], 1, [])
    page = [written_by("near_costs.py"), "", title, "", "Four of ten pages are similar to another page:", ""]
    page += [
        *shares(near),
        "",
        "66 of 100 pages are exact copies:",
        "",
        *shares(exact),
        "",
        *savings(exact, options.crawl),
    ]
    page += ["", "Pages as long as those of FineWeb:", "", *beside_fastdedup(short, options.short_pages), ""]
    page += NOTES.strip().splitlines()
    publish(HEAD, page, options.write)


if __name__ == "__main__":
    main()
