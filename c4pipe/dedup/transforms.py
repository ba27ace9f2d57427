"""The Beam steps of job 2: as little logic as possible, the exchange and the shards are pure functions.

Reports (counts and control totals) travel as data beside the rows, since engines count retried work twice.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from c4pipe import totals
from c4pipe.dedup import exchange, shard
from c4pipe.dedup.exchange import DROP, SPAN_ROW, URL_ROW
from c4pipe.dedup.layout import Layout
from c4pipe.errors import C4pipeError
from c4pipe.shards import ShardWriter
from c4pipe.work import PAGE_FIELDS, read_kept, url_rows

REPORT = "report"
SPILL = "_spill"


@dataclass(frozen=True)
class DedupPlan:
    """All that the steps of job 2 need to know.

    Attributes:
        layout: the shards of the corpus.
        url_bits: number of hash bits that make a bucket of URLs.
        span_bits: number of hash bits that make a bucket of spans.
        span_size: sentences in a span; 0 where the recipe keeps repeated spans.
        min_sentences: fewest sentences of a page that lost some.
        staging: the folder that shards and report are written to.
        formats: the formats of the shards.
        spill: whether pages wait for their shard in files of the staging folder, not in the shuffle.
    """

    layout: Layout
    url_bits: int
    span_bits: int
    span_size: int
    min_sentences: int
    staging: str
    formats: tuple[str, ...]
    spill: bool = False


class DedupWorkFiles(beam.PTransform):
    """Work files to shards: the newest page of each URL, one of each repeated span."""

    def __init__(self, plan: DedupPlan) -> None:
        super().__init__()
        self._plan = plan

    def expand(self, files: beam.PCollection) -> beam.PCollection:
        """Takes (file number, path); writes shards and `report.json` to the staging folder; gives the report."""
        plan = self._plan
        files = files | "Spread files" >> beam.Reshuffle()
        url_buckets, url_report = _with_report(files | "Read URLs" >> _par_do(_ReadUrls(plan)))
        older, older_report = _with_report(
            url_buckets
            | "Group URLs" >> beam.GroupByKey()
            | "Find older captures" >> _par_do(_FindOlder())
        )  # fmt: skip
        newest = (
            {"file": files, "older": older}
            | "Older captures to their file" >> beam.CoGroupByKey()
            | "Read newest pages" >> _par_do(_ReadNewest(plan), "spans", "drops", "pages")
        )
        repeats, repeats_report = _with_report(
            newest.spans
            | "Group spans" >> beam.GroupByKey()
            | "Find repeated spans" >> _par_do(_FindRepeats(plan))
        )  # fmt: skip
        drops = (newest.drops, repeats) | "All drops" >> beam.Flatten()
        shards = files.pipeline | "Name shards" >> beam.Create(
            [(number, tuple(name)) for number, name in enumerate(plan.layout.shards())]
        )
        written = (
            {"shard": shards, "pages": newest.pages, "drops": drops}
            | "Pages and drops to their shard" >> beam.CoGroupByKey()
            | "Write shard" >> beam.ParDo(_WriteShard(plan))
        )
        return (
            (url_report, older_report, newest[REPORT], repeats_report, written)
            | "All reports" >> beam.Flatten()
            | "Add up reports" >> beam.CombineGlobally(_AddReports())
            | "Write report" >> beam.Map(_write_report, str(Path(plan.staging) / "report.json"))
        )


def _par_do(do_fn: beam.DoFn, *outputs: str) -> Any:
    """A ParDo with an output for reports beside its own (or beside the named ones)."""
    if outputs:
        return beam.ParDo(do_fn).with_outputs(REPORT, *outputs)
    return beam.ParDo(do_fn).with_outputs(REPORT, main="rows")


def _with_report(outputs: Any) -> tuple[beam.PCollection, beam.PCollection]:
    return outputs.rows, outputs[REPORT]


def _report(*parts: Mapping[str, Any]) -> beam.pvalue.TaggedOutput:
    return beam.pvalue.TaggedOutput(REPORT, totals.add(parts))


class _ReadUrls(beam.DoFn):
    """(file, path) -> (bucket, packed URL rows)."""

    def __init__(self, plan: DedupPlan) -> None:
        super().__init__()
        self._bits = plan.url_bits

    def process(self, element: tuple[int, str]) -> Iterator[Any]:
        file, path = element
        rows = url_rows(Path(path), file)
        rows = rows[np.argsort(rows["hash"], kind="stable")]
        yield from exchange.bucketed(rows, self._bits)
        yield _report(totals.entered("urls", exchange.totals(rows)))


class _FindOlder(beam.DoFn):
    """(bucket, packed URL rows) -> (file, packed numbers of the rows that are not the newest of their URL)."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        rows = exchange.unpack(element[1], URL_ROW)
        _, older = exchange.find_older(rows)
        for file in np.unique(older["file"]).tolist():
            numbers = older["row"][older["file"] == file]
            yield file, numbers.tobytes()
        yield _report(
            totals.left("urls", exchange.totals(rows)),
            totals.entered("older", exchange.totals(older["row"])),
        )


class _ReadNewest(beam.DoFn):
    """(file, path and older rows) -> span rows by bucket, drops and pages by shard."""

    def __init__(self, plan: DedupPlan) -> None:
        super().__init__()
        self._plan = plan
        spans = ["span_hashes"] if plan.span_size else []
        self._columns = [field.name for field in PAGE_FIELDS] + ["validation", *spans]

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[Any]:
        _, grouped = element
        spill = shard.Spill(Path(self._plan.staging) / SPILL) if self._plan.spill else None
        older = exchange.unpack(grouped["older"], np.dtype("<u4"))
        reports = [totals.left("older", exchange.totals(older))]
        span_rows = []
        for path in grouped["file"]:
            for pages, passed_over in read_kept(Path(path), self._columns, older):
                folders = shard.folders_of(pages, self._plan.layout)
                keys = pages["page_key"].to_numpy()
                if self._plan.span_size:
                    span_rows.append(exchange.span_rows(keys, folders, pages["span_hashes"].combine_chunks()))
                numbers = self._plan.layout.shard_numbers(folders, keys)
                for number, part in shard.by_shard(pages, numbers):
                    batch = shard.encode(part)
                    yield beam.pvalue.TaggedOutput("pages", (number, spill.add(batch) if spill else batch))
                reports.append(totals.entered("pages", exchange.totals(keys)))
                reports.append(
                    {
                        "pages.dropped.older_copy": passed_over,
                        "sentences.newest": len(pages["sentence_starts"].combine_chunks().flatten()),
                    }
                )
        if spill:
            spill.close()
        if span_rows:
            # Each file settles its own repeats: a span that is everywhere costs one row a file.
            first, repeats = exchange.find_repeats(np.concatenate(span_rows))
            for bucket in exchange.bucketed(first, self._plan.span_bits):
                yield beam.pvalue.TaggedOutput("spans", bucket)
            for drops in _drops_by_shard(repeats, self._plan.layout):
                yield beam.pvalue.TaggedOutput("drops", drops)
            reports.append(totals.entered("spans", exchange.totals(first)))
            reports.append(_drops_entered(repeats))
        pa.default_memory_pool().release_unused()  # or every file leaves its largest batch behind
        yield _report(*reports)


class _FindRepeats(beam.DoFn):
    """(bucket, packed span rows) -> (shard, packed drops)."""

    def __init__(self, plan: DedupPlan) -> None:
        super().__init__()
        self._layout = plan.layout

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        rows = exchange.unpack(element[1], SPAN_ROW)
        _, repeats = exchange.find_repeats(rows)
        yield from _drops_by_shard(repeats, self._layout)
        yield _report(totals.left("spans", exchange.totals(rows)), _drops_entered(repeats))


def _drops_by_shard(repeats: exchange.Rows, layout: Layout) -> Iterator[tuple[int, bytes]]:
    drops = exchange.drops_of(repeats)
    numbers = layout.shard_numbers(drops["unit"] >> exchange.FOLDER_SHIFT, drops["page"])
    order = np.argsort(numbers, kind="stable")
    drops, numbers = drops[order], numbers[order]
    for number in np.unique(numbers).tolist():
        start, end = np.searchsorted(numbers, [number, number + 1])
        yield number, drops[start:end].tobytes()


def _drops_entered(repeats: exchange.Rows) -> totals.Report:
    return totals.entered("drops", exchange.totals(exchange.drops_of(repeats)))


class _WriteShard(beam.DoFn):
    """(shard, pages and drops) -> a report; the shard's files are in the staging folder then."""

    def __init__(self, plan: DedupPlan) -> None:
        super().__init__()
        self._plan = plan

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[totals.Report]:
        _, grouped = element
        ((language, split, number, of),) = grouped["shard"]
        pages = shard.decode(grouped["pages"])
        drops = exchange.unpack(grouped["drops"], DROP)
        keys = pages["page_key"].to_numpy()
        counts: Counter[str] = Counter()
        staging = Path(self._plan.staging)
        removals = exchange.spans_to_remove(drops)
        finished = shard.finish(pages, removals, self._plan.span_size, self._plan.min_sentences, counts)
        try:
            with ShardWriter(staging, language, split, number, of, self._plan.formats) as writer:
                for part in finished:
                    writer.write(part)
        except OSError as error:
            message = f"shard {number} of {of} ({language}, {split}) can't be written to {staging}: {error}"
            raise C4pipeError(message) from error
        yield totals.add(
            [
                totals.left("pages", exchange.totals(keys)),
                totals.left("drops", exchange.totals(drops)),
                counts,
                {"drops.unclaimed": int((~np.isin(drops["page"], keys)).sum())},
                {"pages.validation": counts["pages.kept"] if split == "validation" else 0},
                {"shards": [file.to_json() for file in writer.files]},
            ]
        )


class _AddReports(beam.CombineFn):
    def create_accumulator(self) -> totals.Report:
        return {}

    def add_input(self, mutable_accumulator: totals.Report, element: totals.Report) -> totals.Report:
        return totals.add([mutable_accumulator, element])

    def merge_accumulators(self, accumulators: Iterable[totals.Report]) -> totals.Report:
        return totals.add(accumulators)

    def extract_output(self, accumulator: totals.Report) -> totals.Report:
        return accumulator


def _write_report(report: totals.Report, path: str) -> totals.Report:
    temporary = Path(f"{path}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(report))
    temporary.replace(path)
    return report
