"""docs/compare.md: c4pipe beside other programs, and its own figures as the pages that measured them have them."""

import itertools
import re

import pytest

from scripts import take_figures
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


def test_the_figures_are_those_of_the_pages_that_measured_them() -> None:
    for path, text in take_figures.pages().items():
        assert path.read_text(encoding="utf-8") == text, "run: python scripts/take_figures.py"


def test_other_figures_are_taken_over_and_the_tables_stay_in_their_columns() -> None:
    scale = page("docs/scale.md").replace(MEASURED["**both, CPU-hours a TB of text**"][0], "**10.25**", 1)
    build = section(RESULTS, "Build and clean")
    other = re.sub(r"(of tfds / build-tfds, .* it is )[\d.]+", r"\g<1>34.6", build)
    other = re.sub(r"(?m)(^\| datatrove \|(?:[^|]*\|){3} )[\d.]+", r"\g<1>1000.0", other)
    made = take_figures.figures(RESULTS.replace(build, other), scale)
    changed = take_figures.compare(PAGE, made)
    assert "CPU-hours a  10.25 C4, " in changed
    assert [len(line) for line in changed.splitlines()] == [len(line) for line in PAGE.splitlines()]
    megabytes = float(made.megabytes[0])
    assert f" {1000 / 3600 / megabytes * 1e6:,.0f} C4, " in changed
    readme = take_figures.readme(page("README.md"), made)
    assert "10.25 CPU-hours a TB of text with `c4`" in readme
    assert re.search(r"Datasets takes 35 times", readme)


def test_a_page_with_other_words_is_one_sentence() -> None:
    with pytest.raises(SystemExit, match=r"no text like .*change this script"):
        take_figures.take("nothing", r"takes (\d+)", "1")


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
