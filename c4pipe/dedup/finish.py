"""Pages in their final form: without the spans that they lose, judged by the last rules. No Beam."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from c4pipe.dedup.units import remove_spans
from c4pipe.examples import A_FILE, PASSED, Example, Smallest, example
from c4pipe.excerpt import excerpt
from c4pipe.explain import explain_final
from c4pipe.filters.clean import Cleaner
from c4pipe.filters.tools import Tools
from c4pipe.recipe_lists import Lists
from c4pipe.recipes import Recipe
from c4pipe.storage import Place, parquet_source


class PageFinisher:
    """Finishes pages by one recipe; made once in a worker."""

    def __init__(self, recipe: Recipe, lists: Lists) -> None:
        self._recipe, self._tools = recipe, Tools(recipe, lists)
        self._cleaner = Cleaner(recipe, self._tools)
        self._span = recipe.parameters("repeated_span")

    def finish(
        self,
        pages: pa.Table,
        removals: Mapping[int, Sequence[int]],
        counts: Counter[str],
        shown: Smallest | None = None,
    ) -> pa.Table:
        """Returns the pages that stay, in their final form and their order.

        Args:
            pages: the newest pages of a work file, with its PAGE_COLUMNS.
            removals: by page key, the first unit of each span that the page loses.
            counts: counters to add to: what was cut out, dropped and kept.
            shown: takes examples of that, if there is one.
        """
        counts["units.newest"] += int(pc.sum(pc.list_value_length(pages["unit_starts"])).as_py() or 0)
        pages = self._edit(pages, removals, counts, shown)
        for rule, dropped in _counts(pages["dropped"]).items():
            counts[f"pages.dropped.{rule}"] += dropped
            gone = pages.filter(pc.equal(pages["dropped"], rule))
            counts[f"units.dropped.{rule}"] += pc.sum(gone["units_left"]).as_py()
            self._show(rule, rule, gone, shown)
        pages = pages.filter(pc.is_null(pages["dropped"]))
        least = self._recipe.parameters("few_sentences_left")
        if least.get("count") == "what the spans left":
            passed = pages.filter(pc.equal(pages["units_left"], least["min_sentences"]))
            self._show("few_sentences_left", f"{PASSED}few_sentences_left", passed, shown)
        counts["pages.kept"] += len(pages)
        for language, kept in _counts(pages["language"]).items():
            counts[f"pages.kept.{language}"] += kept
        counts["pages.validation"] += int(pc.sum(pages["validation"]).as_py() or 0)
        counts["units.kept"] += int(pc.sum(pages["units_left"]).as_py() or 0)
        counts["bytes.kept"] += int(pc.sum(pc.binary_length(pages["text"])).as_py() or 0)
        return pages

    def _show(self, rule: str, label: str, pages: pa.Table, shown: Smallest | None) -> None:
        """Keeps pages that a rule of the `final` stage dropped, or let pass, as examples."""
        if shown is None:
            return
        for row in pages.take(pa.array(np.argsort(pages["page_key"].to_numpy())[:A_FILE])).to_pylist():
            if shown.wants(label, row["page_key"]):
                verdicts, _ = explain_final(row["url"], row["text"], row["units_left"], self._recipe, self._tools)
                fact = next(each.fact for each in verdicts if each.rule == rule)
                made = example(label, row["page_key"], row["url"], row["timestamp"], fact, excerpt(row["text"]))
                shown.add(label, row["page_key"], 0, made)

    def _edit(
        self,
        pages: pa.Table,
        removals: Mapping[int, Sequence[int]],
        counts: Counter[str],
        shown: Smallest | None,
    ) -> pa.Table:
        units_left = pc.list_value_length(pages["unit_starts"]).to_numpy().copy()
        edited = [row for row, key in enumerate(pages["page_key"].to_pylist()) if key in removals] if removals else []
        columns = {name: pages[name] for name in ("text", "language", "language_probability", "dropped")}
        if edited:
            values = {name: column.to_pylist() for name, column in columns.items()}
            for row in edited:
                page = pages.slice(row, 1).to_pylist()[0]
                if shown is not None and shown.wants("repeated_span", page["page_key"]):
                    made = self._repeat(page, removals[page["page_key"]])
                    shown.add("repeated_span", page["page_key"], 0, made)
                units_left[row] = self._edit_page(page, removals[page["page_key"]], counts)
                for name in values:
                    values[name][row] = page[name]
            columns = {name: pa.array(each, pages.schema.field(name).type) for name, each in values.items()}
        for name, column in columns.items():
            pages = pages.set_column(pages.schema.get_field_index(name), name, column)
        return pages.append_column("units_left", pa.array(units_left, pa.int64()))

    def _repeat(self, page: Mapping[str, Any], spans: Sequence[int]) -> Example:
        """Returns a page that loses spans as an example; the first units that it loses are marked."""
        size, unit, starts = self._span["size"], self._span["unit"], page["unit_starts"]
        gone = {index for span in spans for index in range(span, span + size)}
        end = min(gone)
        while end in gone:
            end += 1
        text = excerpt(page["text"], starts[min(gone)], starts[end] if end < len(starts) else len(page["text"]))
        fact = f"{len(gone):,} of its {len(starts):,} {unit}s are in pages that come first"
        return example("repeated_span", page["page_key"], page["url"], page["timestamp"], fact, text)

    def _edit_page(self, page: dict[str, Any], spans: Sequence[int], counts: Counter[str]) -> int:
        """Takes spans from a page, judges what is left, and returns how many units that is."""
        starts = page["unit_starts"]
        page["text"], left = remove_spans(page["text"], starts, spans, self._span["size"], self._span["unit"])
        counts["units.dropped.repeated_span"] += len(starts) - left
        counts["pages.edited.repeated_span"] += 1
        page["dropped"], guess = self._cleaner.finish(page["url"], page["text"], left)
        if guess:
            page["language"], page["language_probability"] = guess.language, round(guess.probability, 6)
        return left


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {each["values"]: each["counts"] for each in pc.value_counts(column.drop_null()).to_pylist()}


def unclaimed(removals: Mapping[int, Sequence[int]], page_keys: Sequence[Any]) -> int:
    """Returns how many spans are to be removed from pages that are not there: drops that went astray."""
    lost = set(removals).difference(*(keys.tolist() for keys in page_keys))
    return sum(len(removals[key]) for key in lost)


def older_copies(work_file: Place, older: Any) -> list[Example]:
    """Returns examples of kept pages of a work file, given its rows that are not the newest of their URL."""
    if not len(older):
        return []
    rows = pq.read_table(parquet_source(work_file), columns=["page_key", "url", "timestamp"]).take(pa.array(older))
    rows = rows.filter(pc.is_valid(rows["page_key"])).sort_by("page_key").slice(0, A_FILE)
    fact = "the crawl has a newer capture of this URL"
    return [
        example("older_copy", row["page_key"], row["url"], row["timestamp"], fact, [""]) for row in rows.to_pylist()
    ]
