"""How far `dedup` is: the shards that are written and, on this machine, the pages that each step has handled."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from c4pipe.dedup.publishers import publisher
from c4pipe.dedup.step import read_tallies
from c4pipe.io.paths import StoragePath
from c4pipe.runners.progress import Facts, Progress, State

_STEPS = {
    "urls": (0.10, "reads URLs"),
    "bands": (0.15, "looks for near-duplicates"),
    "spans": (0.15, "looks for repeats"),
    "pages": (0.50, "finishes pages"),
    "shards": (0.25, "writes shards"),
}
"""The steps that handle pages, in their order: the share of time that each took on 32,000 pages, and its words.

Only some recipes have `bands`, which takes as long as `spans` on real pages. The shares of the other steps add up to 1.
"""


def watch_dedup(
    progress: Progress, output: StoragePath, shards: Sequence[str], spill: str, pages: Mapping[str, int]
) -> AbstractContextManager[None]:
    """Watches the job `dedup`, which runs inside the `with` block.

    Args:
        progress: gets how far the job is.
        output: the folder of the corpus.
        shards: the paths of all shard files, inside the corpus.
        spill: the folder in which the steps tally their pages; empty if there is none.
        pages: how many pages the steps before `shards` will handle: those that the job has.
    """
    written, latest = 0, 0.0

    def look() -> State:
        nonlocal written, latest
        # While the corpus is published, its files move away from where these two look.
        written = max(written, publisher(output).written(shards))
        share, words = share_done(read_tallies(spill), pages)
        files = f"{written:,} of {len(shards):,} files written"
        if written == len(shards) or not words:
            share, words = written / max(1, len(shards)), ""
        latest = max(latest, share)
        return latest, f"{files}, {words}" if words else files

    def facts() -> Facts:
        return {"files": written, "files_total": len(shards)}

    return progress.show("dedup", output, look, facts)


def share_done(done: Mapping[str, int], pages: Mapping[str, int]) -> tuple[float, str]:
    """Returns the share of the work that is done, and what the current step does; "" before the first one.

    Args:
        done: the pages that each step has handled. Those that `finished` has are the pages of the shards.
        pages: the pages that each of the other steps will handle. A step that is not there is none of the job's.
    """
    totals = {**pages, "shards": done.get("finished", 0)}
    steps = {step: _STEPS[step] for step in _STEPS if step in totals}
    whole = sum(weight for weight, _ in steps.values())
    before, share, words = 0.0, 0.0, ""
    for step, (weight, verb) in steps.items():
        if done.get(step):  # so all steps before it have ended
            share = before + weight * min(1.0, done[step] / max(1, totals[step]))
            words = verb
        before += weight
    return share / whole, words
