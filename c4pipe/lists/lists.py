"""The lists and the models that a recipe filters with: from the user's files to the work folder, from there to job 2.

`clean` writes its lists to the work folder, named by their digests, which the recipe's fingerprint covers. So job 2
needs no other files, and can't be given other lists.
"""

import contextlib
import hashlib
import io
import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.atomic import AtomicFile, make_folder
from c4pipe.io.file_kinds import with_packings
from c4pipe.io.json_files import parse_json
from c4pipe.io.paths import StoragePath, check_regular, read_file
from c4pipe.io.text import entries, lines_of
from c4pipe.io.words import error_reason, short, visible
from c4pipe.text.classifier import ClassifierModel
from c4pipe.text.hashes import U64, normalise_url, url_key
from c4pipe.text.language_model import LanguageModel
from c4pipe.text.model_path import ModelPath

_URL = re.compile(r"""(?i)https?://\S+|[^\s/?#"'<>{}()\[\],;=]+\.[^\s/?#"'<>{}()\[\],;=]+([/?#]\S*)?""")
_MOST_BYTES = 1 << 32  # of a saved list: half a billion URLs


def no_keys() -> U64:
    """Returns the hashes of an empty list."""
    return np.empty(0, dtype=np.uint64)


def has_key(keys: U64, key: int) -> bool:
    """Tells whether a hash is among sorted hashes."""
    return find_key(keys, key) is not None


def find_key(keys: U64, key: int) -> int | None:
    """Returns the place of a hash among sorted hashes, or None."""
    place = int(np.searchsorted(keys, np.uint64(key)))
    return place if place < len(keys) and int(keys[place]) == key else None


def first_listed(keys: U64, wanted: Sequence[int]) -> int | None:
    """Returns the index of the first wanted hash among sorted hashes, or None."""
    listed = np.flatnonzero(_places(keys, wanted)[1]) if len(keys) else no_keys()
    return int(listed[0]) if len(listed) else None


def listed_places(keys: U64, wanted: Sequence[int]) -> npt.NDArray[np.intp]:
    """Returns the places, among sorted hashes, of those wanted hashes that are there."""
    places, listed = _places(keys, wanted)
    return places[listed]


def _places(keys: U64, wanted: Sequence[int]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    values = np.array(wanted, dtype=np.uint64)  # searched together: 16 take little longer than one
    places = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return places, keys[places] == values


def sorted_keys(keys: Iterable[int]) -> U64:
    """Returns hashes sorted, each once."""
    collected = array("Q", keys)
    if not collected:
        return no_keys()
    values = np.frombuffer(collected, dtype=np.uint64)  # sorted in place: np.unique takes several times the memory
    values.sort()
    return values[np.r_[True, values[1:] != values[:-1]]]


LISTS_FOLDER = "lists"
"""The folder of the used lists in a work folder."""

BLOCKED_FOLDER = "blocked"
"""The folder of the user's blocked URLs and opt-outs in a lists folder."""

_ENDS = with_packings("", ".txt")
_IN_JSON = ("bad_words", "bad_tokens", "domains", "public_suffixes", "url_words", "evaluation_examples", "classifiers")
_HASHED = ("links", "blocked_domains", "blocked_urls", "opt_outs", "robots")  # stored as numbers, not as JSON
_MODELS: Mapping[str, type[ModelPath]] = {"language_model": LanguageModel, "classifier": ClassifierModel}
_ENDINGS = {**dict.fromkeys(_HASHED, "npy"), **dict.fromkeys(_MODELS, "bin")}


@dataclass(frozen=True)
class Lists:
    """The lists of one recipe. A list that no rule uses is empty.

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
        classifiers: the model of each rule `classifier_score`, by the rule's name.
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
    classifiers: Mapping[str, ClassifierModel] = field(default_factory=dict)

    @cached_property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of each list that is not empty, by name."""
        contents = {name: self._json(name) for name in _IN_JSON} | {name: getattr(self, name) for name in _HASHED}
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items() if len(content)}
        return digests | ({"language_model": self.language_model.digest} if self.language_model else {})

    def _json(self, name: str) -> bytes:
        """Returns a list as JSON; b"" if it is empty."""
        value = self._classifier_digests if name == "classifiers" else getattr(self, name)
        is_filled = any(value.values()) if name == "bad_words" else value
        return json.dumps(value, ensure_ascii=False, sort_keys=True).encode() if is_filled else b""

    @property
    def _classifier_digests(self) -> dict[str, str]:
        return {name: model.digest for name, model in self.classifiers.items()}

    def save(self, folder: StoragePath) -> None:
        """Writes the lists into a folder, named by their digests, unless they exist unchanged. Raises C4pipeError."""
        make_folder(folder)
        models = dict.fromkeys(self._classifier_digests.values(), "classifier")
        for digest, name in (*models.items(), *((digest, name) for name, digest in self.digests.items())):
            path = _path(folder, name, digest)
            with contextlib.suppress(FileNotFoundError, ValueError, EOFError):
                _load(path, name, digest)
                continue
            target = AtomicFile(path)
            try:
                self._write(name, digest, target.path)
                target.publish()
            except OSError as error:
                if not isinstance(path, Path):
                    why = error_reason(error)
                    raise C4pipeError(f"{why}: is the work folder one that you can write to?") from error
                raise C4pipeError(f"{path} can't be written ({error.strerror}): make room or change --work") from error
            finally:
                target.discard()

    def _write(self, name: str, digest: str, path: Path) -> None:
        """Writes a list, or a model, into a new file."""
        if name in _MODELS:
            models = [*self.classifiers.values(), *filter(None, [self.language_model])]
            next(each for each in models if each.digest == digest).copy(path)
            return
        with path.open("xb") as file:
            if name in _HASHED:
                np.save(file, getattr(self, name))
            else:
                file.write(self._json(name))


LIST_NAMES = tuple(each.name for each in fields(Lists))
"""The names of all lists."""


def load_lists(folder: StoragePath, digests: Mapping[str, str]) -> Lists:
    """Returns the saved lists of these digests; keys on this machine are memory-mapped, so workers share them.

    Raises UsageError if a list is missing, can't be read, or was changed.
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
    """Returns the values of a saved list. Raises OSError, or ValueError if its content has another digest."""
    data: Any
    if name in _MODELS:
        model = _MODELS[name](str(path), digest)
        model.check()
        return model
    if name in _HASHED:
        if isinstance(path, Path):
            check_regular(path)
            data = np.load(path, mmap_mode="r")
        else:
            data = np.load(io.BytesIO(read_file(path, _MOST_BYTES)))
        if data.dtype != np.uint64:
            raise ValueError("it holds other numbers")
        values = data
    else:
        data = read_file(path, _MOST_BYTES)
        values = parse_json(data)
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("its content was changed")
    if name == "classifiers":
        return {each: _load_classifier(path.parent, digest) for each, digest in values.items()}
    return values


def _load_classifier(folder: StoragePath, digest: Any) -> Any:
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError("it holds no digest of a model")
    return _load(_path(folder, "classifier", digest), "classifier", digest)


def find_lists(folders: Sequence[StoragePath], digests: Mapping[str, str]) -> Lists:
    """Returns the lists of these digests from the first work folder that has all. Raises as `load_lists`."""
    complete = (
        each / LISTS_FOLDER
        for each in folders
        if all(_path(each / LISTS_FOLDER, *item).exists() for item in digests.items())
    )
    return load_lists(next(complete, folders[0] / LISTS_FOLDER), digests)


def _path(folder: StoragePath, name: str, digest: str) -> StoragePath:
    return folder / f"{name}.{digest[:16]}.{_ENDINGS.get(name, 'json')}"


@dataclass(frozen=True)
class ListFolder:
    """The user's folder of lists; the name of the recipe, for messages; its languages; the keys of the user's links."""

    path: Path
    recipe: str
    languages: Sequence[str] = ()
    links: U64 = field(default_factory=no_keys)

    def needed_by(self, rule: str) -> str:
        """Returns the start of a message: the recipe and the rule that need a list."""
        return f"recipe {self.recipe} has the rule {rule}, which needs a list of yours"

    def entries(self, rule: str, name: str, form: Callable[[str], str] = str) -> Iterator[str]:
        """Yields the `blocked_entries` of a list that a rule needs."""
        others = "run `c4pipe lists fetch --recipe fineweb` for datatrove's, "
        return blocked_entries(self.path, self.needed_by(rule), name, form, others)


def blocked_entries(folder: Path, needs: str, name: str, form: Callable[[str], str], others: str = "") -> Iterator[str]:
    """Yields the entries of a list in the folder `blocked`: one a line, without blank lines and comments.

    Each is in the form that `form` returns, which raises ValueError for an entry that can't be used.

    A list is one file or several: `blocked/domains`, or `blocked/adult/domains` and `blocked/gambling/domains`, as in
    the blacklists of the university of Toulouse (UT1). A name can end in `.txt`, and be that of a compressed file.

    Raises UsageError if the list is missing, can't be read or has no entry; `needs` is the start of the message, and
    `others` says how to get another list.
    """
    blocked, files = folder / BLOCKED_FOLDER, blocked_files(folder, name)
    if not files:
        raise UsageError(
            f"{needs}: {others}put a file {name}, one entry a line, into {blocked} or a folder in it, "
            "name another lists folder with --lists DIR, or leave out the rule"
        )
    empty = True
    for path in files:
        try:
            for number, line in enumerate(lines_of(path), 1):
                for entry in entries((line,)):
                    empty = False
                    try:
                        yield form(entry)
                    except ValueError as error:
                        raise bad_entry(str(path), number, entry, error) from None
        except (OSError, ValueError) as error:
            raise UsageError(
                f"the list {path} can't be read: {error_reason(error)}; give a text file with one entry a line"
            ) from error
    if empty:
        raise UsageError(f"{needs}: {files[0]} has no entry; one a line is expected")


def bad_entry(path: str, number: int, entry: str, error: ValueError) -> UsageError:
    """Returns the error for an entry of a list, in a line of this number, that can't be used."""
    return UsageError(f"{path}, line {number:,}: the entry {short(visible(entry), 60)!r} can't be used: {error}")


def blocked_files(folder: Path, name: str) -> list[Path]:
    """Returns the files of a list in the folder `blocked` of a lists folder."""
    blocked = folder / BLOCKED_FOLDER
    paths = [path for end in _ENDS for path in (blocked / f"{name}{end}", *sorted(blocked.glob(f"*/{name}{end}")))]
    return [path for path in paths if path.exists()]


def link_keys(paths: Sequence[Path], scheme: str) -> U64:
    """Returns the sorted keys of the URLs in some files, one a line. Raises UsageError if a file has no URL."""
    links = sorted_keys(url_key(normalise_url(url, scheme)) for url in _urls(paths))
    if not len(links):
        raise UsageError(f"--links {paths[0]} holds no URL: one a line is expected")
    return links


def _urls(paths: Iterable[Path]) -> Iterator[str]:
    """Yields the lines of lists of links. They have no comments: TensorFlow Datasets takes each line for a URL."""
    for path in paths:
        first, found = "", False
        try:
            for line in filter(None, map(str.strip, lines_of(path))):
                first, found = first or line, found or _URL.fullmatch(line) is not None
                yield line
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--links {path} can't be read: {error_reason(error)}; give a text file with one URL a line"
            ) from error
        if first and not found:
            raise UsageError(
                f"--links {path} holds no URL, one of which is expected on each line; "
                f"its first line is {short(visible(first), 60)!r}"
            )
