"""The command `lists`: the bad-words and domain lists that recipes use."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from c4pipe.cli.job_options import languages
from c4pipe.cli.parser import Command, Parser
from c4pipe.display import format_count, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from c4pipe.recipes import pinned_lists


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "action", choices=("fetch", "show"), help="fetch: download the pinned lists; show: print which are downloaded"
    )
    parser.add_argument("--lists", type=Path, metavar="DIR", help="folder of the lists (default: the user's cache)")
    parser.add_argument(
        "--recipe", metavar="NAME", help="only the lists that this recipe needs (default: the lists of all recipes)"
    )
    parser.add_argument(
        "--languages",
        metavar="CODE,...",
        help="only the lists of these languages, for --recipe or c4 (default: the languages of the recipe)",
    )
    parser.add_argument(
        "--source", metavar="URL", help="a mirror to download from (default: https://raw.githubusercontent.com)"
    )


def run(options: argparse.Namespace) -> None:
    """Downloads the lists, or prints which are downloaded."""
    from c4pipe.recipes import pinned_lists

    wanted = _wanted(options)
    folder = options.lists or pinned_lists.cache_dir()
    if options.action == "fetch":
        source = options.source or pinned_lists.SOURCE
        count = pinned_lists.fetch(folder, source, lambda line: print(visible(line), file=sys.stderr), wanted)
        present = len(wanted) - count
        print(visible(f"{format_count(count, 'list')} downloaded, {present} already present: {folder}"))
        return
    print(visible(str(folder)))
    for pinned, status in pinned_lists.show(folder, wanted):
        print(f"  {status:13}  {pinned.path:42}  {pinned.commit[:8]}  {pinned.sha256[:12]}")


def _wanted(options: argparse.Namespace) -> "Sequence[pinned_lists.PinnedList]":
    """Returns the lists that `--recipe` and `--languages` name, or all."""
    from c4pipe.recipes import choose_recipe, pinned_lists, recipe_lists

    if options.recipe is None and options.languages is None:
        return pinned_lists.PINNED
    return recipe_lists.needed_lists(choose_recipe(options.recipe or "c4", languages(options)))


COMMAND = Command(
    "lists",
    "download the bad-words and domain lists, or show them",
    add_arguments,
    run,
    examples=("c4pipe lists fetch --recipe c4",),
)
