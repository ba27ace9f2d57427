"""Looks one URL up in the work files of a corpus.

The files are read as deduplication reads them, one at a time, but only the rows that matter to the URL are kept.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.work_reader import read_kept, row_groups, url_rows
from c4pipe.dedup import shuffle
from c4pipe.explain.near_cluster import NearPage, staying_pages
from c4pipe.filters.duplicates import Rows, find_repeats, find_stale_captures
from c4pipe.filters.spans import U64
from c4pipe.io.paths import StoragePath

_NO_STALE = np.empty(0, shuffle.STALE_ROW)


class WorkFiles:
    """Work files, numbered from 0 in the order in which deduplication reads them."""

    def __init__(self, files: Sequence[StoragePath]) -> None:
        self._files = files

    def captures(self, url_keys: set[int]) -> tuple[Rows, Rows]:
        """Returns the captures of the URLs with these keys: (the newest of each URL, all stale ones), as URL_ROW."""
        keys = np.array(sorted(url_keys), np.uint64)
        rows = (url_rows(path, file) for file, path in enumerate(self._files))
        return find_stale_captures(np.concatenate([each[np.isin(each["hash"], keys)] for each in rows]))

    def page(self, capture: Any) -> dict[str, Any]:
        """Returns the row of a work file that a URL_ROW points to: its values by column."""
        row = int(capture["row"])
        for table in row_groups(self._files[capture["file"]]):
            if row < len(table):
                break
            row -= len(table)
        values: dict[str, Any] = table.slice(row, 1).to_pylist()[0]
        return values

    def staying_pages(self, page_keys: U64, near: Mapping[str, Any]) -> dict[int, NearPage]:
        """Returns the page that stays of the cluster of each page, the newest of its URL (see `near_cluster`)."""
        return staying_pages(self._files, self._stale, page_keys, near)

    @cached_property
    def _stale(self) -> list[Any]:
        """For each file, the numbers of the rows that are stale captures."""
        _, stale = find_stale_captures(np.concatenate([url_rows(path, file) for file, path in enumerate(self._files)]))
        return [stale["row"][stale["file"] == file] for file in range(len(self._files))]

    def repeats(
        self, page_key: int, span_hashes: Sequence[int], moved: Rows, near: Mapping[str, Any]
    ) -> tuple[list[tuple[int, str]], list[int]]:
        """Returns the repeated spans of a page.

        Args:
            page_key: the key of a page that is the newest capture of its URL.
            span_hashes: the hashes of its spans.
            moved: the spans whose copy is not at their first place (MOVED).
            near: the parameters of the rule `near_duplicate`; empty without the rule.

        Returns:
            Of each span that another place keeps, in the order of the page: the number of its first unit, from 0, and
            the URL of the page that keeps it. And the first units of the repeated spans that this page keeps.
        """
        if not span_hashes:
            return [], []
        rows, urls = self._spans(np.array(span_hashes, np.uint64))
        if near:
            stays = self.staying_pages(np.unique(rows["page"]), near)
            dropped = [key for key, page in stays.items() if page.page_key != key]
            rows = rows[~np.isin(rows["page"], np.array(dropped, np.uint64))]
        first, repeats = find_repeats(rows)
        first = first[np.isin(first["hash"], repeats["hash"])]
        keepers = {int(each["hash"]): (int(each["page"]), int(each["unit"])) for each in first}
        keepers |= {int(each["hash"]): (int(each["page"]), int(each["unit"])) for each in moved}
        files = {int(each["page"]): int(each["file"]) for each in rows}
        lost: list[tuple[int, str]] = []
        kept: list[int] = []
        for unit, span in enumerate(span_hashes):
            keeper = keepers.get(span)
            if keeper == (page_key, unit):
                kept.append(unit)
            elif keeper is not None:
                lost.append((unit, urls[files[keeper[0]], keeper[0]]))
        return lost, kept

    def _spans(self, hashes: U64) -> tuple[Rows, dict[tuple[int, int], str]]:
        """Returns the spans with these hashes in the newest captures, and the URL of each page by file and page key."""
        captures = {file: self._pages_with(hashes, file, _NO_STALE) for file in range(len(self._files))}
        files = [file for file, pages in captures.items() if len(pages)]
        _, stale = self.captures({key for file in files for key in captures[file]["url_key"].to_pylist()})
        rows: list[Rows] = []
        urls: dict[tuple[int, int], str] = {}
        for file in files:
            pages = self._pages_with(hashes, file, stale)
            spans = shuffle.span_rows(pages["page_key"].to_numpy(), file, pages["span_hashes"].combine_chunks())
            rows.append(spans[np.isin(spans["hash"], hashes)])
            for key, url in zip(pages["page_key"].to_pylist(), pages["url"].to_pylist(), strict=True):
                urls[file, key] = url
        return np.concatenate(rows), urls

    def _pages_with(self, hashes: U64, file: int, stale: Rows) -> pa.Table:
        """Returns the pages of a work file that have one of these spans, without the captures in `stale`."""
        columns = ["url_key", "page_key", "url", "span_hashes"]
        tables = []
        for pages, _ in read_kept(self._files[file], columns, stale["row"][stale["file"] == file]):
            spans = pages["span_hashes"].combine_chunks()
            rows = pc.list_parent_indices(spans).to_numpy()[np.isin(spans.flatten().to_numpy(), hashes)]
            tables.append(pages.take(pa.array(np.unique(rows))))
        return pa.concat_tables(tables).combine_chunks()
