"""`RemoveRepeatedSpans`: of all pages, one of each span of sentences or lines stays."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam

from c4pipe.beam.clean_pages import recipe_display
from c4pipe.beam.listed_recipe import ListedRecipe, PathArgument, RecipeArgument
from c4pipe.beam.page_schema import Page
from c4pipe.beam.span_fns import CountJoined, FindRepeats, FinishPages, SendPages
from c4pipe.beam.stage_reports import REPORT, CheckTotals, PageTransform, check_batch
from c4pipe.beam.tagged_blocks import CHANGES, MARKED, Block, bucket_bits
from c4pipe.dedup import step, survivors
from c4pipe.errors import UsageError
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.recipes.rules import RULES
from c4pipe.runners import beam_runner
from c4pipe.runners.control_totals import Report


class RemoveRepeatedSpans(PageTransform):
    """Removes repeated spans from pages: of equal spans in all pages, one stays, the others lose their units.

    A span is `size` consecutive sentences, or lines, of one page. Spans are compared in any case and with any white
    space. The first one by page key (a hash of the page's URL) stays, unless another one can only stay instead; so the
    result depends on no order. A page of which nothing is left is dropped.

    Input and output: a PCollection of Page. Two pages of one URL are an error: put `KeepNewest` before this transform.
    Sentences are split by the page's `language`; where it is None, by the rules for no language.

    >>> import apache_beam as beam
    >>> from c4pipe.beam import Page, RemoveRepeatedSpans
    >>> notice = "All rights are reserved. Write to us. We answer soon."
    >>> with beam.Pipeline(options=IN_MEMORY) as pipeline:
    ...     pages = [Page(f"https://example.com/{n}", "", f"Page {n} has a text. {notice}", "en", 1.0) for n in (1, 2)]
    ...     left = pipeline | beam.Create(pages) | RemoveRepeatedSpans(size=3, unit="sentence")
    ...     shorter = left | beam.Filter(lambda page: len(page.text) < 20)
    ...     _ = shorter | beam.Map(lambda page: print(page.text[:4], page.text[7:]))
    Page has a text.

    Rows of 24 bytes are shuffled to find repeated spans, never text. Pages are shuffled once, in compressed batches.

    Metrics: `units_dropped/repeated_span`, `pages_edited/repeated_span`, `pages_dropped/<rule>`.
    """

    def __init__(self, size: int = 3, unit: str = "sentence", *, buckets: int = 1024) -> None:
        """Takes what a span is.

        Args:
            size: units in a span.
            unit: `sentence` or `line`.
            buckets: the number of buckets of each shuffle, a power of two: more for more than 10 billion spans.
        """
        super().__init__()
        units = RULES["repeated_span"].choices["unit"]
        if size < 1 or unit not in units:
            raise UsageError(f"size={size}, unit={unit!r}: give a size of at least 1, and one of {', '.join(units)}")
        self._rules = ListedRecipe(_only_spans(size, unit), Lists())
        self._bits = bucket_bits(buckets)

    @classmethod
    def by_recipe(
        cls,
        recipe: RecipeArgument,
        *,
        languages: Sequence[str] = (),
        lists: PathArgument | None = None,
        links: Sequence[PathArgument] = (),
        language_model: PathArgument | None = None,
        buckets: int = 1024,
    ) -> "RemoveRepeatedSpans":
        """Returns the transform that removes spans as a recipe says, then applies the rules of its stage `final`.

        A recipe without the rule `repeated_span`, such as `unfiltered`, removes nothing; its last rules are applied.

        Args:
            buckets: as above.

        The other arguments and the errors are those of `CleanPages`.
        """
        transform = cls(buckets=buckets)
        transform._rules = ListedRecipe.choose(recipe, languages, lists, links, language_model)
        return transform

    def expand(self, pages: beam.PCollection) -> beam.PCollection:
        """Finds and removes repeated spans. Raises UsageError for pages that are unbounded or windowed."""
        check_batch(pages, self)
        types: dict[str, Any] = {REPORT: Report}
        send = beam.ParDo(SendPages(self._rules, self._bits)).with_input_types(Page)
        send = send.with_output_types(Block, spans=Block, **types).with_outputs("spans", REPORT, main="pages")
        sent = pages | "Send pages" >> send
        marks, reports = self._marks(sent.spans)
        blocks = (sent.pages, *marks) | "Pages and marks" >> beam.Flatten()
        marked = blocks | "Marks to their page" >> beam.GroupByKey()
        end = beam.ParDo(FinishPages(self._rules, self._bits)).with_output_types(Page, removed=Block, **types)
        finished = marked | "Finish pages" >> end.with_outputs("removed", REPORT, main="pages")
        removed = finished.removed | "Group removed spans" >> beam.GroupByKey()
        count = beam.ParDo(CountJoined(self._moves_keepers)).with_outputs(REPORT)
        counted = removed | "Count joined spans" >> count
        reports += [sent[REPORT], finished[REPORT], counted[REPORT]]
        _ = tuple(reports) | "Check shuffles" >> CheckTotals()
        return finished.pages

    @property
    def _moves_keepers(self) -> bool:
        return step.moves_keepers(self._rules.recipe.parameters("repeated_span"))

    def _marks(self, spans: beam.PCollection) -> tuple[list[beam.PCollection], list[beam.PCollection]]:
        """Returns the blocks of marks and of changes to them, by bucket of the page, and the reports of these steps."""
        types: dict[str, Any] = {REPORT: Report}
        find = beam.ParDo(FindRepeats(self._moves_keepers)).with_output_types(Block, **types)
        buckets = spans | "Group spans" >> beam.GroupByKey()
        repeated = buckets | "Find repeated spans" >> find.with_outputs(REPORT, main="places")
        marks, reports = [("Marks", MARKED, repeated.places)], [repeated[REPORT]]
        if self._moves_keepers:
            flow, size = beam_runner.BeamFlow(spans.pipeline), self._rules.recipe.parameters("repeated_span")["size"]
            first, changes, more = survivors.choose_keepers(flow, repeated.places, "", size)
            marks, reports = [("Marks", MARKED, first), ("Changes", CHANGES, changes)], [*reports, *more]
        blocks = [rows | name >> beam.MapTuple(_Tagging(tag)).with_output_types(Block) for name, tag, rows in marks]
        return blocks, reports

    def display_data(self) -> dict[str, Any]:
        """Returns what a span is, the recipe, and the number of buckets."""
        shown = beam.transforms.display.DisplayDataItem
        span = self._rules.recipe.parameters("repeated_span")
        return {
            **recipe_display(self._rules),
            "size": shown(span.get("size"), label="Units in a span").drop_if_none(),
            "unit": shown(span.get("unit"), label="Unit").drop_if_none(),
            "buckets": shown(1 << self._bits, label="Buckets"),
        }


class _Tagging:
    """Puts a tag before a block."""

    def __init__(self, tag: bytes) -> None:
        self._tag = tag

    def __call__(self, bucket: int, block: bytes) -> Block:
        return bucket, self._tag + block


def _only_spans(size: int, unit: str) -> Recipe:
    """Returns a recipe that removes repeated spans, and does nothing else."""
    description = f"one of each span of {size} {unit}s"
    none: dict[str, Any] = dict.fromkeys(("readable", "crawled", "lines", "cleaned", "final"), ())
    base = replace(RECIPES["c4"], name="repeated spans", description=description, **none)
    return base.change("repeated_span", size=size, unit=unit)
