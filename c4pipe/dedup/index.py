"""The graph that makes the index of a finished corpus: shards to buckets of sorted hashes (see `dedup.known`)."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from c4pipe.clean.side_files import PageKeeper
from c4pipe.clean.work_file import URL_ROW
from c4pipe.corpus.opened import Corpus
from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.dedup import known
from c4pipe.dedup.shuffle import SPAN_ROW, Shuffle, bucket_bits
from c4pipe.dedup.step import Received, RowStep, StepItem
from c4pipe.errors import C4pipeError, LostDataError
from c4pipe.filters.checked_page import CheckedPage, RuleTools
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.io.atomic import write_bytes
from c4pipe.io.json_files import write_checked_json
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.io.rows import Rows
from c4pipe.io.words import explain_errors
from c4pipe.lists.lists import Lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.control_totals import Report, check_totals
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.graph import Graph
from c4pipe.text.languages import Guess
from c4pipe.wet.page import Page

_SHUFFLES = {
    known.URL_HASHES: Shuffle("index_urls", "hashes of URLs, to their bucket of the index", known.HASH),
    known.SPAN_HASHES: Shuffle("index_spans", "hashes of spans, to their bucket of the index", known.HASH),
}
_SHARD, _BUCKET = "shard", "bucket"  # the outputs at the beginning of the graph


@dataclass(frozen=True)
class IndexPlan:
    """All parameters of the steps. It is sent to the workers.

    Attributes:
        corpus: the folder of the corpus.
        recipe: the recipe of the corpus, as JSON values.
        shards: the digest of all shards.
        bits: by kind, the number of hash bits that make a bucket.
        spill: a folder of this machine for blocks of rows between two steps; empty if the workers share no disk.
    """

    corpus: str
    recipe: Mapping[str, Any]
    shards: str
    bits: Mapping[str, int]
    spill: str = ""

    @classmethod
    def of(cls, corpus: Corpus) -> "IndexPlan":
        """Plans the index of a corpus: as many buckets as a deduplication of as many URLs and spans would have."""
        compared, manifest = known.compared_by(corpus.recipe), corpus.manifest
        rows = {
            known.URL_HASHES: (corpus.pages, URL_ROW),
            known.SPAN_HASHES: (corpus.counts.get("units.kept", 0), SPAN_ROW),
        }
        bits = {kind: bucket_bits(rows[kind][0], rows[kind][1].itemsize) for kind in compared}
        return cls(str(corpus.path), manifest["recipe"], known.digest_of_shards(manifest), bits)

    @cached_property
    def rules(self) -> Recipe:
        """The recipe."""
        return Recipe.from_json(self.recipe)

    @property
    def folder(self) -> StoragePath:
        """The folder of the corpus."""
        return storage_path(self.corpus)

    @property
    def files(self) -> int:
        """The number of buckets of all kinds."""
        return sum(1 << bits for bits in self.bits.values())


def index_shards(flow: Flow, shards: Sequence[Shard], plan: IndexPlan) -> None:
    """Runs the graph on the shards of a corpus, in one format: its last step writes `index.json`."""
    graph = Graph()
    given = graph.create("Shards of the corpus", [(number, (each,)) for number, each in enumerate(shards)], _SHARD)
    hashed = graph.add("Hash pages", HashPages(plan), given)
    for kind, bits in plan.bits.items():
        numbers = graph.create(f"Buckets of {kind}", [(each, each) for each in range(1 << bits)], _BUCKET)
        graph.add(f"Write {kind}", WriteBucket(plan, kind), numbers, hashed[_SHUFFLES[kind].name])
    graph.add("Publish index", PublishIndex(plan), graph.total("Add up reports of the index", graph.reports))
    graph.run(flow)


class HashPages(RowStep):
    """A shard -> its URLs and spans, by bucket. Job 1 makes the same hashes of a page."""

    def __init__(self, plan: IndexPlan) -> None:
        self.sends = tuple(_SHUFFLES[kind] for kind in plan.bits)
        super().__init__(plan.spill)
        self._plan = plan

    def setup(self) -> None:
        super().setup()
        recipe = self._plan.rules
        if recipe.find(NearDuplicate):
            recipe = recipe.without(NearDuplicate.name)  # signatures take long
        self._tools, self._keeper = RuleTools(recipe.page_settings, Lists()), PageKeeper(recipe)

    def run(self, received: Received) -> Iterator[StepItem]:
        """Reads a shard."""
        (shard,) = received.given(_SHARD)
        found: dict[str, list[Rows]] = {kind: [np.empty(0, known.HASH)] for kind in _SHUFFLES}
        for table in read_tables(shard, ["url", "text"]):
            for url, text in zip(table["url"].to_pylist(), table["text"].to_pylist(), strict=True):
                page = CheckedPage(Page(url, "", ""), self._tools, text.split("\n"))
                page.as_crawled = False
                page.__dict__["guess"] = Guess(shard.language, 1.0)  # the language is known: it is not detected again
                kept = self._keeper.keep(page, None)
                found[known.URL_HASHES].append(np.array([page.url_key], np.uint64).view(known.HASH))
                found[known.SPAN_HASHES].append(kept.span_hashes.view(known.HASH))
        for kind, bits in self._plan.bits.items():
            yield _SHUFFLES[kind].to_buckets(np.unique(np.concatenate(found[kind])), bits)


class WriteBucket(RowStep):
    """The rows of a bucket -> its file; a report."""

    def __init__(self, plan: IndexPlan, kind: str) -> None:
        super().__init__(plan.spill)
        self._plan, self._kind = plan, kind

    def run(self, received: Received) -> Iterator[StepItem]:
        """Writes the rows in their order, each once."""
        rows = np.unique(received.rows(_SHUFFLES[self._kind]))
        path = known.bucket_path(self._plan.folder, self._kind, received.key, 1 << self._plan.bits[self._kind])
        data = rows.tobytes()
        with explain_errors(f"{path} can't be written", kind=C4pipeError):
            write_bytes(path, data)
        bucket = known.Bucket(rows=len(rows), sha256=hashlib.sha256(data).hexdigest())
        yield {self._kind: [(received.key, bucket)]}


class PublishIndex(Step):
    """The sum of all reports -> nothing. Writes `index.json`."""

    def __init__(self, plan: IndexPlan) -> None:
        self._plan = plan

    def process(self, element: Report) -> Iterable[tuple[str, Any]]:
        """Checks the reports, and writes the list of buckets."""
        check_totals(element, {each.name: each.carries for each in _SHUFFLES.values()})
        buckets = {kind: dict(element.get(kind, ())) for kind in self._plan.bits}
        for kind, bits in self._plan.bits.items():
            if len(buckets[kind]) != 1 << bits:
                raise LostDataError(f"the runner wrote {len(buckets[kind]):,} of {1 << bits:,} buckets of {kind}")
        index = known.Index(
            format=known.INDEX_FORMAT,
            version=known.INDEX_VERSION,
            shards=self._plan.shards,
            compared=known.compared_by(self._plan.rules),
            buckets={kind: [some[number] for number in sorted(some)] for kind, some in buckets.items()},
        )
        write_checked_json(self._plan.folder / known.INDEX / known.CONTENT, {**index})
        return ()
