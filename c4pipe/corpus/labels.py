"""Labels of pages: how many pages, bytes or tokens of a corpus each label of a column has."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_PAGES, _BYTES = "pages.labelled.", "bytes.labelled."  # and a column, a slash and a label: in names of counters


def sum_by_label(pages: pa.Table, columns: Sequence[str], sizes: Sequence[int]) -> Counter[str]:
    """Returns the sum of the sizes of pages by column and label, such as `topic/sports`; `topic/` without a label."""
    sums = Counter[str]()
    for column in columns:
        for label, size in zip(pages[column].to_pylist(), sizes, strict=True):
            sums[f"{column}/{label or ''}"] += size
    return sums


def count_labels(pages: pa.Table, columns: Sequence[str]) -> dict[str, int]:
    """Returns the counters of the labels of pages, given the columns of labels."""
    sizes = {_PAGES: [1] * len(pages), _BYTES: pc.binary_length(pages["text"]).to_pylist()}
    sums = {name: sum_by_label(pages, columns, each) for name, each in sizes.items()}
    return {f"{name}{label}": number for name, each in sums.items() for label, number in each.items()}


def sum_label_tokens(totals: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Counter[str]:
    """Returns the tokens of each label, given the `totals` of `tokens.json`, by language and split."""
    splits = [split for language in totals.values() for split in language.values()]
    return sum((Counter(split.get("labels", {})) for split in splits), Counter[str]())


def counts_by_label(counts: Mapping[str, int]) -> dict[str, list[tuple[str, int, int]]]:
    """Returns each label ("" for none) with its pages and bytes by column, the most pages first, given the counters of
    a corpus.
    """
    found: dict[str, list[tuple[str, int, int]]] = {}
    for name, pages in counts.items():
        if name.startswith(_PAGES) and pages:
            column, _, label = name.removeprefix(_PAGES).partition("/")
            found.setdefault(column, []).append((label, pages, counts[f"{_BYTES}{column}/{label}"]))
    return {column: sorted(labels, key=lambda each: (-each[1], each[0])) for column, labels in found.items()}
