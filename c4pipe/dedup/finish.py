"""Pages in their final form: without the spans that they lose, judged by the last rules. No Beam."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.audit import DroppedWriter, KeepDropped, dropped_writer
from c4pipe.dedup.units import remove_spans
from c4pipe.filters.clean import Cleaner
from c4pipe.filters.tools import Tools
from c4pipe.recipe_lists import Lists
from c4pipe.recipes import Recipe


class PageFinisher:
    """Finishes pages by one recipe; made once in a worker."""

    def __init__(self, recipe: Recipe, lists: Lists) -> None:
        self._recipe = recipe
        self._tools = Tools(recipe, lists)
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
    ) -> pa.Table:
        """Returns the pages that stay, in their final form and their order.

        Args:
            pages: the newest pages of a work file, with its PAGE_COLUMNS.
            removals: by page key, the first unit of each span that the page loses.
            counts: counters to add to: what was cut out, dropped and kept.
            dropped: what the pages that fall are added to, if they are kept.
        """
        counts["units.newest"] += int(pc.sum(pc.list_value_length(pages["unit_starts"])).as_py() or 0)
        pages = self._edit(pages, removals, counts)
        for rule, number in _counts(pages["dropped"]).items():
            counts[f"pages.dropped.{rule}"] += number
            units = pages.filter(pc.equal(pages["dropped"], rule))["units_left"]
            counts[f"units.dropped.{rule}"] += pc.sum(units).as_py()
        if dropped:
            dropped.add_finished(pages.filter(pc.is_valid(pages["dropped"])))
        pages = pages.filter(pc.is_null(pages["dropped"]))
        counts["pages.kept"] += len(pages)
        for language, kept in _counts(pages["language"]).items():
            counts[f"pages.kept.{language}"] += kept
        counts["pages.validation"] += int(pc.sum(pages["validation"]).as_py() or 0)
        counts["units.kept"] += int(pc.sum(pages["units_left"]).as_py() or 0)
        counts["bytes.kept"] += int(pc.sum(pc.binary_length(pages["text"])).as_py() or 0)
        return pages

    def _edit(self, pages: pa.Table, removals: Mapping[int, Sequence[int]], counts: Counter[str]) -> pa.Table:
        """Returns the pages without the spans that they lose, with a column `units_left`."""
        units_left = pc.list_value_length(pages["unit_starts"]).cast(pa.int64()).combine_chunks()
        lose = pc.is_in(pages["page_key"], pa.array(list(removals), pa.uint64())).combine_chunks()
        rows = pages.filter(lose).to_pylist()
        left = [self._edit_page(page, removals[page["page_key"]], counts) for page in rows]
        for name in ("text", "language", "language_probability", "dropped") if rows else ():
            number, field = pages.schema.get_field_index(name), pages.schema.field(name)
            edited = pa.array([page[name] for page in rows], field.type)
            column = pc.replace_with_mask(pages[name].combine_chunks(), lose, edited)
            pages = pages.set_column(number, field, column)
        return pages.append_column("units_left", pc.replace_with_mask(units_left, lose, pa.array(left, pa.int64())))

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
