"""The lists of C4's filters: bad words of each language, and the RealNews domains.

The bad words are LDNOOBW's "List of Dirty, Naughty, Obscene, and Otherwise Bad Words" (CC-BY-4.0); as in C4, English
is from another commit than the other languages. Dolma's English is from the commit of the others. The domains are
Grover's (Apache-2.0). `pinned_lists.tsv` pins them by commit and SHA-256, so all runs have the same. c4pipe ships no
list: `fetch` downloads them into a folder.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c4pipe.errors import C4pipeError, UsageError, hide_secrets
from c4pipe.io.atomic import make_folder, write_bytes
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.json_files import parse_json
from c4pipe.io.paths import MOST_BYTES, check_inner, open_file
from c4pipe.io.text import read_text
from c4pipe.io.words import error_reason

SOURCE = "https://raw.githubusercontent.com"
REALNEWS = "realnews/domain_to_allowed_subdomains.json"

_HOW_TO_GET = "run `c4pipe lists fetch`, or name a folder that has it with `--lists DIR` (in Python `lists=DIR`)"
_NETWORK = NetworkOptions(tries=3, file_seconds=120, file_bytes=1 << 24, stall_seconds=30, first_pause=0.5)


@dataclass(frozen=True)
class PinnedList:
    """One list: its path in a lists folder, its path on the host, its commit, and the SHA-256 of its bytes in hex."""

    path: str
    url: str
    commit: str
    sha256: str


DOLMA_ENGLISH = "en@5faf2ba4"
"""Dolma's English list as a language of `load_bad_words`."""

_ROWS = [line.split("\t") for line in Path(__file__).with_suffix(".tsv").read_text("ascii").splitlines()]
_PINNED = {key: PinnedList(*values) for key, *values in _ROWS}
PINNED = tuple(_PINNED.values())
_BAD_WORDS = {language: pinned for language, pinned in _PINNED.items() if pinned.path != REALNEWS}


def cache_dir() -> Path:
    """Returns `$XDG_CACHE_HOME/c4pipe/lists`, or `~/.cache/c4pipe/lists`. Raises UsageError without a home folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # the XDG specification ignores relative paths, and the empty one
        try:
            cache = Path.home() / ".cache"
        except RuntimeError:
            raise UsageError("No home folder for the lists: set HOME, or use `--lists DIR`.") from None
    return cache / "c4pipe" / "lists"


def lists_dir(override: Path | None) -> Path:
    """Returns `override`, or `cache_dir()` if that is None. Raises UsageError if `override` is no folder."""
    if override is None:
        return cache_dir()
    if not override.is_dir():
        problem = "is not a folder" if override.exists() else "does not exist"
        raise UsageError(
            f"The lists folder {override} {problem}: give `--lists DIR` a folder that holds the lists, "
            "or run `c4pipe lists fetch` and leave `--lists` out."
        )
    return override


def status_of_lists(directory: Path, lists: Sequence[PinnedList] = PINNED) -> list[tuple[PinnedList, str]]:
    """Returns some pinned lists, each with its status in a folder: "ok", "missing" or "other content"."""
    return [(pinned, _status(directory / pinned.path, pinned.sha256)) for pinned in lists]


def _status(path: Path, sha256: str) -> str:
    try:
        with open_file(path) as file:
            return "ok" if hashlib.sha256(file.read()).hexdigest() == sha256 else "other content"
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError:  # a folder in its place, or unreadable
        return "other content"


def fetch(
    target: Path,
    source: str = SOURCE,
    report: Callable[[str], None] = lambda line: None,
    lists: Sequence[PinnedList] = PINNED,
) -> int:
    """Downloads the pinned lists that a folder lacks, or has with other content; returns their number.

    A file gets its name only if its SHA-256 is right. After a failure, the downloaded lists stay.

    Args:
        target: the folder.
        source: the address of the host, or of a mirror.
        report: is called with a line for each list and each retry.
        lists: the wanted lists.

    Raises UsageError if `source` is no address or a folder in `target` is a link, C4pipeError if a list can't be
    downloaded or written.
    """
    wanted = [pinned for pinned, status in status_of_lists(target, lists) if status != "ok"]
    for number, pinned in enumerate(wanted, 1):
        check_inner(target, pinned.path.rpartition("/")[0])
        _write(target / pinned.path, _download(f"{source.rstrip('/')}/{pinned.url}", pinned.sha256, report))
        report(f"fetched {pinned.path} ({number} of {len(wanted)})")
    return len(wanted)


def _download(url: str, sha256: str, report: Callable[[str], None]) -> bytes:
    from c4pipe.io.http import server_of  # only a download needs these imports
    from c4pipe.io.streams import InputOpener

    try:
        server_of(url)
    except ValueError:
        raise UsageError(f"{url[:100]} is no address: give `--source` one like {SOURCE}.") from None
    try:
        data = InputOpener(_NETWORK, lambda wait: report(f"trying {hide_secrets(url)} again ({wait})")).read(url)
        if (got := hashlib.sha256(data).hexdigest()) == sha256:
            return data
        cause = f"SHA-256 of its {len(data):,} bytes is {got[:12]}…, pinned {sha256[:12]}…"
    except OSError as error:
        cause = error_reason(error).removeprefix(f"{hide_secrets(url)}: ")
    raise C4pipeError(
        f"Can't fetch {url} ({cause}): check the network, name a mirror with `--source URL`, "
        "or use a copy you have with `--lists DIR`."
    )


def _write(path: Path, data: bytes) -> None:
    try:
        make_folder(path.parent)
        write_bytes(path, data)
    except OSError as error:
        raise C4pipeError(f"Can't write {path} ({error.strerror}): make room or change the folder.") from error


def bad_words_file(language: str) -> str | None:
    """Returns the path, in a lists folder, of the bad words of a language such as "de", or None."""
    return _BAD_WORDS[language].path if language in _BAD_WORDS else None


def regional(language: str) -> list[str]:
    """Returns a language and its regions that have lists, such as "fr" and "fr-CA-u-sd-caqc"."""
    return [language, *(each for each in _BAD_WORDS if each.startswith(f"{language}-"))]


def load_domains(directory: Path) -> dict[str, list[str]]:
    """Returns the RealNews domains of a lists folder, each with its allowed subdomains (empty: all are allowed).

    Raises UsageError if the file is missing, or differs in form from Grover's.
    """
    path = directory / REALNEWS
    try:
        return _domains(parse_json(read_text(path, MOST_BYTES)))
    except (OSError, ValueError) as error:
        why = error_reason(error)
        raise UsageError(f"The list of news domains {path} can't be used ({why}): {_HOW_TO_GET}.") from None


def _domains(values: Any) -> dict[str, list[str]]:
    """Returns the allowed subdomains of each domain. Raises ValueError for values of another form."""
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object of domains")
    for domain, allowed in values.items():
        if allowed is not True and not (isinstance(allowed, list) and all(isinstance(each, str) for each in allowed)):
            raise ValueError(f"{domain[:100]!r} has neither true nor a list of subdomains")
        for name in (domain, *([] if allowed is True else allowed)):
            name.encode()  # raises for a lone surrogate, which JSON can have
    return {domain: [] if allowed is True else allowed for domain, allowed in values.items()}


def load_bad_words(directory: Path, language: str, lower: bool = True) -> tuple[str, ...]:
    """Returns the bad words of a language in a lists folder: stripped, lower-cased if `lower`, distinct, sorted.

    Empty for a language without a pinned list. The file may have other content than the pinned list: users can bring
    their own words. Raises UsageError if it is missing, can't be read, is not UTF-8 or has no word.
    """
    if (name := bad_words_file(language)) is None:
        return ()
    path = directory / name
    how_to_get = f"{_HOW_TO_GET}, or use a recipe without bad words, such as noblocklist."
    try:
        text = read_text(path, MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"The bad-words list for language {language!r} is not at {path}: {how_to_get}") from None
    except IsADirectoryError:
        why = "is a folder, not a file"
    except (OSError, ValueError) as error:
        why = f"can't be read ({error_reason(error)})"
    else:
        words = {line.strip().lower() if lower else line.strip() for line in text.split("\n")} - {""}
        if words:
            return tuple(sorted(words))
        why = "has no word in it"
    raise UsageError(f"The bad-words list {path} {why}: {how_to_get}")
