"""The lists of the URL rules: the user's own, in the folder `blocked` of the lists folder. c4pipe ships none.

A list is a file, or several: `blocked/domains`, or `blocked/adult/domains` beside `blocked/gambling/domains`, as the
blacklists of the university of Toulouse (UT1) are laid out. A name can end in `.txt`, `.gz` or `.txt.gz`.
"""

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.opt_outs import opt_out_entry
from c4pipe.filters.public_suffixes import suffix_rules
from c4pipe.filters.url_words import word_form
from c4pipe.filters.urls import url_key
from c4pipe.io.words import error_reason
from c4pipe.recipes.hashed_lists import U64, lines_of, sorted_keys
from c4pipe.recipes.pinned_lists import read_file
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.robots_list import RobotsList, read_robots_list

FOLDER = "blocked"
"""The folder of the lists, in a lists folder."""

PUBLIC_SUFFIXES = "public_suffix_list.dat"
"""The file, in the folder of the lists, by which registered domains are found."""

_KEYED = {"blocked_domain": "domains", "blocked_url": "urls"}
_WORD_FILES = {
    "banned_url_word": "banned_words",
    "soft_banned_url_words": "soft_banned_words",
    "banned_url_subword": "banned_subwords",
}
OPT_OUTS, ROBOTS = "opt_outs", "robots.npy"
"""The lists of opt-outs in the folder: the user's own, and the one that `c4pipe lists robots` writes."""

URL_RULES = (*_KEYED, *_WORD_FILES)
"""The rules of URLs that have a list in the folder."""

OPT_OUT_RULES = ("opted_out", "robots_refused")
"""The rules of opt-outs, which have one, too."""

_ENDS = ("", ".txt", ".gz", ".txt.gz")
_UNREADABLE = (OSError, EOFError, zlib.error)


def load_blocked(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Returns the lists of the URL rules that a recipe has, by their names in `recipe_lists.Lists`.

    Args:
        recipe: the recipe.
        folder: the lists folder.

    Raises UsageError if a list is missing, can't be read or has no entry.
    """
    lists: dict[str, Any] = {}
    for rule, name in _KEYED.items():
        if recipe.find(rule):
            lists[f"blocked_{name}"] = sorted_keys(map(url_key, _entries(_needs(recipe, rule), folder, name)))
    if recipe.find("blocked_domain"):
        lists["public_suffixes"] = _public_suffixes(recipe, folder)
    words = {
        name: sorted({word for entry in _entries(_needs(recipe, rule), folder, name) if (word := word_form(entry))})
        for rule, name in _WORD_FILES.items()
        if recipe.find(rule)
    }
    for rule, name in _WORD_FILES.items():
        if words.get(name) == []:
            raise UsageError(
                f"{_needs(recipe, rule)}: no entry of {name} in {folder / FOLDER} has an ASCII letter or digit"
            )
    if recipe.find("opted_out"):
        lists["opt_outs"] = load_opt_outs(folder, _needs(recipe, "opted_out"))
    if refused := recipe.find("robots_refused"):
        agents = refused.parameters["agents"]
        if not agents:
            raise UsageError(
                f"recipe {recipe.name}: robots_refused has no agents: name one, such as CCBot, or leave it out"
            )
        lists["robots"] = load_robots(folder, _needs(recipe, "robots_refused"), agents)
    return {**lists, **({"url_words": words} if words else {})}


def load_opt_outs(folder: Path, needs: str) -> U64:
    """Returns the keys of the entries of the list of opt-outs, sorted.

    Args:
        folder: the lists folder.
        needs: what needs the list, the first words of a message.

    Raises UsageError if it is missing or has an entry that can't be used.
    """

    def keys() -> Iterator[int]:
        for line in _entries(needs, folder, OPT_OUTS):
            try:
                yield url_key(opt_out_entry(line))
            except ValueError as error:
                raise UsageError(
                    f"the entry {line[:200]!a} of {folder / FOLDER / OPT_OUTS} can't be used: {error}; "
                    "write a host, such as example.com, or a host with a path, such as example.com/blog"
                ) from None

    return sorted_keys(keys())


def load_robots(folder: Path, needs: str, agents: Sequence[str] = ()) -> U64:
    """Returns the list of robots.txt files, mapped into memory.

    Args:
        folder: the lists folder.
        needs: what needs the list, the first words of a message.
        agents: the crawlers that it must have.

    Raises UsageError if it is missing, can't be used, or was made without one of these crawlers.
    """
    path = folder / FOLDER / ROBOTS
    make = f"`c4pipe lists robots FILE... --agents {','.join(agents) or 'CCBot'} --lists {folder}`"
    try:
        words = read_robots_list(path)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{needs}: {path} can't be used ({error_reason(error)}); make it with {make}") from None
    known = RobotsList(words).agents
    for agent in agents:
        if agent.lower() not in known:
            raise UsageError(
                f"{path} was made without the crawler {agent}, for {', '.join(known)}: make it with {make}"
            )
    return words


def _needs(recipe: Recipe, rule: str) -> str:
    return f"recipe {recipe.name} has the rule {rule}, which needs a list of yours"


def _entries(needs: str, folder: Path, name: str) -> Iterator[str]:
    """Yields the entries of a list: one a line, without blank lines and comments."""
    blocked = folder / FOLDER
    files = _files(blocked, name)
    if not files:
        raise UsageError(
            f"{needs}: put a file {name}, one entry a line, into {blocked} or a folder in it, "
            "name another lists folder with --lists DIR, or leave out the rule"
        )
    empty = True
    for path in files:
        try:
            for line in lines_of(path):
                if not line.startswith("#"):
                    empty = False
                    yield line
        except _UNREADABLE as error:
            raise UsageError(
                f"the list {path} can't be read: {error_reason(error)}; give a text file with one entry a line"
            ) from error
    if empty:
        raise UsageError(f"{needs}: {files[0]} has no entry; one a line is expected")


def _files(blocked: Path, name: str) -> list[Path]:
    """Returns the files of a list."""
    paths = [path for end in _ENDS for path in (blocked / f"{name}{end}", *sorted(blocked.glob(f"*/{name}{end}")))]
    return [path for path in paths if path.exists()]


def has_opt_outs(folder: Path) -> bool:
    """Tells whether a lists folder has a list of opt-outs."""
    return bool(_files(folder / FOLDER, OPT_OUTS))


def _public_suffixes(recipe: Recipe, folder: Path) -> list[str]:
    path = folder / FOLDER / PUBLIC_SUFFIXES
    how_to_get = "download https://publicsuffix.org/list/public_suffix_list.dat to that place"
    try:
        rules = suffix_rules(read_file(path).decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"recipe {recipe.name} has the rule blocked_domain, which needs the list of public suffixes {path} "
            f"({error_reason(error)}): {how_to_get}"
        ) from None
    if not rules:
        raise UsageError(f"the list of public suffixes {path} has no suffix: {how_to_get}")
    return sorted(set(rules))
