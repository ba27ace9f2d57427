"""The README, the tutorial and the page of formats: what they show is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from c4pipe.filters.lines import FewWords
from c4pipe.filters.listed_words import BadWords
from c4pipe.recipes.presets import RECIPES, find_recipe
from tests.helpers.documents import ROOT, code_blocks, first_quotes, page, section

README = page("README.md")
TUTORIAL = page("docs/tutorial.md")
FORMATS = page("docs/formats.md")
RECIPES_PAGE = page("docs/recipes.md")

SNIPPETS = dict(re.findall(r"<!-- reads: (\w+) -->\n```python\n(.*?)```", FORMATS, re.DOTALL))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a corpus of the sample crawl in every format, and what the command printed."""
    folder = tmp_path_factory.mktemp("docs")
    arguments = ["build", str(ROOT / "samples" / "crawl"), "--lists", str(ROOT / "samples" / "lists"), "--workers", "1"]
    more = ["--output", str(folder / "corpus"), "--format", "parquet,tfrecord,json"]
    command = [sys.executable, "-m", "c4pipe", *arguments, *more]
    return folder, subprocess.run(command, check=True, capture_output=True, text=True).stdout


def funnel(text: str) -> list[str]:
    (shown,) = re.findall(r"```text\n(\s+number +%\n.*?)```", text, re.DOTALL)
    return str(shown).splitlines()


def test_the_funnel_of_the_demo_is_what_is_printed(built: tuple[Path, str]) -> None:
    _, printed = built
    lines = [line.rstrip() for line in printed.splitlines()]
    short, whole = funnel(README), funnel(TUTORIAL)
    assert short == lines[: len(short)]
    assert short[-1].startswith("pages kept")
    assert whole == lines[: len(whole)]
    assert whole[-1].startswith("bytes of text kept")


def test_the_readme_is_short_and_its_figures_stand_in_their_sources() -> None:
    lines = README.splitlines()
    assert len(lines) <= 120
    assert max(map(len, lines)) <= 120
    (kept,) = re.findall(r"`c4` keeps ([0-9,]+)", README)
    costs = re.findall(r"([0-9.]+) CPU-hours a TB of text with `c4`, ([0-9.]+) with `fineweb`", README)
    scale = section(page("docs/scale.md"), "Files of real size")
    assert f"| pages in the corpus | {kept} |" in scale
    assert re.findall(r"CPU-hours a TB of text\*\* \| \*\*([0-9.]+)\*\* \|.*\*\*([0-9.]+)\*\* \|", scale) == costs
    results = page("benchmarks/results.md")
    times = re.findall(r"Datasets takes (\d+) times, datatrove (\d+) times", " ".join(README.split()))
    measured = [
        re.findall(rf"cpu of {name} / build-tfds, .* it is ([0-9.]+)", results)[0] for name in ("tfds", "datatrove")
    ]
    assert [tuple(f"{float(each):.0f}" for each in measured)] == times


def test_each_recipe_is_in_the_table() -> None:
    assert first_quotes(section(RECIPES_PAGE, "The recipes of c4pipe")) == RECIPES.keys()


@pytest.mark.parametrize("text", [RECIPES_PAGE, page("docs/explain.md")], ids=["recipes", "explain"])
def test_the_recipe_that_is_shown_can_be_read(text: str, tmp_path: Path) -> None:
    (shown,) = code_blocks(text, "toml")
    (tmp_path / "my.toml").write_text(shown)
    recipe = find_recipe(str(tmp_path / "my.toml"))
    assert recipe.need(FewWords).min_words_per_line == 3
    assert recipe.find(BadWords) is None


def test_the_rules_that_cannot_be_switched_off_are_listed() -> None:
    from c4pipe.recipes.recipe_file import _NEEDED

    (sentence,) = re.findall(r"^- (.*) can't be switched off\.$", RECIPES_PAGE, re.MULTILINE)
    assert re.findall(r"`(\w+)`", sentence) == list(_NEEDED)


def test_there_is_a_snippet_for_each_format() -> None:
    assert set(SNIPPETS) == {"parquet", "tfrecord", "json"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.tensorflow) if name == "tfrecord" else name for name in SNIPPETS]
)
def test_snippet_reads_the_corpus(name: str, built: tuple[Path, str]) -> None:
    folder, _ = built
    done = subprocess.run([sys.executable, "-c", SNIPPETS[name]], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 38
    assert lines[0] == "https://kitchen.example.com/bread/plain-white-loaf 921"


def test_the_python_of_the_readme_runs(built: tuple[Path, str]) -> None:
    (reading,) = code_blocks(README, "python")
    folder, _ = built
    done = subprocess.run([sys.executable, "-c", reading], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 38
