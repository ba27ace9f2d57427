"""The final form of pages: repeated spans are removed, and the rules of the stage `final` decide again."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean import examples
from c4pipe.clean.dropped_pages import DroppedWriter, KeepDropped, dropped_writer
from c4pipe.clean.evaluator import RecipeEvaluator
from c4pipe.clean.examples import EXAMPLES_PER_FILE, PASSED, Example, SmallestKeys, make_example
from c4pipe.clean.resources import RuleResources
from c4pipe.clean.verdicts import DROPPED_LANGUAGE
from c4pipe.clean.work_file import PAGE_COLUMNS, read_kept, read_stale
from c4pipe.clean.work_folder import find_work_files
from c4pipe.dedup import near_duplicates, shuffle, write
from c4pipe.dedup.near_duplicates import HOSTS, NearDuplicates
from c4pipe.dedup.near_pages import PAIR
from c4pipe.dedup.occurrences import MARKS, PLACE
from c4pipe.dedup.removals import JOINED, REPEAT, Removals, joined_copies, most_repeated, with_texts
from c4pipe.dedup.shuffle import STALE_ROW
from c4pipe.dedup.step import REPORT, DedupPlan, DedupStep, files_of, rows_of, step_report
from c4pipe.dedup.write import write_shard
from c4pipe.filters.duplicates import Rows
from c4pipe.filters.language import UNKNOWN
from c4pipe.filters.spans import remove_spans, units_of
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.io.words import excerpt
from c4pipe.recipes import recipe_lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.runners import control_totals
from c4pipe.runners.flow import Step


class PageFinisher:
    """Finishes pages by one recipe. A worker has one of them."""

    def __init__(self, recipe: Recipe, lists: Lists, judged: bool = False) -> None:
        """Takes the recipe, its lists, and whether `dropped` is also known of the pages that lose spans."""
        self._recipe = recipe
        self._evaluator = RecipeEvaluator(recipe, RuleResources(recipe, lists))
        self._span = recipe.parameters("repeated_span")
        # A listed word is inside of a line: where no line has one, those that are left have none either.
        self._knows_bad_words = judged and self._span.get("unit") == "line"

    def audit(self, keep: KeepDropped | None, source: str) -> AbstractContextManager[DroppedWriter | None]:
        """Returns the writer of dropped pages for a WET file (its name), as a context; None where nothing is kept."""
        return dropped_writer(keep, source, "dedup", self._evaluator)

    def finish(
        self,
        pages: pa.Table,
        removals: Mapping[int, Sequence[int]],
        counts: Counter[str],
        dropped: DroppedWriter | None = None,
        shown: SmallestKeys | None = None,
        kept: Mapping[int, Sequence[int]] = MappingProxyType({}),
    ) -> pa.Table:
        """Returns the kept pages, in their final form and in their order, with a column `units_left`.

        Args:
            pages: the newest pages of a work file, with its PAGE_COLUMNS.
            removals: by page key, the first unit of each span that the page loses.
            counts: counters, to which removed units and dropped and kept pages are added.
            dropped: the writer to which dropped pages are added; None where none are kept.
            shown: the examples, to which pages that lose spans and dropped pages are added, as functions that make them
                (most of them give way to smaller keys); None for no examples.
            kept: by page key, the first unit of each repeated span that the page keeps.
        """
        units = pc.list_value_length(pages["unit_starts"]).cast(pa.int64())
        counts["units.newest"] += int(pc.sum(units).as_py() or 0)
        pages = pages.append_column("units_left", units)
        lose = np.array([key in removals for key in pages["page_key"].to_pylist()], bool)
        edited = self._edited(pages.filter(pa.array(lose)), removals, kept, counts, shown)
        rows = np.arange(len(pages))
        rows[lose] = len(pages) + np.arange(len(edited))
        pages = pa.concat_tables([pages, edited]).combine_chunks()  # `take` would do so each time
        is_dropped = pages["dropped"].is_valid().to_numpy()[rows]
        self._drop(pages, rows[is_dropped], counts, dropped, shown)
        pages = pages.take(pa.array(rows[~is_dropped]))
        least = self._recipe.parameters("few_sentences_left")
        if shown is not None and least.get("count") == "remaining sentences":
            passed = np.flatnonzero(pages["units_left"].to_numpy() == least["min_sentences"])
            self._show("few_sentences_left", f"{PASSED}few_sentences_left", pages, passed, shown)
        counts["pages.kept"] += len(pages)
        for language, number in _counts(pages["language"]).items():
            counts[f"pages.kept.{language}"] += number
        counts["pages.validation"] += int(pc.sum(pages["validation"]).as_py() or 0)
        counts["units.kept"] += int(pc.sum(pages["units_left"]).as_py() or 0)
        counts["bytes.kept"] += int(pc.sum(pc.binary_length(pages["text"])).as_py() or 0)
        return pages

    def _drop(
        self,
        pages: pa.Table,
        rows: npt.NDArray[np.int64],
        counts: Counter[str],
        dropped: DroppedWriter | None,
        shown: SmallestKeys | None,
    ) -> None:
        """Counts the pages of these rows, which are dropped, adds them to `dropped`, and some of them to `shown`."""
        facts = pages.select(["dropped", "units_left", "language"]).take(pa.array(rows))
        rules = facts["dropped"].to_numpy()
        for rule, number in _counts(facts["dropped"]).items():
            counts[f"pages.dropped.{rule}"] += number
            is_of_rule = rules == rule
            of_rule = facts.filter(pa.array(is_of_rule))
            counts[f"units.dropped.{rule}"] += pc.sum(of_rule["units_left"]).as_py()
            if rule == "language":
                for language, pages_of_it in _counts(of_rule["language"].fill_null(UNKNOWN)).items():
                    counts[f"{DROPPED_LANGUAGE}{language}"] += pages_of_it
            if shown is not None:
                self._show(rule, rule, pages, rows[is_of_rule], shown)
        if dropped:
            dropped.add_finished(pages.take(pa.array(rows)))

    def _show(self, rule: str, label: str, pages: pa.Table, rows: npt.NDArray[np.int64], shown: SmallestKeys) -> None:
        """Keeps pages that a rule of the stage `final` dropped, or only just kept, as examples under a label."""
        keys = pages["page_key"].to_numpy()[rows]
        columns = pages.select(["page_key", "url", "timestamp", "text", "units_left"])
        for each in np.argsort(keys)[:EXAMPLES_PER_FILE].tolist():
            if not shown.wants(label, int(keys[each])):
                return
            (page,) = columns.slice(rows[each], 1).to_pylist()
            shown.add(label, page["page_key"], 0, partial(self._final_example, rule, label, page))

    def _final_example(self, rule: str, label: str, page: Mapping[str, Any]) -> Example:
        final = self._evaluator.explain_final(page["url"], page["text"], page["units_left"], to_the_end=False)
        fact = next(each.fact for each in final.rules if each.rule == rule)
        return make_example(label, page["page_key"], page["url"], page["timestamp"], fact, excerpt(page["text"]))

    def _edited(
        self,
        pages: pa.Table,
        removals: Mapping[int, Sequence[int]],
        kept: Mapping[int, Sequence[int]],
        counts: Counter[str],
        shown: SmallestKeys | None,
    ) -> pa.Table:
        """Returns pages that lose spans, without these."""
        starts = pages["unit_starts"].combine_chunks()
        offsets, values = starts.offsets.to_pylist(), starts.values.to_numpy()
        rows = pages.drop_columns(["unit_starts"]).to_pylist()  # which makes an object for each number in a list
        for page, first, end in zip(rows, offsets, offsets[1:], strict=False):
            key, page["unit_starts"] = page["page_key"], values[first:end].tolist()
            if shown is not None and shown.wants("repeated_span", key):
                example = partial(self._repeat, page.copy(), removals[key], kept.get(key, ()))
                shown.add("repeated_span", key, 0, example)
            self._edit_page(page, removals[key], kept.get(key, ()), counts)
        for name in ("text", "language", "language_probability", "dropped", "units_left") if rows else ():
            number, field = pages.schema.get_field_index(name), pages.schema.field(name)
            pages = pages.set_column(number, field, pa.array([page[name] for page in rows], field.type))
        return pages

    def _repeat(self, page: Mapping[str, Any], spans: Sequence[int], kept: Sequence[int]) -> Example:
        """Returns a page that loses spans as an example; the first run of removed units is marked."""
        size, unit, starts = self._span["size"], self._span["unit"], page["unit_starts"]
        removed = units_of(spans, size) - units_of(kept, size)
        end = min(removed)
        while end in removed:
            end += 1
        text = excerpt(page["text"], starts[min(removed)], starts[end] if end < len(starts) else len(page["text"]))
        fact = f"{len(removed):,} of its {len(starts):,} {unit}s are repeats, whose copy is in another place"
        return make_example("repeated_span", page["page_key"], page["url"], page["timestamp"], fact, text)

    def _edit_page(self, page: dict[str, Any], spans: Sequence[int], kept: Sequence[int], counts: Counter[str]) -> None:
        """Removes spans from a page, and applies the stage `final` again."""
        starts = page["unit_starts"]
        page["text"], left = remove_spans(page["text"], starts, spans, self._span["size"], self._span["unit"], kept)
        counts["units.dropped.repeated_span"] += len(starts) - left
        counts["pages.edited.repeated_span"] += 1
        judged = self._knows_bad_words and page["dropped"] is None
        without_bad_word = (page["language"] or UNKNOWN) if judged else None
        final = self._evaluator.finish(page["url"], page["text"], left, without_bad_word)
        page["units_left"], page["dropped"] = left, final.reason
        if final.guess:
            page["language"] = final.guess.language
            page["language_probability"] = round(final.guess.probability, 6)


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {each["values"]: each["counts"] for each in pc.value_counts(column.drop_null()).to_pylist()}


def unclaimed(removals: Mapping[int, Sequence[int]], page_keys: Sequence[Any]) -> int:
    """Returns the number of spans to remove whose page did not arrive: none, unless a runner lost data."""
    missing = set(removals).difference(*(keys.tolist() for keys in page_keys))
    return sum(len(removals[key]) for key in missing)


def stale_captures(work_file: StoragePath, stale: Any) -> list[Example]:
    """Returns examples of stale captures among the kept pages of a work file; `stale` are their rows in the file."""
    if not len(stale):
        return []
    rows = pa.concat_tables(read_stale(work_file, ["page_key", "url", "timestamp"], stale))
    rows = rows.sort_by("page_key").slice(0, EXAMPLES_PER_FILE)
    fact = "the crawl has a newer capture of this URL"
    return [
        make_example("stale_capture", row["page_key"], row["url"], row["timestamp"], fact, [""])
        for row in rows.to_pylist()
    ]


_ROWS_AT_ONCE = 512  # of a work file: those of their pages that lose spans are Python objects at a time
_HELD_BYTES = 64 * 1024 * 1024  # of finished pages in memory, before they are sent to their shards


class FinishPages(DedupStep):
    """(group, files, stale rows, marks and changes) -> (shard, pages), and the removed spans by bucket."""

    outputs: tuple[str, ...] = ("rows", "removed", REPORT)
    tallied = ("pages", "finished")

    def __init__(self, plan: DedupPlan, shown: Collection[str]) -> None:
        super().__init__(plan)
        self._shown = frozenset(shown)
        if plan.near:
            self.outputs = (*self.outputs, "hosts")

    def setup(self) -> None:
        """Loads the recipe with its lists."""
        super().setup()
        plan = self._plan
        lists = recipe_lists.find_lists([storage_path(each) for each in plan.work], plan.lists)
        self._finisher = PageFinisher(Recipe.from_json(plan.recipe), lists, judged=True)

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        """Finishes the pages of a group, and sends them to their shards."""
        _, grouped = element
        counts = Counter[str]()
        reports: list[control_totals.Report] = []
        stale = self._receive("stale_captures", grouped["stale"], STALE_ROW, reports)
        near = self._near(grouped, reports)
        marks = self._receive("marks", grouped["marks"], MARKS, reports)
        changes = self._receive("changes", grouped.get("changes", ()), PLACE, reports)
        removals = Removals(marks, changes, self._plan.span.get("size", 1))
        seen: list[Any] = []
        shown_examples: list[Example] = []
        held: list[pa.Table] = []
        held_bytes = 0
        hosts = [np.empty(0, HOSTS)]
        for file, path in files_of(grouped):
            if len(near.rows(file)):
                hosts.append(near_duplicates.host_pairs(*near.urls(storage_path(path), file)))
            shown = SmallestKeys() if path in self._shown else None
            rows = rows_of(stale, file)
            for pages in self._finish_file(file, storage_path(path), rows, near, removals, counts, seen, shown):
                held.append(pages)
                held_bytes += pages.nbytes
                if held_bytes >= _HELD_BYTES:
                    yield from self._send(held, reports)
                    held_bytes = 0
            if shown is not None:
                shown_examples += [make_example() for make_example in shown.values()]
                shown_examples += stale_captures(storage_path(path), rows)
                shown_examples += near.examples(storage_path(path), file)
        yield from self._send(held, reports)
        for block in self._copied(np.concatenate(hosts), reports):
            yield "hosts", block
        removed = removals.repeats()
        for bucket, packed in shuffle.bucketed(removed, self._plan.span_bits):
            yield "removed", (bucket, self._spill.send(packed))
        reports.append(control_totals.sent("removed_spans", shuffle.totals(removed)))
        reports.append(control_totals.unclaimed("marks", unclaimed(removals.spans, seen)))
        yield step_report(
            *reports, counts, removals.counts, {"examples": shown_examples, "moved_spans": removals.moved()}
        )

    def _copied(self, hosts: Rows, reports: list[control_totals.Report]) -> Iterator[tuple[int, bytes]]:
        """Yields the pairs of hosts of a group, each once, by bucket."""
        rows = near_duplicates.add_up(hosts)
        reports.append(control_totals.sent("copied_hosts", shuffle.totals(rows)))
        for bucket, packed in shuffle.bucketed(rows, self._plan.url_bits):
            yield bucket, self._spill.send(packed)

    def _near(self, grouped: Mapping[str, Iterable[Any]], reports: list[control_totals.Report]) -> NearDuplicates:
        pairs = self._receive("near_duplicates", grouped.get("near", ()), PAIR, reports)
        staying = [near_duplicates.decode(each) for each in self._spill.receive(grouped.get("stayed", ()))]
        for table in staying:
            reports.append(control_totals.received("stayed", shuffle.totals(table["page_key"].to_numpy())))
        return NearDuplicates(pairs, staying)

    def _finish_file(
        self,
        file: int,
        path: StoragePath,
        stale: Any,
        near: NearDuplicates,
        removals: Removals,
        counts: Counter[str],
        seen: list[Any],
        shown: SmallestKeys | None,
    ) -> Iterator[pa.Table]:
        """Yields the finished pages of a work file.

        Adds to the counts, to the removals, to `shown`, and to `seen` the keys of the pages.
        """
        with self._finisher.audit(self._plan.keep_dropped, path.name.removesuffix(".parquet")) as dropped:
            near_rows = near.rows(file)
            if len(near_rows):
                counts["pages.dropped.near_duplicate"] += len(near_rows)
                counts["pages.dropped.stale_capture"] -= len(near_rows)  # both are among the rows that are passed over
            columns, passed = [*PAGE_COLUMNS, "span_hashes"], np.r_[stale, near_rows]
            for pages, passed_over in read_kept(path, columns, passed, _ROWS_AT_ONCE):
                counts["pages.dropped.stale_capture"] += passed_over
                seen.append(pages["page_key"].to_numpy())
                removals.add(pages, file)
                pages = pages.select(PAGE_COLUMNS)
                finished = self._finisher.finish(pages, removals.spans, counts, dropped, shown, removals.kept)
                removals.add_kept(pages, finished["page_key"].to_numpy(), self._plan.span.get("whitespace", ""))
                yield finished
                self._tally("pages", passed_over + len(pages))
                self._tally("finished", len(finished))
            if dropped:
                for pages in read_stale(path, ["page_key", "url", "timestamp", "text"], stale):
                    dropped.add_stale(pages)
                for pages in near.pages(path, near_rows):
                    dropped.add_near(pages)
                dropped.finish()

    def _send(self, held: list[pa.Table], reports: list[control_totals.Report]) -> Iterator[tuple[str, Any]]:
        pages = pa.concat_tables(held).combine_chunks() if held else None
        held.clear()  # their copy is in memory now
        if not pages:
            return
        keys = pages["page_key"].to_numpy()
        reports.append(control_totals.sent("pages", shuffle.totals(keys)))
        layout = self._plan.layout
        numbers = layout.shard_numbers(write.folders_of(pages, layout), keys)
        for number, rows in write.by_shard(pages, numbers):
            yield "rows", (number, self._spill.send(write.encode(pages, rows)))


class CountRepeats(DedupStep):
    """(bucket, packed rows of removed spans) -> a report of those that repeat most."""

    outputs = (REPORT,)

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Counts the removed spans of a bucket."""
        reports: list[control_totals.Report] = []
        rows = self._receive("removed_spans", element[1], REPEAT, reports)
        copies = {"spans.joined": joined_copies(rows)} if self._plan.moves_keepers else {}
        yield step_report(*reports, copies, {"repeats": most_repeated(rows[rows["unit"] != JOINED])})


class CountHosts(DedupStep):
    """(bucket, packed rows of pairs of hosts) -> a report of those with most pages."""

    outputs = (REPORT,)

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Counts the pages of the pairs of hosts of a bucket."""
        reports: list[control_totals.Report] = []
        rows = self._receive("copied_hosts", element[1], HOSTS, reports)
        yield step_report(*reports, {"near_hosts": near_duplicates.most_copied(rows)})


class WriteShard(DedupStep):
    """(shard, pages) -> a report. Writes the shard's files into the publisher's folder."""

    outputs = (REPORT,)
    tallied = ("shards",)

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        """Writes the files of one shard."""
        _, grouped = element
        (shard,) = grouped["shard"]
        batches = self._spill.receive(grouped["pages"])
        output = storage_path(self._plan.output)
        tally = partial(self._tally, "shards")
        yield REPORT, write_shard(batches, shard, output, self._plan.formats, tally)


class ReadExamples(Step):
    """The sum of the reports before the shards -> the same, with what the report shows of the work files' pages."""

    outputs = (REPORT,)
    sums = (REPORT,)

    def __init__(self, plan: DedupPlan, shown: Collection[str]) -> None:
        self._plan = plan
        self._shown = sorted(shown)

    def process(self, element: control_totals.Report) -> Iterable[tuple[str, Any]]:
        """Adds the examples of job 1, the texts of repeated spans, and the names of hosts."""
        from c4pipe.dedup import publish  # it loads all that describes a corpus, which the other steps do not need

        clean_examples = examples.gather_examples([storage_path(path) for path in self._shown])
        span = Recipe.from_json(self._plan.recipe).parameters("repeated_span")
        files = list(find_work_files([storage_path(each) for each in self._plan.work]).values())
        repeats = with_texts(element.get("repeats", ()), files, span["size"]) if span else []
        report = {**element, "clean_examples": clean_examples, "repeats": repeats}
        report["near_clusters"] = near_duplicates.largest_clusters(element.get("near_clusters", ()))
        report["near_hosts"] = near_duplicates.with_names(element.get("near_hosts", ()), files)
        publish.prepare_to_finish()  # on this machine, while workers write the shards
        return [(REPORT, report)]


class Publish(Step):
    """The sum of all reports -> nothing. Publishes the corpus."""

    def __init__(self, plan: DedupPlan) -> None:
        self._plan = plan

    def process(self, element: control_totals.Report) -> Iterable[tuple[str, Any]]:
        """Checks the reports and publishes."""
        from c4pipe.dedup import publish

        moved = element.get("moved_spans", []) if self._plan.moves_keepers else None
        publish.finish(storage_path(self._plan.output), element, self._plan.publication_token, moved)
        return ()
