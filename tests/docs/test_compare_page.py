"""docs/compare.md: c4pipe beside other programs, and its own figures as the pages that measured them have them."""

import itertools
import re

import pytest

from tests.helpers.documents import code_blocks, page, section, table_rows

PAGE = page("docs/compare.md")
TABLE, BILL = code_blocks(PAGE, "text")
STARTS = (0, 13, 32, 51, 70)
"""The columns of the table: the name of a row, and three programs."""

MEASURED = {cells[0]: cells[1:] for cells in table_rows(section(page("docs/scale.md"), "Files of real size"))}
RECIPES = MEASURED[""]
RESULTS = page("benchmarks/results.md")


def rows(half: str) -> dict[str, list[str]]:
    """The rows of one half of the table, by their names: the lines of each cell are joined."""
    found: list[list[str]] = []
    for line in half.splitlines():
        cells = [line[start:end].strip() for start, end in itertools.pairwise(STARTS)]
        if cells[0] and not cells[0].isupper():  # TB ends the name of a row
            found.append(cells)
        elif found:
            found[-1] = [f"{above} {below}".strip() for above, below in zip(found[-1], cells, strict=True)]
        else:
            found.append(["", *cells[1:]])
    return {name: cells for name, *cells in found}


HALVES = [rows(half) for half in TABLE.split("\n\n")]
PROGRAMS = [name for half in HALVES for name in half[""]]
HOURS = dict(zip(PROGRAMS, [cell for half in HALVES for cell in half["CPU-hours a TB"]], strict=True))


def hours(program: str, work: str) -> float:
    """The CPU-hours a TB of a program for some work, in the table."""
    (figure,) = re.findall(rf"([\d,.]+) {work}", HOURS[program])
    return float(figure.replace(",", ""))


def test_the_table_fits_a_terminal_and_a_phone() -> None:
    """Outputs of up to 70 columns fit a phone: tests/docs/test_site.py."""
    assert max(map(len, (TABLE + BILL).splitlines())) <= 70
    assert len(TABLE.splitlines()) <= 60
    assert list(HALVES[0]) == list(HALVES[1])
    assert all(cell for half in HALVES for cells in half.values() for cell in cells)


def test_each_program_has_its_version_and_its_source() -> None:
    sources = section(PAGE, "Sources")
    for name in PROGRAMS:
        assert re.search(rf"^- .*{name}.* \d+\.\d+\.\d+", sources, re.MULTILINE), name
    named = set(re.findall(r"\]\[(\w+)\]", PAGE))
    assert named == set(re.findall(r"^\[(\w+)\]: https://", sources, re.MULTILINE))
    commits = re.findall(r"^- \[.+\]\[(\w+)\] at (\w{7}):", sources, re.MULTILINE)
    assert len(commits) == 4
    for name, commit in commits:
        assert re.search(rf"^\[{name}\]: https://github\.com/.+/{commit}\w{{33}}$", sources, re.MULTILINE)


@pytest.mark.parametrize(("recipe", "work"), [("c4", "C4"), ("fineweb", "FineWeb")])
def test_own_cpu_hours_are_those_of_files_of_real_size(recipe: str, work: str) -> None:
    measured = MEASURED["**both, CPU-hours a TB of text**"][RECIPES.index(f"`{recipe}`")]
    assert hours("c4pipe", work) == float(measured.strip("*"))


def test_cpu_hours_measured_of_others_are_near_those_of_today() -> None:
    build = section(RESULTS, "Build and clean")
    (megabytes,) = re.findall(r"- (\d+) MB of text", build)
    seconds = {cells[0]: cells[4] for cells in table_rows(build) if len(cells) > 4}
    (minhash,) = re.findall(r"datatrove, its four steps of MinHash ([\d,]+)\.", RESULTS)
    today = [
        (hours("datatrove", "C4"), float(seconds["datatrove"]) / 3600 / float(megabytes) * 1e6),
        (hours("datatrove", "MinHash"), float(minhash.replace(",", ""))),
        (hours("TFDS", r"C4 \(2026"), float(seconds["tfds"]) / 3600 / float(megabytes) * 1e6),
    ]
    for shown, measured in today:
        assert shown == pytest.approx(measured, rel=0.5), "benchmarks/results.md was measured again: take its figures"


def test_the_bill_follows_from_the_figures_beside_it() -> None:
    lines = {line.split()[0]: re.split(r" {2,}", line)[1:] for line in BILL.splitlines()[1:]}
    documents, machine_hours, cores, dollars = 252.6e9, 1_030, 128, 11_300
    rate = dollars / machine_hours / cores
    million = f"{dollars / documents * 1e6:.3f}"
    assert lines["Olmo"] == ["252.6 billion", f"{machine_hours:,}, {cores} vCPUs", f"{dollars:,}", million]
    for recipe in ("c4", "fineweb"):
        column = RECIPES.index(f"`{recipe}`")
        used = sum(float(MEASURED[f"{job}, CPU seconds"][column].replace(",", "")) for job in ("clean", "dedup")) / 3600
        figures = [f"{used:.2f}, one vCPU", f"{used * rate:.2f}", f"{used * rate / 4:.3f}"]
        assert lines[recipe] == ["4 million", *figures]
    bill = " ".join(section(PAGE, "Beside Olmo 3's bill").split())
    assert f"{rate:.4f} dollars a vCPU-hour" in bill
    assert f"{round(used * rate * documents / 4e6, -2):,.0f} dollars" in bill  # of fineweb
    assert f"{round(documents / 4e6, -3):,.0f} times" in bill
