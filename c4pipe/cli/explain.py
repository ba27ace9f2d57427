"""The command `explain`: why a page is in a corpus, or would be, or not."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from c4pipe.cli import arguments
from c4pipe.cli.console import printer
from c4pipe.cli.job_options import languages
from c4pipe.cli.parser import Command, Parser
from c4pipe.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from c4pipe.io.paths import StoragePath

Explained = tuple[dict[str, Any], "RenderableType"]
"""A page as JSON values, and as it is shown on the terminal."""


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="the text of a page in a file (- for standard input), a WET or WARC file, or the folder of a corpus",
    )
    parser.add_argument("--url", metavar="URL", help="URL of the page; needed for a WET or WARC file and for a corpus")
    parser.add_argument(
        "--work",
        action="append",
        type=arguments.path_or_url,
        metavar="DIR",
        help="work folder of the corpus; can be repeated (default: INPUT/_work)",
    )
    arguments.add_input_kind(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, one page on each line, without shortening")
    arguments.add_recipe(parser, default=None)  # a corpus has its own


def run(options: argparse.Namespace) -> None:
    """Prints why pages are kept or dropped. Raises UsageError for an input that can't be explained."""
    corpus = _corpus(options.input)
    explained = list(_of_corpus(options, corpus) if corpus else _of_pages(options))
    console = printer(sys.stdout)
    for number, (values, view) in enumerate(explained):
        if options.json:
            print(json.dumps(values))
            continue
        if number:
            console.print()
        console.print(view)


def _corpus(text: str) -> "StoragePath | None":
    """Returns the folder that the input names, or None for a text or a WET file."""
    from c4pipe.inspect.page_input import STANDARD_INPUT
    from c4pipe.io.object_store import SCHEMES
    from c4pipe.io.paths import storage_path
    from c4pipe.wet.inputs import WARC_ENDINGS, WET_ENDINGS

    on_the_web = "://" in text and not text.startswith(SCHEMES)
    if text == STANDARD_INPUT or text.endswith(WET_ENDINGS + WARC_ENDINGS) or on_the_web:
        return None
    folder = storage_path(text)
    return folder if folder.is_dir() else None


def _of_corpus(options: argparse.Namespace, folder: "StoragePath") -> Iterator[Explained]:
    from c4pipe.cli.explain_view import capture_json, capture_view
    from c4pipe.inspect.explain import CorpusExplainer

    for name in ("recipe", "languages", "lists", "links", "language_model"):
        if getattr(options, name) is not None:
            option = name.replace("_", "-")
            raise UsageError(f"--{option}: the corpus {folder} has a recipe and lists of its own; leave the option out")
    if options.input_kind != "wet" or options.extract is not None:
        raise UsageError(f"--from and --extract: the corpus {folder} knows how its text was made; leave them out")
    if options.url is None:
        raise UsageError(f"{folder} is a folder: name a page of the corpus with --url")
    for verdict in CorpusExplainer(folder, options.work or ()).explain(options.url):
        yield capture_json(verdict), capture_view(verdict)


def _of_pages(options: argparse.Namespace) -> Iterator[Explained]:
    from c4pipe.clean.evaluator import RecipeEvaluator
    from c4pipe.clean.resources import RuleResources
    from c4pipe.cli.explain_view import page_json, page_view
    from c4pipe.inspect.page_input import find_pages
    from c4pipe.jobs.options import CRAWL_KINDS, check_input_kind
    from c4pipe.recipes import recipe_lists
    from c4pipe.recipes.choose import choose_recipe
    from c4pipe.recipes.pinned_lists import lists_dir
    from c4pipe.wet.html_text import choose_extraction

    if options.work:
        raise UsageError(f"--work {options.work[0]}: {options.input} is no corpus, and only a corpus has work folders")
    recipe = choose_recipe(options.recipe or "c4", languages(options), options.language_model)
    check_input_kind(options.input_kind, CRAWL_KINDS)
    extraction = choose_extraction(options.input_kind, options.extract)
    pages = find_pages(options.input, options.url, recipe.page_keys[0], extraction)
    lists = recipe_lists.gather_lists(recipe, lists_dir(options.lists), options.links or (), options.language_model)
    evaluator = RecipeEvaluator(recipe, RuleResources(recipe, lists))
    for page in pages:
        verdict = evaluator.explain_page(page)
        yield page_json(verdict), page_view(verdict)


COMMAND = Command(
    "explain",
    "show why a page is kept or dropped: the verdict of every rule",
    add_arguments,
    run,
    examples=("c4pipe explain page.txt", "c4pipe explain corpus --url https://example.com/"),
)
