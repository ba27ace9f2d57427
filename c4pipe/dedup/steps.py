"""The steps of job 2. They hold as little logic as possible: shuffle, repeats and page batches are pure functions.

Reports (counts and control totals) are data beside the rows, since the counters of runners count retried work twice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from c4pipe.clean import examples
from c4pipe.clean.examples import Example, Smallest
from c4pipe.clean.work_file import PAGE_COLUMNS, read_kept, read_stale, url_rows
from c4pipe.clean.work_folder import find_work_files
from c4pipe.corpus.shard_writer import ShardWriter
from c4pipe.dedup import finish, page_batches, publish, shuffle
from c4pipe.dedup.dedup_plan import DedupPlan
from c4pipe.dedup.finish import PageFinisher
from c4pipe.dedup.publishers import publisher
from c4pipe.dedup.repeats import REPEAT, RemovedSpans, most_repeated, with_texts
from c4pipe.dedup.shuffle import DROP, STALE_ROW
from c4pipe.errors import C4pipeError
from c4pipe.filters.duplicates import SPAN_ROW, URL_ROW, Rows, find_repeats, find_stale_captures
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.recipes import recipe_lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.profile import Profiler
from c4pipe.runners import control_totals
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.spill import Spill

REPORT = "report"

Files = Sequence[tuple[int, str]]
"""Numbers and paths of the work files of a group."""

_HELD_BYTES = 128 * 1024 * 1024  # of finished pages in memory, before they are sent to their shards


def dedup_work_files(flow: Flow, groups: Sequence[tuple[int, Files]], plan: DedupPlan) -> None:
    """Puts the graph of job 2 together: work files to shards, with the newest page of each URL and one of each span.

    Its last steps add up all reports, check them and publish the corpus.

    Args:
        flow: what the steps are put together on.
        groups: (number of the group, its work files).
        plan: the parameters of the steps.
    """
    shown = examples.choose(path for _, group in groups for _, path in group)
    files = flow.create("Work files", groups)
    urls = flow.do("Read URLs", files, _ReadUrls(plan))
    url_buckets = flow.group("Group URLs", urls["rows"])
    stale = flow.do("Find stale captures", url_buckets, _FindStale(plan))
    stale_by_group = flow.join("Stale captures to their group", files=files, stale=stale["rows"])
    spans = flow.do("Read spans", stale_by_group, _ReadSpans(plan))
    span_buckets = flow.group("Group spans", spans["rows"])
    repeated = flow.do("Find repeated spans", span_buckets, _FindRepeats(plan))
    drops = flow.merge("All drops", spans["drops"], repeated["rows"])
    drops_by_group = flow.join("Drops to their group", files=files, stale=stale["rows"], drops=drops)
    pages = flow.do("Finish pages", drops_by_group, _FinishPages(plan, shown))
    removed = flow.group("Group removed spans", pages["removed"])
    repeats = flow.do("Count removed spans", removed, _CountRepeats(plan))
    names = flow.create("Shards", [(number, tuple(name)) for number, name in enumerate(plan.layout.shards())])
    shards = flow.join("Pages to their shard", shard=names, pages=pages["rows"])
    written = flow.do("Write shard", shards, _WriteShard(plan))
    reports = flow.merge(
        "All reports", *(each[REPORT] for each in (urls, stale, spans, repeated, pages, repeats, written))
    )
    flow.do("Publish", flow.fold("Add up reports", reports, control_totals.add), _Publish(plan, shown))


def _report(*parts: Mapping[str, Any]) -> tuple[str, Any]:
    return REPORT, control_totals.add(parts)


class _Step(Step):
    """A step that sends and receives blocks of rows by `self._spill`."""

    outputs: tuple[str, ...] = ("rows", REPORT)

    def __init__(self, plan: DedupPlan) -> None:
        self._plan = plan

    def setup(self) -> None:
        self._spill = Spill(self._plan.spill)

    def teardown(self) -> None:
        self._spill.close()

    def _unpack(self, blocks: Iterable[bytes], dtype: np.dtype[Any]) -> Rows:
        return shuffle.unpack(self._spill.receive(blocks), dtype)

    def _by_group(self, name: str, rows: Rows, dtype: np.dtype[Any], report: control_totals.Report) -> Iterator[Any]:
        """Yields (group, packed rows) for a shuffle, and adds the totals of what was sent to `report`."""
        for group, selected in shuffle.by_group(rows, self._plan.group, dtype):
            report.update(control_totals.add([report, control_totals.sent(name, shuffle.totals(selected))]))
            yield group, self._spill.send(selected.tobytes())


class _ReadUrls(_Step):
    """(group, files) -> (bucket, packed URL rows)."""

    def process(self, element: tuple[int, Files]) -> Iterator[Any]:
        rows = np.concatenate([url_rows(storage_path(path), file) for file, path in element[1]])
        rows = rows[np.argsort(rows["hash"], kind="stable")]
        for bucket, packed in shuffle.bucketed(rows, self._plan.url_bits):
            yield "rows", (bucket, self._spill.send(packed))
        yield _report(control_totals.sent("urls", shuffle.totals(rows)))


class _FindStale(_Step):
    """(bucket, packed URL rows) -> (group, packed rows that are not the newest of their URL)."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        rows = self._unpack(element[1], URL_ROW)
        _, stale = find_stale_captures(rows)
        sent: control_totals.Report = {}
        for rows_of_group in self._by_group("stale_captures", stale, STALE_ROW, sent):
            yield "rows", rows_of_group
        received = control_totals.received("urls", shuffle.totals(rows))
        yield _report(received, sent, sent)  # sent twice: to `_ReadSpans` and to `_FinishPages`


class _ReadSpans(_Step):
    """(group, files and stale rows) -> span rows by bucket, drops by group."""

    outputs = ("rows", "drops", REPORT)

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        _, grouped = element
        stale = self._unpack(grouped["stale"], STALE_ROW)
        rows = [
            shuffle.span_rows(pages["page_key"].to_numpy(), file, pages["span_hashes"].combine_chunks())
            for file, path in _files(grouped)
            for pages, _ in read_kept(storage_path(path), ["page_key", "span_hashes"], _of(stale, file))
        ]
        # Each group drops its own repeats first: so even the commonest span sends one row a group.
        first, repeats = find_repeats(np.concatenate([np.empty(0, SPAN_ROW), *rows]))
        for bucket, packed in shuffle.bucketed(first, self._plan.span_bits):
            yield "rows", (bucket, self._spill.send(packed))
        sent: control_totals.Report = {}
        for drops in self._by_group("drops", repeats, DROP, sent):
            yield "drops", drops
        yield _report(
            control_totals.received("stale_captures", shuffle.totals(stale)),
            control_totals.sent("spans", shuffle.totals(first)),
            sent,
        )


class _FindRepeats(_Step):
    """(bucket, packed span rows) -> (group, packed drops)."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        rows = self._unpack(element[1], SPAN_ROW)
        _, repeats = find_repeats(rows)
        sent: control_totals.Report = {}
        for drops in self._by_group("drops", repeats, DROP, sent):
            yield "rows", drops
        yield _report(control_totals.received("spans", shuffle.totals(rows)), sent)


def _files(grouped: Mapping[str, Iterable[Any]]) -> Files:
    return [file for files in grouped["files"] for file in files]


def _of(stale: Rows, file: int) -> Any:
    return stale["row"][stale["file"] == file]


class _FinishPages(_Step):
    """(group, files, stale rows and drops) -> (shard, pages), and the removed spans by bucket."""

    outputs = ("rows", "removed", REPORT)

    def __init__(self, plan: DedupPlan, shown: Collection[str]) -> None:
        super().__init__(plan)
        self._shown = frozenset(shown)

    def setup(self) -> None:
        super().setup()
        plan = self._plan
        lists = recipe_lists.find([storage_path(each) for each in plan.work], plan.lists)
        self._finisher = PageFinisher(Recipe.from_json(plan.recipe), lists)

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        _, grouped = element
        counts = Counter[str]()
        stale = self._unpack(grouped["stale"], STALE_ROW)
        drops = self._unpack(grouped["drops"], DROP)
        removals = shuffle.spans_to_remove(drops)
        reports = [
            control_totals.received("stale_captures", shuffle.totals(stale)),
            control_totals.received("drops", shuffle.totals(drops)),
        ]
        seen: list[Any] = []
        removed_spans = RemovedSpans(drops)
        shown_examples: list[Example] = []
        held: list[pa.Table] = []
        for file, path in _files(grouped):
            shown = Smallest() if path in self._shown else None
            for pages in self._finish_file(
                file, storage_path(path), _of(stale, file), removals, removed_spans, counts, seen, shown
            ):
                held.append(pages)
                if sum(pages.nbytes for pages in held) >= _HELD_BYTES:
                    yield from self._send(held, reports)
                    held = []
            if shown is not None:
                shown_examples += [*shown.things(), *finish.stale_captures(storage_path(path), _of(stale, file))]
        yield from self._send(held, reports)
        removed = removed_spans.rows()
        for bucket, packed in shuffle.bucketed(removed, self._plan.span_bits):
            yield "removed", (bucket, self._spill.send(packed))
        reports.append(control_totals.sent("removed_spans", shuffle.totals(removed)))
        reports.append(control_totals.unclaimed("drops", finish.unclaimed(removals, seen)))
        pa.default_memory_pool().release_unused()  # otherwise the pool keeps the largest batch of every file
        yield _report(*reports, counts, {"examples": shown_examples})

    def _finish_file(
        self,
        file: int,
        path: StoragePath,
        stale: Any,
        removals: Mapping[int, Sequence[int]],
        removed_spans: RemovedSpans,
        counts: Counter[str],
        seen: list[Any],
        shown: Smallest | None,
    ) -> Iterator[pa.Table]:
        """Yields the finished pages of a work file.

        Adds to the counts, to the removed spans, to `shown`, and to `seen` the keys of the pages.
        """
        with self._finisher.audit(self._plan.keep_dropped, path.name.removesuffix(".parquet")) as dropped:
            for newest, passed_over in read_kept(path, PAGE_COLUMNS, stale):
                counts["pages.dropped.stale_capture"] += passed_over
                seen.append(newest["page_key"].to_numpy())
                removed_spans.add(newest, file)
                yield self._finisher.finish(newest, removals, counts, dropped, shown)
            if dropped:
                for pages in read_stale(path, ["page_key", "url", "timestamp", "text"], stale):
                    dropped.add_older(pages)
                dropped.finish()

    def _send(self, held: list[pa.Table], reports: list[control_totals.Report]) -> Iterator[tuple[str, Any]]:
        pages = pa.concat_tables(held).combine_chunks() if held else None
        if not pages:
            return
        keys = pages["page_key"].to_numpy()
        reports.append(control_totals.sent("pages", shuffle.totals(keys)))
        layout = self._plan.layout
        numbers = layout.shard_numbers(page_batches.folders_of(pages, layout), keys)
        for number, batch in page_batches.by_shard(pages, numbers):
            yield "rows", (number, self._spill.send(page_batches.encode(batch)))


class _CountRepeats(_Step):
    """(bucket, packed rows of removed spans) -> a report of those that repeat most."""

    outputs = (REPORT,)

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        rows = self._unpack(element[1], REPEAT)
        yield _report(control_totals.received("removed_spans", shuffle.totals(rows)), {"repeats": most_repeated(rows)})


class _WriteShard(_Step):
    """(shard, pages) -> a report. Writes the shard's files into the publisher's folder."""

    outputs = (REPORT,)

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        _, grouped = element
        ((language, split, number, of),) = grouped["shard"]
        pages = page_batches.decode(self._spill.receive(grouped["pages"]))
        folder = publisher(storage_path(self._plan.output)).shards_folder
        profiler = Profiler(language, split, number)
        try:
            with ShardWriter(folder, language, split, number, of, self._plan.formats) as writer:
                for rows in page_batches.in_order(pages):
                    writer.write(rows)
                    profiler.add(rows)
        except OSError as error:
            message = f"shard {number} of {of} ({language}, {split}) can't be written to {folder}: {error}"
            raise C4pipeError(message) from error
        yield _report(
            control_totals.received("pages", shuffle.totals(pages["page_key"].to_numpy())),
            {"shards": [file.to_json() for file in writer.files], "profiles": [profiler.result()]},
        )


class _Publish(Step):
    """The sum of all reports -> nothing. Publishes the corpus."""

    def __init__(self, plan: DedupPlan, shown: Collection[str]) -> None:
        self._plan = plan
        self._shown = sorted(shown)

    def process(self, element: control_totals.Report) -> Iterable[tuple[str, Any]]:
        clean_examples = examples.gather([storage_path(path) for path in self._shown])
        span = Recipe.from_json(self._plan.recipe).parameters("repeated_span")
        files = list(find_work_files([storage_path(each) for each in self._plan.work]).values())
        repeats = with_texts(element.get("repeats", ()), files, span["size"]) if span else []
        report = {**control_totals.add([element, {"examples": clean_examples}]), "repeats": repeats}
        publish.finish(storage_path(self._plan.output), report, self._plan.publication_token)
        return ()
