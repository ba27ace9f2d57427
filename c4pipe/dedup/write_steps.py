"""The steps of job 2 that write: finished pages, the report's repeated spans, shards, and the published corpus."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from c4pipe.clean import examples
from c4pipe.clean.examples import Example, SmallestKeys
from c4pipe.clean.work_file import PAGE_COLUMNS
from c4pipe.clean.work_folder import find_work_files
from c4pipe.clean.work_reader import read_kept, read_stale
from c4pipe.dedup import finish, near_finish, near_hosts, page_batches, shuffle
from c4pipe.dedup.dedup_plan import DedupPlan
from c4pipe.dedup.dedup_step import REPORT, DedupStep, files_of, rows_of, step_report
from c4pipe.dedup.finish import PageFinisher
from c4pipe.dedup.near_finish import NearDuplicates
from c4pipe.dedup.near_hosts import HOSTS
from c4pipe.dedup.near_pages import PAIR
from c4pipe.dedup.removals import JOINED, REPEAT, Removals
from c4pipe.dedup.repeats import joined_copies, most_repeated, with_texts
from c4pipe.dedup.shard import write_shard
from c4pipe.dedup.shuffle import STALE_ROW
from c4pipe.dedup.span_places import MARKS, PLACE
from c4pipe.filters.duplicates import Rows
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.recipes import recipe_lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners import control_totals
from c4pipe.runners.flow import Step

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
                hosts.append(near_hosts.host_pairs(*near.urls(storage_path(path), file)))
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
                shown_examples += finish.stale_captures(storage_path(path), rows)
                shown_examples += near.examples(storage_path(path), file)
        yield from self._send(held, reports)
        for block in self._copied(np.concatenate(hosts), reports):
            yield "hosts", block
        removed = removals.repeats()
        for bucket, packed in shuffle.bucketed(removed, self._plan.span_bits):
            yield "removed", (bucket, self._spill.send(packed))
        reports.append(control_totals.sent("removed_spans", shuffle.totals(removed)))
        reports.append(control_totals.unclaimed("marks", finish.unclaimed(removals.spans, seen)))
        yield step_report(
            *reports, counts, removals.counts, {"examples": shown_examples, "moved_spans": removals.moved()}
        )

    def _copied(self, hosts: Rows, reports: list[control_totals.Report]) -> Iterator[tuple[int, bytes]]:
        """Yields the pairs of hosts of a group, each once, by bucket."""
        rows = near_hosts.add_up(hosts)
        reports.append(control_totals.sent("copied_hosts", shuffle.totals(rows)))
        for bucket, packed in shuffle.bucketed(rows, self._plan.url_bits):
            yield bucket, self._spill.send(packed)

    def _near(self, grouped: Mapping[str, Iterable[Any]], reports: list[control_totals.Report]) -> NearDuplicates:
        pairs = self._receive("near_duplicates", grouped.get("near", ()), PAIR, reports)
        staying = [near_finish.decode(each) for each in self._spill.receive(grouped.get("stayed", ()))]
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
        numbers = layout.shard_numbers(page_batches.folders_of(pages, layout), keys)
        for number, rows in page_batches.by_shard(pages, numbers):
            yield "rows", (number, self._spill.send(page_batches.encode(pages, rows)))


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
        yield step_report(*reports, {"near_hosts": near_hosts.most_copied(rows)})


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
        report["near_clusters"] = near_finish.largest_clusters(element.get("near_clusters", ()))
        report["near_hosts"] = near_hosts.with_names(element.get("near_hosts", ()), files)
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
