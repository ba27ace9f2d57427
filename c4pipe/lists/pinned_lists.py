"""Files that can be fetched: lists of bad words, domains and URLs, models, and test sets.

The bad words are LDNOOBW's "List of Dirty, Naughty, Obscene, and Otherwise Bad Words" (CC-BY-4.0); as in C4, English
is from another commit than the other languages. Dolma's English is from the commit of the others. The domains are
Grover's (Apache-2.0). `pinned_lists.tsv` pins all files, so all runs have the same. c4pipe ships none of them: `fetch`
(`fetch_lists`) downloads them into a folder.

Digests and sizes are those of the bytes in the repositories on GitHub (LDNOOBW, Grover, datatrove, the list of public
suffixes, GSM8K, HumanEval); of TensorFlow Datasets' url_checksums (HellaSwag); of the pointers of large files in
commits of the Hub (lid.176, GlotLID, fineweb-edu-fasttext, ARC-Easy); and of public programs that check a download of
the same address by them (dclm, OpenLID-v3, ARC-Challenge, MMLU).
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from c4pipe.errors import UsageError
from c4pipe.io.json_files import parse_json
from c4pipe.io.paths import MOST_BYTES, open_file, read_file, sha256_of
from c4pipe.io.text import read_text
from c4pipe.io.words import error_reason, suggestion
from c4pipe.lists.lists import BLOCKED_FOLDER, blocked_files

REALNEWS = "realnews/domain_to_allowed_subdomains.json"
KINDS = {"classifiers": "--classifier", "language_models": "--language-model", "evaluation": "--evaluation"}
"""The folders of the files that are fetched by their names, and the option of each."""

WANTED = ("missing", "other content")
"""The statuses of files that `fetch` downloads."""

OWN = "own file"
"""The status of a file in whose place is one of the user's own."""

_WARNINGS = {"-NC": ", which forbids commercial use", "unknown": ": read the terms on the page of its publisher"}
_HOW_TO_GET = "run `c4pipe lists fetch`, or name a folder that has it with `--lists DIR` (in Python `lists=DIR`)"


class PinnedList(NamedTuple):
    """A list, a model or a test set that can be fetched.

    Attributes:
        name: its name; of a list of bad words, the language.
        path: its path in a lists folder.
        host, url: the host, and the path there, which a mirror has, too.
        commit: the commit that the address has; "" for an address without one.
        sha256: the SHA-256 of the download, in hex. "" if none was found in public: then that of the first download
            is recorded beside the file, and later ones are compared with it.
        size: the bytes of the download; those that end in e9 in the table are rounded.
        licence: as SPDX writes it.
        form: how the file is made of the download (`fetch_lists`); "" if it is the download itself.
        users: the rules that need it and the recipes whose authors used it, with commas between them.
    """

    name: str
    path: str
    host: str
    url: str
    commit: str
    sha256: str
    size: int
    licence: str
    form: str
    users: str

    @property
    def kind(self) -> str:
        """The folder of the file, such as `classifiers`."""
        return self.path.partition("/")[0]

    @property
    def has_record(self) -> bool:
        """Whether a file beside it has its digest, as no digest of the file itself is pinned."""
        return bool(self.form) or not self.sha256

    @property
    def warning(self) -> str:
        """The end of a sentence about a licence that forbids something or is not known, else ""."""
        return "".join(words for part, words in _WARNINGS.items() if part in self.licence)

    def record(self, folder: Path) -> Path:
        """Returns the path of the digests of a file that has no pinned digest itself: of the file and its download."""
        path = folder / self.path
        return path.with_name(f".{path.name}.sha256")

    def recorded(self, folder: Path) -> tuple[str, str]:
        """Returns the recorded digests of the file and of its download; "" for both without a record."""
        try:
            lines = read_file(self.record(folder)).decode().splitlines()
            return lines[0].partition(" ")[0], lines[1].partition(" ")[0]
        except (OSError, ValueError, IndexError):
            return "", ""


DOLMA_ENGLISH = "en@5faf2ba4"
"""Dolma's English list as a language of `load_bad_words`."""


def _parse_row(line: str) -> PinnedList:
    cells = ["" if cell == "-" else cell for cell in line.split("\t")]
    name, path, host, url, commit, sha256, size, licence, form, users = cells
    return PinnedList(name, path, host, url, commit, sha256, int(float(size)), licence, form, users)


_ROWS = Path(__file__).with_suffix(".tsv").read_text("ascii").splitlines()[1:]
PINNED_FILES = tuple(map(_parse_row, _ROWS))
_BAD_WORDS = {pinned.name: pinned for pinned in PINNED_FILES if pinned.kind == "ldnoobw"}
PINNED = tuple(pinned for pinned in PINNED_FILES if pinned.name in _BAD_WORDS or pinned.path == REALNEWS)
"""The lists that preset recipes use."""


def find_pinned(kind: str, names: Iterable[str]) -> list[PinnedList]:
    """Returns the files of these names in a folder of KINDS. Raises UsageError for an unknown name."""
    known = {pinned.name: pinned for pinned in PINNED_FILES if pinned.kind == kind}
    for name in names:
        if name not in known:
            raise UsageError(f"{KINDS[kind]} {name}: give one of {', '.join(known)}{suggestion(name, known)}")
    return [known[name] for name in dict.fromkeys(names)]


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
    """Returns some pinned files, each with its status in a folder.

    "ok"; "first download" for a file without a pinned digest; "missing" or "other content", which `fetch` downloads;
    "own file" if the user has put another file there, or another list of blocked URLs beside it, which stays. Lists of
    bad words and of domains (PINNED) are replaced.
    """
    return [(pinned, _status(directory, pinned)) for pinned in lists]


def _status(folder: Path, pinned: PinnedList) -> str:
    try:
        with open_file(folder / pinned.path) as file:
            digest = sha256_of(file)
    except (FileNotFoundError, NotADirectoryError):
        return OWN if pinned.kind == BLOCKED_FOLDER and blocked_files(folder, PurePath(pinned.path).stem) else "missing"
    except OSError:  # a folder in its place, or unreadable
        return "other content"
    recorded = pinned.recorded(folder)
    made, download = recorded if pinned.has_record else (digest, digest)
    if digest != made or download != (pinned.sha256 or download):
        return OWN if pinned not in PINNED and not any(recorded) else "other content"
    return "ok" if pinned.sha256 else "first download"


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
