"""Pages in their final form: without the spans that they lose, judged by the last rules. No Beam."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.cleaner import Cleaner
from c4pipe.clean.dropped_pages import DroppedWriter, KeepDropped, dropped_writer
from c4pipe.clean.examples import A_FILE, PASSED, Example, Smallest, example
from c4pipe.clean.resources import RuleResources
from c4pipe.clean.trace import explain_final
from c4pipe.clean.work_file import read_stale
from c4pipe.display.excerpt import excerpt
from c4pipe.filters.spans import remove_spans
from c4pipe.io.paths import StoragePath
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import Lists


class PageFinisher:
    """Finishes pages by one recipe; made once in a worker."""

    def __init__(self, recipe: Recipe, lists: Lists) -> None:
        self._recipe, self._tools = recipe, RuleResources(recipe, lists)
        self._cleaner = Cleaner(recipe, self._tools)
        self._span = recipe.parameters("repeated_span")

    def audit(self, keep: KeepDropped | None, source: str) -> AbstractContextManager[DroppedWriter | None]:
        """Gives what takes the dropped pages of a WET file, by its name; None where nothing is kept."""
        return dropped_writer(keep, source, "dedup", self._recipe, self._tools)

    def finish(
        self,
        pages: pa.Table,
        removals: Mapping[int, Sequence[int]],
        counts: Counter[str],
        dropped: DroppedWriter | None = None,
        shown: Smallest | None = None,
    ) -> pa.Table:
        """Returns the pages that stay, in their final form and their order.

        Args:
            pages: the newest pages of a work file, with its PAGE_COLUMNS.
            removals: by page key, the first unit of each span that the page loses.
            counts: counters to add to: what was cut out, dropped and kept.
            dropped: what the pages that fall are added to, if they are kept.
            shown: takes examples of what was cut out and dropped, if there is one.
        """
        counts["units.newest"] += int(pc.sum(pc.list_value_length(pages["unit_starts"])).as_py() or 0)
        pages = self._edit(pages, removals, counts, shown)
        for rule, number in _counts(pages["dropped"]).items():
            counts[f"pages.dropped.{rule}"] += number
            gone = pages.filter(pc.equal(pages["dropped"], rule))
            counts[f"units.dropped.{rule}"] += pc.sum(gone["units_left"]).as_py()
            self._show(rule, rule, gone, shown)
        if dropped:
            dropped.add_finished(pages.filter(pc.is_valid(pages["dropped"])))
        pages = pages.filter(pc.is_null(pages["dropped"]))
        least = self._recipe.parameters("few_sentences_left")
        if least.get("count") == "remaining sentences":
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
        """Returns the pages without the spans that they lose, with a column `units_left`."""
        units_left = pc.list_value_length(pages["unit_starts"]).cast(pa.int64()).combine_chunks()
        lose = pc.is_in(pages["page_key"], pa.array(list(removals), pa.uint64())).combine_chunks()
        rows, left = pages.filter(lose).to_pylist(), []
        for page in rows:
            key = page["page_key"]
            if shown is not None and shown.wants("repeated_span", key):
                shown.add("repeated_span", key, 0, self._repeat(page, removals[key]))
            left.append(self._edit_page(page, removals[key], counts))
        for name in ("text", "language", "language_probability", "dropped") if rows else ():
            number, field = pages.schema.get_field_index(name), pages.schema.field(name)
            edited = pa.array([page[name] for page in rows], field.type)
            column = pc.replace_with_mask(pages[name].combine_chunks(), lose, edited)
            pages = pages.set_column(number, field, column)
        return pages.append_column("units_left", pc.replace_with_mask(units_left, lose, pa.array(left, pa.int64())))

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


def stale_captures(work_file: StoragePath, older: Any) -> list[Example]:
    """Returns examples of kept pages of a work file, given its rows that are not the newest of their URL."""
    if not len(older):
        return []
    rows = pa.concat_tables(read_stale(work_file, ["page_key", "url", "timestamp"], older))
    rows = rows.sort_by("page_key").slice(0, A_FILE)
    fact = "the crawl has a newer capture of this URL"
    return [
        example("stale_capture", row["page_key"], row["url"], row["timestamp"], fact, [""]) for row in rows.to_pylist()
    ]
