"""What a build takes on each engine, beside this machine's two workers: the same files, one engine after the other.

    python benchmarks/engine_costs.py [--pages 20000] [--rounds 3] [--recipe c4] [--only NAME,...] [--data DIR]
        [--write]

The crawl has eight files with --pages pages each. Each engine is the real one with two cores, started and ended for
each run as engines/matrix.py does it, and its corpus must have the same bytes as that of this machine. CPU seconds are
of all processes, with the start of the engine: what the children of this process used, or what was last seen of each
process, whichever is more (Ray hides what its workers used; a short process may end unseen). The exit status is 1 where
an engine failed or gave other bytes, or where the goal is not met. It needs pyspark, ray and Java. Measure on an idle
machine.
"""

import argparse
import platform
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from measuring import (
    DATA,
    HERE,
    Cost,
    adopt_orphans,
    compile_clone,
    cpu_of_children,
    folder_bytes,
    last_line,
    machine,
    made_crawl,
    of_data,
)
from results import Goal, publish, spread, written_by
from rounds import Measured, Row, ratio

sys.path.append(str(HERE.parent / "engines"))
from fetch import Engines
from matrix import Engine, engines_of, run_row

HEAD = "Engines"
FILES, SECONDS = 8, 7200.0
TITLES = {
    "local-2": "this machine, 2 workers",
    "ray": "Ray, two nodes of a core",
    "spark-local": "Spark, `local[2]`",
    "spark": "Spark, a standalone cluster of two workers with a core",
}
NOTES = """
- CPU seconds of all processes with the start and the end of the engine, and memory of all processes at once: the
  smallest of several runs, and their range. Ratios are of the smallest.
- All corpora have the same bytes. The nodes of an engine are on this machine, without a network between them.
"""


def measured(engines: Mapping[str, Engine], given: Sequence[str], rounds: int, folder: Path) -> dict[str, Row]:
    """Measures engines in turn, round by round; one that failed, or gave other bytes than the first, is left out."""
    rows, digests = dict[str, Row](), list[str]()
    for number in range(rounds):
        for name, engine in engines.items():
            row = rows.get(name)
            if isinstance(row, str):
                continue
            print(f"measuring {name}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            before = cpu_of_children()
            try:
                made = run_row(name, engine, list(given), given[:FILES], folder / f"{name}-{number}")
            except (Exception, SystemExit) as error:  # the other engines have their rows
                rows[name] = f"not measured: {last_line(str(error))}"
                continue
            cost = Cost(made.seconds, max(made.cpu, cpu_of_children() - before), made.memory / 1e6, "", 0)
            digests.append(made.digest)
            rows[name] = Measured([*(row.costs if row else ()), cost], made.pages)
            if made.digest != digests[0]:
                rows[name] = "not measured: its corpus has OTHER BYTES"
    return rows


def table(rows: Mapping[str, Row]) -> list[str]:
    """Returns the rows as a table of Markdown."""
    lines = [
        "| engine | runs | pages out | CPU s | times this machine | wall s | peak MB |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in rows.items():
        if isinstance(row, str):
            values = [row, *[""] * 5]
        else:
            share = ratio(rows, "cpu", name, "local-2")
            values = [str(len(row.costs)), f"{row.pages:,}", spread(row.values("cpu"))]
            values += ["" if share is None else f"{share:.2f}", spread(row.values("wall"))]
            values.append(f"{max(row.values('peak')):,.0f}")
        lines.append(f"| {' | '.join([TITLES[name], *values])} |")
    return lines


def parse() -> argparse.Namespace:
    """Returns the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000, help=f"of each of {FILES} files")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each engine, in turns")
    parser.add_argument("--recipe", default="c4")
    parser.add_argument("--only", default=",".join(TITLES), help="some of: %(default)s")
    parser.add_argument("--data", type=Path, default=DATA, help="pages and lists of which the crawl is made")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    options = parser.parse_args()
    if unknown := [name for name in options.only.split(",") if name not in TITLES]:
        parser.error(f"--only has {unknown[0]!r}: the names are {', '.join(TITLES)}")
    if min(options.pages, options.rounds) < 1:
        parser.error("there must be at least one page and one round")
    return options


def main() -> int:
    """Measures the engines, and returns the exit status."""
    options, title = parse(), machine()
    compile_clone()
    adopt_orphans()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started ends, too
    known = engines_of(Engines())
    chosen = {each: replace(known[each], vocabulary=False, limit=SECONDS) for each in options.only.split(",")}
    with tempfile.TemporaryDirectory(prefix="c4pipe-engines-") as name:
        files = made_crawl(Path(name) / "crawl", FILES, options.pages, options.data)
        size = folder_bytes(Path(name) / "crawl")
        given = [*files, "--recipe", options.recipe, "--lists", str(options.data / "lists")]
        rows = measured(chosen, [*given, "--shards", "4"], options.rounds, Path(name))
    title += (
        f"; {FILES} files of {options.pages:,} pages made of {of_data(options.data)}, {size / 1e6:,.1f} MB compressed"
    )
    goals = []
    if {"local-2", "spark"} <= set(chosen):
        goals.append(Goal("cpu of spark / local-2", ratio(rows, "cpu", "spark", "local-2"), "at most", 1.3))
    versions = ", ".join(f"{each}=={version(each)}" for each in ("c4pipe", "ray", "pyspark"))
    page = [
        written_by(f"engine_costs.py --pages {options.pages} --recipe {options.recipe}"),
        "",
        title,
        "",
        *table(rows),
    ]
    page += ["", *(goal.line() for goal in goals), *NOTES.strip().splitlines()]
    status = publish(HEAD, [*page, f"- Python {platform.python_version()}, {versions}"], options.write, goals)
    return int(any(isinstance(row, str) for row in rows.values()) or status)


if __name__ == "__main__":
    sys.exit(main())
