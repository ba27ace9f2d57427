"""The command `lists`: the lists that recipes use."""

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.options import TerminalOptions
from c4pipe.cli.parser import Command
from c4pipe.errors import UsageError
from c4pipe.io.options import Option, comma_separated
from c4pipe.io.words import format_count, visible
from c4pipe.runners.runner_options import RunnerOptions, WorkerOptions

if TYPE_CHECKING:
    from c4pipe.lists import pinned_lists


@dataclass(frozen=True, kw_only=True)
class ListsOptions(TerminalOptions, WorkerOptions):
    """The options of the command."""

    action: Annotated[
        str,
        Option(
            "fetch: download the pinned lists; show: print which are downloaded; robots: make the list of the rule "
            "robots_refused from WARC files of robots.txt",
            positional=True,
            choices=("fetch", "show", "robots"),
        ),
    ]
    files: Annotated[
        Sequence[str],
        Option(
            "for robots: crawls, or their robotstxt WARC files: URLs, paths, globs, @FILE with one of these a line",
            "FILE",
            positional=True,
            nargs="*",
        ),
    ] = ()
    agents: Annotated[
        Sequence[str],
        Option("for robots: crawlers whose rules count, such as CCBot,GPTBot, or @ai", "NAME,...", otherwise="CCBot"),
    ] = ()
    lists: Annotated[Path | None, Option("folder of the lists", "DIR", otherwise="the user's cache", parse=Path)] = None
    recipe: Annotated[
        str | None, Option("only the lists that this recipe needs", "NAME", otherwise="the lists of all recipes")
    ] = None
    languages: Annotated[
        Sequence[str],
        Option(
            "only the lists of these languages, for --recipe or c4", "CODE,...", otherwise="the languages of the recipe"
        ),
    ] = ()
    source: Annotated[
        str | None,
        Option(
            "a mirror to download from; for robots, a URL or folder of crawls", "URL", otherwise="the public servers"
        ),
    ] = None


def run(options: ListsOptions) -> None:
    """Downloads the lists, prints their status, or makes the list of robots.txt files."""
    from c4pipe.lists import pinned_lists

    _check_options(options)
    if options.action == "robots":
        _list_robots(options)
        return
    wanted = _choose_lists(options)
    folder = options.lists or pinned_lists.cache_dir()
    if options.action == "fetch":
        source = options.source or pinned_lists.SOURCE
        count = pinned_lists.fetch(folder, source, lambda line: print(visible(line), file=sys.stderr), wanted)
        print(visible(f"{format_count(count, 'list')} downloaded, {len(wanted) - count} already present: {folder}"))
        return
    print(visible(str(folder)))
    for pinned, status in pinned_lists.status_of_lists(folder, wanted):
        print(f"  {status:13}  {pinned.path:42}  {pinned.commit[:8]}  {pinned.sha256[:12]}")


def _check_options(options: ListsOptions) -> None:
    """Raises UsageError for arguments of another action."""
    is_robots = options.action == "robots"
    if is_robots and not options.files:
        raise UsageError(
            "lists robots: no file is named: give robotstxt WARC files of a crawl (see c4pipe lists --help)"
        )
    if not is_robots and (options.files or options.agents):
        raise UsageError(f"lists {options.action} takes no files and no --agents: only lists robots reads WARC files")
    others = {"--recipe": options.recipe, "--languages": options.languages}
    for name, value in others.items():
        if is_robots and value not in (None, ()):
            raise UsageError(f"lists robots takes no {name}: leave it out")


def _list_robots(options: ListsOptions) -> None:
    from c4pipe.cli.progress import make_progress
    from c4pipe.inspect.robots import list_robots
    from c4pipe.lists import pinned_lists
    from c4pipe.lists.robots import AGENT_SETS

    agents = comma_separated(options.agents or ("CCBot",))
    runner = RunnerOptions(workers=options.workers)
    folder = options.lists or pinned_lists.cache_dir()
    path, counts = list_robots(options.files, agents, folder, runner, make_progress(options), options.source)
    if options.quiet:
        return
    for name in AGENT_SETS.keys() & {*agents}:
        source, named = AGENT_SETS[name]
        print(
            textwrap.fill(f"{name}: {len(named)} crawlers of {source}: {', '.join(named)}", 80, break_on_hyphens=False)
        )
    for name, count in sorted(counts.items()):
        print(f"  {name:28} {count:>15,}")
    print(visible(f"list: {path} ({format_count(path.stat().st_size, 'byte')})"))


def _choose_lists(options: ListsOptions) -> Sequence["pinned_lists.PinnedList"]:
    """Returns the lists of `--recipe` and `--languages`; by default all lists."""
    from c4pipe.lists import pinned_lists
    from c4pipe.recipes.choose import choose_recipe, needed_lists

    if options.recipe is None and not options.languages:
        return pinned_lists.PINNED
    return needed_lists(choose_recipe(options.recipe or "c4", comma_separated(options.languages)))


COMMAND = Command(
    ListsOptions,
    run,
    examples=(
        "c4pipe lists fetch --recipe c4",
        "c4pipe lists robots robotstxt/*.warc.gz --agents CCBot,GPTBot --lists lists",
    ),
)
