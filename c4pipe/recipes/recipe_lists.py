"""The lists and the model that a recipe filters with: from the user's files to the work folder, from there to job 2.

`clean` writes the lists that it used to its work folder, named by their digests. The recipe's fingerprint covers the
digests. So job 2 needs no other files, and can't be given other lists.
"""

import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters import domains
from c4pipe.filters.language import two_letter_code
from c4pipe.filters.urls import normalise_url, url_key
from c4pipe.io.atomic import AtomicFile, make_folder
from c4pipe.io.paths import StoragePath
from c4pipe.io.words import error_reason
from c4pipe.recipes import blocked_lists, evaluation_lists, pinned_lists
from c4pipe.recipes.hashed_lists import U64, first_listed, has_key, lines_of, no_keys, sorted_keys
from c4pipe.recipes.language_model import LanguageModel, find_model
from c4pipe.recipes.recipe import Recipe

LISTS_FOLDER = "lists"
"""The folder, inside a work folder, of the lists that were used."""

_HASHED = ("links", "blocked_domains", "blocked_urls", "opt_outs", "robots")  # stored as numbers, not as JSON
_ENDINGS = {**dict.fromkeys(_HASHED, "npy"), "language_model": "bin"}


@dataclass(frozen=True)
class Lists:
    """The lists of one recipe. A list that no rule of the recipe uses is empty.

    Attributes:
        bad_words: the listed words of each language, by the first part of its code.
        bad_tokens: the listed words and phrases of the rule `bad_token`.
        domains: the allowed subdomains of each listed domain; empty if all are allowed.
        links: the keys of the listed URLs, sorted. Eight bytes each: 20 million links take 160 MB.
        blocked_domains, blocked_urls: the keys of the blocked domains and host names, and of the blocked URLs, sorted.
        public_suffixes: the rules of the list of public suffixes.
        url_words: the words of the rules about words in URLs, by the name of the list.
        opt_outs: the keys of the entries of the list of opt-outs, sorted.
        robots: the rules of robots.txt files (see `robots_list`).
        evaluation_examples: the words of the examples of `evaluation_overlap`.
        language_model: the fastText model that detects the language, or None.
    """

    bad_words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    bad_tokens: Sequence[str] = ()
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    links: U64 = field(default_factory=no_keys)
    blocked_domains: U64 = field(default_factory=no_keys)
    blocked_urls: U64 = field(default_factory=no_keys)
    public_suffixes: Sequence[str] = ()
    url_words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    opt_outs: U64 = field(default_factory=no_keys)
    robots: U64 = field(default_factory=no_keys)
    evaluation_examples: Sequence[str] = ()
    language_model: LanguageModel | None = None

    @cached_property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of each list that is not empty, by name."""
        values: dict[str, bytes] = {
            "bad_words": _json(self.bad_words) if any(self.bad_words.values()) else b"",
            "bad_tokens": _json(self.bad_tokens) if self.bad_tokens else b"",
            "domains": _json(self.domains) if self.domains else b"",
            "public_suffixes": _json(self.public_suffixes) if self.public_suffixes else b"",
            "url_words": _json(self.url_words) if self.url_words else b"",
            "evaluation_examples": _json(self.evaluation_examples) if self.evaluation_examples else b"",
        }
        digests = {name: hashlib.sha256(value).hexdigest() for name, value in values.items() if value}
        for name in _HASHED:
            if len(keys := getattr(self, name)):
                digests[name] = hashlib.sha256(keys).hexdigest()
        return digests | ({"language_model": self.language_model.digest} if self.language_model else {})

    def has_domain(self, normalised_url: str, any_case: bool) -> bool:
        """Tells whether the domain of a URL is listed; with `any_case`, also where it is written in capitals."""
        return domains.is_listed(normalised_url, self.domains, any_case)

    def has_link(self, key: int) -> bool:
        """Tells whether the URL of that key is listed."""
        return self.has("links", key)

    def has(self, name: str, key: int) -> bool:
        """Tells whether a list that is stored as keys, such as `blocked_urls`, has a key."""
        return has_key(getattr(self, name), key)

    def first_opt_out(self, keys: Sequence[int]) -> int | None:
        """Returns the place of the first of some keys that the list of opt-outs has; None where it has none."""
        return first_listed(self.opt_outs, keys)

    def save(self, folder: StoragePath) -> None:
        """Writes the lists into a folder, named by their digests. A list that is there unchanged is not written again.

        Raises C4pipeError if one can't be written.
        """
        make_folder(folder)
        for name, digest in self.digests.items():
            path = _path(folder, name, digest)
            if path.exists() and _is_intact(folder, name, digest):
                continue
            target = AtomicFile(path)
            try:
                self._write(name, target.path)
                target.publish()
            except OSError as error:
                if not isinstance(path, Path):
                    why = error_reason(error)
                    raise C4pipeError(f"{why}: is the work folder one that you can write to?") from error
                raise C4pipeError(f"{path} can't be written ({error.strerror}): make room or change --work") from error
            finally:
                target.discard()

    def _write(self, name: str, path: Path) -> None:
        """Writes a list, or the model, into a new file."""
        if name == "language_model":
            assert self.language_model
            self.language_model.copy(path)
            return
        with path.open("xb") as file:
            if name in _HASHED:
                np.save(file, getattr(self, name))
            else:
                file.write(_json(getattr(self, name)))


LIST_NAMES = tuple(each.name for each in fields(Lists))
"""The names of all lists."""


def load_lists(folder: StoragePath, digests: Mapping[str, str]) -> Lists:
    """Returns the saved lists of these digests. Keys on this machine are memory-mapped: all workers share them.

    Raises UsageError if one is missing, can't be read, or was changed.
    """
    values: dict[str, Any] = {}
    for name, digest in digests.items():
        path = _path(folder, name, digest)
        try:
            values[name] = _load(path, name, digest)
        except (OSError, ValueError, EOFError) as error:
            raise UsageError(
                f"the list {path}, which c4pipe clean wrote, can't be read ({error_reason(error)}): "
                "run clean again with that work folder, it writes only what is missing or damaged"
            ) from error
    return Lists(**values)


def _load(path: StoragePath, name: str, digest: str) -> Any:
    """Returns the values of a saved list. Raises OSError, or ValueError where its content has another digest."""
    data: Any
    if name == "language_model":
        model = LanguageModel(str(path), digest)
        model.check()
        return model
    if name in _HASHED:
        data = np.load(path, mmap_mode="r") if isinstance(path, Path) else np.load(io.BytesIO(path.read_bytes()))
        if data.dtype != np.uint64:
            raise ValueError("it holds other numbers")
        values = data
    else:
        data = path.read_bytes()
        values = json.loads(data)
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("its content was changed")
    return values


def _is_intact(folder: StoragePath, name: str, digest: str) -> bool:
    try:
        _load(_path(folder, name, digest), name, digest)
    except (ValueError, EOFError):
        return False
    return True


def find_lists(folders: Sequence[StoragePath], digests: Mapping[str, str]) -> Lists:
    """Returns the lists of these digests from the first work folder that has all of them. Raises as `load`."""
    complete = (
        each / LISTS_FOLDER
        for each in folders
        if all(_path(each / LISTS_FOLDER, *item).exists() for item in digests.items())
    )
    return load_lists(next(complete, folders[0] / LISTS_FOLDER), digests)


def _path(folder: StoragePath, name: str, digest: str) -> StoragePath:
    return folder / f"{name}.{digest[:16]}.{_ENDINGS.get(name, 'json')}"


def _json(values: Any) -> bytes:
    return json.dumps(values, ensure_ascii=False, sort_keys=True).encode()


def gather_lists(
    recipe: Recipe, folder: Path, links: Sequence[Path], language_model: str | os.PathLike[str] | None = None
) -> Lists:
    """Returns the lists that a recipe needs.

    Args:
        recipe: the recipe.
        folder: the folder of the pinned lists, and of the user's lists of blocked URLs and evaluation examples.
        links: files of URLs, one a line; those that end in `.gz` are unpacked.
        language_model: the file of a fastText model, for a recipe whose detector is `fasttext`.

    Raises UsageError if a list or model is needed and missing or can't be used, or if links are given to a recipe that
    does not use them.
    """
    by_model = recipe.parameters("language").get("detector") == "fasttext"
    if by_model and language_model is None:
        raise UsageError(
            f"recipe {recipe.name} detects the language by a fastText model: give its file with --language-model FILE"
        )
    if recipe.find("url_not_listed") and not links:
        raise UsageError(f"recipe {recipe.name} keeps the pages of a list of links: give it with --links FILE")
    if links and not recipe.find("url_not_listed"):
        raise UsageError(
            f"--links {links[0]}: recipe {recipe.name} has no rule that uses a list of links: "
            "leave it out, or name another recipe"
        )
    model = find_model(language_model, recipe) if by_model and language_model is not None else None
    return Lists(
        bad_words=_bad_words(recipe, folder),
        bad_tokens=pinned_lists.load_bad_words(folder, pinned_lists.DOLMA_ENGLISH) if recipe.find("bad_token") else (),
        domains=pinned_lists.load_domains(folder) if recipe.find("domain_not_listed") else {},
        links=_links(links, recipe.parameters("normalised_url")["scheme"]) if links else no_keys(),
        language_model=model,
        evaluation_examples=evaluation_lists.load_examples(recipe, folder),
        **blocked_lists.load_blocked(recipe, folder),
    )


def needed_lists(recipe: Recipe) -> tuple[pinned_lists.PinnedList, ...]:
    """Returns the pinned lists that a recipe needs."""
    paths = {pinned_lists.bad_words_file(name) for names in _list_names(recipe).values() for name in names}
    if recipe.find("bad_token"):
        paths.add(pinned_lists.bad_words_file(pinned_lists.DOLMA_ENGLISH))
    if recipe.find("domain_not_listed"):
        paths.add(pinned_lists.REALNEWS)
    return tuple(each for each in pinned_lists.PINNED if each.path in paths)


def _list_names(recipe: Recipe) -> dict[str, list[str]]:
    """Returns the names of bad-words lists by language; of a language that has none, its own name."""
    asked = recipe.parameters("bad_words")
    if not asked:
        return {}
    # langdetect knows zh-cn and zh-tw; the lists know zh
    languages = sorted({two_letter_code(each).partition("-")[0] for each in recipe.languages})
    return {each: pinned_lists.regional(each) if asked["regional_lists"] else [each] for each in languages}


def _bad_words(recipe: Recipe, folder: Path) -> dict[str, tuple[str, ...]]:
    asked, lists = recipe.parameters("bad_words"), _list_names(recipe)
    if not lists:
        return {}
    exempt = {entry.partition(":")[::2] for entry in asked["exempt"]}
    bad_words = {}
    for language, names in lists.items():
        words = {
            word for name in names for word in pinned_lists.load_bad_words(folder, name, lower=not asked["keep_case"])
        }
        bad_words[language] = tuple(sorted(word for word in words if (language, word) not in exempt))
    return bad_words


def _links(paths: Sequence[Path], scheme: str) -> U64:
    links = sorted_keys(url_key(normalise_url(url, scheme)) for url in _urls(paths))
    if not len(links):
        raise UsageError(f"--links {paths[0]} holds no URL: one a line is expected")
    return links


def _urls(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        try:
            yield from lines_of(path)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(
                f"--links {path} can't be read: {error_reason(error)}; give a text file with one URL a line"
            ) from error
