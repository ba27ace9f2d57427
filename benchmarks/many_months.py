"""`c4pipe add` month after month: what each month takes, while the corpus grows.

    python benchmarks/many_months.py [--months 30] [--files 72] [--bytes 26] [--workers 2] [--folder DIR] [--draw]

Each month has 72 work files, a thousandth of a crawl, with spans as many as those of real files. A tenth of
the spans is common to all months. The work files are those of scale.py: sentences without meaning. A line for each
month says what `add` took. `--draw` writes docs/add_months.svg.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from many_crawls import KEPT, PAGES, SPANS_OF_FILE
from measuring import folder_bytes, machine, watch
from scale import make_work

PICTURE = Path(__file__).parents[1] / "docs" / "add_months.svg"


class Month(NamedTuple):
    """Seconds, CPU seconds and bytes of memory of a month; bytes of the indexes that it read; pages of the corpus."""

    wall: float
    cpu: float
    memory: int
    known: int
    pages: int


def add_month(folder: Path, number: int, files: int, unit: int, workers: int) -> Month:
    """Makes the work files of a month, adds them to the corpus, and deletes them. The first month is the corpus."""
    work, corpus = folder / "work", folder / "corpus"
    make_work(work, files, SPANS_OF_FILE, 0.1, unit, PAGES - KEPT, first=number * files)
    index = sum(map(folder_bytes, [corpus / "_index", *sorted(corpus.glob("_parts/*/_index"))])) if number else 0
    command = [sys.executable, "-m", "c4pipe", "dedup", str(work), "--output", str(corpus), "--index"]
    if number:
        command = [sys.executable, "-m", "c4pipe", "add", str(corpus), str(work)]
    took = watch([*command, "--workers", str(workers), "--quiet"], corpus / "_building")
    pages = json.loads((corpus / "manifest.json").read_bytes())["counts"]["pages.kept"]
    shutil.rmtree(work)
    return Month(took.wall, took.cpu, took.memory, index, pages)


def picture(months: list[Month]) -> str:
    """Returns CPU seconds and memory of each month as SVG, both as multiples of month 2."""
    left, top, width, height, most = 50, 15, 440, 240, 2.0
    second = months[1]

    def place(number: int, value: float) -> str:
        return f"{left + width * (number - 1) / (len(months) - 1):.1f},{top + height * (1 - value / most):.1f}"

    ticks = "".join(
        f'<path d="M{left} {top + height * (1 - value / most):.1f}h{width}" stroke="#ccc"/>'
        f'<text x="{left - 8}" y="{top + height * (1 - value / most) + 4:.1f}" text-anchor="end">{value:g}</text>\n'
        for value in (0.0, 0.5, 1.0, 1.5, 2.0)
    )
    ticks += "".join(
        f'<text x="{place(number, 0).split(",")[0]}" y="{top + height + 18}" text-anchor="middle">{number}</text>\n'
        for number in (1, *range(5, len(months) + 1, 5))
    )
    lines = ""
    for name, color, values in (
        ("CPU seconds", "#1d4ed8", [month.cpu / second.cpu for month in months]),
        ("memory", "#b45309", [month.memory / second.memory for month in months]),
    ):
        points = " ".join(place(number, value) for number, value in enumerate(values, 1))
        lines += f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>\n'
        y = top + 20 + 16 * lines.count("polyline")
        lines += f'<text x="{left + width - 6}" y="{y}" text-anchor="end" fill="{color}">{name}</text>\n'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 310" width="520" height="310">
<title>CPU seconds and memory of c4pipe add by month, as multiples of month 2</title>
<rect width="520" height="310" fill="#fff"/>
<g font-family="sans-serif" font-size="12" fill="#333">
{ticks}{lines}<text x="{left + width // 2}" y="303" text-anchor="middle">month</text>
<text transform="translate(14 {top + height // 2}) rotate(-90)" text-anchor="middle">multiple of month 2</text>
</g>
</svg>
"""


def main() -> None:
    """Adds month after month, and prints what each took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--months", type=int, default=30)
    parser.add_argument("--files", type=int, default=72, help="work files of a month")
    parser.add_argument("--bytes", type=int, default=26, help="of a sentence, with the space after it")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where to work; kept if it is given")
    parser.add_argument("--draw", action="store_true", help=f"write {PICTURE.name}")
    options = parser.parse_args()
    print(machine(), flush=True)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="c4pipe-months-"))
    months: list[Month] = []
    for number in range(options.months):
        months.append(month := add_month(folder, number, options.files, options.bytes, options.workers))
        print(
            f"month {number + 1}: {month.wall:,.0f} s, {month.cpu:,.0f} s of CPU, {month.memory / 1e6:,.0f} MB of "
            f"memory in all processes; {month.known / 1e6:,.0f} MB of indexes read; corpus of {month.pages:,} pages",
            flush=True,
        )
    if options.draw:
        PICTURE.write_text(picture(months), encoding="utf-8")
    if not options.folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
