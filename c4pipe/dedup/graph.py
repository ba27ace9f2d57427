"""The graph of job 2, and its first steps, which find the newest capture of each URL.

The steps hold little logic: pure functions work on the rows and pages.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from c4pipe.clean import examples
from c4pipe.clean.work_file import url_rows
from c4pipe.dedup.finish import CountRepeats, FinishPages
from c4pipe.dedup.known import URL_HASHES, KnownHashes
from c4pipe.dedup.near_duplicates import find_near_duplicates
from c4pipe.dedup.occurrences import FindRepeats, ReadSpans
from c4pipe.dedup.order import find_stale_captures
from c4pipe.dedup.shuffle import KNOWN_URLS, STALE_CAPTURES, URLS
from c4pipe.dedup.step import WORK_FILES, DedupPlan, DedupStep, GroupFiles, Received, StepItem
from c4pipe.dedup.survivors import choose_survivors
from c4pipe.dedup.write import SHARD, Publish, ReadExamples, WriteShard
from c4pipe.io.paths import storage_path
from c4pipe.runners.control_totals import REPORT
from c4pipe.runners.flow import Flow
from c4pipe.runners.graph import Graph, Output, Outputs


def dedup_work_files(flow: Flow, groups: Sequence[tuple[int, GroupFiles]], plan: DedupPlan) -> None:
    """Runs the graph of job 2, from work files to a corpus, given (number, work files) of each group.

    The newest page of each URL, one page of each cluster of near-duplicates and one copy of each span stay. The last
    steps add up all reports, check them and publish the corpus.
    """
    shown = examples.choose_files(path for _, group in groups for _, path, _ in group)
    graph = Graph()
    pages = _finish_pages(graph, graph.create("Work files", groups, WORK_FILES), plan, shown)
    before = [each for each in graph.reports if each != pages[REPORT]]
    counted = graph.add("Count removed spans", CountRepeats(plan.spill, plan.moves_survivors), pages["removed_spans"])
    names = [(number, tuple(name)) for number, name in enumerate(plan.layout.shards())]
    shards = graph.create("Shards", names, SHARD)
    written = graph.add("Write shard", WriteShard(plan), shards, pages["pages"])
    # It runs beside the last shards: a runner that works on several steps at a time has idle workers then.
    total = graph.total("Add up reports before the shards", [*before, counted[REPORT]])
    described = graph.add("Read examples", ReadExamples(plan, shown), total)
    reports = [pages[REPORT], described[REPORT], written[REPORT]]
    graph.add("Publish", Publish(plan), graph.total("Add up reports", reports))
    graph.run(flow)


def _finish_pages(graph: Graph, files: Output, plan: DedupPlan, shown: Collection[str]) -> Outputs:
    """Adds the steps up to the finished pages, and returns the outputs of the last one."""
    urls = graph.add("Read URLs", ReadUrls(plan), files)
    newest = graph.add("Find stale captures", FindStaleCaptures(plan), urls["urls"])
    stale, known = newest["stale_captures"], [newest["known_urls"]] if plan.known else []
    near, named = find_near_duplicates(graph, files, stale, plan) if plan.near else ([], [])
    spans = graph.add("Read spans", ReadSpans(plan), files, stale, *near)
    find = FindRepeats(plan.spill, plan.group, plan.moves_survivors, plan.known)
    found = graph.add("Find repeated spans", find, spans["spans"])
    if plan.span and plan.moves_survivors:
        repeated = [spans["repeated_spans"], found["repeated_spans"]]
        first, changes = choose_survivors(graph, repeated, plan.spill, plan.span.size)
        marks = [first, *changes]
    else:
        marks = [spans["marks"], found["marks"]]
    return graph.add("Finish pages", FinishPages(plan, shown), files, stale, *known, *near, *named, *marks)


class ReadUrls(DedupStep):
    """The files of a group -> its captures, by the bucket of their URL."""

    sends = (URLS,)
    tallied = ("urls",)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Reads the URL rows of a group, and sends them to their buckets."""
        read = []
        for file, path, _ in received.all_files:
            read.append(url_rows(storage_path(path), file))
            self._tally("urls", len(read[-1]))
        rows = np.concatenate(read)
        yield URLS.to_buckets(rows[np.argsort(rows["hash"], kind="stable")], self._plan.url_bits)


class FindStaleCaptures(DedupStep):
    """The captures of a bucket -> the stale captures (their URL has a newer capture), by the group of their file.

    If a known corpus has a URL, its newest capture is passed over, too, and is sent to be counted.
    """

    sends = (STALE_CAPTURES, KNOWN_URLS)

    def setup(self) -> None:
        super().setup()
        self._known = KnownHashes(self._plan.known)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Finds the captures of a bucket to pass over."""
        newest, stale = find_stale_captures(received.rows(URLS))
        known = newest[self._known.mask(URL_HASHES, newest["hash"])]
        for shuffle, rows in ((STALE_CAPTURES, stale), (STALE_CAPTURES, known), (KNOWN_URLS, known)):
            yield shuffle.to_groups(rows, rows["file"] // self._plan.group)
