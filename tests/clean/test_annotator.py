"""Annotated pages say what `explain` says, rule by rule; and what is known from them holds for other recipes."""

import dataclasses
import io
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.clean import known_facts
from c4pipe.clean.annotated_file import annotated_rows, read_annotated_header
from c4pipe.clean.annotated_folder import Annotate
from c4pipe.clean.annotation_columns import PAGE_FIELDS, annotated_schema
from c4pipe.clean.annotator import Annotator
from c4pipe.clean.evaluator import RecipeEvaluator
from c4pipe.clean.examples import EXAMPLES_PER_FILE
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.resources import RuleResources
from c4pipe.filters.language import LanguageDetector
from c4pipe.recipes.pinned_lists import load_bad_words
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.web_data import by_data
from tests.helpers.wet import wet_bytes

NAMES = ["c4", "tfds", "mc4", "fineweb", "datatrove-c4"]


def lists(folder: Path) -> Lists:
    return Lists(bad_words={"en": load_bad_words(folder / "lists", "en")})


def some_pages(folder: Path, most: int = 12) -> Iterator[Page]:
    """The first pages of each WET file: annotated pages meet all rules, which takes long in some recipes."""
    for path in sorted((folder / "wet").iterdir()):
        pages = (each for each in read_pages(io.BytesIO(path.read_bytes())) if isinstance(each, Page))
        yield from (page for _, page in zip(range(most), pages, strict=False))


@pytest.mark.parametrize("name", NAMES)
def test_each_column_says_what_explain_says(name: str, web_data: Path) -> None:
    recipe = RECIPES[name]
    evaluator = RecipeEvaluator(recipe, RuleResources(recipe, lists(web_data)))
    annotator, schema = Annotator(evaluator), annotated_schema(recipe, 0)
    fired: Counter[str] = Counter()
    for page in some_pages(web_data):
        verdict, facts = evaluator.clean(page, annotator.begin())
        left, kept = dict(verdict.lines), evaluator.clean(page)
        assert verdict == kept[0]
        row = annotator.end(page, verdict, facts)
        assert verdict.lines == left  # the counts up to the rule that drops the page
        explained = evaluator.explain_page(page)
        assert row["reason"] == explained.reason
        assert row["lines_left"] == len([line for line in explained.lines if line.left is not None])
        for each in explained.rules:
            if each.dropped is not None:
                expected = any(other.dropped for other in explained.rules if other.rule == each.rule)
                assert row[f"{each.rule}_fired"] == expected, (page.url, each)
                fired[each.rule] += expected
                number = row.get(f"{each.rule}_number")
                says = re.match(r"it has|([\d,]+) (characters?|sentences?|lines? of|words?)", each.fact)
                if number is not None and says and says[1] and "or more" not in each.fact:
                    assert number == int(says[1].replace(",", "")), each
        dropped = Counter(line.rule for line in explained.lines if line.rule)
        edited = Counter(rule for line in explained.lines for rule in line.edits)
        for column, value in row.items():
            if column.endswith("_lines"):
                rule = column.removesuffix("_lines")
                assert value == dropped[rule] + edited[rule], (page.url, column)
        assert row.keys() <= set(schema.names)
        assert {field.name for field in schema} - row.keys() <= {"language", "language_probability"}
    assert len(fired) > 4
    assert sum(fired.values()) > by_data(web_data, shipped=10, real=40)


@pytest.mark.parametrize("name", ["gopher", "fineweb", "c4"])
def test_a_number_and_its_limit_decide(name: str, web_data: Path) -> None:
    """A threshold can be chosen from a column: the rule drops a page where the number is on the wrong side."""
    recipe = RECIPES[name]
    evaluator = RecipeEvaluator(recipe, RuleResources(recipe, lists(web_data)))
    annotator = Annotator(evaluator)
    limits = {
        each.rule: (column, each.parameters[column], sign)
        for _, each in recipe.steps()
        for column, sign in (("at_least", -1), ("min_sentences", -1), ("at_most", 1), ("max_characters", 1))
        if column in each.parameters and each.definition.scope == "page" and column not in each.definition.elsewhere
    }
    fired = 0
    for page in some_pages(web_data, most=8):
        row = annotator.end(page, *evaluator.clean(page, annotator.begin()))
        for rule, (_, limit, sign) in limits.items():
            beyond = sign * (row[f"{rule}_number"] - limit) > 0
            assert row[f"{rule}_fired"] == beyond, (page.url, rule)
            fired += beyond
        if row["language"]:
            assert row["language_fired"] == (row["language"] != "en" or row["language_probability"] < least(recipe))
    assert len(limits) >= 3
    assert fired > 5


def least(recipe: Recipe) -> float:
    probability: float = recipe.parameters("language")["min_probability"]
    return probability


def test_a_page_that_is_too_long_has_no_values_behind_the_rule_that_drops_it(tmp_path: Path) -> None:
    recipe = RECIPES["c4"]
    evaluator = RecipeEvaluator(recipe, RuleResources(recipe, Lists(bad_words={"en": ("gronkle",)})))
    annotator = Annotator(evaluator)
    page = Page("https://a.example/", "2019-04-18T10:12:43Z", "A line of text that is long enough.\n" * 30_000)
    row = annotator.end(page, *evaluator.clean(page, annotator.begin()))
    assert (row["reason"], row["too_long_number"]) == ("too_long", 1_079_999)
    assert "lines_left" not in row
    assert "language_fired" not in row


def test_the_labels_are_those_of_the_detector() -> None:
    recipe = RECIPES["noblocklist"]
    evaluator = RecipeEvaluator(recipe, RuleResources(recipe, Lists()))
    annotator = Annotator(evaluator, labels=2)
    text = "The boats came in early this morning.\nLes bateaux sont rentrés tôt ce matin, avec du poisson frais.\n"
    page = Page("https://a.example/", "2019-04-18T10:12:43Z", text)
    row = annotator.end(page, *evaluator.clean(page, annotator.begin()))
    cleaned = "The boats came in early this morning.\nLes bateaux sont rentrés tôt ce matin, avec du poisson frais."
    labels = LanguageDetector().labels(cleaned, 2)
    assert [(each["language"], each["probability"]) for each in row["language_labels"]] == labels
    assert (row["language"], row["language_probability"]) == labels[0]
    assert LanguageDetector().labels("123 456", 2) == []


# Files


@cache
def annotated(folder: Path, name: str, target: Path) -> None:
    """Annotates the WET files of a folder by a recipe."""
    cleaner = WetFileCleaner(RECIPES[name], lists(folder), annotate=Annotate(str(target / f"annotated-{name}")))
    (target / name).mkdir(parents=True)
    for path in sorted((folder / "wet").iterdir()):
        cleaner.clean(io.BytesIO(path.read_bytes()), path.name, target / name / f"{path.name}.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("annotated")


def small_crawl(target: Path) -> Path:
    """The first pages of the project's own WET files, as a folder of the form of tests/data."""
    shipped = Path(__file__).resolve().parents[1] / "data"
    (target / "wet").mkdir()
    (target / "lists").symlink_to(shipped / "lists")
    (target / "wet" / "some.warc.wet.gz").write_bytes(wet_bytes(some_pages(shipped, most=15)))
    return target


def test_the_file_has_all_pages_as_they_were_crawled(web_data: Path, tmp_path: Path) -> None:
    annotated(web_data, "c4", tmp_path)
    for path in sorted((web_data / "wet").iterdir()):
        file = tmp_path / "annotated-c4" / f"{path.name}.parquet"
        names = [field.name for field in PAGE_FIELDS][:4]
        pages = [each for each in read_pages(io.BytesIO(path.read_bytes())) if isinstance(each, Page)]
        rows = [tuple(row.values()) for row in annotated_rows(file, names)]
        assert rows == [(page.url, page.timestamp, page.body, page.size) for page in pages]
        header = read_annotated_header(file)
        assert (header.source, header.source_bytes, header.rows) == (path.name, path.stat().st_size, len(pages))
        assert pq.read_schema(file).remove_metadata() == annotated_schema(RECIPES["c4"], 0)


LIMITS = {"at_least": st.floats(0, 100), "at_most": st.floats(0, 1), "min_sentences": st.integers(0, 9)}


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """A recipe with some limits changed and some rules left out."""
    recipe = RECIPES[draw(st.sampled_from(["fineweb", "gopher", "datatrove-c4", "c4", "tfds"]))]
    rules = [each for _, each in recipe.steps() if each.rule not in ("body_lines", "normalised_url", "language")]
    for each in draw(st.lists(st.sampled_from(rules), max_size=6, unique_by=lambda one: one.rule)):
        changes = {name: draw(LIMITS[name]) for name in each.parameters if name in LIMITS}
        if changes:
            recipe = recipe.change(each.rule, **changes)
        elif each.definition.scope != "corpus":
            recipe = recipe.without(each.rule)
    if draw(st.booleans()):
        recipe = recipe.change("language", min_probability=draw(st.floats(0, 1)), languages=("en", "de"))
    if draw(st.booleans()):
        recipe = recipe.change("few_words", min_words_per_line=7) if recipe.find("few_words") else recipe
    return recipe


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_crawl(tmp_path_factory.mktemp("crawl"))


@pytest.mark.slow
@settings(max_examples=12)
@given(source=st.sampled_from(["fineweb", "gopher", "c4"]), recipe=recipes())
def test_any_recipe_makes_the_same_work_file_of_annotated_pages(
    source: str, recipe: Recipe, crawl: Path, folder: Path
) -> None:
    annotated(crawl, source, folder)
    (path,) = (crawl / "wet").iterdir()
    cleaner, targets = WetFileCleaner(recipe, lists(crawl)), [folder / "direct.parquet", folder / "from.parquet"]
    cleaner.clean(io.BytesIO(path.read_bytes()), path.name, targets[0])
    cleaner.clean_annotated(folder / f"annotated-{source}" / f"{path.name}.parquet", targets[1])
    assert targets[1].read_bytes() == targets[0].read_bytes()


def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Counts from now on how often a language is guessed."""
    calls = {"guess": 0}
    guess = LanguageDetector.guess

    def count(self: LanguageDetector, text: str) -> Any:
        calls["guess"] += 1
        return guess(self, text)

    monkeypatch.setattr(LanguageDetector, "guess", count)
    return calls


def test_what_is_known_is_not_found_out_again(crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    annotated(crawl, "fineweb", tmp_path)
    header = read_annotated_header(next((tmp_path / "annotated-fineweb").iterdir()))
    known = known_facts.KnownFacts(RECIPES["gopher"], {}, header)
    numbers = [each for each in known.columns if each.endswith("_number")]
    assert len(numbers) == len([1 for _, each in RECIPES["gopher"].steps() if each.definition.measure])
    assert {"language", "language_probability", "language_fired"} <= set(known.columns)
    calls = counted(monkeypatch)
    path = next((tmp_path / "annotated-fineweb").iterdir())
    changed = RECIPES["unfiltered"].change("body_lines", line_separators="as crawled")
    WetFileCleaner(changed, lists(crawl)).clean_annotated(path, tmp_path / "a.parquet")
    assert calls["guess"] == EXAMPLES_PER_FILE  # of pages that `language` drops, which are explained
    WetFileCleaner(RECIPES["unfiltered"], lists(crawl)).clean_annotated(path, tmp_path / "b.parquet")
    assert calls["guess"] > 20 + EXAMPLES_PER_FILE  # other lines, another text


def test_what_is_not_the_same_is_found_out_again(crawl: Path, tmp_path: Path) -> None:
    annotated(crawl, "fineweb", tmp_path)
    header = read_annotated_header(next((tmp_path / "annotated-fineweb").iterdir()))
    recipe = RECIPES["fineweb"]

    def columns(changed: Recipe, **values: Any) -> set[str]:
        return set(known_facts.KnownFacts(changed, {}, dataclasses.replace(header, **values)).columns)

    everything = columns(recipe)
    behind_lines = {"few_sentences_number", "few_punctuated_lines_number", "many_newlines_number"}
    assert behind_lines <= everything
    assert columns(recipe, c4pipe="0.0.1") == set()
    assert columns(recipe.change("few_words", min_words_per_line=4)).isdisjoint(behind_lines)
    assert columns(recipe.change("few_page_words", at_least=3)) == everything
    assert columns(recipe.change("many_short_lines", max_characters=9)) == everything - {"many_short_lines_number"}
    model = {"language_model": "0" * 64}
    assert columns(recipe, lists=model) == {each for each in everything if not each.startswith("language")}
    assert columns(RECIPES["mc4"]) == set()
