"""The parameters of the steps of job 2."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.corpus.layout import Layout
from c4pipe.dedup.span_places import moves_keepers


@dataclass(frozen=True)
class DedupPlan:
    """Everything that the steps of job 2 need to know. It is sent to the workers.

    Attributes:
        recipe: the recipe, as JSON values.
        lists: the digests of its lists, by name.
        work: the work folders, where the lists are.
        layout: the shards of the corpus.
        url_bits: number of hash bits that make a bucket of URLs.
        span_bits: number of hash bits that make a bucket of spans.
        group: how many work files make a group; file number // group is the group's key in a shuffle.
        output: the folder of the corpus.
        formats: the formats of the shards.
        publication_token: what `publish.begin` returned.
        spill: a folder of this machine for blocks of rows between two steps; empty if the workers share no disk.
        band_bits: number of hash bits that make a bucket of bands of signatures.
        keep_dropped: which dropped pages are kept, and where; None to keep none.
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
    publication_token: str
    spill: str = ""
    band_bits: int = 0
    keep_dropped: KeepDropped | None = None

    @property
    def span(self) -> Mapping[str, Any]:
        """The parameters of the rule `repeated_span`; empty where the recipe has none."""
        return self._parameters("repeated_span")

    @property
    def near(self) -> Mapping[str, Any]:
        """The parameters of the rule `near_duplicate`; empty where the recipe has none."""
        return self._parameters("near_duplicate")

    def _parameters(self, rule: str) -> Mapping[str, Any]:
        return next((each for each in self.recipe["corpus"] if each["rule"] == rule), {})

    @property
    def moves_keepers(self) -> bool:
        """Whether copies of spans can move: spans of one unit never overlap, so their first copy always stays."""
        return moves_keepers(self.span)
