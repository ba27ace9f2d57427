"""Finished corpora, read to be compared: the keys of their pages and a hash of each text, in order. No Beam.

A page is known by its normalised URL, which no two pages of a corpus share. The key is its 64-bit hash: the
page key of base `c4`, whose corpora are in its order. Corpora of base `tfds` are in another one.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import mmh3
import numpy as np

from c4pipe.corpus import manifest
from c4pipe.corpus.shard_writer import FORMATS
from c4pipe.errors import UsageError
from c4pipe.filters.urls import normalise_url, url_key
from c4pipe.io.paths import StoragePath
from c4pipe.recipes.recipe import Recipe
from c4pipe.vocab.sources import encoded, rows

_READABLE = ("parquet", "json")  # the faster one first
_SHARD = re.compile(r".+/c4-(?:train|validation)-(\d+)-of-(\d+)\.")


@dataclass(frozen=True)
class Shard:
    """A file of a corpus, the first key that it can have, and the one after the last."""

    file: StoragePath
    first: int
    end: int


@dataclass(frozen=True)
class Corpus:
    """A finished corpus.

    Attributes:
        folder: where it is.
        made: its manifest.
        recipe: how it was made.
        shards: its files in one format, by the first of their keys.
    """

    folder: StoragePath
    made: Mapping[str, Any]
    recipe: Recipe
    shards: tuple[Shard, ...]

    @property
    def in_order(self) -> bool:
        """Whether each language's pages are in the order of the keys."""
        return self.recipe.page_keys == ("start", False)

    @property
    def pages(self) -> int:
        """How many pages it has."""
        return int(self.made["counts"].get("pages.kept", 0))


@dataclass(frozen=True)
class Keys:
    """Pages as they are compared: keys and hashes of the texts, arrays of uint64, by key. No key is there twice."""

    keys: Any
    texts: Any

    def divide(self, key: int) -> tuple["Keys", "Keys"]:
        """Returns the pages with smaller keys, and the others."""
        at = int(np.searchsorted(self.keys, np.uint64(key - 1), side="right"))
        return Keys(self.keys[:at], self.texts[:at]), Keys(self.keys[at:], self.texts[at:])


def open_corpus(folder: StoragePath) -> Corpus:
    """Returns a finished corpus. Raises UsageError where the folder is none, or has TFRecord alone."""
    made = manifest.read(folder)
    if made is None:
        raise UsageError(f"{folder} has no {manifest.NAME}: give the folder of a finished corpus, as build writes it")
    if not isinstance(made, dict) or made.get("format") != "c4pipe corpus" or made.get("version") != manifest.VERSION:
        raise UsageError(
            f"{folder / manifest.NAME} is not that of a corpus of version {manifest.VERSION}: build it anew"
        )
    kind = next((name for name in _READABLE if name in made["formats"]), None)
    if kind is None:
        raise UsageError(f"{folder} has shards of TFRecord alone: build the corpus with --format parquet as well")
    corpus = Corpus(folder, made, Recipe.from_json(made["recipe"]), ())
    paths = [each["path"] for each in made["shards"] if each["path"].endswith(f".{FORMATS[kind].extension}")]
    shards = sorted((_shard(corpus, path) for path in paths), key=lambda shard: (shard.first, str(shard.file)))
    return Corpus(folder, made, corpus.recipe, tuple(shards))


def _shard(corpus: Corpus, path: str) -> Shard:
    match = _SHARD.match(path)
    if match is None:
        raise UsageError(f"{corpus.folder / manifest.NAME} names a shard {path!r}, which build does not: build it anew")
    number, count = (int(match[1]), int(match[2])) if corpus.in_order else (0, 1)
    return Shard(corpus.folder / path, first_key(number, count), first_key(number + 1, count))


def first_key(number: int, count: int) -> int:
    """Returns the first key of a shard: the least for which `key * count >> 64` is its number."""
    return -(-(number << 64) // count)


class Reader:
    """Reads the pages of a corpus in the order of their keys, whole shards at a time.

    Pages wait in memory, 16 bytes each, until their turn comes: those of a shard of each language, or, where a corpus
    is not in the order of the keys, all of them.
    """

    def __init__(self, corpus: Corpus, read: Callable[[int], None]) -> None:
        """Begins at the first key; `read` is told how many pages were read."""
        self._waiting = list(reversed(corpus.shards))
        self._held = Keys(np.empty(0, np.uint64), np.empty(0, np.uint64))
        self._read = read

    def up_to(self, end: int) -> Keys:
        """Returns the pages with keys below `end` that were not returned before. Raises UsageError for a bad file."""
        keys, texts = [self._held.keys], [self._held.texts]
        while self._waiting and self._waiting[-1].first < end:
            for some_keys, some_texts in _keys(self._waiting.pop().file):
                keys.append(some_keys)
                texts.append(some_texts)
                self._read(len(some_keys))
        together, places = np.unique(np.concatenate(keys), return_index=True)
        found, self._held = Keys(together, np.concatenate(texts)[places]).divide(end)
        return found


def _keys(file: StoragePath) -> Iterator[tuple[Any, Any]]:
    """Yields keys and hashes of texts of a file's pages, some at a time."""
    for texts, urls in rows(file, True):
        hashes = [mmh3.hash64(encoded(text), signed=False)[0] for text in texts]
        yield np.array(list(map(_key, urls)), np.uint64), np.array(hashes, np.uint64)


def _key(url: str | None) -> int:
    return url_key(normalise_url(url or ""))


def find_pages(corpus: Corpus, wanted: Collection[int]) -> dict[int, tuple[str, str]]:
    """Returns URL and text of some pages, by key. Raises UsageError for a bad file."""
    found: dict[int, tuple[str, str]] = {}
    for shard in corpus.shards:
        if not any(shard.first <= key < shard.end for key in wanted if key not in found):
            continue
        for texts, urls in rows(shard.file, True):
            for text, url in zip(texts, urls, strict=True):
                if (key := _key(url)) in wanted:
                    found.setdefault(key, (url or "", text))
    return found
