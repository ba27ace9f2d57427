"""The pages of a list that a takedown leaves out."""

import hashlib
import io
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.corpus.labels import count_labels
from c4pipe.corpus.manifest import TAKEDOWN
from c4pipe.errors import UsageError
from c4pipe.io.text import lines_of, open_list
from c4pipe.io.words import FILE_ERRORS, explain_errors, short, visible
from c4pipe.lists.addresses import compared_address, covering_entries, listed_forms, opt_out_entry
from c4pipe.lists.lists import bad_entry, listed_places
from c4pipe.text.hashes import U64, url_key
from c4pipe.text.languages import language_counter

_SUFFIX = re.compile(r"((ac|co|com|edu|go|gob|gouv|gov|ne|net|nom|or|org)\.[a-z]{2}|[^./]+)")  # most public suffixes
_COUNTER = f"pages.dropped.{TAKEDOWN}"

MOST_NAMED = 5
"""The most entries that a note names."""


@dataclass(frozen=True)
class PageList:
    """The pages of a list.

    Attributes:
        kind: `urls` for whole URLs; `domains` for hosts, with their subdomains, and hosts with a path.
        sha256: of the files, with a line end between two.
        keys: the keys of its entries, sorted.
        numbers: the number of the entry of each key, from 0, in the order of the lines.
        paths: the files.
    """

    kind: str
    sha256: str
    keys: U64
    numbers: npt.NDArray[np.uint32]
    paths: Sequence[Path]

    def entries_with(self, url: str) -> list[int]:
        """Returns the numbers of the entries that have a URL."""
        forms = covering_entries(url) if self.kind == "domains" else (compared_address(url),)
        return [int(each) for each in self.numbers[listed_places(self.keys, [url_key(form) for form in forms])]]

    def has(self, url: str) -> bool:
        """Tells whether the list has a URL."""
        return bool(self.entries_with(url))

    def named(self, numbers: Sequence[int]) -> list[str]:
        """Returns the first entries with some numbers, as a note shows them. A pipe, which was read, has none."""
        lines = filter(None, map(str.strip, chain.from_iterable(map(lines_of, self.paths))))
        wanted = numbers[:MOST_NAMED]
        found = {number: line for number, line in enumerate(islice(lines, max(wanted) + 1)) if number in wanted}
        return [repr(short(visible(found[number]), 60)) for number in wanted if number in found]


def read_page_list(kind: str, paths: Sequence[Path], on_note: Callable[[str], None]) -> PageList:
    """Returns the pages of lists, files with one URL or one host on each line. Notes hosts that are public suffixes.

    Raises UsageError if a file can't be read, has no entry, or an entry that is no host.
    """
    digest, keys, numbers, number = hashlib.sha256(), array("Q"), array("I"), 0
    for path in paths:
        before = len(keys)
        with explain_errors(f"--{kind} {path} can't be read", "give a text file", errors=FILE_ERRORS):
            with open_list(path) as file:
                data = file.read()  # a pipe can be read once
            digest.update(b"\n" * bool(number) + data)
            for line_number, line in enumerate(lines_of(path, io.BytesIO(data)), 1):
                if not (entry := line.strip()):
                    continue
                try:
                    forms = {opt_out_entry(entry)} if kind == "domains" else listed_forms(entry)
                except ValueError as error:
                    raise bad_entry(f"--{kind} {path}", line_number, entry, error) from None
                if kind == "domains" and _SUFFIX.fullmatch(min(forms)):
                    on_note(f"warning: --{kind} {path}, line {line_number:,}: {entry!a} covers all hosts that end so")
                keys.extend(map(url_key, forms))
                numbers.extend([number] * len(forms))
                number += 1
        if len(keys) == before:
            raise UsageError(f"--{kind} {path} has no entry: give one on each line")
    found, places = np.unique(np.frombuffer(keys, np.uint64), return_index=True)
    return PageList(kind, digest.hexdigest(), found, np.frombuffer(numbers, np.uint32)[places], paths)


def count_lost(pages: pa.Table, labels: Sequence[str]) -> dict[str, int]:
    """Returns the counters of pages that a corpus loses, given its columns of labels."""
    size = int(pc.sum(pc.binary_length(pages["text"])).as_py() or 0)
    return {"pages.kept": len(pages), "bytes.kept": size, **count_labels(pages, labels)}


def counts_without(before: Mapping[str, int], parts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Returns the counters of the new corpus, from the old counters and the results for its shards."""
    counts = {_COUNTER: 0, **before}
    for part in parts:
        (language, split), pages = part["shard"], part["pages"]
        for name, number in part["lost"].items():
            counts[name] -= number
        if pages:
            for name in (f"pages.kept.{language}", *["pages.validation"] * (split == "validation")):
                counts[name] -= pages
            for name in (_COUNTER, language_counter(language, TAKEDOWN)):
                counts[name] = counts.get(name, 0) + pages
    return dict(sorted(counts.items()))
