"""Annotated pages say what `explain` says, rule by rule."""

import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from c4pipe.clean.annotated_folder import PAGE_FIELDS, Annotate, annotated_schema, read_annotated_header
from c4pipe.clean.annotator import AnnotatedRow, Annotator
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.trace import explain_page
from c4pipe.filters.language import Language
from c4pipe.filters.page_size import TooLong
from c4pipe.lists.lists import Lists
from c4pipe.lists.pinned_lists import load_bad_words
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.languages import LanguageDetector
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.web_data import by_data

NAMES = ["c4", "tfds", "mc4", "fineweb", "datatrove-c4"]


def lists(folder: Path) -> Lists:
    return Lists(bad_words={"en": load_bad_words(folder / "lists", "en")})


def some_pages(folder: Path, most: int = 12) -> Iterator[Page]:
    """The first pages of each WET file: annotated pages meet all rules, which takes long in some recipes."""
    for path in sorted((folder / "wet").iterdir()):
        pages = (each for each in read_pages(io.BytesIO(path.read_bytes())) if isinstance(each, Page))
        yield from (page for _, page in zip(range(most), pages, strict=False))


def annotated_row(annotator: Annotator, page: Page) -> AnnotatedRow:
    verdict, _ = annotator.clean(page)
    return annotator.end(verdict)


@pytest.mark.parametrize("name", NAMES)
def test_each_column_says_what_explain_says(name: str, web_data: Path) -> None:
    recipe = RECIPES[name]
    evaluator = RecipeEvaluator(recipe, lists(web_data))
    annotator, schema = Annotator(evaluator), annotated_schema(recipe, 0)
    fired: Counter[str] = Counter()
    for page in some_pages(web_data):
        verdict, _ = annotator.clean(page)
        left = dict(verdict.lines)
        assert verdict == evaluator.clean(page)[0]
        row = annotator.end(verdict)
        assert verdict.lines == left  # the counts up to the rule that drops the page
        explained = explain_page(evaluator, page)
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
    evaluator = RecipeEvaluator(recipe, lists(web_data))
    annotator = Annotator(evaluator)
    signs = {"at_least": -1, "min_sentences": -1, "at_most": 1}
    limits = {
        rule.name: (value, signs[parameter])
        for _, rule in recipe.rules()
        for parameter, value in rule.parameters.items()
        if parameter in signs
    }
    if too_long := recipe.find(TooLong):
        limits[TooLong.name] = too_long.max_characters, 1
    fired = 0
    for page in some_pages(web_data, most=8):
        row = annotated_row(annotator, page)
        for rule, (limit, sign) in limits.items():
            beyond = sign * (row[f"{rule}_number"] - limit) > 0
            assert row[f"{rule}_fired"] == beyond, (page.url, rule)
            fired += beyond
        if row["language"]:
            assert row["language_fired"] == (row["language"] != "en" or row["language_probability"] < least(recipe))
    assert len(limits) >= 3
    assert fired > 5


def least(recipe: Recipe) -> float:
    return recipe.need(Language).min_probability


def test_a_page_that_is_too_long_has_no_values_behind_the_rule_that_drops_it(tmp_path: Path) -> None:
    recipe = RECIPES["c4"]
    evaluator = RecipeEvaluator(recipe, Lists(bad_words={"en": ("gronkle",)}))
    annotator = Annotator(evaluator)
    page = Page("https://a.example/", "2019-04-18T10:12:43Z", "A line of text that is long enough.\n" * 30_000)
    row = annotated_row(annotator, page)
    assert (row["reason"], row["too_long_number"]) == ("too_long", 1_079_999)
    assert "lines_left" not in row
    assert "language_fired" not in row


def test_the_labels_are_those_of_the_detector() -> None:
    recipe = RECIPES["noblocklist"]
    evaluator = RecipeEvaluator(recipe, Lists())
    annotator = Annotator(evaluator, labels=2)
    text = "The boats came in early this morning.\nLes bateaux sont rentrés tôt ce matin, avec du poisson frais.\n"
    page = Page("https://a.example/", "2019-04-18T10:12:43Z", text)
    row = annotated_row(annotator, page)
    cleaned = "The boats came in early this morning.\nLes bateaux sont rentrés tôt ce matin, avec du poisson frais."
    labels = LanguageDetector().labels(cleaned, 2)
    assert [(each["language"], each["probability"]) for each in row["language_labels"]] == labels
    assert (row["language"], row["language_probability"]) == labels[0]
    assert LanguageDetector().labels("123 456", 2) == []


# Files


def test_the_file_has_all_pages_as_they_were_crawled(web_data: Path, tmp_path: Path) -> None:
    cleaner = WetFileCleaner(RECIPES["c4"], lists(web_data), annotate=Annotate(str(tmp_path / "annotated")))
    for path in sorted((web_data / "wet").iterdir()):
        cleaner.clean(io.BytesIO(path.read_bytes()), path.name, tmp_path / f"{path.name}.parquet")
        file = tmp_path / "annotated" / f"{path.name}.parquet"
        names = [field.name for field in PAGE_FIELDS][:4]
        pages = [each for each in read_pages(io.BytesIO(path.read_bytes())) if isinstance(each, Page)]
        rows = [tuple(row.values()) for row in pq.read_table(file, columns=names).to_pylist()]
        assert rows == [(page.url, page.timestamp, page.body, page.size) for page in pages]
        header = read_annotated_header(file)
        assert (header.source, header.rows) == (path.name, len(pages))
        assert pq.read_schema(file).remove_metadata() == annotated_schema(RECIPES["c4"], 0)
