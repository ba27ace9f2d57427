"""The command `explain`: arguments to pages and their recipe, or to a corpus and a URL."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from c4pipe.clean.evaluator import RecipeEvaluator
from c4pipe.clean.resources import RuleResources
from c4pipe.cli.console import printer
from c4pipe.cli.explain_view import capture_json, capture_view, page_json, page_view
from c4pipe.errors import UsageError
from c4pipe.explain.captures import CorpusExplainer
from c4pipe.explain.page_input import STANDARD_INPUT, find_pages
from c4pipe.filters.language import check_detector
from c4pipe.io.object_store import SCHEMES
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.recipes import recipe_lists
from c4pipe.recipes.pinned_lists import lists_dir
from c4pipe.recipes.presets import find_recipe
from c4pipe.wet.inputs import ENDINGS

if TYPE_CHECKING:
    from rich.console import RenderableType

Explained = tuple[dict[str, Any], "RenderableType"]
"""A page as JSON values, and as it is shown on the terminal."""


def explain(options: argparse.Namespace, languages: Sequence[str]) -> None:
    """Prints why pages are kept or dropped. Raises UsageError for what can't be explained."""
    corpus = _corpus(options.input)
    explained = list(_of_corpus(options, corpus) if corpus else _of_pages(options, languages))
    console = printer(sys.stdout)
    for number, (values, view) in enumerate(explained):
        if options.json:
            print(json.dumps(values))
            continue
        if number:
            console.print()
        console.print(view)


def _corpus(text: str) -> StoragePath | None:
    """Returns the folder that is meant, or None for a text or a WET file."""
    on_the_web = "://" in text and not text.startswith(SCHEMES)
    if text == STANDARD_INPUT or text.endswith(ENDINGS) or on_the_web:
        return None
    folder = storage_path(text)
    return folder if folder.is_dir() else None


def _of_corpus(options: argparse.Namespace, folder: StoragePath) -> Iterator[Explained]:
    for name in ("recipe", "languages", "lists", "links"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name}: the corpus {folder} was made by a recipe and lists of its own; leave it out")
    if options.url is None:
        raise UsageError(f"{folder} is a folder: say with --url which page of the corpus you mean")
    for verdict in CorpusExplainer(folder, options.work or ()).explain(options.url):
        yield capture_json(verdict), capture_view(verdict)


def _of_pages(options: argparse.Namespace, languages: Sequence[str]) -> Iterator[Explained]:
    if options.work:
        raise UsageError(f"--work {options.work[0]}: {options.input} is no corpus, which alone has work folders")
    recipe = find_recipe(options.recipe or "c4")
    if languages:
        recipe = recipe.with_languages(languages)
    check_detector(recipe.parameters("language").get("detector", ""))
    pages = find_pages(options.input, options.url, recipe.page_keys[0])
    lists = recipe_lists.gather(recipe, lists_dir(options.lists), options.links or ())
    evaluator = RecipeEvaluator(recipe, RuleResources(recipe, lists))
    for page in pages:
        verdict = evaluator.explain_page(page)
        yield page_json(verdict), page_view(verdict)
