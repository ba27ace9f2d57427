"""Compares two corpora: their counters side by side, and their pages.

A page is identified by its normalised URL, which no two pages of a corpus share. Its key is the 64-bit hash of this
URL. Only corpora of `c4` and its variants, except `mc4`, are in the order of the keys.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4pipe.corpus.opened import Corpus
from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.text.hashes import U64, WHOLE_QUERY, normalise_url, url_key
from c4pipe.wet.columns import parse_columns

DIFFERENCES = ("only_first", "only_second", "other_text")
"""How a page can differ: it is only in one of the corpora, or it is in both with different texts."""

OTHER_COLUMNS = "other_columns"
"""A further kind, if both corpora have a further column of one name and type: only a value of such a column differs."""

COUNTERS = {
    "records.skipped": "records skipped: {}",
    "pages.read": "pages read",
    "pages.dropped": "  {}",
    "pages.cleaned": "",
    "pages.edited": "  {} (changed)",
    "pages.kept": "pages kept",
    "pages.validation": "  of these in validation",
    "pages.labelled": "  of these {}",
    "near_duplicates.compared": "pairs of pages compared",
    "near_duplicates.similar": "  nearly the same",
    "near_duplicates.unsettled": "  pages of clusters that may be in two parts",
    "lines.read": "lines read",
    "lines.dropped": "  {}",
    "lines.edited": "  {} (changed)",
    "lines.left": "lines left",
    "units.cleaned": "",
    "units.newest": "{units} of the newest pages",
    "units.dropped": "  {}",
    "units.kept": "{units} kept",
    "spans.repeated": "repeated spans (one copy of each stays)",
    "spans.kept": "  with the copy in the corpus",
    "spans.doubled": "  a second copy stays",
    "spans.joined": "  removal joined a second copy",
    "bytes.read": "bytes of text read",
    "bytes.cleaned": "",
    "bytes.kept": "bytes of text kept",
    "bytes.labelled": "  of these {}",
    "damage": "damage: {}",
}
"""The subjects of counters in the order of a difference, and the labels of their rows; "" for a counter between the
jobs. A label can name the rule, language or damage of the counter, and the `units` of repeated spans.
"""

_PAGE = np.dtype([("key", "<u8"), ("text", "<u8"), ("others", "<u8")])
"""A page to compare: its key, the hash of its text, and the hash of the further columns."""

_Pages = npt.NDArray[Any]
"""Rows of _PAGE in the order of their keys. No key occurs twice."""


@dataclass(frozen=True)
class PageDifference:
    """A page that differs.

    Attributes:
        url: the URL as crawled, in the first corpus that has the page.
        line: the number of the first line that differs, from 1; 1 for a page of one corpus only.
        first: this line in the first corpus; None if the page is shorter, or the second corpus has the line elsewhere.
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
        pages: the number of pages of each kind, and of pages with the `same_text`.
        examples: for each kind, the pages with the smallest keys.
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

        Rules are in the order of the first recipe, then of the second recipe.
        """
        first, second = self.corpora
        rules = list(dict.fromkeys(rule.name for corpus in self.corpora for _, rule in corpus.recipe.rules()))

        subjects = list(COUNTERS)

        def place(name: str) -> tuple[int, int, str]:
            what, rest = split_name(name)
            order = subjects.index(what) if what in subjects else len(subjects)  # of a later version
            return order, rules.index(rest) if rest in rules else len(rules), rest

        names = sorted({*first.counts, *second.counts}, key=place)
        return {name: (_count(first, name), _count(second, name)) for name in names}

    def to_json(self) -> dict[str, Any]:
        """Returns the difference as JSON values."""
        return {
            **dict(zip(("first", "second"), map(_describe_corpus, self.corpora), strict=True)),
            "counts": {name: list(values) for name, values in self.counts.items()},
            "pages": self.pages,
            "examples": {kind: [vars(each) for each in self.examples[kind]] for kind in self.kinds},
        }


def _describe_corpus(corpus: Corpus) -> dict[str, Any]:
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
    if what.endswith((".dropped", ".edited", ".labelled")) and not corpus.recipe.has(rest.partition("/")[0]):
        return corpus.counts.get(name)  # `empty` drops a page without a line even if no recipe lists it
    return int(corpus.counts.get(name, 0))


def compare(first: Corpus, second: Corpus, examples: int, pages_read: Callable[[int], None]) -> Diff:
    """Compares two corpora, one range of keys at a time; all keys at once if a corpus is not in the order of keys.

    Shows at most `examples` pages of each kind; `pages_read` is called with numbers of pages that were read.

    Raises C4pipeError if a shard can't be read.
    """
    diff = Diff((first, second))
    names = [each.name for each in parse_columns(diff.columns)]
    if names:
        diff.pages[OTHER_COLUMNS] = 0
    shown: dict[str, list[int]] = {kind: [] for kind in diff.kinds}
    form = _form_of(first, second)
    readers = [_PageReader(corpus, form, pages_read, names) for corpus in diff.corpora]
    ranges = _key_ranges(first, second, form)
    for number in range(1, ranges + 1):
        of_first, of_second = (reader.up_to(_first_key(number, ranges)) for reader in readers)
        differing = _compare_pages(of_first, of_second)
        for kind in diff.kinds:
            keys = differing[kind]
            diff.pages[kind] += len(keys)
            shown[kind] += keys[: examples - len(shown[kind])].tolist()
        diff.pages["same_text"] += len(of_first) - len(differing["only_first"]) - len(differing["other_text"])
    both = {*shown["other_text"], *shown.get(OTHER_COLUMNS, ())}
    ones = _find_pages(first, form, {*shown["only_first"], *both}, names)
    others = _find_pages(second, form, {*shown["only_second"], *both}, names)
    diff.examples = {kind: [_example(ones.get(key), others.get(key)) for key in keys] for kind, keys in shown.items()}
    return diff


def _form_of(*corpora: Corpus) -> str:
    """Returns the form in which URLs are compared: with the whole query, if it counts in one of the corpora."""
    forms = (corpus.recipe.page_keys[0] for corpus in corpora)
    return f"start{WHOLE_QUERY}" if any(form.endswith(WHOLE_QUERY) for form in forms) else "start"


def _key_ranges(first: Corpus, second: Corpus, form: str) -> int:
    """Returns the number of ranges of keys: the number of shards of the language with the most."""
    if not (_is_in_key_order(first, form) and _is_in_key_order(second, form)):
        return 1
    return max((n for corpus in (first, second) for n in corpus.manifest["train_shards"].values()), default=1)


def _is_in_key_order(corpus: Corpus, form: str) -> bool:
    """Tells whether the pages of each language of a corpus are in the order of the keys of this form."""
    return corpus.recipe.page_keys == (form, False)


def _compare_pages(first: _Pages, second: _Pages) -> dict[str, U64]:
    """Returns the keys of the pages that differ, in order, for each of DIFFERENCES and for OTHER_COLUMNS."""
    both, *places = np.intersect1d(first["key"], second["key"], assume_unique=True, return_indices=True)
    ones, others = first[places[0]], second[places[1]]
    same = ones["text"] == others["text"]
    return {
        "only_first": np.setdiff1d(first["key"], both, assume_unique=True),
        "only_second": np.setdiff1d(second["key"], both, assume_unique=True),
        "other_text": both[~same],
        OTHER_COLUMNS: both[same & (ones["others"] != others["others"])],
    }


_Shown = tuple[str, str, Sequence[tuple[str, Any]]]
"""A page as examples show it: URL, text, and the names and values of further columns."""


def _example(first: _Shown | None, second: _Shown | None) -> PageDifference:
    """Returns the first difference of two pages (None if missing); of equal texts, the first column, as line 0."""
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

    A line is None if it does not exist, or the other side has it elsewhere, so it was not dropped. If both sides have
    the line of the other side elsewhere (the order differs), both lines are returned.

    Raises StopIteration if no line differs.
    """
    pairs = enumerate(zip_longest(first, second), 1)
    number, (one, other) = next(each for each in pairs if each[1][0] != each[1][1])
    if (one is None or one in second) and (other is None or other in first):
        return number, one, other
    return number, None if one in second else one, None if other in first else other


_KeyedShard = tuple[int, int, Shard]
"""The first key that a page of a shard can have, the first key that is too large, and the shard."""


def _keyed_shards(corpus: Corpus, form: str) -> list[_KeyedShard]:
    """Returns the shards of a corpus in one format, in the order of the first key that each can have."""
    in_order = _is_in_key_order(corpus, form)
    keyed = []
    for shard in corpus.shards():
        index, count = (shard.id.shard_index, shard.id.num_shards) if in_order else (0, 1)
        keyed.append((_first_key(index, count), _first_key(index + 1, count), shard))
    return sorted(keyed, key=lambda each: (each[0], each[2].path))


def _first_key(index: int, count: int) -> int:
    """Returns the first key of a shard: the smallest key for which `key * count >> 64` is the index."""
    return -(-(index << 64) // count)


class _PageReader:
    """Reads the pages of a corpus in the order of their keys, whole shards at a time.

    Pages wait in memory, 24 bytes each: one shard of each language, or all pages of a corpus without this order.
    """

    def __init__(self, corpus: Corpus, form: str, pages_read: Callable[[int], None], columns: Sequence[str]) -> None:
        self._form, self._columns, self._pages_read = form, columns, pages_read
        self._waiting = _keyed_shards(corpus, form)[::-1]
        self._rest: _Pages = np.empty(0, _PAGE)

    def up_to(self, end: int) -> _Pages:
        """Returns the next pages, with keys below `end`. Raises C4pipeError."""
        found = [self._rest]
        while self._waiting and self._waiting[-1][0] < end:
            for pages in _read_pages(self._waiting.pop()[2], self._form, self._columns):
                found.append(pages)
                self._pages_read(len(pages))
        together = np.concatenate(found)
        pages = together[np.unique(together["key"], return_index=True)[1]]
        at = int(np.searchsorted(pages["key"], np.uint64(end - 1), side="right"))
        self._rest = pages[at:]
        return pages[:at]


def _read_pages(shard: Shard, form: str, columns: Sequence[str]) -> Iterator[_Pages]:
    """Yields the pages of a shard, in its order, some at a time."""
    for table in read_tables(shard, ("text", "url", *columns)):
        pages = np.empty(len(table), _PAGE)
        pages["key"] = np.array([_key(url, form) for url in table["url"].to_pylist()], np.uint64)
        pages["text"] = _hashes(table["text"].cast(pa.binary()).to_pylist())
        pages["others"] = _hashes(map(repr, _comparable(table, columns)))
        yield pages


def _hashes(values: Iterable[bytes | str]) -> U64:
    return np.array([mmh3.hash64(each, signed=False)[0] for each in values], np.uint64)


def _comparable(pages: pa.Table, columns: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Returns the values of columns of each page; floats with the 32 bits that all formats have."""
    values = [
        (pages[name].cast(pa.float32()) if pa.types.is_float64(pages[name].type) else pages[name]).to_pylist()
        for name in columns
    ]
    return zip(*values, strict=True) if values else ((),) * len(pages)


def _key(url: str, form: str) -> int:
    return url_key(normalise_url(url, form))


def _find_pages(corpus: Corpus, form: str, wanted: Collection[int], columns: Sequence[str]) -> dict[int, _Shown]:
    """Returns the pages with these keys, by key. Raises C4pipeError if a shard can't be read."""
    pages: dict[int, _Shown] = {}
    for first, end, shard in _keyed_shards(corpus, form):
        if not any(first <= key < end for key in wanted if key not in pages):
            continue
        for table in read_tables(shard, ("url", "text", *columns)):
            texts = table["url"].to_pylist(), table["text"].to_pylist()
            for url, text, values in zip(*texts, _comparable(table, columns), strict=True):
                if (key := _key(url, form)) in wanted:
                    pages.setdefault(key, (url, text, tuple(zip(columns, values, strict=True))))
    return pages
