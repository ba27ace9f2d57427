"""The pages of a group that are dropped because another page is nearly the same: which page stays, and how similar."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4pipe.clean.examples import EXAMPLES_PER_FILE, Example, make_example
from c4pipe.clean.work_reader import read_header, read_stale, row_groups
from c4pipe.dedup.near_pages import minima_of, similarities
from c4pipe.filters.duplicates import Rows
from c4pipe.io.paths import StoragePath

STAYING = pa.schema(
    [
        pa.field("page_key", pa.uint64(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        pa.field("minima", pa.binary(), nullable=False),
    ]
)
"""A page that stays, as the groups get to know it that drop a page for it."""

MOST = 20
"""How many of the largest clusters the report shows."""

_COLUMNS = ["page_key", "url", "timestamp", "text", "minima"]
Keys = npt.NDArray[np.uint64]


class NearDuplicates:
    """The pages of a group of files to drop."""

    def __init__(self, pairs: Rows, staying: Iterable[pa.Table]) -> None:
        """Takes a PAIR of each page to drop with the page that stays, and the STAYING rows of all those that stay."""
        self._pairs = pairs[np.argsort(pairs["page"])]
        table = pa.concat_tables([STAYING.empty_table(), *staying])
        table = table.take(pa.array(np.argsort(table["page_key"].to_numpy()))).combine_chunks()
        self._keys: Keys = table["page_key"].to_numpy()
        self._staying = table

    def rows(self, file: int) -> npt.NDArray[np.uint32]:
        """Returns the rows of a work file that are dropped."""
        rows: npt.NDArray[np.uint32] = self._pairs["row"][self._pairs["file"] == file]
        return rows

    def pages(self, path: StoragePath, rows: npt.NDArray[np.uint32]) -> Iterator[pa.Table]:
        """Yields pages to drop, some at a time, given their rows in a work file.

        Columns: `page_key`, `url`, `timestamp`, `text` and `fact`, which says what page stays.
        """
        for pages in read_stale(path, _COLUMNS, rows) if len(rows) else ():
            if len(pages):
                yield pages.drop_columns(["minima"]).append_column("fact", pa.array(self._facts(pages), pa.string()))

    def urls(self, path: StoragePath, file: int) -> tuple[Rows, pa.Array, pa.Array]:
        """Returns the PAIRs of the pages of a work file to drop, their URLs, and those of the pages that stay."""
        pairs = self._pairs[self._pairs["file"] == file]
        # All pages that stay have come, unless the runner lost some: the control totals tell that.
        pairs = pairs[np.isin(pairs["first_page"], self._keys)]
        pairs = pairs[np.argsort(pairs["row"])]
        staying = self._staying["url"].take(pa.array(np.searchsorted(self._keys, pairs["first_page"])))
        return pairs, read_staying(path, pairs["row"], ["url"])["url"].combine_chunks(), staying.combine_chunks()

    def _facts(self, pages: pa.Table) -> list[str]:
        stays = self._pairs["first_page"][np.searchsorted(self._pairs["page"], pages["page_key"].to_numpy())]
        if not np.isin(stays, self._keys).all():  # the runner lost pages: the control totals tell, nothing is published
            return [""] * len(pages)
        staying = self._staying.take(pa.array(np.searchsorted(self._keys, stays)))
        shares = similarities(minima_of(pages["minima"]), minima_of(staying["minima"]))
        pairs = zip(staying["url"].to_pylist(), shares.tolist(), strict=True)
        return [f"{url} stays; the estimated similarity is {share:.2f}" for url, share in pairs]

    def examples(self, path: StoragePath, file: int) -> list[Example]:
        """Returns examples of the pages of a work file to drop."""
        mine = self._pairs[self._pairs["file"] == file][:EXAMPLES_PER_FILE]  # in the order of their keys
        return [
            make_example("near_duplicate", page["page_key"], page["url"], page["timestamp"], page["fact"], [""])
            for pages in self.pages(path, mine["row"])
            for page in pages.to_pylist()
        ]


def read_staying(
    path: StoragePath, rows: npt.NDArray[np.uint32], columns: Sequence[str] = tuple(STAYING.names)
) -> pa.Table:
    """Returns some columns of STAYING rows of a work file, given the numbers of the rows in ascending order."""
    schema = pa.schema([STAYING.field(name) for name in columns])
    found, first = [schema.empty_table()], 0
    for table in row_groups(path, columns) if len(rows) else ():
        here = rows[(rows >= first) & (rows < first + len(table))] - first
        found.append(table.take(pa.array(here)).cast(schema))
        first += len(table)
    return pa.concat_tables(found).combine_chunks()


def crawl_key(path: StoragePath, near: Mapping[str, Any]) -> int:
    """Returns what tells the crawl of a work file from others: a hash of its name, in 64 bits.

    It is 0 where the WET file names no crawl, so such files count as one crawl, and where pages of all crawls are
    compared.

    Args:
        path: the work file.
        near: the parameters of the rule `near_duplicate`.
    """
    name = read_header(path).crawl if near["within"] == "crawl" else ""
    return int(mmh3.hash64(name, signed=False)[0]) if name else 0


def encode(staying: pa.Table) -> bytes:
    """Returns STAYING rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, STAYING) as stream:
        stream.write_table(staying)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def decode(data: bytes) -> pa.Table:
    """Returns the STAYING rows of an Arrow stream."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


def largest_clusters(clusters: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the largest of all clusters for the report, given `pages`, `url` and `key` of each; ties by key."""
    most = sorted(clusters, key=lambda each: (-each["pages"], each["key"]))[:MOST]
    return [{"pages": each["pages"], "url": each["url"]} for each in most]
