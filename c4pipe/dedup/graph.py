"""The graph of job 2. Its steps hold little logic: shuffle, keepers, repeats and page batches are pure functions."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from c4pipe.clean import examples
from c4pipe.dedup.finish import CountHosts, CountRepeats, FinishPages, Publish, ReadExamples, WriteShard
from c4pipe.dedup.near_duplicates import find_near_duplicates
from c4pipe.dedup.occurrences import FindRepeats, FindStaleCaptures, ReadSpans, ReadUrls
from c4pipe.dedup.step import REPORT, DedupPlan, Files
from c4pipe.dedup.survivors import choose_keepers
from c4pipe.runners import control_totals
from c4pipe.runners.flow import Flow


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
    pages, reports = _finish_pages(flow, flow.create("Work files", groups), plan, shown)
    counted = [
        flow.map("Count removed spans", flow.group_by_key("Group removed spans", pages["removed"]), CountRepeats(plan))
    ]
    if plan.near:
        counted.append(flow.map("Count hosts", flow.group_by_key("Group hosts", pages["hosts"]), CountHosts(plan)))
    names = flow.create("Shards", [(number, tuple(name)) for number, name in enumerate(plan.layout.shards())])
    shards = flow.co_group_by_key("Pages to their shard", shard=names, pages=pages["rows"])
    written = flow.map("Write shard", shards, WriteShard(plan))
    # While shards are written: a runner that works on several steps at a time has workers left at the last of them.
    before = flow.flatten("Reports before the shards", *reports, *(each[REPORT] for each in counted))
    total = flow.combine("Add up reports before the shards", before, control_totals.add_reports)
    described = flow.map("Read examples", total, ReadExamples(plan, shown))
    all_reports = flow.flatten("All reports", pages[REPORT], described[REPORT], written[REPORT])
    flow.map("Publish", flow.combine("Add up reports", all_reports, control_totals.add_reports), Publish(plan))


# A collection of a local flow is a list with an entry for each block of rows, so no name holds one longer than it is
# needed: each of these functions returns only what others read.


def _finish_pages(flow: Flow, files: Any, plan: DedupPlan, shown: Collection[str]) -> tuple[Any, list[Any]]:
    """Adds the steps up to the finished pages; returns the outputs of the last one, and the reports of the others."""
    stale, reports = _find_stale(flow, files, plan)
    near: dict[str, Any] = {}
    stayed: dict[str, Any] = {}
    if plan.near:
        near["near"], stayed["stayed"], near_reports = find_near_duplicates(flow, files, stale, plan)
        reports += near_reports
    dropped = {"files": files, "stale": stale, **near}
    marks, mark_reports = _mark_repeats(flow, dropped, plan)
    marked = flow.co_group_by_key("Marks to their group", **dropped, **stayed, **marks)
    pages = flow.map("Finish pages", marked, FinishPages(plan, shown))
    return pages, [*reports, *mark_reports]


def _find_stale(flow: Flow, files: Any, plan: DedupPlan) -> tuple[Any, list[Any]]:
    """Adds the steps that find the captures that are not the newest; returns their rows, and the reports."""
    urls = flow.map("Read URLs", files, ReadUrls(plan))
    stale = flow.map("Find stale captures", flow.group_by_key("Group URLs", urls["rows"]), FindStaleCaptures(plan))
    return stale["rows"], [urls[REPORT], stale[REPORT]]


def _mark_repeats(flow: Flow, dropped: Mapping[str, Any], plan: DedupPlan) -> tuple[dict[str, Any], list[Any]]:
    """Adds the steps that decide which copy of each repeated span stays; returns their marks, and the reports."""
    repeats, reports = _find_repeats(flow, dropped, plan)
    if not plan.moves_keepers:
        return {"marks": repeats}, reports
    marks, changes, keeper_reports = choose_keepers(flow, repeats, plan.spill, plan.span["size"])
    return {"marks": marks, "changes": changes}, [*reports, *keeper_reports]


def _find_repeats(flow: Flow, dropped: Mapping[str, Any], plan: DedupPlan) -> tuple[Any, list[Any]]:
    """Adds the steps that find the spans of more than one place; returns these, and the reports."""
    spans = flow.map("Read spans", flow.co_group_by_key("Stale captures to their group", **dropped), ReadSpans(plan))
    found = flow.map("Find repeated spans", flow.group_by_key("Group spans", spans["rows"]), FindRepeats(plan))
    return flow.flatten("All repeated spans", spans["repeats"], found["rows"]), [spans[REPORT], found[REPORT]]
