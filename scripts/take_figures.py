"""Takes the figures of benchmarks/results.md and docs/scale.md over into the README and pages of docs/.

    .venv/bin/python scripts/take_figures.py

Run it after a benchmark has written its section. It changes figures alone: a sentence that they make wrong is yours.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
README, COMPARE, CLASSIFIERS = ROOT / "README.md", ROOT / "docs" / "compare.md", ROOT / "docs" / "classifiers.md"
RESULTS, SCALE = ROOT / "benchmarks" / "results.md", ROOT / "docs" / "scale.md"

MADE, OLMO = 4_000_000, 252.6e9
"""Pages of the files of real size, and documents of Olmo 3."""

RATE = 11_300 / 1_030 / 128
"""Dollars of Olmo 3 for an hour of a vCPU."""


class Figures(NamedTuple):
    """What the two pages have measured.

    Attributes:
        scale: the cells of each row of the table of real size, by recipe, without commas and stars.
        text: gigabytes of its text.
        times: the CPU of `tfds` and of `datatrove` in that of c4pipe.
        hours: CPU-hours a TB of `tfds`, `datatrove` and `minhash`.
        megabytes: of the text of the section on builds, and of that on near-duplicates.
    """

    scale: Mapping[str, Mapping[str, str]]
    text: str
    times: Mapping[str, float]
    hours: Mapping[str, float]
    megabytes: tuple[str, str]


def figures(results: str, scale: str) -> Figures:
    """Returns the figures of the two pages."""
    (text, table), *_ = re.findall(r"\(([\d.]+) GB of text.*?\n\n(\| \|.*?)\n\n", scale, re.DOTALL)
    head, _, *rows = ([cell.strip(" `*") for cell in line.split("|")[1:-1]] for line in table.splitlines())
    columns = {recipe: {row[0]: row[place].replace(",", "") for row in rows} for place, recipe in enumerate(head)}
    build = results.partition("\n## Build and clean\n")[2].partition("\n## ")[0]
    (megabytes,) = re.findall(r"^- (\d+) MB of text", build, re.MULTILINE)
    times = {
        name: float(found(rf"cpu of {name} / build-tfds, .* it is ([\d.]+)", build)) for name in ("tfds", "datatrove")
    }
    seconds = {name: float(found(rf"^\| {name} \|(?:[^|]*\|){{3}} ([\d.]+)", build)) for name in times}
    hours = {name: value / 3600 / float(megabytes) * 1e6 for name, value in seconds.items()}
    minhash = found(r"datatrove, its four steps of MinHash ([\d,]+)\.", results)
    near = int(found(r"The pages have ([\d,]+) bytes of text", results).replace(",", "")) / 1e6
    return Figures(
        columns, text, times, hours | {"minhash": float(minhash.replace(",", ""))}, (megabytes, f"{near:.0f}")
    )


def found(pattern: str, text: str) -> str:
    """Returns the figure that a pattern finds in a page."""
    match = re.search(pattern, text, re.MULTILINE)
    return (
        match[1] if match else sys.exit(f"no text like {pattern!r}: the page has other words now; change this script")
    )


def take(text: str, pattern: str, *given: str) -> str:
    """Returns a page with other texts in the places of the groups of a pattern."""
    match = re.search(pattern, text, re.MULTILINE) or sys.exit(f"no text like {pattern!r}: change this script")
    for number, new in reversed([*enumerate(given, 1)]):
        text = text[: match.start(number)] + new + text[match.end(number) :]
    return text


def readme(text: str, made: Figures) -> str:
    """Returns the README with these figures."""
    c4, fineweb = made.scale["c4"], made.scale["fineweb"]
    text = take(text, r"`c4` keeps ([\d,]+)", f"{int(c4['pages in the corpus']):,}")
    hours = [each["both, CPU-hours a TB of text"] for each in (c4, fineweb)]
    text = take(text, r"([\d.]+) CPU-hours a TB of text with `c4`, ([\d.]+) with `fineweb`", *hours)
    times = [f"{made.times[name]:.0f}" for name in ("tfds", "datatrove")]
    return take(text, r"Datasets\s+takes\s+(\d+)\s+times,\s+datatrove\s+(\d+)\s+times", *times)


def compare(text: str, made: Figures) -> str:
    """Returns docs/compare.md with these figures, its tables as wide as they were."""
    c4, fineweb = (made.scale[name] for name in ("c4", "fineweb"))
    hours = [each["both, CPU-hours a TB of text"] for each in (c4, fineweb)]
    cells = [f"{hours[0]} C4, {hours[1]}", f"{made.hours['datatrove']:,.0f} C4, {made.hours['minhash']:,.0f}"]
    text = take(text, r"^CPU-hours a  (.{19})(.{19})2,304 all", *(f"{cell:19}" for cell in cells))
    text = take(text, r"MinHash \(2025\) ([\d,]+) C4 \(2026\);$", f"{made.hours['tfds']:,.0f}")
    text = take(text, r"for ([\d.]+) GB in\s", made.text)
    for megabytes, section in zip(made.megabytes, ("build-and-clean", "near-duplicates"), strict=True):
        text = take(text, rf"\[(\d+) MB\]\(../benchmarks/results.md#{section}\)", megabytes)
    for name, each in (("fineweb", fineweb), ("c4", c4)):
        used = (float(each["clean, CPU seconds"]) + float(each["dedup, CPU seconds"])) / 3600
        row = f"{f'{used:.2f}, one vCPU':16}{f'{used * RATE:.2f}':>9}{f'{used * RATE / MADE * 1e6:.3f}':>19}"
        text = take(text, rf"^{name:11}    4 million  (.*)$", row)
        if name == "fineweb":
            text = take(text, r"would cost ([\d,]+)\s+dollars", f"{round(used * RATE * OLMO / MADE, -2):,.0f}")
    return text


def classifiers(text: str, results: str) -> str:
    """Returns docs/classifiers.md with the figures of its section."""
    section = results.partition("\n## Classifiers\n")[2].partition("\n## ")[0]
    ((files, each),) = re.findall(r"(\d+) files of ([\d,]+) pages", section)
    names = ("clean-classifier", "clean-small-classifier", "classifier", "small-classifier")
    cpu = [found(rf"^\| {name} \|(?:[^|]*\|){{3}} ([\d.]+)", section) for name in names]
    pattern = r"For ([\d,]+) pages, .* takes ([\d.]+) seconds .* and ([\d.]+) with .*\n.* takes ([\d.]+) and ([\d.]+) "
    return take(text, pattern, f"{int(files) * int(each.replace(',', '')):,}", *cpu)


def pages() -> dict[Path, str]:
    """Returns the pages with the figures of today."""
    results = RESULTS.read_text(encoding="utf-8")
    made = figures(results, SCALE.read_text(encoding="utf-8"))
    return {
        README: readme(README.read_text(encoding="utf-8"), made),
        COMPARE: compare(COMPARE.read_text(encoding="utf-8"), made),
        CLASSIFIERS: classifiers(CLASSIFIERS.read_text(encoding="utf-8"), results),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
