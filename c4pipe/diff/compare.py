"""What two corpora keep and drop differently: their counters side by side, and their pages. No Beam."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from c4pipe.diff.keys import Corpus, Keys, Reader, find_pages, first_key

KINDS = ("only_first", "only_second", "other_text")
"""What can be different about a page: it is in one corpus only, or it is in both and its text is another."""

_ORDER = (
    *("pages.read", "pages.dropped", "pages.cleaned", "pages.edited", "pages.kept", "pages.validation"),
    *("lines.read", "lines.dropped", "lines.edited", "lines.left"),
    *("units.cleaned", "units.newest", "units.dropped", "units.kept"),
    *("bytes.read", "bytes.cleaned", "bytes.kept", "damage"),
)


@dataclass(frozen=True)
class Example:
    """A page that differs.

    Attributes:
        url: as it was crawled; where both corpora have the page, as it is in the first.
        line: the number of the first line that differs, from 1; of a page that one corpus has, 1.
        first: that line in the first corpus, or None where the second has it too, or there is none.
        second: that line in the second corpus.
    """

    url: str
    line: int
    first: str | None
    second: str | None


@dataclass
class Diff:
    """What two corpora keep and drop differently.

    Attributes:
        corpora: both.
        pages: how many pages there are of each of KINDS, and of those with the `same_text` in both.
        examples: pages of each of KINDS, those of the smallest keys.
    """

    corpora: tuple[Corpus, Corpus]
    pages: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*KINDS, "same_text"), 0))
    examples: dict[str, list[Example]] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, tuple[int | None, int | None]]:
        """The counters of both; None where the recipe does not have the counter's rule.

        Rules are in the order of the first recipe; those that only the second has come last.
        """
        first, second = self.corpora
        rules = list(dict.fromkeys(step.rule for corpus in self.corpora for _, step in corpus.recipe.steps()))

        def place(name: str) -> tuple[int, int, str]:
            what, rest = split_name(name)
            return _ORDER.index(what), rules.index(rest) if rest in rules else -1, rest

        names = sorted({*first.made["counts"], *second.made["counts"]}, key=place)
        return {name: (_count(first, name), _count(second, name)) for name in names}

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain JSON values."""
        return {
            **{side: _said(corpus) for side, corpus in zip(("first", "second"), self.corpora, strict=True)},
            "counts": {name: list(values) for name, values in self.counts.items()},
            "pages": self.pages,
            "examples": {kind: [vars(each) for each in self.examples[kind]] for kind in KINDS},
        }


def _said(corpus: Corpus) -> dict[str, Any]:
    return {"folder": str(corpus.folder), "recipe": corpus.recipe.name, "fingerprint": corpus.made["fingerprint"]}


def split_name(counter: str) -> tuple[str, str]:
    """Returns what a counter counts and its rule, language or kind of damage: `pages.dropped` and `empty`."""
    subject, _, rest = counter.partition(".")
    if subject == "damage":
        return subject, rest
    verb, _, rest = rest.partition(".")
    return f"{subject}.{verb}", rest


def _count(corpus: Corpus, name: str) -> int | None:
    what, rest = split_name(name)
    if what.endswith((".dropped", ".edited")) and corpus.recipe.find(rest) is None:
        return None
    return int(corpus.made["counts"].get(name, 0))


def compare(first: Corpus, second: Corpus, examples: int, read: Callable[[int], None]) -> Diff:
    """Compares two corpora: a range of keys at a time, or all at once where one is not in the order of the keys.

    Args:
        first: one.
        second: the other.
        examples: how many pages to show of each of KINDS, at most.
        read: is told how many pages were read, each time some were.

    Raises UsageError where a shard can't be read.
    """
    diff = Diff((first, second))
    shown: dict[str, list[int]] = {kind: [] for kind in KINDS}
    readers = [Reader(corpus, read) for corpus in diff.corpora]
    parts = _parts(first, second)
    for number in range(1, parts + 1):
        here, there = (reader.up_to(first_key(number, parts)) for reader in readers)
        found = compare_keys(here, there)
        for kind, keys in found.items():
            diff.pages[kind] += len(keys)
            shown[kind] += keys[: examples - len(shown[kind])].tolist()
        diff.pages["same_text"] += len(here.keys) - len(found["only_first"]) - len(found["other_text"])
    ones = find_pages(first, {*shown["only_first"], *shown["other_text"]})
    others = find_pages(second, {*shown["only_second"], *shown["other_text"]})
    diff.examples = {kind: [_example(ones.get(key), others.get(key)) for key in keys] for kind, keys in shown.items()}
    return diff


def _parts(first: Corpus, second: Corpus) -> int:
    """Returns into how many ranges the keys are cut: as many as the language with the most shards has."""
    if not (first.in_order and second.in_order):
        return 1
    return max((number for corpus in (first, second) for number in corpus.made["train_shards"].values()), default=1)


def compare_keys(first: Keys, second: Keys) -> dict[str, Any]:
    """Returns the keys of the pages that differ, for each of KINDS an array in order."""
    both, here, there = np.intersect1d(first.keys, second.keys, assume_unique=True, return_indices=True)
    return {
        "only_first": np.setdiff1d(first.keys, second.keys, assume_unique=True),
        "only_second": np.setdiff1d(second.keys, first.keys, assume_unique=True),
        "other_text": both[first.texts[here] != second.texts[there]],
    }


def _example(first: tuple[str, str] | None, second: tuple[str, str] | None) -> Example:
    """Returns where two pages, each its URL and text, begin to differ; None: a corpus does not have the page."""
    url = (first or second or ("",))[0]
    ones, others = (page[1].split("\n") if page else [] for page in (first, second))
    number, one, other = first_difference(ones, others)
    return Example(url, number, one, other)


def first_difference(first: Sequence[str], second: Sequence[str]) -> tuple[int, str | None, str | None]:
    """Returns the number of the first line that differs, from 1, and this line on both sides.

    A line that the other side has elsewhere is None, for it was not taken away; so is one that is not there. Of lines
    in another order both are told. Raises StopIteration where no line differs.
    """
    pairs = enumerate(zip_longest(first, second), 1)
    number, (one, other) = next(each for each in pairs if each[1][0] != each[1][1])
    if (one is None or one in second) and (other is None or other in first):
        return number, one, other
    return number, None if one in second else one, None if other in first else other
