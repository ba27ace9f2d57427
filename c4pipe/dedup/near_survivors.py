"""Near-duplicates: the steps that compare each page with the first page of its cluster, which stays.

The signature of a first page goes once to each group that has other pages of its cluster; with `similarity = "exact"`,
so does its text, if the estimate leaves a page in doubt. Pages that are unlike the first page meet in its group, which
settles the rest of the cluster alone: they are few.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4pipe.clean.work_file import NEAR_COLUMNS, WORK_SCHEMA, row_groups
from c4pipe.dedup import near_pages, shuffle
from c4pipe.dedup.shuffle import Sent, Shuffle, pack_table, unpack_table
from c4pipe.dedup.step import DedupPlan, DedupStep, Files, Received, StepItem
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.io.rows import Rows, arrow_array, by_number, unique, with_fields
from c4pipe.runners.graph import Graph, Output, Outputs
from c4pipe.text.hashes import U64
from c4pipe.text.minhash import U16, jaccard

_FIELDS = pa.schema([*WORK_SCHEMA, *NEAR_COLUMNS])


def schema_of(*names: str) -> pa.Schema:
    """Returns the schema of some columns of work files."""
    return pa.schema([_FIELDS.field(name) for name in names])


TEXT_PAGE = schema_of("page_key", "text", "language")
"""The columns of a page whose text decides."""

_NO_NGRAMS = np.empty(0, np.uint64)
_TEXTS_AT_ONCE = 4096  # of a group, with the texts of as many first pages
_ROWS_AT_ONCE = 8192  # of a work file


def read_rows(path: StoragePath, rows: npt.NDArray[np.uint32], schema: pa.Schema) -> pa.Table:
    """Returns rows of a work file with the columns of a schema, given their numbers in ascending order."""
    found, first = [schema.empty_table()], 0
    for table in row_groups(path, schema.names, _ROWS_AT_ONCE) if len(rows) else ():
        here = rows[(rows >= first) & (rows < first + len(table))] - first
        found.append(table.take(arrow_array(here)).cast(schema))
        first += len(table)
        if first > rows[-1]:
            break
    return pa.concat_tables(found).combine_chunks()


def keep_similar(graph: Graph, files: Output, dropped: Outputs, similar: Output, plan: DedupPlan) -> list[Outputs]:
    """Adds the steps that drop only pages that are like the page that stays.

    Args:
        graph: the graph.
        files: (group, its work files).
        dropped: the outputs of the step that chose the pages to drop.
        similar: the output through CLUSTERS with all similar pairs.
        plan: the parameters of the steps.

    Returns:
        Outputs through NEAR_DUPLICATES and STAYING.
    """
    compared = _compare(graph, files, dropped, [similar], plan, "")
    settled = graph.add("Settle clusters", SettleClusters(plan), compared["open_pages"], compared["links"])
    if plan.near and plan.near.similarity == "exact":
        settled = _compare(graph, files, settled, [], plan, " of settled clusters")
    return [compared, settled]


def _compare(
    graph: Graph, files: Output, dropped: Outputs, similar: Sequence[Output], plan: DedupPlan, of: str
) -> Outputs:
    """Adds the steps that compare chosen pages with first pages; without similar pairs, pages unlike those stay."""
    chosen = dropped["near_duplicates"]
    first = graph.add(f"Send first signatures{of}", SendFirstSignatures(plan), files, chosen, dropped["staying"])
    given = [files, chosen, first["signatures"]]
    if plan.near and plan.near.similarity == "exact":
        asked = graph.add(f"Ask for texts{of}", AskForTexts(plan), *given)
        given.append(graph.add(f"Send texts{of}", SendTexts(plan), files, asked["staying"])["texts"])
    return graph.add(f"Compare with first pages{of}", CompareWithFirst(plan, not similar), *given, *similar)


class NearStep(DedupStep):
    """The base of the steps on near-duplicates."""

    def __init__(self, plan: DedupPlan) -> None:
        super().__init__(plan)
        assert plan.near
        self._near = plan.near
        self._bands, self._numbers = self._near.bands, self._near.bands * self._near.rows
        self._signatures = near_pages.SIGNATURES._replace(dtype=near_pages.signature_row(self._numbers))
        self._open = near_pages.OPEN_PAGES._replace(dtype=near_pages.signature_row(self._numbers, near_pages.OPEN_PAGE))

    def _groups(self, files: Any) -> Any:
        return files // np.uint32(self._plan.group)

    def _to_both(self, pairs: Rows) -> Sent:
        """Sends PAIRs to the groups of both pages."""
        groups, others = self._groups(pairs["file"]), self._groups(pairs["first_file"])
        apart = groups != others
        return near_pages.CLUSTERS.to_groups(np.concatenate([pairs, pairs[apart]]), np.r_[groups, others[apart]])

    def _drop(self, dropped: Rows, unsettled: int, exact: Any = 0.0) -> Iterator[StepItem]:
        """Sends PAIRs of pages to drop to the groups of both pages; counts pages of clusters of which more may stay."""
        groups = self._groups(dropped["file"])
        yield near_pages.NEAR_DUPLICATES.to_groups(near_pages.with_similarity(dropped, exact), groups)
        staying = near_pages.staying(dropped, groups)
        yield near_pages.STAYING.to_groups(staying, self._groups(staying["file"]))
        if unsettled:
            yield {"near_duplicates.unsettled": unsettled}

    def _minima(self, files: Files, pages: Rows) -> U16:
        """Returns the minima of pages of this group, given their NEAR_PAGE rows. Shape: [pages, minima]."""
        minima = np.zeros((len(pages), self._numbers), np.uint16)
        for file, path in files:
            here = np.flatnonzero(pages["file"] == file)
            here = here[np.argsort(pages["row"][here])]
            if len(here):
                minima[here] = near_pages.minima_of(
                    read_rows(storage_path(path), pages["row"][here], schema_of("minima"))["minima"]
                )
        return minima

    def _send_signatures(self, files: Files, pages: Rows, groups: npt.NDArray[Any]) -> Sent:
        """Sends the signature of each page of this group once to each group that compares it."""
        keys, first, of_page = np.unique(pages["page"], return_index=True, return_inverse=True)
        minima = self._minima(files, pages[first])
        to_group, page = np.divmod(unique(groups * np.int64(len(keys)) + of_page), max(1, len(keys)))
        rows = np.zeros(len(page), self._signatures.dtype)
        rows["page"] = keys[page]
        rows["minima"][:, : self._numbers] = minima[page]
        return self._signatures.to_groups(rows, to_group)

    def _compare_signatures(
        self, received: Received, pairs: Rows, own: str, other: str
    ) -> tuple[Rows, npt.NDArray[np.float64]]:
        """Compares pages of this group with pages whose signatures came; `own` and `other` are their prefixes in PAIRs.

        Returns the PAIRs whose signature came, and the share of equal minima of each.
        """
        signatures = received.rows(self._signatures)
        signatures = signatures[np.argsort(signatures["page"])]
        pairs = pairs[np.isin(pairs[f"{other}page"], signatures["page"])]
        _, index, of_page = np.unique(pairs[f"{own}page"], return_index=True, return_inverse=True)
        minima = self._minima(received.files, with_fields(pairs[index], near_pages.NEAR_PAGE, own))
        place = np.searchsorted(signatures["page"], pairs[f"{other}page"])
        shares = near_pages.similarities_of(minima, of_page, signatures["minima"][:, : self._numbers], place)
        return pairs, shares

    def _send_pages(self, to: Shuffle, files: Files, asked: Rows, schema: pa.Schema) -> Iterator[Sent]:
        """Sends Arrow streams of pages of this group, given their STAY rows, to the groups that ask for the pages."""
        for file, path in files:
            here = asked[asked["file"] == file]
            rows = unique(here["row"])
            pages = read_rows(storage_path(path), rows, schema)
            blocks = (
                (group, pack_table(pages.take(arrow_array(np.searchsorted(rows, some["row"])))))
                for group, some in by_number(here, here["group"])
            )
            yield Sent(to, shuffle.totals(here["page"]), blocks)


class SendFirstSignatures(NearStep):
    """The files, chosen pages and first pages of a group -> signatures of first pages, by group of the later pages."""

    sends = (near_pages.SIGNATURES,)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Sends the signature of each first page once to each group that compares pages with it."""
        chosen, asked = received.rows(near_pages.NEAR_DUPLICATES), received.rows(near_pages.STAYING)
        asked = asked[~np.isin(asked["page"], chosen["page"])]  # the others stay only if the rounds were too few
        yield self._send_signatures(received.files, asked, asked["group"])


class AskForTexts(NearStep):
    """The files, chosen pages and first signatures of a group -> first pages whose texts decide, by their group."""

    sends = (near_pages.STAYING,)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Asks for the texts of the first pages that the estimate leaves in doubt."""
        chosen, shares = self._compare_signatures(received, received.rows(near_pages.NEAR_DUPLICATES), "", "first_")
        chosen = chosen[self._near.leaves_in_doubt(shares)]
        asked = near_pages.staying(chosen, self._groups(chosen["file"]))
        yield near_pages.STAYING.to_groups(asked, self._groups(asked["file"]))


class SendTexts(NearStep):
    """The files and asked pages of a group -> Arrow streams of their texts, by the group that asks."""

    sends = (near_pages.TEXTS,)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Reads the texts of first pages."""
        yield from self._send_pages(near_pages.TEXTS, received.files, received.rows(near_pages.STAYING), TEXT_PAGE)


class CompareWithFirst(NearStep):
    """The files, chosen pages, first signatures, texts and similar pairs of a group -> pairs of a page to drop with the
    page that stays; pages unlike the first page of their cluster, and their links, by the group of the first page.
    """

    sends = (near_pages.NEAR_DUPLICATES, near_pages.STAYING, near_pages.OPEN_PAGES, near_pages.LINKS)

    def __init__(self, plan: DedupPlan, is_last: bool) -> None:
        """Takes the plan, and whether the pages that are unlike the first page stay."""
        super().__init__(plan)
        self._is_last = is_last

    def run(self, received: Received) -> Iterator[StepItem]:
        """Compares each page with the first page of its cluster."""
        similar, given = received.rows(near_pages.CLUSTERS), received.rows(near_pages.NEAR_DUPLICATES)
        chosen, shares = self._compare_signatures(received, given, "", "first_")
        in_doubt = self._near.leaves_in_doubt(shares)
        exact = np.zeros(len(chosen))
        exact[in_doubt] = self._similarities(received, chosen[in_doubt])
        is_alike = np.where(in_doubt, exact, shares) >= self._near.min_similarity
        unlike = chosen[~is_alike]  # in the order of their keys
        unsettled = len(given) - len(chosen) + (len(unlike) if self._is_last else 0)
        yield from self._drop(chosen[is_alike], unsettled, exact[is_alike])
        opened = np.zeros(len(unlike), self._open.dtype)
        for name in (*(near_pages.NEAR_PAGE.names or ()), "first_page"):
            opened[name] = unlike[name]
        opened["minima"][:, : self._numbers] = self._minima(received.files, unlike)
        groups = self._groups(unlike["first_file"])
        yield self._open.to_groups(opened, groups)
        links = similar[np.isin(similar["page"], unlike["page"])]
        yield near_pages.LINKS.to_groups(links, groups[np.searchsorted(unlike["page"], links["page"])])

    def _similarities(self, received: Received, pairs: Rows) -> npt.NDArray[np.float64]:
        """Returns the exact similarity of PAIRs. Few texts are in memory at a time."""
        packed = list(received.streams(near_pages.TEXTS))
        for table in map(unpack_table, packed):
            received.count(near_pages.TEXTS, table["page_key"].to_numpy())
        exact, order = np.zeros(len(pairs)), np.lexsort((pairs["row"], pairs["file"]))
        for start in range(0, len(order), _TEXTS_AT_ONCE):
            some = order[start : start + _TEXTS_AT_ONCE]
            first: dict[int, U64] = {}  # if some are lost, the control totals differ
            for table in map(unpack_table, packed):
                asked = table.filter(arrow_array(np.isin(table["page_key"].to_numpy(), pairs["first_page"][some])))
                ngrams = near_pages.ngrams_of(asked.to_pylist(), self._plan.rules)
                first |= zip(asked["page_key"].to_pylist(), ngrams, strict=True)
            for file, path in received.files:
                here = some[pairs["file"][some] == file]
                pages = read_rows(storage_path(path), pairs["row"][here], TEXT_PAGE)
                ngrams = near_pages.ngrams_of(pages.to_pylist(), self._plan.rules)
                others = [first.get(key, _NO_NGRAMS) for key in pairs["first_page"][here].tolist()]
                exact[here] = list(map(jaccard, ngrams, others))
        return exact


class SettleClusters(NearStep):
    """The pages unlike a first page of a group, and their links -> pairs of a page to drop with the page that stays."""

    sends = (near_pages.NEAR_DUPLICATES, near_pages.STAYING)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Chooses the pages to drop among the pages of each cluster that are unlike its first page."""
        pages, links = received.rows(self._open), received.rows(near_pages.LINKS)
        minima = pages["minima"][:, : self._numbers]
        settled = near_pages.settle(pages, minima, pages["first_page"], links, self._near.min_similarity)
        yield from self._drop(*settled)
