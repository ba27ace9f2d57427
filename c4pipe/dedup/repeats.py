"""Which spans repeat most, for the report: counted from the spans that are removed. No Beam, no object for a span."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.work_reader import row_groups
from c4pipe.dedup.removals import JOINED
from c4pipe.display.excerpts import short
from c4pipe.filters.duplicates import Rows
from c4pipe.filters.spans import cut
from c4pipe.io.paths import StoragePath

MOST = 20
"""How many spans the report shows."""

_ROWS_AT_ONCE = 512  # of a work file that are read at once
_SIZE = 301  # characters of a span that are shown, with the mark at its cut

Repeat = dict[str, Any]
"""A repeated span: `times` it occurs, `domains` of the pages it was removed from, its `hash`, and one of its places."""


def most_repeated(rows: Rows) -> list[Repeat]:
    """Returns the spans that are removed most often, given all REPEAT rows of their hashes; ties by hash."""
    rows = rows[np.lexsort((rows["unit"], rows["page"], rows["domain"], rows["hash"]))]
    hashes = rows["hash"]
    starts = np.flatnonzero(np.r_[True, hashes[1:] != hashes[:-1]]) if len(rows) else np.empty(0, np.int64)
    new_domain = np.r_[True, rows["domain"][1:] != rows["domain"][:-1]] if len(rows) else np.empty(0, bool)
    new_domain[starts] = True
    removed = np.diff(np.r_[starts, len(rows)])
    hosts = np.add.reduceat(new_domain.astype(np.int64), starts) if len(starts) else removed
    return [
        {
            "times": int(removed[each]) + 1,  # one copy stays
            "domains": int(hosts[each]),
            **_place(rows[starts[each] : starts[each] + removed[each]]),
        }
        for each in np.lexsort((hashes[starts], -removed))[:MOST].tolist()
    ]


def _place(rows: Rows) -> dict[str, int]:
    """Returns one place of a span, in the first of its work files: so the texts of all spans are in a few files."""
    first = rows[np.argmin(rows["file"])]
    return {name: int(first[name]) for name in ("hash", "page", "file", "unit")}


def joined_copies(rows: Rows) -> int:
    """Returns how many spans removal has joined that are in the corpus already, given all REPEAT rows of their hashes.

    A joined span is one more copy where the same span is repeated, so that a copy stays, or is joined elsewhere, too.
    """
    joined = rows["unit"] == JOINED
    hashes, times = np.unique(rows["hash"][joined], return_counts=True)
    once = ~np.isin(hashes, rows["hash"][~joined])
    return int(times.sum() - once.sum())


def with_texts(repeats: Iterable[Repeat], files: Sequence[StoragePath], size: int) -> list[Repeat]:
    """Returns the most repeated of all spans with their text, for the report.

    Args:
        repeats: what `most_repeated` returned for each bucket, in any order.
        files: the work files, by number.
        size: units in a span.
    """
    most = sorted(repeats, key=lambda each: (-each["times"], each["hash"]))[:MOST]
    texts: dict[int, str] = {}
    for number in sorted({each["file"] for each in most}):
        texts |= _texts(files[number], [each for each in most if each["file"] == number], size)
    return [
        {
            "times": each["times"],
            "domains": each["domains"],
            "hash": f"{each['hash']:016x}",
            "text": texts[each["hash"]],
        }
        for each in most
    ]


def _texts(file: StoragePath, spans: Sequence[Mapping[str, Any]], size: int) -> dict[int, str]:
    """Returns the texts of spans of a work file, by their hashes. Raises OSError if one of their pages is not there."""
    texts: dict[int, str] = {}
    wanted = np.array([span["page"] for span in spans], np.uint64)
    for pages in row_groups(file, ["page_key", "text", "unit_starts"], _ROWS_AT_ONCE):
        for row in np.flatnonzero(pc.is_in(pages["page_key"], pa.array(wanted)).to_numpy()).tolist():
            (page,) = pages.slice(row, 1).to_pylist()
            for span in spans:
                if span["page"] == page["page_key"] and span["hash"] not in texts:
                    units = cut(page["text"], page["unit_starts"])[span["unit"] : span["unit"] + size]
                    texts[span["hash"]] = short("".join(units).strip(), _SIZE)
        if len(texts) == len(spans):
            return texts
    raise OSError(f"{file} does not have the page of a span that came from it")
