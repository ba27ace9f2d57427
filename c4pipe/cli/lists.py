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
from c4pipe.io.words import format_count, format_size, visible
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
        str | None, Option("only the files of this recipe", "NAME", otherwise="the lists of c4 and its kin")
    ] = None
    languages: Annotated[
        Sequence[str],
        Option(
            "only the lists of these languages, for --recipe or c4", "CODE,...", otherwise="the languages of the recipe"
        ),
    ] = ()
    classifier: Annotated[Sequence[str], Option("only these classifiers, such as dclm", "NAME,...")] = ()
    language_model: Annotated[Sequence[str], Option("only these language models, such as lid.176", "NAME,...")] = ()
    evaluation: Annotated[Sequence[str], Option("only these test sets, such as gsm8k", "NAME,...")] = ()
    source: Annotated[
        str | None, Option("a mirror of all hosts; for robots, a URL or folder of crawls", "URL", otherwise="the hosts")
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
        _fetch(options, wanted, folder)
        return
    print(visible(str(folder)))
    for pinned, status in pinned_lists.status_of_lists(folder, wanted):
        print(f"  {status:14} {pinned.path:42} {format_size(pinned.size):>7} {pinned.licence}")


def _fetch(options: ListsOptions, wanted: Sequence["pinned_lists.PinnedList"], folder: Path) -> None:
    """Downloads files, and says how to use them."""
    from c4pipe.lists.fetch_lists import fetch

    count = fetch(folder, options.source, lambda line: print(visible(line), file=sys.stderr), wanted)
    print(visible(f"{format_count(count, 'file')} downloaded, {len(wanted) - count} already present: {folder}"))
    uses = {
        "blocked": "a recipe file with rules on URLs takes them, such as on = ['blocked_domain']",
        "classifiers": "--score NAME=FILE, or model = 'FILE' in a recipe file",
        "language_models": "--language-model FILE",
        "evaluation": f"c4pipe overlap CORPUS --against {folder / 'evaluation'}/FILE, or the rule evaluation_overlap",
    }
    for kind, use in uses.items():
        if names := ", ".join(Path(pinned.path).name for pinned in wanted if pinned.kind == kind):
            print(textwrap.fill(visible(f"to use {names}: {use}"), 80, break_on_hyphens=False, break_long_words=False))


def _check_options(options: ListsOptions) -> None:
    """Raises UsageError for arguments of another action."""
    is_robots = options.action == "robots"
    if is_robots and not options.files:
        raise UsageError(
            "lists robots: no file is named: give robotstxt WARC files of a crawl (see c4pipe lists --help)"
        )
    if not is_robots and (options.files or options.agents):
        raise UsageError(f"lists {options.action} takes no files and no --agents: only lists robots reads WARC files")
    of_fetch = ("recipe", "languages", "classifier", "language_model", "evaluation")
    for name in {"robots": of_fetch, "show": ("source",)}.get(options.action, ()):
        if getattr(options, name) not in (None, ()):
            raise UsageError(f"lists {options.action} takes no --{name.replace('_', '-')}: leave it out")


def _list_robots(options: ListsOptions) -> None:
    from c4pipe.cli.progress import make_progress
    from c4pipe.inspect.robots import list_robots
    from c4pipe.lists import pinned_lists
    from c4pipe.wet.inputs import COMMON_CRAWL

    source = options.source or COMMON_CRAWL
    agents = comma_separated(options.agents or ("CCBot",))
    runner = RunnerOptions(workers=options.workers)
    folder = options.lists or pinned_lists.cache_dir()
    path, counts = list_robots(options.files, agents, folder, runner, make_progress(options), source)
    if options.quiet:
        return
    for name, count in sorted(counts.items()):
        print(f"  {name:28} {count:>15,}")
    print(visible(f"list: {path} ({format_count(path.stat().st_size, 'byte')})"))


def _choose_lists(options: ListsOptions) -> Sequence["pinned_lists.PinnedList"]:
    """Returns the files that the options name; without them, those of c4 and its kin to fetch, or all to show."""
    from c4pipe.lists import pinned_lists
    from c4pipe.recipes.choose import choose_recipe, needed_lists

    named = zip(pinned_lists.KINDS, (options.classifier, options.language_model, options.evaluation), strict=True)
    chosen = [each for kind, names in named for each in pinned_lists.find_pinned(kind, comma_separated(names))]
    if options.recipe is not None or options.languages:
        model = next(iter(options.language_model), None)  # with its labels as languages
        chosen += needed_lists(choose_recipe(options.recipe or "c4", comma_separated(options.languages), model))
    elif not chosen:
        return pinned_lists.PINNED if options.action == "fetch" else pinned_lists.PINNED_FILES
    return list(dict.fromkeys(chosen))


COMMAND = Command(
    ListsOptions,
    run,
    examples=(
        "c4pipe lists fetch --recipe c4",
        "c4pipe lists fetch --classifier dclm --language-model lid.176 --evaluation gsm8k,mmlu",
        "c4pipe lists robots robotstxt/*.warc.gz --agents CCBot,GPTBot --lists lists",
    ),
)
