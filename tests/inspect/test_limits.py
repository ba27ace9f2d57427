"""Other limits of rules, by the columns of annotated files: what `clean` keeps with a recipe file of these limits."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from c4pipe.clean.annotated_folder import Annotate, write_manifest
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.work_file import read_header
from c4pipe.filters.lists import Lists
from c4pipe.filters.pinned_lists import load_bad_words
from c4pipe.inspect.limits import AnnotatedPages, Limit, open_annotated
from c4pipe.recipes.presets import RECIPES, find_recipe
from c4pipe.recipes.recipe import Recipe

NAMES = ["c4", "fineweb", "mc4", "datatrove-c4", "tfds"]


def lists(recipe: Recipe, folder: Path) -> Lists:
    return Lists(bad_words={"en": load_bad_words(folder / "lists", "en")})


def annotated(recipe: Recipe, lists: Lists, files: dict[str, bytes], folder: Path) -> AnnotatedPages:
    """The pages of WET files, annotated by a recipe."""
    annotate = Annotate(str(folder / "annotated"))
    cleaner = WetFileCleaner(recipe, lists, annotate=annotate)
    for name, data in files.items():
        cleaner.clean(io.BytesIO(data), name, folder / f"{name}.parquet")
    write_manifest(annotate, recipe, recipe.fingerprint(lists.digests), list(files), [])
    return open_annotated(folder / "annotated")


def cleaned_pages(recipe: Recipe, lists: Lists, files: dict[str, bytes], folder: Path) -> int:
    """The counter of pages that `clean` keeps."""
    cleaner, kept = WetFileCleaner(recipe, lists), 0
    for name, data in files.items():
        cleaner.clean(io.BytesIO(data), name, folder / "work.parquet")
        kept += read_header(folder / "work.parquet").counts.get("pages.cleaned", 0)
    return kept


def some_limits(pages: AnnotatedPages, limit: Limit) -> Iterator[float]:
    steps = pages.steps(limit)
    yield from {steps[place] for place in (0, len(steps) // 3, len(steps) // 2, len(steps) - 1)}


@pytest.mark.parametrize("name", NAMES)
def test_clean_keeps_what_the_columns_say(name: str, web_data: Path, tmp_path: Path) -> None:
    recipe = RECIPES[name]
    words, files = lists(recipe, web_data), {path.name: path.read_bytes() for path in (web_data / "wet").iterdir()}
    pages = annotated(recipe, words, files, tmp_path)
    assert pages.kept({}).pages == cleaned_pages(recipe, words, files, tmp_path)
    for limit in pages.limits:
        for value in some_limits(pages, limit):
            (tmp_path / "tuned.toml").write_text(pages.recipe_toml({limit.key: value}, tmp_path / "tuned.toml"))
            tuned = find_recipe(tmp_path / "tuned.toml")
            assert pages.kept({limit.key: value}).pages == cleaned_pages(tuned, words, files, tmp_path), (limit, value)
