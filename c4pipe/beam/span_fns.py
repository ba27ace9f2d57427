"""The functions of `RemoveRepeatedSpans`. The decisions are those of `filters.find_repeats` and of `dedup`.

What is a group of files for the command `c4pipe dedup` is here a bucket of pages, by the first bits of their keys.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from c4pipe.beam import page_schema
from c4pipe.beam.listed_recipe import ListedRecipe
from c4pipe.beam.page_schema import Page
from c4pipe.beam.stage_reports import CountingFn
from c4pipe.beam.tagged_blocks import CHANGES, HELD_BYTES, MARKED, PAGES, Block, blocks_of, buckets_of
from c4pipe.clean import file_cleaner, page_facts, text_cleaner
from c4pipe.clean.resources import RuleResources
from c4pipe.dedup import finish, occurrences, removals, shuffle
from c4pipe.errors import C4pipeError
from c4pipe.filters.duplicates import SPAN_ROW, Rows, find_repeats
from c4pipe.filters.language import Guess
from c4pipe.runners import control_totals

_COUNTED_LATER = ("pages.kept", "bytes.kept", "pages.validation")
"""Counters of the finished pages. `WriteCorpus` counts them: another transform may drop pages before it."""


class SendPages(CountingFn):
    """Page -> (bucket, pages); output `spans`: (bucket, packed span rows), whose `file` is the bucket of the page."""

    def __init__(self, rules: ListedRecipe, bits: int) -> None:
        """Takes the recipe and the number of hash bits that make a bucket."""
        super().__init__()
        self._rules, self._bits = rules, bits

    def setup(self) -> None:
        """Prepares the resources of the recipe; each is loaded when it is first used."""
        recipe = self._rules.recipe
        self._resources = RuleResources(recipe, self._rules.lists)
        self._keeper = file_cleaner.PageKeeper(recipe)
        by_model = recipe.parameters("few_sentences").get("model") != "nltk english"
        self._needs_language = by_model and recipe.parameters("repeated_span").get("unit") == "sentence"

    def start_bundle(self) -> None:
        """Begins a report and a batch of pages."""
        super().start_bundle()
        self._held: list[tuple[Page, Any]] = []
        self._held_bytes = 0

    def process(self, element: Page) -> Iterator[Any]:
        """Adds a page to the batch; sends a batch that is large enough."""
        page = text_cleaner.page_of_text(element.text, element.url, element.timestamp)
        lines = page.body.split("\n") if page.body else []
        facts = page_facts.PageFacts(page, self._resources, lines)
        if element.language is not None:
            facts.guess = Guess(element.language, element.language_probability or 0.0)
        elif not self._needs_language:
            facts.guess = None
        kept = self._keeper.keep(facts, None)
        self._held.append((element._replace(text=kept.text, language=kept.language), kept))
        self._held_bytes += len(kept.text)
        if self._held_bytes >= HELD_BYTES:
            yield from self._rest()

    def _rest(self) -> Iterator[Any]:
        if not self._held:
            return
        keys = np.array([kept.page_key for _, kept in self._held], np.uint64)
        hashes = pa.array([kept.span_hashes for _, kept in self._held], pa.list_(pa.uint64()))
        spans = shuffle.span_rows(keys, 0, hashes)
        spans["file"] = spans["page"] >> np.uint64(64 - self._bits)
        self._reports.append(control_totals.sent("spans", shuffle.totals(spans)))
        for block in shuffle.bucketed(spans[np.argsort(spans["hash"], kind="stable")], self._bits):
            yield beam.pvalue.TaggedOutput("spans", block)
        self._reports.append(control_totals.sent("span_pages", shuffle.totals(keys)))
        for bucket, part in buckets_of(_table(self._held, keys), keys, self._bits):
            yield bucket, PAGES + page_schema.pack(part)
        self._held, self._held_bytes = [], 0


def _table(pages: Sequence[tuple[Page, Any]], keys: Any) -> pa.Table:
    """Returns pages with the columns that `finish.PageFinisher` and `removals.Removals` need."""
    table = page_schema.table_of([page for page, _ in pages])
    table = table.append_column("page_key", [keys])
    table = table.append_column("validation", [[kept.validation for _, kept in pages]])
    starts = pa.array([kept.unit_starts for _, kept in pages], pa.list_(pa.uint32()))
    hashes = pa.array([kept.span_hashes for _, kept in pages], pa.list_(pa.uint64()))
    return table.append_column("unit_starts", starts).append_column("span_hashes", hashes)


class FindRepeats(CountingFn):
    """(bucket, packed span rows) -> (bucket of the page, packed places of repeated spans)."""

    def __init__(self, moves_keepers: bool) -> None:
        """Takes whether copies of spans can move: then places are sent with their twins, else as marks."""
        super().__init__()
        self._moves_keepers = moves_keepers

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Block]:
        """Finds the repeated spans of a bucket."""
        rows = shuffle.unpack(element[1], SPAN_ROW)
        self._reports.append(control_totals.received("spans", shuffle.totals(rows)))
        first, later = find_repeats(rows)
        if self._moves_keepers:
            twins = occurrences.twins_in_bucket(first, later, 1)
            yield from self._send("repeated_spans", twins, twins["file"], occurrences.TWINS)
            return
        for bucket, some in shuffle.by_number(later, later["file"], SPAN_ROW):
            marks = occurrences.marks_of(some, keeper=0)
            yield from self._send("marks", marks, np.full(len(marks), bucket), occurrences.MARKS)

    def _send(self, name: str, rows: Rows, buckets: Any, dtype: np.dtype[Any]) -> Iterator[Block]:
        for bucket, some in shuffle.by_number(rows, buckets, dtype):
            self._reports.append(control_totals.sent(name, shuffle.totals(some)))
            yield bucket, some.tobytes()


class FinishPages(CountingFn):
    """(bucket, blocks of pages, marks and changes) -> the pages that the stage `final` keeps, without repeated spans.

    Output `removed`: (bucket, packed rows of the spans that were removed, and of those that removal has joined).
    """

    def __init__(self, rules: ListedRecipe, bits: int) -> None:
        """Takes the recipe and the number of hash bits that make a bucket."""
        super().__init__()
        self._rules, self._bits = rules, bits

    def setup(self) -> None:
        """Prepares the resources of the recipe."""
        self._evaluator = self._rules.evaluator()
        self._finisher = finish.PageFinisher(self._rules.recipe, self._rules.lists)

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Finishes the pages of a bucket, a block at a time."""
        _, blocks = element
        marks = self._receive("marks", blocks_of(blocks, MARKED), occurrences.MARKS)
        changes = self._receive("changes", blocks_of(blocks, CHANGES), occurrences.PLACE)
        span = self._rules.recipe.parameters("repeated_span")
        group = removals.Removals(marks, changes, span.get("size", 1))
        counts = Counter[str]()
        seen: list[Any] = []
        for packed in blocks_of(blocks, PAGES):
            table = page_schema.unpack(packed)
            seen.append(table["page_key"].to_numpy())
            self._reports.append(control_totals.received("span_pages", shuffle.totals(seen[-1])))
            group.add(table, 0)
            pages = self._judge(table.drop_columns(["span_hashes"]), group.spans)
            finished = self._finisher.finish(pages, group.spans, counts, kept=group.kept)
            group.add_kept(pages, finished["page_key"].to_numpy(), span.get("whitespace", ""))
            yield from page_schema.pages_of(finished)
        self._reports.append(control_totals.unclaimed("marks", finish.unclaimed(group.spans, seen)))
        _check_keys(seen, blocks)
        removed = group.repeats()
        self._reports.append(control_totals.sent("removed_spans", shuffle.totals(removed)))
        for block in shuffle.bucketed(removed, self._bits):
            yield beam.pvalue.TaggedOutput("removed", block)
        self._counts.update({name: n for name, n in counts.items() if not name.startswith(_COUNTED_LATER)})
        self._counts.update(group.counts)

    def _receive(self, name: str, blocks: Iterable[bytes], dtype: np.dtype[Any]) -> Rows:
        rows = shuffle.unpack(blocks, dtype)
        self._reports.append(control_totals.received(name, shuffle.totals(rows)))
        return rows

    def _judge(self, pages: pa.Table, removed: Mapping[int, Sequence[int]]) -> pa.Table:
        """Returns the pages with a column `dropped`: the last rules' decision about those that lose no span.

        The language of such a page is set, too, where a last rule detects it.
        """
        rows = pages.select(["page_key", "url", "text", "language", "language_probability"]).to_pylist()
        for row, starts in zip(rows, pages["unit_starts"], strict=True):
            row["dropped"] = None
            if row["page_key"] not in removed:
                final = self._evaluator.finish(row["url"], row["text"], len(starts))
                row["dropped"] = final.reason
                if final.guess and row["language"] is None:
                    row["language"] = final.guess.language
                    row["language_probability"] = round(final.guess.probability, 6)
        for name in ("language", "language_probability"):
            number, field = pages.schema.get_field_index(name), pages.schema.field(name)
            pages = pages.set_column(number, field, [pa.array([row[name] for row in rows], field.type)])
        return pages.append_column("dropped", pa.array([row["dropped"] for row in rows], pa.string()))


class CountJoined(CountingFn):
    """(bucket, packed rows of removed spans) -> nothing; its report has how many spans removal has joined."""

    def __init__(self, moves_keepers: bool) -> None:
        """Takes whether copies of spans can move."""
        super().__init__()
        self._moves_keepers = moves_keepers

    def process(self, element: tuple[int, Iterable[bytes]]) -> None:
        """Counts the joined spans of a bucket."""
        rows = shuffle.unpack(element[1], removals.REPEAT)
        self._reports.append(control_totals.received("removed_spans", shuffle.totals(rows)))
        if self._moves_keepers:
            self._counts["spans.joined"] += removals.joined_copies(rows)


def _check_keys(seen: Sequence[Any], blocks: Iterable[bytes]) -> None:
    """Raises C4pipeError if two pages have one key: their spans can't be told apart."""
    keys, counts = np.unique(np.concatenate([np.empty(0, np.uint64), *seen]), return_counts=True)
    if not (counts > 1).any():
        return
    double = keys[counts > 1]
    tables = (page_schema.unpack(packed) for packed in blocks_of(blocks, PAGES))
    url = next(t["url"][n].as_py() for t in tables for n in np.flatnonzero(np.isin(t["page_key"].to_numpy(), double)))
    raise C4pipeError(f"RemoveRepeatedSpans was given two pages of the URL {url}: put KeepNewest before it")
