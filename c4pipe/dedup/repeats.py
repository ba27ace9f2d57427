"""Which spans repeat most, for the report: counted from what pages lose. No Beam, no Python object per span."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa

from c4pipe.clean.work_file import read_kept
from c4pipe.display.excerpt import short
from c4pipe.filters.duplicates import Rows
from c4pipe.filters.spans import cut
from c4pipe.io.paths import StoragePath
from c4pipe.report.profile import domains

REPEAT = np.dtype([("hash", "<u8"), ("domain", "<u8"), ("page", "<u8"), ("file", "<u4"), ("unit", "<u4")])
"""A span that its page loses: its hash, the hash of the page's host, and where it is."""

MOST = 20
"""How many spans are told of."""

_SIZE = 301  # characters of a span that are shown, with the mark where it was cut

Repeat = dict[str, Any]
"""A repeated span: `times` it was there, `domains` of the pages that lost it, its `hash`, and where one of these is."""


class RemovedSpans:
    """The pages of a group that lose spans: the file and host of each."""

    def __init__(self, drops: Rows) -> None:
        """Takes the drops of the group (`exchange.DROP`)."""
        self._drops = drops
        self._pages = np.unique(drops["page"])
        self._file = np.zeros(len(self._pages), np.uint32)
        self._domain = np.zeros(len(self._pages), np.uint64)

    def add(self, pages: pa.Table, file: int) -> None:
        """Looks at pages of a file, with columns `page_key` and `url`."""
        if not len(self._pages):
            return
        keys = pages["page_key"].to_numpy()
        places = np.minimum(np.searchsorted(self._pages, keys), len(self._pages) - 1)
        loses = self._pages[places] == keys
        hosts = domains(pages["url"].filter(pa.array(loses)).combine_chunks()).to_pylist()
        self._file[places[loses]] = file
        self._domain[places[loses]] = [mmh3.hash64(host or "", signed=False)[0] for host in hosts]

    def rows(self) -> Rows:
        """Returns a REPEAT row for each drop, in the order of the hashes."""
        places = np.searchsorted(self._pages, self._drops["page"])
        rows = np.empty(len(self._drops), REPEAT)
        for name in ("hash", "page", "unit"):
            rows[name] = self._drops[name]
        rows["file"], rows["domain"] = self._file[places], self._domain[places]
        return rows[np.argsort(rows["hash"], kind="stable")]


def most_repeated(rows: Rows) -> list[Repeat]:
    """Returns the spans that are lost most often, given all REPEAT rows of their hashes; ties by hash."""
    rows = rows[np.lexsort((rows["unit"], rows["page"], rows["domain"], rows["hash"]))]
    hashes = rows["hash"]
    starts = np.flatnonzero(np.r_[True, hashes[1:] != hashes[:-1]]) if len(rows) else np.empty(0, np.int64)
    new_domain = np.r_[True, rows["domain"][1:] != rows["domain"][:-1]] if len(rows) else np.empty(0, bool)
    new_domain[starts] = True
    lost = np.diff(np.r_[starts, len(rows)])
    hosts = np.add.reduceat(new_domain.astype(np.int64), starts) if len(starts) else lost
    chosen = np.lexsort((hashes[starts], -lost))[:MOST]
    return [
        {
            "times": int(lost[each]) + 1,  # and once where it stays
            "domains": int(hosts[each]),
            **{name: int(rows[name][starts[each]]) for name in ("hash", "page", "file", "unit")},
        }
        for each in chosen.tolist()
    ]


def told(found: Iterable[Repeat], files: Sequence[StoragePath], size: int) -> list[Repeat]:
    """Returns the most repeated of all spans with their text, for the report.

    Args:
        found: what `most_repeated` found, in any order.
        files: the work files, by number.
        size: units in a span.
    """
    most = sorted(found, key=lambda each: (-each["times"], each["hash"]))[:MOST]
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
    """Returns the texts of spans that are in a work file, by their hashes."""
    texts: dict[int, str] = {}
    sought = np.array([span["page"] for span in spans], np.uint64)
    for pages, _ in read_kept(file, ["page_key", "text", "unit_starts"], np.empty(0, np.uint32)):
        for row in np.flatnonzero(np.isin(pages["page_key"].to_numpy(), sought)).tolist():
            (page,) = pages.slice(row, 1).to_pylist()
            for span in spans:
                if span["page"] == page["page_key"] and span["hash"] not in texts:
                    units = cut(page["text"], page["unit_starts"])[span["unit"] : span["unit"] + size]
                    texts[span["hash"]] = short("".join(units).strip(), _SIZE)
    if len(texts) < len(spans):
        raise OSError(f"{file} does not have the page of a span that came from it")
    return texts
