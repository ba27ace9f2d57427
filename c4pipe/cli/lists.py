"""The command `lists`: the lists that recipes use."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from c4pipe.cli import arguments
from c4pipe.cli.job_options import languages
from c4pipe.cli.parser import Command, Parser
from c4pipe.errors import UsageError
from c4pipe.io.words import format_count, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from c4pipe.filters import pinned_lists


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "action",
        choices=("fetch", "show", "robots"),
        help="fetch: download the pinned lists; show: print which are downloaded; "
        "robots: make the list of the rule robots_refused from WARC files of robots.txt",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="for robots: crawls, or their robotstxt WARC files: URLs, paths, globs, @FILE with one of these a line",
    )
    parser.add_argument(
        "--agents",
        metavar="NAME,...",
        help="for robots: the crawlers whose rules count, such as CCBot,GPTBot (default: CCBot)",
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
    arguments.add_workers(parser)


def run(options: argparse.Namespace) -> None:
    """Downloads the lists, prints which are downloaded, or makes the list of robots.txt files."""
    from c4pipe.filters import pinned_lists

    _check(options)
    if options.action == "robots":
        _list_robots(options)
        return
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


def _check(options: argparse.Namespace) -> None:
    """Raises UsageError for arguments that another action takes."""
    is_robots = options.action == "robots"
    if is_robots and not options.files:
        raise UsageError(
            "lists robots: no file is named: give robotstxt WARC files of a crawl (see c4pipe lists --help)"
        )
    if not is_robots and (options.files or options.agents):
        raise UsageError(f"lists {options.action} takes no files and no --agents: only lists robots reads WARC files")
    others = {"--recipe": options.recipe, "--languages": options.languages, "--source": options.source}
    for name, value in others.items():
        if is_robots and value is not None:
            raise UsageError(f"lists robots takes no {name}: leave it out")


def _list_robots(options: argparse.Namespace) -> None:
    from c4pipe.cli.progress import make_progress
    from c4pipe.filters import pinned_lists
    from c4pipe.inspect.robots import list_robots
    from c4pipe.runners.runner_options import RunnerOptions

    agents = [each.strip() for each in (options.agents or "CCBot").split(",")]
    runner = RunnerOptions(workers=options.workers)
    folder = options.lists or pinned_lists.cache_dir()
    summary = list_robots(options.files, agents, folder, runner, make_progress(options))
    if options.quiet:
        return
    for name, count in sorted(summary.counts.items()):
        print(f"  {name:28} {count:>15,}")
    print(visible(f"list: {summary.path} ({format_count(summary.path.stat().st_size, 'byte')})"))


def _wanted(options: argparse.Namespace) -> "Sequence[pinned_lists.PinnedList]":
    """Returns the lists that `--recipe` and `--languages` name, or all."""
    from c4pipe.filters import pinned_lists
    from c4pipe.recipes.choose import choose_recipe, needed_lists

    if options.recipe is None and options.languages is None:
        return pinned_lists.PINNED
    return needed_lists(choose_recipe(options.recipe or "c4", languages(options)))


COMMAND = Command(
    "lists",
    "download the bad-words and domain lists, show them, or make that of robots.txt files",
    add_arguments,
    run,
    examples=(
        "c4pipe lists fetch --recipe c4",
        "c4pipe lists robots robotstxt/*.warc.gz --agents CCBot,GPTBot --lists lists",
    ),
)
