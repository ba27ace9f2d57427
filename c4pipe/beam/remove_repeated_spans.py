"""`RemoveRepeatedSpans`: one copy of each span of sentences or lines stays in all pages."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from c4pipe.beam import page_schema
from c4pipe.beam.clean_pages import choose_rules
from c4pipe.beam.page_schema import Page, bits_of_buckets
from c4pipe.beam.stage_reports import (
    KEPT,
    SPAN_PAGES,
    PageFlow,
    PageTransform,
    check_batch,
    check_shuffles,
)
from c4pipe.clean import side_files, text_cleaner
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.dedup import shuffle
from c4pipe.dedup.finish import CountRepeats, GroupFinisher, PageFinisher
from c4pipe.dedup.occurrences import FindRepeats
from c4pipe.dedup.shuffle import CHANGES, MARKS, REMOVED_SPANS, SPANS, Sent
from c4pipe.dedup.step import Received, RowStep, StepItem
from c4pipe.dedup.survivors import choose_survivors
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.rule import choices
from c4pipe.lists.lists import Lists
from c4pipe.recipes.choose import ListedRecipe, RecipeArgument, RecipeKeywords
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.control_totals import REPORT
from c4pipe.runners.graph import Graph
from c4pipe.text.languages import Guess

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RemoveRepeatedSpans(PageTransform):
    """Removes repeated spans from pages: one of all equal spans stays, and the other spans lose their units.

    A span is `size` consecutive sentences, or lines, of one page. Spans are compared in any case and with any white
    space. The first copy of a span by page key (a hash of the URL) stays; another copy stays instead if otherwise two
    would stay. So the result does not depend on the order of pages. A page without any text left is dropped.

    Input and output: a PCollection of Page. Two pages of one URL are an error: put `KeepNewest` before this transform.
    Sentences are split by the page's `language`; if it is None, by the rules for no language.

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
        """Takes the definition of a span.

        Args:
            size: units in a span.
            unit: `sentence` or `line`.
            buckets: the number of buckets of each shuffle, a power of two: more for more than 10 billion spans.
        """
        super().__init__()
        units = choices(RepeatedSpan, "unit")
        if size < 1 or unit not in units:
            raise UsageError(f"size={size}, unit={unit!r}: give a size of at least 1, and one of {', '.join(units)}")
        self._rules = ListedRecipe(_only_spans(size, unit), Lists())
        self._bits = bits_of_buckets(buckets)

    @classmethod
    def by_recipe(
        cls,
        recipe: RecipeArgument,
        *,
        buckets: int = 1024,
        **lists: "Unpack[RecipeKeywords]",
    ) -> "RemoveRepeatedSpans":
        """Returns the transform that removes spans as a recipe says, then applies the rules of its stage `final`.

        A recipe without the rule `repeated_span`, such as `unfiltered`, removes nothing; its last rules are applied.

        Args:
            buckets: as above.

        The other arguments and the errors are as in `CleanPages`.
        """
        transform = cls(buckets=buckets)
        transform._rules = choose_rules(recipe, **lists)
        return transform

    def expand(self, pages: beam.PCollection) -> beam.PCollection:
        """Finds and removes repeated spans. Raises UsageError for pages that are unbounded or windowed."""
        check_batch(pages, self)
        span, flow, graph = self._rules.recipe.find(RepeatedSpan), PageFlow(pages.pipeline), Graph()
        moves = span is not None and span.moves_survivors
        sent = flow.map_pages("Send pages", pages, SendSpans(self._rules, self._bits))
        spans = graph.given(sent["spans"], "spans")
        find = FindRepeats("", files=1, moves_survivors=moves)
        found = graph.add("Find repeated spans", find, spans)
        span_pages = graph.given(sent["span_pages"], "span_pages")
        if span and moves:
            first, changes = choose_survivors(graph, [found["repeated_spans"]], "", span.size)
            marks = [first, *changes]
        else:
            marks = [found["marks"]]
        finished = graph.add("Finish pages", FinishSpanPages(self._rules, self._bits), span_pages, *marks)
        graph.add("Count joined spans", CountRepeats("", moves), finished["removed_spans"])
        kept, *reports = graph.run(flow, [finished[KEPT], *graph.reports])
        check_shuffles([sent[REPORT], *reports])
        return kept


def _only_spans(size: int, unit: str) -> Recipe:
    """Returns a recipe that removes repeated spans, and does nothing else."""
    description = f"one of each span of {size} {unit}s"
    none: dict[str, Any] = dict.fromkeys(("readable", "crawled", "lines", "cleaned", "final"), ())
    base = replace(RECIPES["c4"], name="repeated spans", description=description, **none)
    return base.change(RepeatedSpan.name, size=size, unit=unit)


_COUNTED_LATER = ("pages.kept", "bytes.kept", "pages.validation")
"""Counters of the finished pages. `WriteCorpus` counts them: another transform may drop pages before it."""


class SendSpans(RowStep):
    """Pages -> their spans, and the pages, by bucket. A group of files of `c4pipe dedup` is a bucket of pages here."""

    sends = (SPANS, SPAN_PAGES)

    def __init__(self, rules: ListedRecipe, bits: int) -> None:
        """Takes the recipe and the number of hash bits that make a bucket."""
        super().__init__("")
        self._rules, self._bits = rules, bits

    def setup(self) -> None:
        """Prepares the resources of the recipe; each is loaded when it is first used."""
        super().setup()
        recipe = self._rules.recipe
        self._evaluator = RecipeEvaluator(recipe, self._rules.lists)
        self._keeper = side_files.PageKeeper(recipe)
        settings = recipe.page_settings
        self._needs_language = settings.sentence_model != "nltk english" and settings.unit == "sentence"

    def run(self, received: Received) -> Iterator[StepItem]:
        """Sends a batch."""
        pages = [self._hash_spans(page) for page in received.given(KEPT)]
        keys = np.array([kept.page_key for _, kept in pages], np.uint64)
        table = _table(pages, keys)
        spans = shuffle.span_rows(table, 0)
        spans["file"] = spans["page"] >> np.uint64(64 - self._bits)
        yield SPANS.to_buckets(spans[np.argsort(spans["hash"], kind="stable")], self._bits)
        yield Sent(SPAN_PAGES, shuffle.totals(keys), page_schema.to_buckets(table, keys, self._bits))

    def _hash_spans(self, element: Page) -> tuple[Page, Any]:
        """Returns a page with its language, its spans, and what the last rules decide if it loses no span."""
        page = text_cleaner.page_of_text(element.text, element.url, element.timestamp)
        lines = page.body.split("\n") if page.body else []
        checked = CheckedPage(page, self._evaluator.tools, lines)
        if element.language is not None:
            checked.guess = Guess(element.language, element.language_probability or 0.0)
        elif not self._needs_language:
            checked.guess = None
        final = self._evaluator.finish(page.url, checked.text, len(checked.unit_starts))
        if final.guess and element.language is None:
            checked.guess = final.guess
        kept = self._keeper.keep(checked, final.reason)
        probability = kept.language_probability if element.language is None else element.language_probability
        return element._replace(text=kept.text, language=kept.language, language_probability=probability), kept


def _table(pages: Sequence[tuple[Page, Any]], keys: Any) -> pa.Table:
    """Returns pages with the columns that `finish.PageFinisher` and `removals.Removals` need."""
    table = page_schema.table_of([page for page, _ in pages])
    table = table.append_column("page_key", [keys])
    table = table.append_column("validation", [[kept.validation for _, kept in pages]])
    table = table.append_column("dropped", pa.array([kept.dropped for _, kept in pages], pa.string()))
    starts = pa.array([kept.unit_starts for _, kept in pages], pa.list_(pa.uint32()))
    hashes = pa.array([kept.span_hashes for _, kept in pages], pa.list_(pa.uint64()))
    return table.append_column("unit_starts", starts).append_column("span_hashes", hashes)


class FinishSpanPages(RowStep):
    """The pages, marks and changes of a bucket -> the pages that the stage `final` keeps, without repeated spans."""

    sends = (REMOVED_SPANS,)

    def __init__(self, rules: ListedRecipe, bits: int) -> None:
        """Takes the recipe and the number of hash bits that make a bucket."""
        super().__init__("")
        self._rules, self._bits = rules, bits
        self.outputs = (*self.outputs, KEPT)

    def setup(self) -> None:
        super().setup()
        self._finisher = PageFinisher(self._rules.recipe, self._rules.lists)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Finishes the pages of a bucket, a block at a time."""
        span = self._rules.recipe.find(RepeatedSpan)
        group = GroupFinisher(self._finisher, span, received.rows(MARKS), received.rows(CHANGES))
        keys: list[Any] = []
        for packed in received.streams(SPAN_PAGES):
            table = shuffle.unpack_table(packed)
            keys.append(table["page_key"].to_numpy())
            received.count(SPAN_PAGES, keys[-1])
            finished = group.finish(table, 0)
            yield from ((KEPT, page) for page in page_schema.pages_of(finished))
        _check_keys(keys, received)
        for name in [name for name in group.counts if name.startswith(_COUNTED_LATER)]:
            del group.counts[name]
        yield from group.end(self._bits)


def _check_keys(keys: Sequence[Any], received: Received) -> None:
    """Raises C4pipeError if two pages have one key: their spans can't be told apart."""
    found, counts = np.unique(np.concatenate([np.empty(0, np.uint64), *keys]), return_counts=True)
    if not (counts > 1).any():
        return
    double = found[counts > 1]
    tables = map(shuffle.unpack_table, received.streams(SPAN_PAGES))
    url = next(t["url"][n].as_py() for t in tables for n in np.flatnonzero(np.isin(t["page_key"].to_numpy(), double)))
    raise C4pipeError(f"RemoveRepeatedSpans was given two pages of the URL {url}: put KeepNewest before it")
