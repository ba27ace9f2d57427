"""The pages of a corpus as `diff` compares them: the key of each page and a hash of its text, in the order of the keys.

A page is identified by its normalised URL, which no two pages of a corpus share. Its key is the 64-bit hash of that
URL. Corpora of `c4` and its variants, except `mc4`, are in the order of these keys; others are in another order.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import mmh3
import numpy as np
import pyarrow as pa

from c4pipe.corpus.opened import Corpus
from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.filters.spans import U64
from c4pipe.filters.urls import normalise_url, url_key


@dataclass(frozen=True)
class KeyedShard:
    """A shard and the keys that its pages can have: from `first` up to `end`, which is not among them."""

    shard: Shard
    first: int
    end: int


@dataclass(frozen=True)
class Keys:
    """Pages as they are compared, in the order of their keys. No key occurs twice.

    Attributes:
        keys: the keys, of shape [pages].
        texts: the hashes of the texts, of shape [pages].
    """

    keys: U64
    texts: U64

    def divide(self, key: int) -> tuple["Keys", "Keys"]:
        """Returns the pages with smaller keys, and the others."""
        at = int(np.searchsorted(self.keys, np.uint64(key - 1), side="right"))
        return Keys(self.keys[:at], self.texts[:at]), Keys(self.keys[at:], self.texts[at:])


def is_in_key_order(corpus: Corpus) -> bool:
    """Tells whether the pages of each language of a corpus are in the order of their keys."""
    return corpus.recipe.page_keys == ("start", False)


def keyed_shards(corpus: Corpus) -> list[KeyedShard]:
    """Returns the shards of a corpus in one format, in the order of the first key that each can have."""
    in_order = is_in_key_order(corpus)
    keyed = []
    for shard in corpus.shards():
        index, count = (shard.id.shard_index, shard.id.num_shards) if in_order else (0, 1)
        keyed.append(KeyedShard(shard, first_key(index, count), first_key(index + 1, count)))
    return sorted(keyed, key=lambda each: (each.first, each.shard.path))


def first_key(index: int, count: int) -> int:
    """Returns the first key of a shard: the smallest for which `key * count >> 64` is its index."""
    return -(-(index << 64) // count)


class KeyReader:
    """Reads the pages of a corpus in the order of their keys, whole shards at a time.

    Pages wait in memory, 16 bytes each, until they are asked for: those of one shard of each language, or all pages
    where the corpus is not in the order of the keys.
    """

    def __init__(self, corpus: Corpus, pages_read: Callable[[int], None]) -> None:
        """Starts at the first key. `pages_read` is called with the number of pages, each time some were read."""
        self._waiting = keyed_shards(corpus)[::-1]
        self._held = Keys(np.empty(0, np.uint64), np.empty(0, np.uint64))
        self._pages_read = pages_read

    def up_to(self, end: int) -> Keys:
        """Returns the pages with keys below `end` that were not returned before.

        Raises C4pipeError where a shard can't be read.
        """
        keys, texts = [self._held.keys], [self._held.texts]
        while self._waiting and self._waiting[-1].first < end:
            for some_keys, some_texts in _keys_of(self._waiting.pop().shard):
                keys.append(some_keys)
                texts.append(some_texts)
                self._pages_read(len(some_keys))
        merged, places = np.unique(np.concatenate(keys), return_index=True)
        below, self._held = Keys(merged, np.concatenate(texts)[places]).divide(end)
        return below


def _keys_of(shard: Shard) -> Iterator[tuple[U64, U64]]:
    """Yields the keys of a shard's pages and the hashes of their texts, some at a time."""
    for pages in read_tables(shard, ("text", "url")):
        texts = pages["text"].cast(pa.binary()).to_pylist()
        hashes = [mmh3.hash64(text, signed=False)[0] for text in texts]
        yield np.array(list(map(_key, pages["url"].to_pylist())), np.uint64), np.array(hashes, np.uint64)


def _key(url: str) -> int:
    return url_key(normalise_url(url))


def find_pages(corpus: Corpus, wanted: Collection[int]) -> dict[int, tuple[str, str]]:
    """Returns the URL and the text of the pages with these keys, by key, of those that the corpus has.

    Raises C4pipeError where a shard can't be read.
    """
    pages: dict[int, tuple[str, str]] = {}
    for each in keyed_shards(corpus):
        if any(each.first <= key < each.end for key in wanted if key not in pages):
            for table in read_tables(each.shard, ("url", "text")):
                for url, text in zip(table["url"].to_pylist(), table["text"].to_pylist(), strict=True):
                    if (key := _key(url)) in wanted:
                        pages.setdefault(key, (url, text))
    return pages
