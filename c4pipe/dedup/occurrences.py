"""Occurrences of repeated spans: rows of fixed width that job 2 sends to the pages' groups. No object for a span.

Consecutive spans of a page that are all kept or all removed share one row: a *run*.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.clean.work_file import read_kept
from c4pipe.dedup import shuffle
from c4pipe.dedup.known import SPANS as SPANS_OF_INDEX
from c4pipe.dedup.known import Known, KnownHashes
from c4pipe.dedup.near_pages import NEAR_DUPLICATES
from c4pipe.dedup.shuffle import (
    KNOWN_GROUP,
    MARK,
    MARKS,
    REPEATED,
    REPEATED_SPANS,
    SPANS,
    STALE_CAPTURES,
)
from c4pipe.dedup.step import DedupStep, Made, Received, RowStep, rows_of
from c4pipe.io.paths import storage_path
from c4pipe.text.duplicates import SPAN_ROW, Rows, find_repeats


def expand(runs: Rows) -> Rows:
    """Returns a row for each span of some runs, with `count` 1."""
    counts = runs["count"].astype(np.intp)
    rows = np.repeat(runs, counts)
    index = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    for name in ("unit", "other_unit"):
        if name in (rows.dtype.names or ()):
            rows[name] += index.astype(np.uint32)
    rows["count"] = 1
    return rows


def order_of_occurrences(rows: Rows) -> npt.NDArray[np.intp]:
    """Returns the indices that sort rows by their occurrence."""
    return np.lexsort((rows["unit"], rows["page"]))


def occurrence_numbers(rows: Rows) -> npt.NDArray[np.intp]:
    """Returns a number for each row: equal occurrences have equal numbers, in the order of the occurrences."""
    order = order_of_occurrences(rows)
    pages, units = rows["page"][order], rows["unit"][order]
    new = np.r_[False, (pages[1:] != pages[:-1]) | (units[1:] != units[:-1])][: len(rows)]
    numbers = np.empty(len(rows), np.intp)
    numbers[order] = np.cumsum(new)
    return numbers


def runs_of(rows: Rows) -> Rows:
    """Returns rows of single spans as runs, in the order of the occurrences.

    Spans make a run if their units are consecutive, the units of their other occurrences are consecutive, too, and all
    other fields are equal.
    """
    rows = rows[np.lexsort((rows["unit"], rows["page"]))]
    if not len(rows):
        return rows
    follows = np.ones(len(rows) - 1, bool)
    for name in rows.dtype.names or ():
        before, after = rows[name][:-1], rows[name][1:]
        follows &= after == before + np.uint32(1) if name in ("unit", "other_unit") else after == before
    starts = np.flatnonzero(np.r_[True, ~follows])
    runs = rows[starts]
    runs["count"] = np.diff(np.r_[starts, len(rows)])
    return runs


def repeated_in_group(first: Rows, repeats: Rows, group: int) -> Rows:
    """Returns the REPEATED rows of a group's own repeats. `first` has the group's first span of each hash
    (`find_repeats`).
    """
    return runs_of(_repeated(repeats, first[np.searchsorted(first["hash"], repeats["hash"])], group))


def repeated_in_bucket(first: Rows, repeats: Rows, files: int) -> Rows:
    """Returns the REPEATED rows of the repeated spans of a bucket, with a field `file`, in the order of the hashes.

    Args:
        first: the first span of each hash (SPAN_ROW).
        repeats: all others, sorted by hash, page key and unit.
        files: how many files make a group.
    """
    firsts = first[np.searchsorted(first["hash"], repeats["hash"])]
    starts = np.flatnonzero(np.r_[True, repeats["hash"][1:] != repeats["hash"][:-1]][: len(repeats)])
    rows = np.concatenate([firsts[starts], repeats])
    others = np.concatenate([repeats[starts], firsts])
    routed = np.empty(len(rows), [*REPEATED.descr, ("file", "<u4")])
    repeated = _repeated(rows, others, others["file"] // np.uint32(files))
    for name in REPEATED.names or ():
        routed[name] = repeated[name]
    routed["file"] = rows["file"]
    return routed


def repeated_in_known(rows: Rows) -> Rows:
    """Returns the REPEATED rows of SPAN_ROW rows whose spans a known corpus has."""
    others = rows.copy()
    others["page"] = 0
    return _repeated(rows, others, KNOWN_GROUP)


def _repeated(rows: Rows, others: Rows, group: Any) -> Rows:
    """Returns the REPEATED rows of SPAN_ROW rows, each with another occurrence of its span."""
    repeated = np.empty(len(rows), REPEATED)
    repeated["page"], repeated["unit"], repeated["count"] = rows["page"], rows["unit"], 1
    repeated["other_page"], repeated["other_unit"], repeated["other_group"] = others["page"], others["unit"], group
    return repeated


def marks_of(rows: Rows, survives: Any) -> Rows:
    """Returns the MARK rows of occurrences; `survives` (one value, or one for each) tells whether the page keeps the
    span.
    """
    marks = np.empty(len(rows), MARK)
    marks["page"], marks["unit"], marks["count"], marks["survives"] = rows["page"], rows["unit"], 1, survives
    return runs_of(marks)


class ReadSpans(DedupStep):
    """The files, stale captures and near-duplicates of a group -> its spans, by bucket, and its own repeats."""

    sends = (SPANS, REPEATED_SPANS, MARKS)
    tallied = ("spans",)

    def run(self, received: Received) -> Iterator[Made]:
        """Reads the span rows of a group, finds the repeats inside the group, and sends the other spans to their
        buckets.
        """
        stale, near = received.rows(STALE_CAPTURES), received.rows(NEAR_DUPLICATES)
        rows = []
        for file, path in received.files:
            dropped = np.r_[rows_of(stale, file), rows_of(near, file)]
            for pages, left_out in read_kept(storage_path(path), ["page_key", "span_hashes"], dropped):
                hashes = pages["span_hashes"].combine_chunks()
                rows.append(shuffle.span_rows(pages["page_key"].to_numpy(), file, hashes))
                self._tally("spans", len(pages) + left_out)
        # Each group finds its own repeats first: so a group sends only one row even of the most frequent span.
        first, repeats = find_repeats(np.concatenate([np.empty(0, SPAN_ROW), *rows]))
        yield SPANS.to_buckets(first, self._plan.span_bits)
        if self._plan.moves_survivors:
            yield REPEATED_SPANS.to_group(repeated_in_group(first, repeats, received.key), received.key)
        else:
            yield MARKS.to_group(marks_of(repeats, survives=0), received.key)


class FindRepeats(RowStep):
    """The spans of a bucket -> the occurrences of repeated spans, by the group of their file."""

    sends = (REPEATED_SPANS, MARKS)

    def __init__(self, spill: str, files: int, moves_survivors: bool, known: Sequence[Known] = ()) -> None:
        """Takes the spill folder, how many files make a group, whether copies of spans can move, and the indexes of
        known corpora.
        """
        super().__init__(spill)
        self._files, self._moves_survivors, self._corpora = files, moves_survivors, known

    def setup(self) -> None:
        super().setup()
        self._known = KnownHashes(self._corpora)

    def run(self, received: Received) -> Iterator[Made]:
        """Finds the repeated spans of a bucket, and the spans that known corpora have."""
        first, repeats = find_repeats(received.rows(SPANS))
        if self._corpora:
            in_known = self._known.mask(SPANS_OF_INDEX, first["hash"])
            known_repeats = np.isin(repeats["hash"], first["hash"][in_known])
            known = np.concatenate([first[in_known], repeats[known_repeats]])
            first, repeats = first[~in_known], repeats[~known_repeats]
            yield {"spans.known": int(in_known.sum())}
            yield from self._send_known(known)
        if self._moves_survivors:
            repeated = repeated_in_bucket(first, repeats, self._files)
            yield REPEATED_SPANS.to_groups(repeated, repeated["file"] // self._files)
        else:
            for group, rows in shuffle.by_number(repeats, repeats["file"] // self._files):
                yield MARKS.to_group(marks_of(rows, survives=0), group)

    def _send_known(self, known: Rows) -> Iterator[Made]:
        """Sends the occurrences of spans that known corpora have."""
        for group, rows in shuffle.by_number(known, known["file"] // np.uint32(self._files)):
            if self._moves_survivors:
                yield REPEATED_SPANS.to_group(runs_of(repeated_in_known(rows)), group)
            else:
                yield MARKS.to_group(marks_of(rows, survives=0), group)
