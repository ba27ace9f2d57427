"""Which spans repeat most, for the report: counted from the spans that are removed. No Beam, no object for a span."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa

from c4pipe.clean import read_kept
from c4pipe.display import short
from c4pipe.filters import Rows, cut
from c4pipe.io import StoragePath
from c4pipe.report import domains

REPEAT = np.dtype([("hash", "<u8"), ("domain", "<u8"), ("page", "<u8"), ("file", "<u4"), ("unit", "<u4")])
"""A span that is removed from its page: its hash, the hash of the page's host, and where it is."""

MOST = 20
"""How many spans the report shows."""

_SIZE = 301  # characters of a span that are shown, with the mark at its cut

Repeat = dict[str, Any]
"""A repeated span: `times` it occurs, `domains` of the pages it was removed from, its `hash`, and one of its places."""


class RemovedSpans:
    """The spans that are removed from the pages of a group, with file and host of each page."""

    def __init__(self, drops: Rows) -> None:
        """Takes the drops of the group (`shuffle.DROP`)."""
        self._drops = drops
        self._pages = np.unique(drops["page"])
        self._file = np.zeros(len(self._pages), np.uint32)
        self._domain = np.zeros(len(self._pages), np.uint64)

    def add(self, pages: pa.Table, file: int) -> None:
        """Notes file and host of those pages of a file that have drops; needs the columns `page_key` and `url`."""
        if not len(self._pages):
            return
        keys = pages["page_key"].to_numpy()
        places = np.minimum(np.searchsorted(self._pages, keys), len(self._pages) - 1)
        has_drops = self._pages[places] == keys
        hosts = domains(pages["url"].filter(pa.array(has_drops)).combine_chunks()).to_pylist()
        self._file[places[has_drops]] = file
        self._domain[places[has_drops]] = [mmh3.hash64(host or "", signed=False)[0] for host in hosts]

    def rows(self) -> Rows:
        """Returns a REPEAT row for each drop, in the order of the hashes."""
        places = np.searchsorted(self._pages, self._drops["page"])
        rows = np.empty(len(self._drops), REPEAT)
        for name in ("hash", "page", "unit"):
            rows[name] = self._drops[name]
        rows["file"], rows["domain"] = self._file[places], self._domain[places]
        return rows[np.argsort(rows["hash"], kind="stable")]


def most_repeated(rows: Rows) -> list[Repeat]:
    """Returns the spans that are removed most often, given all REPEAT rows of their hashes; ties by hash."""
    rows = rows[np.lexsort((rows["unit"], rows["page"], rows["domain"], rows["hash"]))]
    hashes = rows["hash"]
    starts = np.flatnonzero(np.r_[True, hashes[1:] != hashes[:-1]]) if len(rows) else np.empty(0, np.int64)
    new_domain = np.r_[True, rows["domain"][1:] != rows["domain"][:-1]] if len(rows) else np.empty(0, bool)
    new_domain[starts] = True
    removed = np.diff(np.r_[starts, len(rows)])
    hosts = np.add.reduceat(new_domain.astype(np.int64), starts) if len(starts) else removed
    chosen = np.lexsort((hashes[starts], -removed))[:MOST]
    return [
        {
            "times": int(removed[each]) + 1,  # one copy stays
            "domains": int(hosts[each]),
            **{name: int(rows[name][starts[each]]) for name in ("hash", "page", "file", "unit")},
        }
        for each in chosen.tolist()
    ]


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
    for pages, _ in read_kept(file, ["page_key", "text", "unit_starts"], np.empty(0, np.uint32)):
        for row in np.flatnonzero(np.isin(pages["page_key"].to_numpy(), wanted)).tolist():
            (page,) = pages.slice(row, 1).to_pylist()
            for span in spans:
                if span["page"] == page["page_key"] and span["hash"] not in texts:
                    units = cut(page["text"], page["unit_starts"])[span["unit"] : span["unit"] + size]
                    texts[span["hash"]] = short("".join(units).strip(), _SIZE)
    if len(texts) < len(spans):
        raise OSError(f"{file} does not have the page of a span that came from it")
    return texts
