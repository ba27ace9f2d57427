"""benchmarks/: each runs on small data, and results.md has the goals of today."""

import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import make_crawl  # noqa: E402
import ratios  # noqa: E402
import real_size  # noqa: E402
import results  # noqa: E402
import rounds  # noqa: E402
import sections  # noqa: E402
import summary  # noqa: E402
from measuring import Cost  # noqa: E402

from tests.helpers import documents  # noqa: E402


def test_results_have_the_goals_of_today() -> None:
    text = (ROOT / "benchmarks" / "results.md").read_text(encoding="utf-8")
    for section in sections.SECTIONS.values():
        body = re.search(rf"^## {section.head}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        if body is None:  # it was not measured yet
            continue
        for each in section.goals:
            bound = f", {each.side} {each.bound:g}" if each.side else ""
            assert f"- {each.figure} of {each.above} / {each.below}{bound}: " in body[1]


def test_the_head_of_the_results_follows_from_their_sections() -> None:
    text = ratios.FILE.read_text(encoding="utf-8")
    assert summary.with_head(text) == text, "run: python benchmarks/results.py"
    assert len(said := summary.sentences(text)) == 5
    assert summary.UNKNOWN not in "".join(said)
    assert ratios.PICTURE.read_text(encoding="utf-8") == ratios.picture(text)


def test_a_new_section_changes_the_head(tmp_path: Path) -> None:
    file = tmp_path / "results.md"
    results.write_section("160,000 pages", ["- wall of build-tfds-2 / build-tfds, at most 0.55: met, it is 0.51"], file)
    text = file.read_text()
    assert "Two workers need 0.51 of the seconds of one" in text
    assert "Dolma takes (not measured) times" in text
    assert "\n## 160,000 pages\n" in text


def test_made_pages_are_as_long_as_those_of_a_crawl() -> None:
    pages = [*islice(make_crawl.made_pages(ROOT / "tests" / "data", 3000), 3000)]
    lengths = sorted(len(page.body.encode()) for page in pages)
    assert max(lengths) <= make_crawl.LONGEST
    assert statistics.mean(lengths) == pytest.approx(make_crawl.MEAN, rel=0.15)
    middle = make_crawl.MEAN / math.exp(make_crawl.SIGMA**2 / 2)
    deciles = [lengths[300], lengths[1500], lengths[2700]]
    steps = (-1.2816, 0, 1.2816)  # of a normal distribution; a page ends with a line, so it is shorter
    assert deciles == [pytest.approx(middle * math.exp(make_crawl.SIGMA * step), rel=0.2) for step in steps]
    assert len({page.url for page in pages}) < 3000 == len({page.url + page.timestamp + page.body for page in pages})


def test_made_pages_are_of_one_language_and_kind() -> None:
    groups = make_crawl.kinds(
        ["The cat sat on the mat.", "Die Katze sitzt auf der Matte.", "The dog ate it {all}."] * 2
    )
    assert [len(group) for _, group in groups] == [2] * 6
    assert all(text in group for text, group in groups)


def test_a_ratio_is_of_the_cheapest_run_of_each_side() -> None:
    rows: dict[str, rounds.Row] = {
        name: rounds.Measured([Cost(each, each, 0.0, "", 0) for each in cpu], 1)
        for name, cpu in {"theirs": [90.0], "ours": [3.0, 9.0, 5.0]}.items()
    }
    assert rounds.ratio(rows, "cpu", "theirs", "ours") == 30
    assert rounds.ratio_spread(rows, "cpu", "theirs", "ours") == (10, 30)
    assert rounds.ratio({**rows, "ours": "not measured: it is not here"}, "cpu", "theirs", "ours") is None


def test_the_table_of_files_of_real_size_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    old = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    page = tmp_path / "scale.md"
    page.write_text(old, encoding="utf-8")
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "a.wet.gz").write_bytes(b"12")
    jobs = [real_size.Job(30, 50, 10**9, 2 * 10**9, [real_size.Sample(1, 10**8, 3 * 10**9)])] * 2
    counts = {"pages.read": 1000, "pages.kept": 200, "bytes.read": 10**10}
    real_size.write_table(real_size.made_table({"c4": (jobs, counts)}, tmp_path / "crawl", 2, "4 cores"), page)
    new = page.read_text(encoding="utf-8")
    assert "with 2 workers:\n4 cores.\n" in new
    parts = [documents.section(text, "Files of real size") for text in (old, new)]
    rows = [list(documents.table_rows(part)) for part in parts]
    assert rows[1] == [
        ["", "`c4`"],
        ["---", "--:"],
        ["pages in the corpus", "200"],
        *([f"clean, {name}", cell] for name, cell in [("seconds", "30"), ("CPU seconds", "50")]),
        ["clean, memory of all processes", "100 MB"],
        ["clean, written", "2.00 GB"],
        *([f"dedup, {name}", cell] for name, cell in [("seconds", "30"), ("CPU seconds", "50")]),
        ["dedup, memory of all processes", "100 MB"],
        ["dedup, read and written", "1.00 and 2.00 GB"],
        ["disk at once", "3.00 GB"],
        ["**both, CPU-hours a TB of text**", "**2.8**"],
    ]
    assert [row[0] for row in rows[0]] == [row[0] for row in rows[1]]
    assert old.replace(parts[0], "") == new.replace(parts[1], "")
    assert "1 WET files of 1,000 pages (10.0 GB of text, 0.0 GB as stored) with 2 workers:" in parts[1]


SMALL = {
    "bench.py": "--help",
    "ratios.py": "",
    "results.py": "",
    "peers.py": "--pages 15 --rounds 1 --only decode,build-tfds,build-tfds-2,build-c4,clean-tfds,clean-c4,clean-gopher",
    "training_peers.py": "--pages 15 --pieces 400 --rounds 1 --only c4pipe-spans,c4pipe-masked,c4pipe-read",
    "parts.py": "--pages 15 --recipes c4",
    "near_peers.py": "--pages 200 --words 30 --rounds 1 --only c4pipe",
    "near_costs.py": "--pages 40 --short-pages 40 --rounds 1 --crawl 1000",
    "near_pairs.py": "--pairs 200 --only cluster",
    "many_crawls.py": "--files 2 --known 2",
    "many_months.py": "--months 2 --files 1",
    "engine_costs.py": "--pages 15 --rounds 1 --only local-2,spark-local",
    "near_scale.py": "--files 2 --pages 20",
    "real_size.py": "samples/crawl --recipes tfds",
    "scale.py": "--files 2 --spans 500",
    "objectives.py": "--pages 15 --pieces 400 --seconds 1",
    "token_files.py": "--pages 15 --pieces 400 --rounds 1",
}
"""The benchmarks with small data. Their figures mean nothing, so goals may be missed: peers take no part."""


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone alone, with what is built in it."""
    clone = tmp_path_factory.mktemp("alone") / "clone"
    for name in ("benchmarks", "c4pipe", "engines", "parity", "requirements", "samples", "tests/data", "tests/helpers"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    (clone / "tests" / "__init__.py").touch()
    return clone


@pytest.mark.consumers  # of token_files.py
@pytest.mark.slow
@pytest.mark.parametrize(
    "script", [pytest.param(name, marks=pytest.mark.spark) if name == "engine_costs.py" else name for name in SMALL]
)
def test_each_benchmark_runs_in_a_clone_alone(clone: Path, script: str) -> None:
    command = [sys.executable, str(clone / "benchmarks" / script), *SMALL[script].split()]
    environ = {**os.environ, "PYTHONPATH": str(clone)}
    done = subprocess.run(command, cwd=clone, env=environ, capture_output=True, text=True, check=False, timeout=300)
    missed = re.findall("^- .*: NOT met", done.stdout, re.MULTILINE)
    assert done.returncode == (1 if missed else 0), done.stdout + done.stderr
    assert "not measured" not in done.stdout


def test_every_benchmark_is_tried() -> None:
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text()}
    assert scripts == {*SMALL, "html_text.py", "make_crawl.py", "measuring.py", "sentences.py"}  # which needs treebanks
