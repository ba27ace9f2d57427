"""What is read: the shards of a corpus, as its manifest has them, its beginning, or a file of text."""

import contextlib
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from c4pipe.corpus import manifest
from c4pipe.corpus.shard_reader import TEXT, Shard, check_size, opened
from c4pipe.corpus.shard_writer import FORMATS
from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath, file_sizes, storage_path
from c4pipe.io.web_path import WebPath

SPLITS = ("train", "validation")

TAKE_FORMAT, TAKE_VERSION = "c4pipe take", 1

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]+)?")


@dataclass(frozen=True)
class Source:
    """What is read.

    Attributes:
        path: the corpus' folder, or the file of the take or text.
        split: the split of the corpus.
        languages: the languages that are read; none for a file of text.
        digest: SHA-256 of the manifest, of the take, or of the text.
        shards: the files, by language and number.
        verify: whether their SHA-256 is compared.
        taken: the number of documents to read of each shard, its first ones; None for all.
    """

    path: str
    split: str
    languages: tuple[str, ...]
    digest: str
    shards: tuple[Shard, ...]
    verify: bool = False
    taken: tuple[int, ...] | None = None

    @property
    def rows(self) -> list[int]:
        """The number of documents that are read of each shard."""
        return [shard.rows for shard in self.shards] if self.taken is None else list(self.taken)

    @property
    def identity(self) -> dict[str, Any]:
        """What tells these documents from others, wherever they are, as JSON values."""
        return {"digest": self.digest, "split": self.split, "languages": list(self.languages)}


def find(
    path: str | Path, split: str = "train", languages: Sequence[str] | None = None, verify: bool = False
) -> Source:
    """Returns what a path names: the shards of a corpus, a take of it, or a file of text.

    Arguments are those of `read.documents`.

    Raises UsageError where there is no such thing, C4pipeError where a shard isn't there as the manifest has it.
    """
    if split not in SPLITS:
        raise UsageError(f"split={split!r}: a corpus has {' and '.join(SPLITS)}")
    if isinstance(languages, str):
        raise UsageError(f"languages={languages!r}: give a list, as [{languages!r}]")
    folder = _place(path)
    if folder.name.endswith(".txt"):
        if split != "train" or languages is not None:
            raise UsageError(f"{folder} is a file of text: it has neither splits nor languages; leave these out")
        return _text(folder, verify)
    if folder.name.endswith(".json") and folder.name != manifest.NAME:
        if split != "train" or languages is not None:
            raise UsageError(f"{folder} is a take, of one language's train split: leave out split and languages")
        return _take(folder, verify)
    return _corpus(folder, split, languages, verify)


def _place(path: str | Path) -> StoragePath | WebPath:
    text = str(path)
    return WebPath(text.rstrip("/")) if text.startswith(("http://", "https://")) else storage_path(text)


def _corpus(folder: StoragePath | WebPath, split: str, languages: Sequence[str] | None, verify: bool) -> Source:
    folder, languages, data = _manifest(folder, languages)
    try:
        made = json.loads(data)
    except ValueError as error:
        raise UsageError(f"{folder / manifest.NAME} can't be read: {error}") from error
    if made.get("format") != "c4pipe corpus" or made.get("version") != manifest.VERSION:
        raise UsageError(
            f"{folder / manifest.NAME} is of {made.get('format')!r}, version {made.get('version')}: "
            f"this c4pipe reads a 'c4pipe corpus', version {manifest.VERSION}"
        )
    chosen = _languages(folder, made, languages)
    name = next(name for name in FORMATS if name in made["formats"])  # the first is the fastest
    shards = tuple(
        Shard(folder / each["path"], name, each["rows"], each["bytes"], each["sha256"])
        for language in chosen
        for each in made["shards"]
        if each["path"].startswith(f"{language}/c4-{split}-") and each["path"].endswith(f".{FORMATS[name].extension}")
    )
    if not isinstance(folder, WebPath):  # there, each file would be a request: one is asked when it is read
        for language in chosen:
            _check_sizes(folder / language, shards)
    return Source(str(folder), split, chosen, hashlib.sha256(data).hexdigest(), shards, verify)


def _take(file: StoragePath | WebPath, verify: bool) -> Source:
    """Returns the first documents of the corpus that the file is in, as `tokens_take` lists them."""
    try:
        data = file.read_bytes()
        take = json.loads(data)
        if (take["format"], take["version"]) != (TAKE_FORMAT, TAKE_VERSION):
            raise ValueError(f"it is of {take['format']!r}, version {take['version']}")
        documents = {each["path"]: each["documents"] for each in take["shards"]}
        languages, digest = [take["language"]], take["manifest"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UsageError(f"{file} is no take of this c4pipe, as c4pipe tokens --take writes it: {error!r}") from error
    corpus = _corpus(file.parent, "train", languages, verify)
    shards = corpus.shards[: len(documents)]
    names = [f"{shard.file.parent.name}/{shard.file.name}" for shard in shards]
    if digest != corpus.digest or names != list(documents):
        raise UsageError(f"{file} is of another corpus than that in its folder: make it anew with c4pipe tokens --take")
    return replace(
        corpus,
        path=str(file),
        digest=hashlib.sha256(data).hexdigest(),
        shards=shards,
        taken=tuple(documents.values()),
    )


def _manifest(
    folder: StoragePath | WebPath, languages: Sequence[str] | None
) -> tuple[StoragePath | WebPath, Sequence[str] | None, bytes]:
    """Returns a corpus' folder, the languages to read, and its manifest, also for the folder of one language."""
    try:
        return folder, languages, (folder / manifest.NAME).read_bytes()
    except OSError as error:
        if languages is None and _LANGUAGE.fullmatch(folder.name):
            with contextlib.suppress(OSError):
                return folder.parent, [folder.name], (folder.parent / manifest.NAME).read_bytes()
        raise UsageError(
            f"{folder} is no complete corpus, a folder with a {manifest.NAME}, which comes last: {error}"
        ) from error


def _languages(folder: StoragePath | WebPath, made: dict[str, Any], languages: Sequence[str] | None) -> tuple[str, ...]:
    known = sorted(made["train_shards"])
    if unknown := [name for name in languages or () if name not in known]:
        raise UsageError(f"{folder} has no language {unknown[0]!r}, but {', '.join(known)}")
    return tuple(name for name in known if languages is None or name in languages)


def _check_sizes(folder: StoragePath, shards: Sequence[Shard]) -> None:
    there = file_sizes(folder, "c4-*")
    for shard in shards:
        if shard.file.parent == folder:
            check_size(shard, there.get(shard.file.name))


def _text(file: StoragePath | WebPath, verify: bool) -> Source:
    digest, size, rows = hashlib.sha256(), 0, 0
    try:
        with opened(file) as lines:
            for line in lines:
                digest.update(line)
                size += len(line)
                rows += not line.isspace()
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error}") from error
    shard = Shard(file, TEXT, rows, size, digest.hexdigest())
    return Source(str(file), "train", (), digest.hexdigest(), (shard,), verify)
