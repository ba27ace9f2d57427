"""The work files of a corpus, asked about one URL. No Beam.

They are read as dedup reads them, a file at a time, but only the rows that have to do with the URL are kept.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from c4pipe.clean.work_file import read_kept, url_rows
from c4pipe.dedup import shuffle
from c4pipe.filters.duplicates import Rows, find_repeats, find_stale_captures
from c4pipe.filters.spans import U64
from c4pipe.io.paths import StoragePath, parquet_source

_NONE_OLDER = np.empty(0, shuffle.STALE_ROW)


class WorkFiles:
    """Work files, numbered in the order in which dedup takes them."""

    def __init__(self, files: Sequence[StoragePath]) -> None:
        self._files = files

    def captures(self, url_keys: set[int]) -> tuple[Rows, Rows]:
        """Returns (the newest capture of each URL, all others) as URL_ROW, of the URLs of these keys."""
        keys = np.array(sorted(url_keys), np.uint64)
        rows = (url_rows(path, file) for file, path in enumerate(self._files))
        return find_stale_captures(np.concatenate([each[np.isin(each["hash"], keys)] for each in rows]))

    def page(self, capture: Any) -> dict[str, Any]:
        """Returns the row of a work file that a URL_ROW names, by column."""
        file = pq.ParquetFile(parquet_source(self._files[capture["file"]]))
        row, group = int(capture["row"]), 0
        while row >= (size := file.metadata.row_group(group).num_rows):
            row, group = row - size, group + 1
        values: dict[str, Any] = file.read_row_group(group).slice(row, 1).to_pylist()[0]
        return values

    def repeats(self, page_key: int, span_hashes: Sequence[int]) -> list[tuple[int, str]]:
        """Returns the spans that a page loses.

        Args:
            page_key: the key of a page that is the newest of its URL.
            span_hashes: the hashes of its spans.

        Returns: (the span's first unit, the URL of the page that keeps it), in the page's order.
        """
        if not span_hashes:
            return []
        rows, urls = self._spans(np.array(span_hashes, np.uint64))
        first, repeats = find_repeats(rows)
        keepers = {int(each["hash"]): urls[int(each["file"]), int(each["page"])] for each in first}
        mine = np.sort(repeats[repeats["page"] == np.uint64(page_key)], order="unit")
        return [(int(each["unit"]), keepers[int(each["hash"])]) for each in mine]

    def _spans(self, hashes: U64) -> tuple[Rows, dict[tuple[int, int], str]]:
        """Returns the spans of these hashes in the newest pages, and the URLs of their pages by file and page key."""
        captures = {file: self._pages_with(hashes, file, _NONE_OLDER) for file in range(len(self._files))}
        files = [file for file, pages in captures.items() if len(pages)]
        _, older = self.captures({key for file in files for key in captures[file]["url_key"].to_pylist()})
        rows: list[Rows] = []
        urls: dict[tuple[int, int], str] = {}
        for file in files:
            pages = self._pages_with(hashes, file, older)
            spans = shuffle.span_rows(pages["page_key"].to_numpy(), file, pages["span_hashes"].combine_chunks())
            rows.append(spans[np.isin(spans["hash"], hashes)])
            for key, url in zip(pages["page_key"].to_pylist(), pages["url"].to_pylist(), strict=True):
                urls[file, key] = url
        return np.concatenate(rows), urls

    def _pages_with(self, hashes: U64, file: int, older: Rows) -> pa.Table:
        """Returns the pages of a work file that have one of these spans, without the captures in `older`."""
        columns = ["url_key", "page_key", "url", "span_hashes"]
        tables = []
        for pages, _ in read_kept(self._files[file], columns, older["row"][older["file"] == file]):
            spans = pages["span_hashes"].combine_chunks()
            rows = pc.list_parent_indices(spans).to_numpy()[np.isin(spans.flatten().to_numpy(), hashes)]
            tables.append(pages.take(pa.array(np.unique(rows))))
        return pa.concat_tables(tables).combine_chunks()
