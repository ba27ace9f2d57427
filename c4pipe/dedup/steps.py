"""The steps of job 2: as little logic as possible, the exchange and the shards are pure functions.

Reports (counts and control totals) travel as data beside the rows, since engines count retried work twice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from c4pipe import examples, publish, recipe_lists, totals
from c4pipe.dedup import exchange, finish, shard
from c4pipe.dedup.exchange import DROP, OLDER_ROW, SPAN_ROW, URL_ROW
from c4pipe.dedup.finish import PageFinisher
from c4pipe.dedup.plan import DedupPlan
from c4pipe.dedup.repeats import REPEAT, Losers, most_repeated, told
from c4pipe.dedup.spill import Spill
from c4pipe.errors import C4pipeError
from c4pipe.examples import Example, Smallest
from c4pipe.flow import Flow, Step
from c4pipe.profile import Profiler
from c4pipe.recipes import Recipe
from c4pipe.shards import ShardWriter
from c4pipe.storage import Place, place
from c4pipe.work import PAGE_COLUMNS, read_kept, read_older, url_rows
from c4pipe.work_folder import find_work_files

REPORT = "report"

Files = Sequence[tuple[int, str]]
"""Numbers and paths of the work files of a group."""

_HELD_BYTES = 128 * 1024 * 1024  # of finished pages, before they go to their shards


def dedup_work_files(flow: Flow, groups: Sequence[tuple[int, Files]], plan: DedupPlan) -> None:
    """Work files, in groups, to shards: the newest page of each URL, one of each repeated span.

    Writes the shards, checks all reports, publishes the corpus.
    """
    shown = examples.choose(path for _, group in groups for _, path in group)
    files = flow.create("Work files", groups)
    urls = flow.do("Read URLs", files, _ReadUrls(plan))
    url_buckets = flow.group("Group URLs", urls["rows"])
    older = flow.do("Find older captures", url_buckets, _FindOlder(plan))
    old_files = flow.join("Older captures to their group", files=files, older=older["rows"])
    spans = flow.do("Read spans", old_files, _ReadSpans(plan))
    span_buckets = flow.group("Group spans", spans["rows"])
    first = flow.do("Find repeated spans", span_buckets, _FindRepeats(plan))
    drops = flow.merge("All drops", spans["drops"], first["rows"])
    dropped = flow.join("Drops to their group", files=files, older=older["rows"], drops=drops)
    pages = flow.do("Finish pages", dropped, _FinishPages(plan, shown))
    lost = flow.group("Group removed spans", pages["lost"])
    repeats = flow.do("Count removed spans", lost, _CountRepeats(plan))
    names = flow.create("Shards", [(number, tuple(name)) for number, name in enumerate(plan.layout.shards())])
    shards = flow.join("Pages to their shard", shard=names, pages=pages["rows"])
    written = flow.do("Write shard", shards, _WriteShard(plan))
    reports = flow.merge(
        "All reports", *(each[REPORT] for each in (urls, older, spans, first, pages, repeats, written))
    )
    flow.do("Publish", flow.fold("Add up reports", reports, totals.add), _Publish(plan, shown))


def _report(*parts: Mapping[str, Any]) -> tuple[str, Any]:
    return REPORT, totals.add(parts)


class _Step(Step):
    """A step whose pieces travel by `self._spill`."""

    outputs: tuple[str, ...] = ("rows", REPORT)

    def __init__(self, plan: DedupPlan) -> None:
        self._plan = plan

    def setup(self) -> None:
        self._spill = Spill(self._plan.spill)

    def teardown(self) -> None:
        self._spill.close()

    def _unpack(self, pieces: Iterable[bytes], dtype: np.dtype[Any]) -> exchange.Rows:
        return exchange.unpack(self._spill.receive(pieces), dtype)

    def _by_group(
        self, shuffle: str, rows: exchange.Rows, dtype: np.dtype[Any], report: totals.Report
    ) -> Iterator[Any]:
        """Yields (group, packed rows) for a shuffle, and adds to `report` what entered it."""
        for group, part in exchange.by_group(rows, self._plan.group, dtype):
            report.update(totals.add([report, totals.entered(shuffle, exchange.totals(part))]))
            yield group, self._spill.send(part.tobytes())


class _ReadUrls(_Step):
    """(group, files) -> (bucket, packed URL rows)."""

    def process(self, element: tuple[int, Files]) -> Iterator[Any]:
        rows = np.concatenate([url_rows(place(path), file) for file, path in element[1]])
        rows = rows[np.argsort(rows["hash"], kind="stable")]
        for bucket, packed in exchange.bucketed(rows, self._plan.url_bits):
            yield "rows", (bucket, self._spill.send(packed))
        yield _report(totals.entered("urls", exchange.totals(rows)))


class _FindOlder(_Step):
    """(bucket, packed URL rows) -> (group, packed rows that are not the newest of their URL)."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        rows = self._unpack(element[1], URL_ROW)
        _, older = exchange.find_older(rows)
        delivered: totals.Report = {}
        for rows_of_group in self._by_group("older", older, OLDER_ROW, delivered):
            yield "rows", rows_of_group
        yield _report(totals.left("urls", exchange.totals(rows)), delivered, delivered)  # to spans, and to pages


class _ReadSpans(_Step):
    """(group, files and older rows) -> span rows by bucket, drops by group."""

    outputs = ("rows", "drops", REPORT)

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        _, grouped = element
        older = self._unpack(grouped["older"], OLDER_ROW)
        rows = [
            exchange.span_rows(pages["page_key"].to_numpy(), file, pages["span_hashes"].combine_chunks())
            for file, path in _files(grouped)
            for pages, _ in read_kept(place(path), ["page_key", "span_hashes"], _of(older, file))
        ]
        # Each group settles its own repeats: a span that is everywhere costs one row a group.
        first, repeats = exchange.find_repeats(np.concatenate([np.empty(0, SPAN_ROW), *rows]))
        for bucket, packed in exchange.bucketed(first, self._plan.span_bits):
            yield "rows", (bucket, self._spill.send(packed))
        delivered: totals.Report = {}
        for drops in self._by_group("drops", repeats, DROP, delivered):
            yield "drops", drops
        yield _report(
            totals.left("older", exchange.totals(older)), totals.entered("spans", exchange.totals(first)), delivered
        )


class _FindRepeats(_Step):
    """(bucket, packed span rows) -> (group, packed drops)."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        rows = self._unpack(element[1], SPAN_ROW)
        _, repeats = exchange.find_repeats(rows)
        delivered: totals.Report = {}
        for drops in self._by_group("drops", repeats, DROP, delivered):
            yield "rows", drops
        yield _report(totals.left("spans", exchange.totals(rows)), delivered)


def _files(grouped: Mapping[str, Iterable[Any]]) -> Files:
    return [file for files in grouped["files"] for file in files]


def _of(older: exchange.Rows, file: int) -> Any:
    return older["row"][older["file"] == file]


class _FinishPages(_Step):
    """(group, files, older rows and drops) -> (shard, pages); what they lost, by bucket."""

    outputs = ("rows", "lost", REPORT)

    def __init__(self, plan: DedupPlan, shown: Collection[str]) -> None:
        super().__init__(plan)
        self._shown = frozenset(shown)

    def setup(self) -> None:
        super().setup()
        plan = self._plan
        lists = recipe_lists.find([place(each) for each in plan.work], plan.lists)
        self._finisher = PageFinisher(Recipe.from_json(plan.recipe), lists)

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        _, grouped = element
        counts = Counter[str]()
        older = self._unpack(grouped["older"], OLDER_ROW)
        drops = self._unpack(grouped["drops"], DROP)
        removals = exchange.spans_to_remove(drops)
        reports = [totals.left("older", exchange.totals(older)), totals.left("drops", exchange.totals(drops))]
        seen: list[Any] = []
        losers = Losers(drops)
        found: list[Example] = []
        held: list[pa.Table] = []
        for file, path in _files(grouped):
            shown = Smallest() if path in self._shown else None
            for pages in self._finish_file(file, place(path), _of(older, file), removals, losers, counts, seen, shown):
                held.append(pages)
                if sum(pages.nbytes for pages in held) >= _HELD_BYTES:
                    yield from self._send(held, reports)
                    held = []
            if shown is not None:
                found += [*shown.things(), *finish.older_copies(place(path), _of(older, file))]
        yield from self._send(held, reports)
        lost = losers.rows()
        for bucket, packed in exchange.bucketed(lost, self._plan.span_bits):
            yield "lost", (bucket, self._spill.send(packed))
        reports.append(totals.entered("lost", exchange.totals(lost)))
        pa.default_memory_pool().release_unused()  # or every file leaves its largest batch behind
        yield _report(*reports, counts, {"drops.unclaimed": finish.unclaimed(removals, seen), "examples": found})

    def _finish_file(
        self,
        file: int,
        path: Place,
        older: Any,
        removals: Mapping[int, Sequence[int]],
        losers: Losers,
        counts: Counter[str],
        seen: list[Any],
        shown: Smallest | None,
    ) -> Iterator[pa.Table]:
        """Yields the finished pages of a work file; adds to the counts, to `seen` the newest's keys, to `shown`."""
        with self._finisher.audit(self._plan.keep_dropped, path.name.removesuffix(".parquet")) as dropped:
            for newest, passed_over in read_kept(path, PAGE_COLUMNS, older):
                counts["pages.dropped.older_copy"] += passed_over
                seen.append(newest["page_key"].to_numpy())
                losers.add(newest, file)
                yield self._finisher.finish(newest, removals, counts, dropped, shown)
            if dropped:
                for pages in read_older(path, ["page_key", "url", "timestamp", "text"], older):
                    dropped.add_older(pages)
                dropped.finish()

    def _send(self, held: list[pa.Table], reports: list[totals.Report]) -> Iterator[tuple[str, Any]]:
        pages = pa.concat_tables(held).combine_chunks() if held else None
        if not pages:
            return
        keys = pages["page_key"].to_numpy()
        reports.append(totals.entered("pages", exchange.totals(keys)))
        layout = self._plan.layout
        for number, part in shard.by_shard(pages, layout.shard_numbers(shard.folders_of(pages, layout), keys)):
            yield "rows", (number, self._spill.send(shard.encode(part)))


class _CountRepeats(_Step):
    """(bucket, packed rows of removed spans) -> a report of those that repeat most."""

    outputs = (REPORT,)

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        rows = self._unpack(element[1], REPEAT)
        yield _report(totals.left("lost", exchange.totals(rows)), {"repeats": most_repeated(rows)})


class _WriteShard(_Step):
    """(shard, pages) -> a report; the shard's files are in the staging folder then."""

    outputs = (REPORT,)

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        _, grouped = element
        ((language, split, number, of),) = grouped["shard"]
        pages = shard.decode(self._spill.receive(grouped["pages"]))
        folder = publish.shards_folder(place(self._plan.output))
        profiler = Profiler(language, split, number)
        try:
            with ShardWriter(folder, language, split, number, of, self._plan.formats) as writer:
                for part in shard.in_order(pages):
                    writer.write(part)
                    profiler.add(part)
        except OSError as error:
            message = f"shard {number} of {of} ({language}, {split}) can't be written to {folder}: {error}"
            raise C4pipeError(message) from error
        yield _report(
            totals.left("pages", exchange.totals(pages["page_key"].to_numpy())),
            {"shards": [file.to_json() for file in writer.files], "profiles": [profiler.result()]},
        )


class _Publish(Step):
    """The sum of all reports -> nothing; the corpus is complete then."""

    def __init__(self, plan: DedupPlan, shown: Collection[str]) -> None:
        self._plan = plan
        self._shown = sorted(shown)

    def process(self, element: totals.Report) -> Iterable[tuple[str, Any]]:
        of_clean = examples.gather([place(path) for path in self._shown])
        span = Recipe.from_json(self._plan.recipe).parameters("repeated_span")
        files = list(find_work_files([place(each) for each in self._plan.work]).values())
        most = {"repeats": told(element.get("repeats", ()), files, span["size"]) if span else []}
        report = {**totals.add([element, {"examples": of_clean}]), **most}
        publish.finish(place(self._plan.output), report, self._plan.begun)
        return ()
