"""Occurrences of repeated spans: rows of fixed width that job 2 sends to the pages' groups. No object for a span.

Consecutive spans of a page that are all kept or all removed share one row: a *run*.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.clean.work_file import read_kept
from c4pipe.dedup.known import SPAN_HASHES, Known, KnownHashes
from c4pipe.dedup.near_pages import NEAR_DUPLICATES
from c4pipe.dedup.order import find_repeats, order_of_occurrences
from c4pipe.dedup.shuffle import (
    KNOWN_GROUP,
    MARK,
    MARKS,
    OCCURRENCE,
    REPEATED,
    REPEATED_SPANS,
    SPAN_COLUMNS,
    SPAN_ROW,
    SPANS,
    STALE_CAPTURES,
    span_rows,
)
from c4pipe.dedup.step import DedupStep, Received, RowStep, StepItem, rows_of
from c4pipe.io.paths import storage_path
from c4pipe.io.rows import Rows, by_number, groups_of, ranges


def expand(runs: Rows) -> Rows:
    """Returns a row for each span of some runs, with `count` 1."""
    rows = np.repeat(runs, runs["count"])
    for name in ("unit", "other_unit"):
        if name in (rows.dtype.names or ()):
            rows[name] = ranges(runs[name], runs["count"])
    rows["count"] = 1
    return rows


def runs_of(rows: Rows) -> Rows:
    """Returns rows of single spans as runs, in the order of the occurrences.

    Spans make a run if their units are consecutive, the units of their other occurrences are consecutive, too, and all
    other fields are equal.
    """
    rows = rows[order_of_occurrences(rows)]
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
    """Returns the REPEATED rows of a group's own repeats, given the results of `find_repeats`."""
    return runs_of(_repeated(repeats, first[np.searchsorted(first["hash"], repeats["hash"])], group))


def repeated_in_bucket(first: Rows, repeats: Rows, files: int) -> tuple[Rows, npt.NDArray[np.uint32]]:
    """Returns the REPEATED rows of the repeated spans of a bucket, in the order of the hashes, and the group of each.

    Args:
        first: the first span of each hash, as `find_repeats` returns it.
        repeats: all others.
        files: how many files make a group.
    """
    firsts = first[np.searchsorted(first["hash"], repeats["hash"])]
    starts, _ = groups_of(repeats["hash"])
    rows = np.concatenate([firsts[starts], repeats])
    others = np.concatenate([repeats[starts], firsts])
    return _repeated(rows, others, others["file"] // np.uint32(files)), rows["file"] // np.uint32(files)


def repeated_in_known(rows: Rows) -> Rows:
    """Returns the REPEATED rows of SPAN_ROW rows whose spans a known corpus has."""
    others = rows.copy()
    others["page"] = 0
    return _repeated(rows, others, KNOWN_GROUP)


def _repeated(rows: Rows, others: Rows, group: Any) -> Rows:
    """Returns the REPEATED rows of SPAN_ROW rows, each with another occurrence of its span."""
    repeated = np.empty(len(rows), REPEATED)
    repeated["count"], repeated["other_group"] = 1, group
    for name in OCCURRENCE.names or ():
        repeated[name], repeated[f"other_{name}"] = rows[name], others[name]
    return repeated


def marks_of(rows: Rows, survives: Any) -> Rows:
    """Returns the MARK rows of occurrences, given whether their pages keep them: one value, or a value for each."""
    marks = np.empty(len(rows), MARK)
    marks["count"], marks["survives"] = 1, survives
    for name in OCCURRENCE.names or ():
        marks[name] = rows[name]
    return runs_of(marks)


class ReadSpans(DedupStep):
    """The files, stale captures and near-duplicates of a group -> its spans, by bucket, and its own repeats."""

    sends = (SPANS, REPEATED_SPANS, MARKS)
    tallied = ("spans",)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Reads the spans of a group, finds the group's own repeats, and sends the other spans to their buckets."""
        stale, near = received.rows(STALE_CAPTURES), received.rows(NEAR_DUPLICATES)
        rows = []
        for file, path in received.files:
            dropped = np.r_[rows_of(stale, file), rows_of(near, file)]
            for pages, left_out in read_kept(storage_path(path), SPAN_COLUMNS, dropped):
                rows.append(span_rows(pages, file))
                self._tally("spans", len(pages) + left_out)
        # Each group finds its own repeats first, so a group sends only one row even of the most frequent span.
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
        """Takes the spill folder, the files of a group, whether survivors can move, and indexes of known corpora."""
        super().__init__(spill)
        self._files, self._moves_survivors, self._corpora = files, moves_survivors, known

    def setup(self) -> None:
        super().setup()
        self._known = KnownHashes(self._corpora)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Finds the repeated spans of a bucket, and the spans that known corpora have."""
        first, repeats = find_repeats(received.rows(SPANS))
        known = first[:0]
        if self._corpora:
            in_known = self._known.mask(SPAN_HASHES, first["hash"])
            known_repeats = np.isin(repeats["hash"], first["hash"][in_known])
            known = np.concatenate([first[in_known], repeats[known_repeats]])
            first, repeats = first[~in_known], repeats[~known_repeats]
            yield {"spans.known": int(in_known.sum())}
        if not self._moves_survivors:
            lost = np.concatenate([repeats, known])
            for group, rows in by_number(lost, lost["file"] // np.uint32(self._files)):
                yield MARKS.to_group(marks_of(rows, survives=0), group)
            return
        yield REPEATED_SPANS.to_groups(*repeated_in_bucket(first, repeats, self._files))
        for group, rows in by_number(known, known["file"] // np.uint32(self._files)):
            yield REPEATED_SPANS.to_group(runs_of(repeated_in_known(rows)), group)
