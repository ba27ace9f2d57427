"""Other limits of rules, by the columns of annotated files: what `clean` keeps with a recipe file of these limits."""

import io
from pathlib import Path

import numpy as np
import pytest

import c4pipe
from c4pipe.clean.annotated_folder import Annotate, list_annotated, open_annotated
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.work_file import read_header
from c4pipe.filters.rule import PageRule
from c4pipe.filters.rules import RULES
from c4pipe.inspect.limits import PageLimit, Tuner
from c4pipe.recipes.choose import ListedRecipe
from c4pipe.recipes.presets import RECIPES
from c4pipe.wet.columns import CRAWL_PROVENANCE
from tests.helpers.classifiers import small_classifier
from tests.helpers.crawls import LISTS, SAMPLES
from tests.helpers.web_data import SHIPPED

OTHER_RULES = """
base = "noblocklist"
on = ["soft_banned_url_words", "column_below", "many_removed_words", "few_long_lines", "damaged_characters"]
rules = [{ rule = "classifier_score", name = "quality" }]
[soft_banned_url_words]
min_words = 3
[column_below]
column = "record_length"
minimum = 700
[many_removed_words]
at_most = 0.5
[quality]
model = "quality.bin"
min_score = 0.001
max_score = 0.99999
"""
"""Rules that no recipe of c4pipe has, or that need a file."""

PRESETS = ["c4", "fineweb", "mc4", "datatrove-c4", "tfds"]
SMALL = 150_000  # bytes
LONG, TOGETHER = 10, 3  # of a recipe with more limits than that, so many are tightened at once


def annotated(listed: ListedRecipe, files: dict[str, bytes], folder: Path) -> Tuner:
    """The pages of WET files, annotated by a recipe."""
    annotate = Annotate(str(folder / "annotated"))
    cleaner = WetFileCleaner(listed.recipe, listed.lists, annotate=annotate)
    for name, data in files.items():
        cleaner.clean(io.BytesIO(data), name, folder / f"{name}.parquet")
    list_annotated(annotate, files)
    return Tuner(open_annotated(folder / "annotated"))


def cleaned_pages(listed: ListedRecipe, files: dict[str, bytes], folder: Path) -> int:
    """The counter of pages that `clean` keeps."""
    cleaner, kept = WetFileCleaner(listed.recipe, listed.lists), 0
    for name, data in files.items():
        cleaner.clean(io.BytesIO(data), name, folder / "work.parquet")
        kept += read_header(folder / "work.parquet").counts.get("pages.cleaned", 0)
    return kept


def tight(tuner: Tuner, limit: PageLimit) -> float:
    """The limit that drops about half of the pages that the recipe keeps."""
    kept = [tuner.kept({limit.key: value}) for value in tuner.steps(limit)]
    pages = [each.last if limit.last else each.pages for each in kept]
    return tuner.steps(limit)[int(np.abs(np.subtract(pages, max(pages) / 2)).argmin())]


def loose(tuner: Tuner, limit: PageLimit) -> float:
    """The limit that drops no page, or the fewest."""
    return max(tuner.steps(limit), key=lambda value: tuner.kept({limit.key: value}).pages)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PRESETS, "other rules"])
def test_clean_keeps_what_the_columns_say(
    name: str, largest_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [path for path in sorted((largest_data / "wet").iterdir()) if path.stat().st_size < SMALL]
    files = {path.name: path.read_bytes() for path in paths}
    monkeypatch.chdir(tmp_path)
    lists = largest_data / "lists"
    if name == "other rules":
        if largest_data == SHIPPED:
            pytest.skip("no page of tests/data passes all of these rules")
        name, lists = "other.toml", tmp_path
        Path("blocked").mkdir()
        Path("blocked/soft_banned_words").write_text("com\norg\nhttp\nwww\nexample\nhtml\n")
        small_classifier(tmp_path)
    Path("other.toml").write_text(OTHER_RULES)

    def with_provenance(recipe: str) -> ListedRecipe:
        listed = ListedRecipe.choose(recipe, lists=lists)
        return ListedRecipe(listed.recipe.with_columns(CRAWL_PROVENANCE), listed.lists)

    listed = with_provenance(name)
    tuner = annotated(listed, files, tmp_path)
    assert 0 < tuner.kept({}).pages == cleaned_pages(listed, files, tmp_path) < tuner.count
    limits = [limit for limit in tuner.limits if not limit.last]
    runs, told = -(-len(limits) // TOGETHER) if len(limits) > LONG else len(limits), 0
    tightened = [{limit.key: tight(tuner, limit) for limit in limits[run::runs]} for run in range(runs)]
    for changes in [{limit.key: loose(tuner, limit) for limit in tuner.limits}, *tightened]:
        Path("tuned.toml").write_text(tuner.recipe_toml(changes, Path("tuned.toml")))
        kept = cleaned_pages(with_provenance("tuned.toml"), files, tmp_path)
        assert tuner.kept(changes).pages == kept, changes
        told += kept != tuner.kept({}).pages
    assert told > len(tightened) * 0.6


def test_the_rules_with_limits_are_those_with_numbers(tmp_path: Path) -> None:
    """All of c4pipe's rules with a number have one, and each is in a recipe that the test above cleans with."""
    numeric = {rule.name for rule in RULES.values() if issubclass(rule, PageRule) and (rule.counts or rule.drops_if)}
    assert numeric == {rule.name for rule in RULES.values() if issubclass(rule, PageRule) and rule.drops_if}
    cleaned = {rule.name for name in PRESETS for _, rule in RECIPES[name].rules()}
    assert {name for name in numeric - cleaned if name not in OTHER_RULES} == set()


def test_build_keeps_what_the_columns_say(tmp_path: Path) -> None:
    crawl = [str(path) for path in SAMPLES]
    c4pipe.build_corpus(crawl, output=tmp_path / "first", annotate=tmp_path / "annotated", lists=LISTS)
    tuner = Tuner(open_annotated(tmp_path / "annotated"))
    changes = {"few_sentences.min_sentences": 5, "few_sentences_left.min_sentences": 5}
    tuned = tmp_path / "tuned.toml"
    tuned.write_text(tuner.recipe_toml(changes, tuned))
    counts = c4pipe.build_corpus(crawl, output=tmp_path / "second", recipe=tuned, lists=LISTS).counts
    by_dedup = [counts.get(f"pages.dropped.{rule}", 0) for rule in ("stale_capture", "few_sentences_left")]
    assert tuner.kept(changes).pages == counts["pages.kept"] + sum(by_dedup) < tuner.kept({}).pages
    assert sum(by_dedup) == 3
