"""What the steps of job 2 are told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.corpus.layout import Layout


@dataclass(frozen=True)
class DedupPlan:
    """All that the steps of job 2 need to know.

    Attributes:
        recipe: the recipe, as JSON values.
        lists: the digests of its lists, by name.
        work: the work folders, where the lists are.
        layout: the shards of the corpus.
        url_bits: number of hash bits that make a bucket of URLs.
        span_bits: number of hash bits that make a bucket of spans.
        group: how many work files travel together; file number // group is the key of their group.
        output: the folder of the corpus.
        formats: the formats of the shards.
        begun: what `publish.begin` returned.
        spill: a folder of this machine where bytes wait instead of travelling; empty where workers share no disk.
        keep_dropped: which dropped pages are kept, and where; None for none.
    """

    recipe: Mapping[str, Any]
    lists: Mapping[str, str]
    work: tuple[str, ...]
    layout: Layout
    url_bits: int
    span_bits: int
    group: int
    output: str
    formats: tuple[str, ...]
    begun: str
    spill: str = ""
    keep_dropped: KeepDropped | None = None
