"""The graph of job 2. Its steps hold little logic: shuffle, keepers, repeats and page batches are pure functions."""

from collections.abc import Sequence
from typing import Any

from c4pipe.clean import examples
from c4pipe.dedup.dedup_plan import DedupPlan
from c4pipe.dedup.dedup_step import REPORT, Files
from c4pipe.dedup.find_steps import FindRepeats, FindStaleCaptures, ReadSpans, ReadUrls
from c4pipe.dedup.keeper_steps import choose_keepers
from c4pipe.dedup.near_steps import find_near_duplicates
from c4pipe.dedup.write_steps import CountHosts, CountRepeats, FinishPages, Publish, WriteShard
from c4pipe.runners import Flow, control_totals


def dedup_work_files(flow: Flow, groups: Sequence[tuple[int, Files]], plan: DedupPlan) -> None:
    """Puts the graph of job 2 together: work files to shards, with the newest page of each URL, one page of those
    that are nearly the same, and one of each span.

    Its last steps add up all reports, check them and publish the corpus.

    Args:
        flow: what the steps are put together on.
        groups: (number of the group, its work files).
        plan: the parameters of the steps.
    """
    shown = examples.choose_files(path for _, group in groups for _, path in group)
    files = flow.create("Work files", groups)
    urls = flow.do("Read URLs", files, ReadUrls(plan))
    url_buckets = flow.group("Group URLs", urls["rows"])
    stale = flow.do("Find stale captures", url_buckets, FindStaleCaptures(plan))
    near: dict[str, Any] = {}
    stayed: dict[str, Any] = {}
    near_reports: list[Any] = []
    if plan.near:
        near["near"], stayed["stayed"], near_reports = find_near_duplicates(flow, files, stale["rows"], plan)
    stale_by_group = flow.join("Stale captures to their group", files=files, stale=stale["rows"], **near)
    spans = flow.do("Read spans", stale_by_group, ReadSpans(plan))
    span_buckets = flow.group("Group spans", spans["rows"])
    repeated = flow.do("Find repeated spans", span_buckets, FindRepeats(plan))
    marks = {"marks": flow.merge("All repeated spans", spans["repeats"], repeated["rows"])}
    keeper_reports: list[Any] = []
    if plan.moves_keepers:
        marks["marks"], marks["changes"], keeper_reports = choose_keepers(
            flow, marks["marks"], plan.spill, plan.span["size"]
        )
    marked = flow.join("Marks to their group", files=files, stale=stale["rows"], **near, **stayed, **marks)
    pages = flow.do("Finish pages", marked, FinishPages(plan, shown))
    if plan.near:
        hosts = flow.do("Count hosts", flow.group("Group hosts", pages["hosts"]), CountHosts(plan))
        near_reports.append(hosts[REPORT])
    removed = flow.group("Group removed spans", pages["removed"])
    repeats = flow.do("Count removed spans", removed, CountRepeats(plan))
    names = flow.create("Shards", [(number, tuple(name)) for number, name in enumerate(plan.layout.shards())])
    shards = flow.join("Pages to their shard", shard=names, pages=pages["rows"])
    written = flow.do("Write shard", shards, WriteShard(plan))
    dedup_reports = [each[REPORT] for each in (urls, stale, spans, repeated, pages, repeats, written)]
    reports = flow.merge("All reports", *dedup_reports, *near_reports, *keeper_reports)
    flow.do("Publish", flow.fold("Add up reports", reports, control_totals.add_reports), Publish(plan, shown))
