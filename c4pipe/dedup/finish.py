"""The final form of pages: repeated spans are removed, and the rules of the stage `final` decide again."""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.dropped_pages import DroppedFile, KeepDropped
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.examples import EXAMPLES_PER_FILE, Example, SmallestKeys, make_example
from c4pipe.clean.trace import explain_final
from c4pipe.clean.work_file import page_columns, read_kept, read_stale
from c4pipe.corpus.labels import count_labels
from c4pipe.corpus.manifest import TAKEDOWN
from c4pipe.dedup import write
from c4pipe.dedup.near_duplicates import Copies, NearDuplicates
from c4pipe.dedup.near_pages import NEAR_DUPLICATES, STAYED, STAYING
from c4pipe.dedup.removals import JOINED, Removals, joined_copies, most_repeated
from c4pipe.dedup.shuffle import CHANGES, KNOWN_URLS, MARKS, PAGES, REMOVED_SPANS, STALE_CAPTURES, Sent, unpack_table
from c4pipe.dedup.step import DedupPlan, DedupStep, Received, RowStep, StepItem, rows_of
from c4pipe.dedup.taken_down import TakenDown
from c4pipe.filters.corpus_rules import KNOWN_URL, NearDuplicate, RepeatedSpan, StaleCapture
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.io.rows import Rows, arrow_array, unique
from c4pipe.io.words import excerpt
from c4pipe.lists.lists import Lists, find_lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners import control_totals
from c4pipe.text.languages import UNKNOWN, language_counter
from c4pipe.text.spans import remove_spans, units_of
from c4pipe.wet.columns import COPIES_COLUMN, EXTRA, flat


class PageFinisher:
    """Finishes pages by one recipe. A worker has a single finisher."""

    def __init__(self, recipe: Recipe, lists: Lists, judged: bool = False, taken_down: TakenDown | None = None) -> None:
        """Takes the recipe, its lists, whether job 1 has judged all pages, also pages that lose spans, and what
        takedowns listed.
        """
        self._recipe, self._taken_down = recipe, taken_down
        self._evaluator = RecipeEvaluator(recipe, lists)
        self._span = recipe.find(RepeatedSpan)
        after_language = [each for each in self._evaluator.operations if each.knows_language]
        self._knows_language = any(each.stage != "final" for each in after_language)
        self._after_language = {each.name for each in after_language}
        # A listed word is inside a line. If no line of a page has a listed word, nor have the lines that stay.
        self._knows_listed_words = judged and self._span is not None and self._span.unit == "line"

    def audit(self, keep: KeepDropped | None, source: str) -> DroppedFile | None:
        """Returns the file of the dropped pages of a WET file (its name); None if they are not kept."""
        return DroppedFile(keep, source, "dedup", self._evaluator) if keep else None

    def finish(
        self,
        pages: pa.Table,
        removals: Mapping[int, Sequence[int]],
        counts: Counter[str],
        dropped: DroppedFile | None = None,
        shown: SmallestKeys | None = None,
        kept: Mapping[int, Sequence[int]] = MappingProxyType({}),
    ) -> pa.Table:
        """Returns the kept pages, in their final form and in their order, with a column `units_left`.

        Args:
            pages: the newest pages of a work file, with its `page_columns`.
            removals: by page key, the first unit of each span that the page loses.
            counts: gets the numbers of removed units and of dropped and kept pages.
            dropped: gets the dropped pages; None if they are not written.
            shown: gets dropped pages and pages that lose spans as examples; None for no examples. Each example is added
                as a function that makes it, because most examples give way to smaller keys.
            kept: by page key, the first unit of each repeated span that the page keeps.
        """
        units = pc.list_value_length(pages["unit_starts"]).cast(pa.int64())
        counts["units.newest"] += int(pc.sum(units).as_py() or 0)
        pages = pages.append_column("units_left", units)
        lose = np.array([key in removals for key in pages["page_key"].to_pylist()], bool)
        edited = self._edited(pages.filter(arrow_array(lose)), removals, kept, counts, shown)
        rows = np.arange(len(pages))
        rows[lose] = len(pages) + np.arange(len(edited))
        pages = pa.concat_tables([pages, edited]).combine_chunks()  # `take` would do so each time
        is_dropped = pages["dropped"].is_valid().to_numpy()[rows]
        self._drop(pages, rows[is_dropped], counts, dropped, shown)
        pages = self._leave_out(pages.take(arrow_array(rows[~is_dropped])), counts)
        counts["pages.kept"] += len(pages)
        for language, number in _counts(pages["language"]).items():
            counts[f"pages.kept.{language}"] += number
        counts["pages.validation"] += int(pc.sum(pages["validation"]).as_py() or 0)
        counts["units.kept"] += int(pc.sum(pages["units_left"]).as_py() or 0)
        counts["bytes.kept"] += int(pc.sum(pc.binary_length(pages["text"])).as_py() or 0)
        counts.update(count_labels(flat(pages, ["text"]), self._recipe.label_columns))
        return pages

    def _leave_out(self, pages: pa.Table, counts: Counter[str]) -> pa.Table:
        """Returns the pages that no takedown listed, and counts the others; these are neither examples nor audited."""
        if self._taken_down is None:
            return pages
        listed = pa.array(map(self._taken_down.has, pages["url"].to_pylist()), pa.bool_())
        out = pages.filter(listed)
        counts[f"pages.dropped.{TAKEDOWN}"] += len(out)
        counts[f"units.dropped.{TAKEDOWN}"] += int(pc.sum(out["units_left"]).as_py() or 0)
        self.count_languages(TAKEDOWN, out["language"], counts)
        return pages.filter(pc.invert(listed))

    def _drop(
        self,
        pages: pa.Table,
        rows: npt.NDArray[np.int64],
        counts: Counter[str],
        dropped: DroppedFile | None,
        shown: SmallestKeys | None,
    ) -> None:
        """Counts the dropped pages in these rows, and adds all of them to `dropped` and some to `shown`."""
        facts = pages.select(["dropped", "units_left", "language"]).take(arrow_array(rows))
        rules = facts["dropped"].to_numpy()
        for rule, number in _counts(facts["dropped"]).items():
            counts[f"pages.dropped.{rule}"] += number
            is_of_rule = rules == rule
            of_rule = facts.filter(arrow_array(is_of_rule))
            counts[f"units.dropped.{rule}"] += pc.sum(of_rule["units_left"]).as_py()
            self.count_languages(rule, of_rule["language"], counts)
            if shown is not None:
                self._show(rule, pages, rows[is_of_rule], shown)
        if dropped:
            dropped.add_finished(pages.take(arrow_array(rows)))

    def count_languages(self, rule: str, languages: pa.ChunkedArray, counts: Counter[str]) -> None:
        """Adds pages that a rule drops to the counters of their languages, if the recipe knows languages then."""
        if self._knows_language or rule in self._after_language:
            for language, number in _counts(languages.fill_null(UNKNOWN)).items():
                counts[language_counter(language, rule)] += number

    def _show(self, rule: str, pages: pa.Table, rows: npt.NDArray[np.int64], shown: SmallestKeys) -> None:
        """Adds pages that a rule of the stage `final` dropped to the examples of the rule."""
        keys = pages["page_key"].to_numpy()[rows]
        columns = pages.select(["page_key", "url", "timestamp", "text", "units_left"])
        for each in np.argsort(keys)[:EXAMPLES_PER_FILE].tolist():
            if int(keys[each]) >= shown.limits[rule]:
                return
            (page,) = columns.slice(rows[each], 1).to_pylist()
            shown.add(rule, page["page_key"], 0, partial(self._final_example, rule, page))

    def _final_example(self, rule: str, page: Mapping[str, Any]) -> Example:
        final = explain_final(self._evaluator, page["url"], page["text"], page["units_left"], to_the_end=False)
        fact = next(each.fact for each in final.rules if each.rule == rule)
        return make_example(rule, page["page_key"], page["url"], page["timestamp"], fact, excerpt(page["text"]))

    def _edited(
        self,
        pages: pa.Table,
        removals: Mapping[int, Sequence[int]],
        kept: Mapping[int, Sequence[int]],
        counts: Counter[str],
        shown: SmallestKeys | None,
    ) -> pa.Table:
        """Returns pages without the spans that they lose."""
        starts = pages["unit_starts"].combine_chunks()
        offsets, values = starts.offsets.to_pylist(), starts.values.to_numpy()
        dropped = [name for name in ("unit_starts", EXTRA) if name in pages.schema.names]
        rows = pages.drop_columns(dropped).to_pylist()  # it makes an object for each number in a list
        for page, first, end in zip(rows, offsets, offsets[1:], strict=False):
            key, page["unit_starts"] = page["page_key"], values[first:end].tolist()
            if shown is not None and key < shown.limits[RepeatedSpan.name]:
                example = partial(self._repeat, page.copy(), removals[key], kept.get(key, ()))
                shown.add(RepeatedSpan.name, key, 0, example)
            self._edit_page(page, removals[key], kept.get(key, ()), counts)
        for name in ("text", "language", "language_probability", "dropped", "units_left") if rows else ():
            number, field = pages.schema.get_field_index(name), pages.schema.field(name)
            pages = pages.set_column(number, field, pa.array([page[name] for page in rows], field.type))
        return pages

    def _repeat(self, page: Mapping[str, Any], spans: Sequence[int], kept: Sequence[int]) -> Example:
        """Returns a page that loses spans as an example; the first run of removed units is marked."""
        assert self._span  # without the rule, no page loses spans
        size, unit, starts = self._span.size, self._span.unit, page["unit_starts"]
        removed = units_of(spans, size) - units_of(kept, size)
        end = min(removed)
        while end in removed:
            end += 1
        text = excerpt(page["text"], starts[min(removed)], starts[end] if end < len(starts) else len(page["text"]))
        fact = f"{len(removed):,} of its {len(starts):,} {unit}s are repeats, whose copy is in another place"
        return make_example(RepeatedSpan.name, page["page_key"], page["url"], page["timestamp"], fact, text)

    def _edit_page(self, page: dict[str, Any], spans: Sequence[int], kept: Sequence[int], counts: Counter[str]) -> None:
        """Removes spans from a page, and applies the stage `final` again."""
        assert self._span  # without the rule, no page loses spans
        text, left = remove_spans(page["text"], page["unit_starts"], spans, self._span.size, self._span.unit, kept)
        judged = self._knows_listed_words and page["dropped"] is None
        without_listed_word = (page["language"] or UNKNOWN) if judged else None
        final = self._evaluator.finish(page["url"], text, left, without_listed_word)
        counts[f"units.dropped.{RepeatedSpan.name}"] += len(page["unit_starts"]) - left
        counts[f"pages.edited.{RepeatedSpan.name}"] += 1
        page["text"], page["units_left"], page["dropped"] = text, left, final.reason
        if final.guess:
            page["language"] = final.guess.language
            page["language_probability"] = round(final.guess.probability, 6)


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {each["values"]: each["counts"] for each in pc.value_counts(column.drop_null()).to_pylist()}


def count_unclaimed(removals: Mapping[int, Sequence[int]], page_keys: Sequence[Any]) -> int:
    """Returns the number of spans to remove whose page did not arrive: 0 unless a runner lost data."""
    missing = set(removals).difference(*(keys.tolist() for keys in page_keys))
    return sum(len(removals[key]) for key in missing)


def stale_captures(work_file: StoragePath, stale: Any) -> list[Example]:
    """Returns examples of the stale captures in these rows of a work file."""
    if not len(stale):
        return []
    rows = pa.concat_tables(read_stale(work_file, ["page_key", "url", "timestamp"], stale))
    rows = rows.sort_by("page_key").slice(0, EXAMPLES_PER_FILE)
    fact = "the crawl has a newer capture of this URL"
    return [
        make_example(StaleCapture.name, row["page_key"], row["url"], row["timestamp"], fact, [""])
        for row in rows.to_pylist()
    ]


_COUNTED = ("units.newest", "pages.kept", "pages.validation", "units.kept", "bytes.kept")  # also without any page
_ROWS_AT_ONCE = 1024  # of a work file: only their pages that lose spans are Python objects at a time
_HELD_BYTES = 64 * 1024 * 1024  # of finished pages in memory, before they are sent to their shards


class GroupFinisher:
    """Finishes the pages of a group, some at a time: removes repeated spans, and applies the last rules to the rest.

    Attributes:
        removals: the repeated spans that the pages lose and keep.
        counts: the counters of pages and spans.
    """

    def __init__(self, finisher: PageFinisher, span: RepeatedSpan | None, marks: Rows, changes: Rows) -> None:
        """Takes the finisher, the rule on repeated spans, the group's MARK rows, and the OCCURRENCE rows of changes."""
        self._finisher, self._whitespace = finisher, span.whitespace if span else ""
        self.removals = Removals(marks, changes, span.size if span else 1)
        self.counts = Counter[str](dict.fromkeys(_COUNTED, 0))
        self._seen: list[npt.NDArray[np.uint64]] = []

    def finish(
        self, pages: pa.Table, file: int, dropped: DroppedFile | None = None, shown: SmallestKeys | None = None
    ) -> pa.Table:
        """Returns the kept pages of a file in their final form, and adds the other pages to `dropped` and `shown`."""
        self._seen.append(pages["page_key"].to_numpy())
        removals = self.removals
        removals.add(pages, file)
        pages = pages.drop_columns(["span_hashes"])
        finished = self._finisher.finish(pages, removals.spans, self.counts, dropped, shown, removals.kept)
        removals.add_kept(pages, finished["page_key"].to_numpy(), self._whitespace)
        return finished

    def end(self, bits: int) -> Iterator[StepItem]:
        """Sends the removed spans to the buckets of this number of bits, and yields the counts of all pages."""
        yield REMOVED_SPANS.to_buckets(self.removals.repeats(), bits)
        yield control_totals.unclaimed_rows(MARKS.name, count_unclaimed(self.removals.spans, self._seen))
        yield self.counts
        yield self.removals.counts


class FinishPages(DedupStep):
    """The files, stale captures, near-duplicates, marks and changes of a group -> pages by shard; removed spans."""

    sends = (PAGES, REMOVED_SPANS)
    tallied = ("pages", "finished")

    def __init__(self, plan: DedupPlan, shown: Collection[str]) -> None:
        super().__init__(plan)
        self._shown = frozenset(shown)

    def setup(self) -> None:
        super().setup()
        plan = self._plan
        lists = find_lists([storage_path(each) for each in plan.work], plan.lists)
        self._finisher = PageFinisher(plan.rules, lists, judged=True, taken_down=plan.taken_down)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Finishes the pages of a group, and sends them to their shards."""
        stale, known, near = received.rows(STALE_CAPTURES), received.rows(KNOWN_URLS), self._near(received)
        copies = Copies(received.rows(STAYING)) if COPIES_COLUMN in self._plan.rules.columns else None
        group = GroupFinisher(self._finisher, self._plan.span, received.rows(MARKS), received.rows(CHANGES))
        group.counts[f"pages.dropped.{StaleCapture.name}"] += 0
        shown_examples: list[Example] = []
        held: list[pa.Table] = []
        held_bytes = 0
        files = received.files
        if self._plan.keep_dropped:  # which has a file for each work file
            files = [each[:2] for each in received.all_files]
        for file, path in files:
            shown = SmallestKeys() if path in self._shown else None
            known_rows = rows_of(known, file)
            rows = np.setdiff1d(unique(rows_of(stale, file)), known_rows, assume_unique=True)
            passed = {StaleCapture.name: rows, KNOWN_URL: known_rows, NearDuplicate.name: near.rows(file)}
            for pages in self._finish_file(file, storage_path(path), passed, near, group, shown):
                held.append(copies.fill(pages) if copies else pages)
                held_bytes += pages.nbytes
                if held_bytes >= _HELD_BYTES:
                    yield from self._send(held)
                    held_bytes = 0
            if shown is not None:
                shown_examples += [make_example() for make_example in shown.values()]
                shown_examples += stale_captures(storage_path(path), rows)
                shown_examples += near.examples(storage_path(path), file)
        yield from self._send(held)
        yield from group.end(self._plan.span_bits)
        yield {"examples": shown_examples, "moved_spans": group.removals.moved()}

    def _near(self, received: Received) -> NearDuplicates:
        pairs = received.rows(NEAR_DUPLICATES)
        staying = [unpack_table(each) for each in received.streams(STAYED)]
        for table in staying:
            received.count(STAYED, table["page_key"].to_numpy())
        return NearDuplicates(pairs, staying)

    def _finish_file(
        self,
        file: int,
        path: StoragePath,
        passed: Mapping[str, Any],
        near: NearDuplicates,
        group: GroupFinisher,
        shown: SmallestKeys | None,
    ) -> Iterator[pa.Table]:
        """Yields the finished pages of a work file; `passed` has the rows to pass over, by the reason."""
        dropped = self._finisher.audit(self._plan.keep_dropped, path.name.removesuffix(".parquet"))
        with contextlib.ExitStack() as unfinished:
            if dropped:
                unfinished.callback(dropped.discard)
            for reason, numbers in passed.items():  # job 1 has dropped some of these pages
                for pages in read_stale(path, ["page_key", "language"], numbers) if len(numbers) else ():
                    if len(pages):
                        group.counts[f"pages.dropped.{reason}"] += len(pages)
                        self._finisher.count_languages(reason, pages["language"], group.counts)
            columns, rows = [*page_columns(self._plan.rules), "span_hashes"], np.concatenate([*passed.values()])
            for pages, passed_over in read_kept(path, columns, rows, _ROWS_AT_ONCE):
                finished = group.finish(pages, file, dropped, shown)
                yield finished
                self._tally("pages", passed_over + len(pages))
                self._tally("finished", len(finished))
            if dropped:
                further = [EXTRA] if self._plan.rules.columns else []
                columns = ["page_key", "url", "timestamp", "text", *further]
                for pages in read_stale(path, columns, passed[StaleCapture.name]):
                    dropped.add_pages(pages, StaleCapture.name, "another capture of {url} counts as the newest")
                for pages in read_stale(path, columns, passed[KNOWN_URL]):
                    dropped.add_pages(pages, KNOWN_URL, "a known corpus has a page of this URL")
                for pages in near.pages(path, passed[NearDuplicate.name], further):
                    dropped.add_pages(pages, NearDuplicate.name)
                dropped.finish()

    def _send(self, held: list[pa.Table]) -> Iterator[Sent]:
        pages = pa.concat_tables(held).combine_chunks() if held else None
        held.clear()  # their copy is in memory now
        if pages:
            yield write.send_to_shards(pages, self._plan.layout)


class CountRepeats(RowStep):
    """The removed spans of a bucket -> a report of the spans that repeat most."""

    def __init__(self, spill: str, moves_survivors: bool) -> None:
        """Takes the spill folder, and whether survivors can move."""
        super().__init__(spill)
        self._moves_survivors = moves_survivors

    def run(self, received: Received) -> Iterator[StepItem]:
        """Counts the removed spans of a bucket."""
        rows = received.rows(REMOVED_SPANS)
        if self._moves_survivors:
            yield {"spans.joined": joined_copies(rows)}
        yield {"repeats": most_repeated(rows[rows["unit"] != JOINED])}
