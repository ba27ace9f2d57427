"""`recipes --cost`: what each rule drops, against a plain loop over the pages and against the counters of `clean`."""

import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from c4pipe.clean.annotated_folder import Annotate, list_annotated, open_annotated
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.work_file import read_header
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.inspect.rule_drops import count_rule_drops
from c4pipe.recipes.choose import ListedRecipe
from tests.cli.test_progress_terminal import on_terminal
from tests.helpers.commands import refusal
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
        list_annotated(target, [path.name for path in SAMPLES])
    return folder


@pytest.mark.parametrize("name", RECIPES)
def test_the_counts_are_those_of_a_plain_loop_and_of_clean(name: str, annotated: Path) -> None:
    drops = count_rule_drops(open_annotated(annotated / name))
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
            shares = {each: round(100 * together[rule, each] / dropped[rule]) for each in drops.rules if each != rule}
            assert drops.overlap()[rule] == {each: share for each, share in shares.items() if share}
            assert list(drops.overlap()[rule].values()) == sorted(filter(None, shares.values()), reverse=True)
        else:
            assert rule not in drops.overlap()
    assert sum(drops.alone.values()) >= 5

    counts = Counter[str]()
    for path in (annotated / f"work-{name}").glob("*.gz"):
        counts.update(read_header(path).counts)
    assert drops.first == {rule: counts[f"pages.dropped.{rule}"] for rule in drops.rules}
    assert sum(drops.first.values()) == sum(row["reason"] is not None for row in rows) > 20
    for rule, number in drops.lines.items():  # of pages that a rule drops before, too
        assert number == sum(row[f"{rule}_lines"] or 0 for row in rows)
        assert number >= counts[f"lines.dropped.{rule}"] + counts[f"lines.edited.{rule}"]


@pytest.mark.parametrize("name", ["c4", "fineweb"])
def test_a_terminal_of_80_columns_shows_it(name: str, annotated: Path) -> None:
    shown = on_terminal(["recipes", "--cost", str(annotated / name)], 80, with_results=True)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert max(map(len, lines[1:])) <= 80  # the first has the path of the folder
    drops = count_rule_drops(open_annotated(annotated / name))
    _, pages, *others = "\n".join(lines).split("\n\n")
    overlap = others[len(drops.lines) > 0]
    numbers = {name: cells for name, *cells in map(str.split, pages.splitlines())}
    for rule in drops.rules:
        dropped, _, alone, first = numbers[rule]
        assert (int(dropped), int(alone), int(first)) == (drops.dropped[rule], drops.alone[rule], drops.first[rule])
    for rule, changed in drops.lines.items():
        assert re.search(rf"^{rule} +{changed:,} ", others[0], re.MULTILINE)
    words = re.sub(r"\s+", " ", overlap)
    for rule, shares in drops.overlap().items():
        assert f"{rule} {', '.join(f'{other} {share}' for other, share in shares.items()) or '-'}" in words


def test_what_can_not_be_shown_is_a_sentence(
    annotated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is no complete annotated folder" in refusal(capsys, "recipes", "--cost", tmp_path)
    assert "has its own recipe: leave out c4" in refusal(capsys, "recipes", "c4", "--cost", annotated / "c4")


def test_a_missing_file_and_a_file_under_another_name_are_refused(annotated: Path, tmp_path: Path) -> None:
    for path in (annotated / "c4").iterdir():
        (tmp_path / path.name).symlink_to(path)
    first, second = (tmp_path / f"{path.name}.parquet" for path in SAMPLES[:2])
    second.unlink()
    with pytest.raises(UsageError, match="no such file"):
        open_annotated(tmp_path)
    second.symlink_to(first)
    with pytest.raises(DamagedFileError, match=r"is the file of .*, under another name"):
        open_annotated(tmp_path)
