"""Compares two corpora: their counters side by side, and their pages.

A page is identified by its normalised URL, which no two pages of a corpus share. Its key is the 64-bit hash of that
URL. Corpora of `c4` and its variants, except `mc4`, are in the order of these keys; other corpora are not.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa

from c4pipe.corpus.opened import Corpus
from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.text.hashes import U64, normalise_url, url_key
from c4pipe.wet.columns import parse_columns

DIFFERENCES = ("only_first", "only_second", "other_text")
"""How a page can differ: it is only in one of the corpora, or it is in both with different texts."""

OTHER_COLUMNS = "other_columns"
"""A further kind, if both corpora have a further column of one name and type: the text is the same, and a value of such
a column differs.
"""

_ORDER = (
    "records.skipped",
    *("pages.read", "pages.dropped", "pages.cleaned", "pages.edited", "pages.kept", "pages.validation"),
    *("near_duplicates.compared", "near_duplicates.similar", "near_duplicates.unsettled"),
    *("lines.read", "lines.dropped", "lines.edited", "lines.left"),
    *("units.cleaned", "units.newest", "units.dropped", "units.kept"),
    *("spans.repeated", "spans.kept", "spans.doubled", "spans.joined"),
    *("bytes.read", "bytes.cleaned", "bytes.kept", "damage"),
)


@dataclass(frozen=True)
class PageDifference:
    """A page that differs.

    Attributes:
        url: the URL as it was crawled; where both corpora have the page, the URL in the first.
        line: the number of the first line that differs, from 1; 1 for a page of one corpus only.
        first: this line in the first corpus; None if the page is shorter, or if the second corpus has the line
            elsewhere.
        second: this line in the second corpus, or None in the same cases.
    """

    url: str
    line: int
    first: str | None
    second: str | None


@dataclass
class Diff:
    """The difference of two corpora.

    Attributes:
        corpora: both corpora.
        pages: the number of pages of each of `kinds`, and of pages with the `same_text` in both.
        examples: for each of `kinds`, the pages with the smallest keys.
    """

    corpora: tuple[Corpus, Corpus]
    pages: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*DIFFERENCES, "same_text"), 0))
    examples: dict[str, list[PageDifference]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The further columns that both corpora have."""
        first, second = (corpus.recipe.columns for corpus in self.corpora)
        return tuple(each for each in first if each in second)

    @property
    def kinds(self) -> tuple[str, ...]:
        """How pages can differ."""
        return (*DIFFERENCES, OTHER_COLUMNS) if self.columns else DIFFERENCES

    @property
    def counts(self) -> dict[str, tuple[int | None, int | None]]:
        """The counters of both by name; None if a recipe lacks the rule of a counter, or its input is not WARC.

        Rules are in the order of the first recipe. Rules that only the second recipe has come last, and after them
        `empty` if no recipe lists it.
        """
        first, second = self.corpora
        rules = list(dict.fromkeys(rule.name for corpus in self.corpora for _, rule in corpus.recipe.rules()))

        def place(name: str) -> tuple[int, int, str]:
            what, rest = split_name(name)
            order = _ORDER.index(what) if what in _ORDER else len(_ORDER)  # of a later version
            return order, rules.index(rest) if rest in rules else len(rules), rest

        names = sorted({*first.counts, *second.counts}, key=place)
        return {name: (_count(first, name), _count(second, name)) for name in names}

    def to_json(self) -> dict[str, Any]:
        """Returns the difference as JSON values."""
        return {
            **{side: _corpus_json(corpus) for side, corpus in zip(("first", "second"), self.corpora, strict=True)},
            "counts": {name: list(values) for name, values in self.counts.items()},
            "pages": self.pages,
            "examples": {kind: [vars(each) for each in self.examples[kind]] for kind in self.kinds},
        }


def _corpus_json(corpus: Corpus) -> dict[str, Any]:
    return {"folder": str(corpus.path), "recipe": corpus.recipe.name, "fingerprint": corpus.manifest["fingerprint"]}


def split_name(counter: str) -> tuple[str, str]:
    """Splits the name of a counter into its subject and its rule, language or damage: `pages.dropped` and `empty`."""
    subject, _, rest = counter.partition(".")
    if subject == "damage":
        return subject, rest
    verb, _, rest = rest.partition(".")
    return f"{subject}.{verb}", rest


def _count(corpus: Corpus, name: str) -> int | None:
    what, rest = split_name(name)
    if what == "records.skipped" and corpus.recipe.input_format != "WARC":
        return None
    if what.endswith((".dropped", ".edited")) and not corpus.recipe.has(rest):
        return corpus.counts.get(name)  # `empty` drops a page without a line even if no recipe lists it
    return int(corpus.counts.get(name, 0))


def compare(first: Corpus, second: Corpus, examples: int, pages_read: Callable[[int], None]) -> Diff:
    """Compares two corpora, one range of keys at a time; all keys at once if a corpus is not in key order.

    Args:
        first: a corpus.
        second: another one.
        examples: the number of pages to show of each of DIFFERENCES, at most.
        pages_read: is called with a number of pages each time some were read.

    Raises C4pipeError if a shard can't be read.
    """
    diff = Diff((first, second))
    names = [each.name for each in parse_columns(diff.columns)]
    if names:
        diff.pages[OTHER_COLUMNS] = 0
    shown: dict[str, list[int]] = {kind: [] for kind in diff.kinds}
    readers = [KeyReader(corpus, pages_read, names) for corpus in diff.corpora]
    ranges = _key_ranges(first, second)
    for number in range(1, ranges + 1):
        of_first, of_second = (reader.up_to(first_key(number, ranges)) for reader in readers)
        differing = compare_keys(of_first, of_second)
        for kind in diff.kinds:
            keys = differing[kind]
            diff.pages[kind] += len(keys)
            shown[kind] += keys[: examples - len(shown[kind])].tolist()
        diff.pages["same_text"] += len(of_first.keys) - len(differing["only_first"]) - len(differing["other_text"])
    both = {*shown["other_text"], *shown.get(OTHER_COLUMNS, ())}
    ones = pages_by_key(first, {*shown["only_first"], *both}, names)
    others = pages_by_key(second, {*shown["only_second"], *both}, names)
    diff.examples = {kind: [_example(ones.get(key), others.get(key)) for key in keys] for kind, keys in shown.items()}
    return diff


def _key_ranges(first: Corpus, second: Corpus) -> int:
    """Returns the number of ranges of keys: the number of shards of the language with the most."""
    if not (is_in_key_order(first) and is_in_key_order(second)):
        return 1
    return max((n for corpus in (first, second) for n in corpus.manifest["train_shards"].values()), default=1)


def is_in_key_order(corpus: Corpus) -> bool:
    """Tells whether the pages of each language of a corpus are in the order of their keys."""
    return corpus.recipe.page_keys == ("start", False)


@dataclass(frozen=True)
class Keys:
    """Pages as they are compared, in the order of their keys. No key occurs twice.

    Attributes:
        keys: the keys, of shape [pages].
        texts: the hashes of the texts, of shape [pages].
        others: the hashes of the further columns that are compared, of shape [pages].
    """

    keys: U64
    texts: U64
    others: U64

    def divide(self, key: int) -> tuple["Keys", "Keys"]:
        """Returns the pages with smaller keys, and the others."""
        at = int(np.searchsorted(self.keys, np.uint64(key - 1), side="right"))
        return (
            Keys(self.keys[:at], self.texts[:at], self.others[:at]),
            Keys(self.keys[at:], self.texts[at:], self.others[at:]),
        )


def compare_keys(first: Keys, second: Keys) -> dict[str, U64]:
    """Returns the keys of the pages that differ, in order, for each of DIFFERENCES and for OTHER_COLUMNS."""
    both, in_first, in_second = np.intersect1d(first.keys, second.keys, assume_unique=True, return_indices=True)
    same = first.texts[in_first] == second.texts[in_second]
    return {
        "only_first": np.setdiff1d(first.keys, second.keys, assume_unique=True),
        "only_second": np.setdiff1d(second.keys, first.keys, assume_unique=True),
        "other_text": both[~same],
        OTHER_COLUMNS: both[same & (first.others[in_first] != second.others[in_second])],
    }


_Shown = tuple[str, str, Sequence[tuple[str, Any]]]
"""A page as examples show it: URL, text, and the names and values of further columns."""


def _example(first: _Shown | None, second: _Shown | None) -> PageDifference:
    """Returns the first difference of two pages; of equal texts, the first column that differs, as line 0. None: a
    corpus lacks the page.
    """
    url = (first or second or ("",))[0]
    if first and second and first[1] == second[1]:
        differs = (pair for pair in zip(first[2], second[2], strict=True) if pair[0] != pair[1])
        old, new = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in next(differs))
        return PageDifference(url, 0, old, new)
    ones, others = (page[1].split("\n") if page else [] for page in (first, second))
    number, one, other = first_difference(ones, others)
    return PageDifference(url, number, one, other)


def first_difference(first: Sequence[str], second: Sequence[str]) -> tuple[int, str | None, str | None]:
    """Returns the number of the first line that differs, from 1, and this line on both sides.

    A line is None if it does not exist, or if the other side has it elsewhere (so it was not dropped). If each side has
    the line of the other side elsewhere (the order differs), both lines are returned.

    Raises StopIteration if no line differs.
    """
    pairs = enumerate(zip_longest(first, second), 1)
    number, (one, other) = next(each for each in pairs if each[1][0] != each[1][1])
    if (one is None or one in second) and (other is None or other in first):
        return number, one, other
    return number, None if one in second else one, None if other in first else other


@dataclass(frozen=True)
class KeyedShard:
    """A shard and the keys that its pages can have: from `first` up to `end` (excluded)."""

    shard: Shard
    first: int
    end: int


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

    Pages wait in memory, 16 bytes each: the pages of one shard of each language, or all pages if the corpus is not in
    the order of the keys.
    """

    def __init__(self, corpus: Corpus, pages_read: Callable[[int], None], columns: Sequence[str] = ()) -> None:
        """Starts at the first key. Calls `pages_read` with the number of pages, each time some were read. `columns` are
        the names of the further columns that are compared.
        """
        self._columns = columns
        self._waiting = keyed_shards(corpus)[::-1]
        self._rest = Keys(*np.empty((3, 0), np.uint64))
        self._pages_read = pages_read

    def up_to(self, end: int) -> Keys:
        """Returns the pages with keys below `end` that were not returned before.

        Raises C4pipeError if a shard can't be read.
        """
        found = [self._rest]
        while self._waiting and self._waiting[-1].first < end:
            for some in _keys_of(self._waiting.pop().shard, self._columns):
                found.append(some)
                self._pages_read(len(some.keys))
        merged, places = np.unique(np.concatenate([each.keys for each in found]), return_index=True)
        texts, others = (
            np.concatenate([getattr(each, name) for each in found])[places] for name in ("texts", "others")
        )
        below, self._rest = Keys(merged, texts, others).divide(end)
        return below


def _keys_of(shard: Shard, columns: Sequence[str]) -> Iterator[Keys]:
    """Yields the keys of a shard's pages and the hashes of their texts and further columns, some at a time."""
    for pages in read_tables(shard, ("text", "url", *columns)):
        texts = _hashes(pages["text"].cast(pa.binary()).to_pylist())
        values = map(repr, _comparable(pages, columns)) if columns else [""] * len(pages)
        yield Keys(np.array(list(map(_key, pages["url"].to_pylist())), np.uint64), texts, _hashes(values))


def _hashes(values: Iterable[bytes | str]) -> U64:
    return np.array([mmh3.hash64(each, signed=False)[0] for each in values], np.uint64)


def _comparable(pages: pa.Table, columns: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Returns the values of columns of each page; floats with the 32 bits that all formats have."""
    values = [
        (pages[name].cast(pa.float32()) if pa.types.is_float64(pages[name].type) else pages[name]).to_pylist()
        for name in columns
    ]
    return zip(*values, strict=True) if values else ((),) * len(pages)


def _key(url: str) -> int:
    return url_key(normalise_url(url))


def pages_by_key(corpus: Corpus, wanted: Collection[int], columns: Sequence[str] = ()) -> dict[int, _Shown]:
    """Returns the URL, the text and some further columns of the corpus's pages with these keys, by key.

    Raises C4pipeError if a shard can't be read.
    """
    pages: dict[int, _Shown] = {}
    for each in keyed_shards(corpus):
        if any(each.first <= key < each.end for key in wanted if key not in pages):
            for table in read_tables(each.shard, ("url", "text", *columns)):
                rows = zip(
                    table["url"].to_pylist(), table["text"].to_pylist(), _comparable(table, columns), strict=True
                )
                for url, text, values in rows:
                    if (key := _key(url)) in wanted:
                        pages.setdefault(key, (url, text, tuple(zip(columns, values, strict=True))))
    return pages
