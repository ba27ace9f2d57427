"""`recipes --cost`: what each rule drops, against a plain loop over the pages and against the counters of `clean`."""

import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from c4pipe.clean.annotated_folder import Annotate, open_annotated, write_manifest
from c4pipe.clean.evaluate import operations_of
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.work_file import read_header
from c4pipe.cli import main
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import PageRule
from c4pipe.inspect import rule_cost
from c4pipe.inspect.rule_cost import count_drops, measure_times, sample_pages
from c4pipe.recipes.choose import ListedRecipe
from tests.cli.test_progress_terminal import on_terminal
from tests.helpers.crawls import LISTS, SAMPLES
from tests.helpers.crawls import sample_pages as pages_of_the_crawl

RECIPES = ["c4", "gopher", "fineweb"]


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an annotated folder of the sample crawl for each recipe, and its work files in `work-RECIPE`."""
    folder = tmp_path_factory.mktemp("annotated")
    for name in RECIPES:
        listed, target = ListedRecipe.choose(name, lists=LISTS), Annotate(str(folder / name))
        cleaner = WetFileCleaner(listed.recipe, listed.lists, annotate=target)
        (folder / f"work-{name}").mkdir()
        for path in SAMPLES:
            with path.open("rb") as stream:
                cleaner.clean(stream, path.name, folder / f"work-{name}" / path.name)
        write_manifest(target, listed.recipe, listed.fingerprint, [path.name for path in SAMPLES], [])
    return folder


@pytest.mark.parametrize("name", RECIPES)
def test_the_counts_are_those_of_a_plain_loop_and_of_clean(name: str, annotated: Path) -> None:
    drops = count_drops(open_annotated(annotated / name))
    rows = [row for path in SAMPLES for row in pq.read_table(annotated / name / f"{path.name}.parquet").to_pylist()]
    dropped, alone, together = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for row in rows:
        rules = [rule for rule in drops.rules if row[f"{rule}_fired"]]
        dropped.update(rules)
        alone.update(rules if len(rules) == 1 else ())
        together.update((first, second) for first in rules for second in rules)
    assert drops.pages == len(rows) == len(pages_of_the_crawl())
    assert drops.dropped == {rule: dropped[rule] for rule in drops.rules}
    assert drops.alone == {rule: alone[rule] for rule in drops.rules}
    for place, rule in enumerate(drops.rules):
        assert drops.together[place].tolist() == [together[rule, other] for other in drops.rules]
        if dropped[rule]:
            some = [other for other in drops.rules if dropped[other]]
            assert drops.overlap()[rule] == [round(100 * together[rule, each] / dropped[rule]) for each in some]
    assert sum(drops.alone.values()) >= 5

    counts = Counter[str]()
    for path in (annotated / f"work-{name}").glob("*.gz"):
        counts.update(read_header(path).counts)
    assert drops.first == {rule: counts[f"pages.dropped.{rule}"] for rule in drops.rules}
    assert sum(drops.first.values()) == sum(row["reason"] is not None for row in rows) > 20
    for rule, number in drops.lines.items():  # of pages that a rule drops before, too
        assert number == sum(row[f"{rule}_lines"] or 0 for row in rows)
        assert number >= counts[f"lines.dropped.{rule}"] + counts[f"lines.edited.{rule}"]


@dataclass(frozen=True)
class Spin(PageRule):
    """Takes half a millisecond for each page."""

    name = "spin"
    does = "drops no page"
    source = "a test"

    def value(self, page: CheckedPage) -> int:
        end = time.thread_time_ns() + 500_000
        while time.thread_time_ns() < end:
            pass
        return 0

    def drops(self, value: int) -> bool:
        return False


@pytest.mark.parametrize("name", RECIPES)
def test_each_rule_has_the_time_that_it_takes(name: str) -> None:
    """What several rules need, such as the words of a page, is not the time of the first of them."""
    listed = ListedRecipe.choose(name, lists=LISTS)
    recipe = listed.recipe.with_rule(Spin(), before="language")
    times = measure_times(recipe, listed.lists, pages_of_the_crawl()[:10])
    named = {each.name for each in operations_of(recipe) if each.name and each.kind != "corpus rule"}
    assert times.by_rule.keys() == named
    assert min(times.by_rule.values()) > 0
    assert 500 <= times.by_rule["spin"] == max(times.by_rule.values())
    assert times.pages == 10
    if name != "c4":
        assert times.shared > 5 * times.by_rule["few_page_words"]


def test_the_sample_is_spread_over_all_files(annotated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = open_annotated(annotated / "c4")
    everything = [(page.url, page.timestamp, page.body) for page in pages_of_the_crawl()]
    assert [(page.url, page.timestamp, page.body) for page in sample_pages(folder)] == everything
    monkeypatch.setattr(rule_cost, "_SAMPLE_PAGES", 12)
    few = [page.url for page in sample_pages(folder)]
    assert few == [page.url for page in sample_pages(folder)]
    assert 9 <= len(few) <= 12
    monkeypatch.setattr(rule_cost, "_SAMPLE_BYTES", 3_000)
    assert sum(page.size for page in sample_pages(folder)) <= 3_000
    monkeypatch.setattr(rule_cost, "_SAMPLE_BYTES", 10**9)
    monkeypatch.setattr(rule_cost, "_SAMPLE_GROUPS", 2)
    assert 4 <= len({page.url for page in sample_pages(folder)}) <= 12
    monkeypatch.setattr(rule_cost, "MOST_CHARACTERS", -1)
    with pytest.raises(UsageError, match="no page to measure times with"):
        sample_pages(folder)


@pytest.mark.parametrize("name", ["c4", "fineweb"])
def test_a_terminal_of_80_columns_shows_it(name: str, annotated: Path) -> None:
    shown = on_terminal(["recipes", "--cost", str(annotated / name), "--lists", str(LISTS)], 80, with_results=True)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert max(map(len, lines[1:])) <= 80  # the first has the path of the folder
    drops = count_drops(open_annotated(annotated / name))
    numbers = {line.split()[0]: line.split()[1:] for line in lines if line.strip()}
    for rule in drops.rules:
        dropped, _, alone, first, taken = numbers[rule]
        assert (int(dropped), int(alone), int(first)) == (drops.dropped[rule], drops.alone[rule], drops.first[rule])
        assert float(taken) > 0
    for rule, changed in drops.lines.items():
        assert int(numbers[rule][0].replace(",", "")) == changed
    if name == "c4":
        assert numbers["5"] == ["few_sentences", "17", "0", "0", "0", "-", "67", "0", "100"]
    else:
        assert "is too wide here: see --output" in shown


def test_the_page_has_the_numbers_of_the_tables(annotated: Path, tmp_path: Path) -> None:
    """The page is also shown by a browser: tests/report/test_report_browser.py."""
    options = ["--cost", annotated / "fineweb", "--lists", LISTS, "--output", tmp_path / "cost.html"]
    assert main.main(["recipes", *map(str, options)]) == 0
    page = re.sub(r"<wbr>|<small>.*?</small>|</?span>", "", (tmp_path / "cost.html").read_text())
    rows = [re.findall(r">([^<]*)</t[hd]>", row) for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL)]
    drops = count_drops(open_annotated(annotated / "fineweb"))
    for rule in drops.rules:
        counts = [str(each) for each in (drops.dropped[rule], drops.alone[rule], drops.first[rule])]
        assert [[row[1], *row[3:5]] for row in rows if len(row) == 7 and row[0] == rule] == [counts]
    overlap = drops.overlap()
    assert len(overlap) > 20
    for place, (rule, shares) in enumerate(overlap.items()):
        cells = ["" if column == place else str(share or "") for column, share in enumerate(shares)]
        assert [rule, *cells] in rows
    for rule, changed in drops.lines.items():
        assert [row[1] for row in rows if len(row) == 5 and row[0] == rule] == [f"{changed:,}"]


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The sentence of a command that is refused."""
    assert main.main(["recipes", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return re.sub(r"\s+", " ", captured.err)


def test_what_can_not_be_shown_is_a_sentence(
    annotated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is no complete annotated folder" in told(capsys, "--cost", tmp_path)
    assert "has its own recipe: leave out c4" in told(capsys, "c4", "--cost", annotated / "c4")
    assert "--lists is for --cost" in told(capsys, "c4", "--lists", LISTS)
    assert "--output is for --cost" in told(capsys, "c4", "--output", tmp_path / "cost.html")
    (tmp_path / "ldnoobw").mkdir()
    (tmp_path / "ldnoobw" / "en.25e679f0").write_text("boats\n")
    says = told(capsys, "--cost", annotated / "c4", "--lists", tmp_path)
    assert "was annotated with other lists: give the options of that run, such as --lists" in says


def test_a_file_that_the_manifest_does_not_list_is_refused(annotated: Path, tmp_path: Path) -> None:
    for path in (annotated / "c4").iterdir():
        (tmp_path / path.name).symlink_to(path)
    first, second = (tmp_path / f"{path.name}.parquet" for path in SAMPLES[:2])
    second.unlink()
    with pytest.raises(UsageError, match="no such file"):
        open_annotated(tmp_path)
    second.symlink_to(first)
    with pytest.raises(DamagedFileError, match=r"is not the file that _annotated\.json lists"):
        open_annotated(tmp_path)
