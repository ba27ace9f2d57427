"""The functions of `WriteCorpus`: batches of pages to shards, and shards to a corpus."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np

from c4pipe.beam import page_schema
from c4pipe.beam.listed_recipe import ListedRecipe
from c4pipe.beam.page_schema import Page
from c4pipe.beam.stage_reports import CountingFn, is_count
from c4pipe.beam.tagged_blocks import HELD_BYTES, Block
from c4pipe.clean import work_file
from c4pipe.corpus.layout import Layout
from c4pipe.corpus.manifest import MANIFEST
from c4pipe.corpus.writer import FORMATS, shard_name
from c4pipe.dedup import publish, publishers, shuffle, write
from c4pipe.dedup.write import write_shard
from c4pipe.errors import C4pipeError, LostDataError
from c4pipe.filters.language import UNKNOWN
from c4pipe.filters.urls import is_validation, normalise_url, page_key
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.jobs import dedup
from c4pipe.runners import control_totals
from c4pipe.runners.control_totals import Report

_TEXT_BYTES = "text_bytes/"
"""Begins the names of reports that count the bytes of text of a language. They plan the shards, and are no counters."""


_ALWAYS = ("pages.kept", "pages.validation", "bytes.kept")
"""Counters that a manifest has even where no page is kept."""


@dataclass(frozen=True)
class CorpusOptions:
    """How a corpus is written.

    Attributes:
        folder: the folder of the corpus, absolute.
        formats: the formats of its shards.
        shards: train shards for each language; None for one for each 128 MiB of text.
        languages: the languages that have a folder; () for those of the pages.
        is_exact: whether all pages came from the transforms of this room alone: then their counts must add up.
    """

    folder: str
    formats: tuple[str, ...]
    shards: int | None
    languages: tuple[str, ...]
    is_exact: bool


class ShardPlan(NamedTuple):
    """What is known before the first shard is written.

    Attributes:
        layout: the shards of the corpus.
        token: what `publish.begin` returned.
    """

    layout: Layout
    token: str


class PackPages(CountingFn):
    """Page -> batches of pages, packed, with the page key and the split."""

    def __init__(self, rules: ListedRecipe) -> None:
        """Takes the recipe."""
        super().__init__()
        self._rules = rules

    def setup(self) -> None:
        """Reads the parameters of the recipe."""
        recipe = self._rules.recipe
        self._scheme, self._by_md5 = recipe.page_keys
        self._one_in: int = recipe.parameters("validation").get("one_in", 0)

    def start_bundle(self) -> None:
        """Begins a report and a batch of pages."""
        super().start_bundle()
        self._held: list[Page] = []
        self._held_bytes = 0

    def process(self, element: Page) -> Iterator[bytes]:
        """Adds a page to the batch; sends a batch that is large enough."""
        language = UNKNOWN if element.language is None else element.language
        probability = 0.0 if element.language_probability is None else element.language_probability
        page = element._replace(language=language, language_probability=probability)
        size = work_file.utf8_size(page.text)
        for name in ("pages.kept", f"pages.kept.{language}"):
            self._counts[name] += 1
        for name in ("bytes.kept", _TEXT_BYTES + language):
            self._counts[name] += size
        self._held.append(page)
        self._held_bytes += size
        if self._held_bytes >= HELD_BYTES:
            yield from self._rest()

    def _rest(self) -> Iterator[bytes]:
        if not self._held:
            return
        urls = [(page.url, normalise_url(page.url, self._scheme)) for page in self._held]
        keys = np.array([page_key(*both, self._by_md5) for both in urls], np.uint64)
        validation = [bool(self._one_in) and is_validation(normalised, self._one_in) for _, normalised in urls]
        self._counts["pages.validation"] += sum(validation)
        table = page_schema.table_of(self._held)
        yield page_schema.pack(table.append_column("page_key", [keys]).append_column("validation", [validation]))
        self._held, self._held_bytes = [], 0


class BeginCorpus(beam.DoFn):
    """The sum of the reports of all transforms before -> ShardPlan. Makes the output folder ready for shards."""

    def __init__(self, rules: ListedRecipe, options: CorpusOptions) -> None:
        """Takes the recipe and the options."""
        super().__init__()
        self._rules, self._options = rules, options

    def process(self, element: Report) -> Iterator[ShardPlan]:
        """Plans the shards, and writes down what is known of the manifest."""
        options, recipe = self._options, self._rules.recipe
        counts = dict.fromkeys(_ALWAYS, 0) | {name: n for name, n in element.items() if is_count(name)}
        counts = balanced(counts, options.is_exact)
        counts.pop("pages.cleaned", None)
        prefix = len(_TEXT_BYTES)
        text_bytes = {name[prefix:]: size for name, size in element.items() if name.startswith(_TEXT_BYTES)}
        languages = options.languages or tuple(sorted(text_bytes)) or (UNKNOWN,)
        if unknown := sorted(text_bytes.keys() - languages):
            raise C4pipeError(
                f"WriteCorpus was given pages of the language {unknown[0]!r}, which recipe {recipe.name} does not "
                "keep: drop these pages before, or give languages=[...]"
            )
        layout = Layout.plan(languages, text_bytes, options.shards)
        dedup.check_shards(layout, text_bytes)
        inputs = sorted((file["name"], file["bytes"], file["ends_sha256"]) for file in element.get("inputs", ()))
        identity = {
            **dedup.corpus_identity(recipe, self._rules.lists.digests, inputs, options.formats),
            "train_shards": dict(zip(layout.languages, layout.train_shards, strict=True)),
        }
        extensions = [FORMATS[name].extension for name in options.formats]
        files = [shard_name(*shard, extension) for shard in layout.shards() for extension in extensions]
        yield ShardPlan(layout, _begin_once(storage_path(options.folder), identity, files, counts))


def _begin_once(
    output: StoragePath, identity: Mapping[str, Any], files: Sequence[str], counts: Mapping[str, int]
) -> str:
    """Makes the output folder ready, and returns the publication token.

    A runner may do this again when shards are written already: they stay.
    """
    values = {"clean_counts": dict(counts), "missing": []}
    try:
        draft, token = publishers.read_draft(output)
        if {**draft, "stale": []} == {"identity": identity, "expected": list(files), **values, "stale": []}:
            return token
    except FileNotFoundError:
        pass
    return publish.begin(output, identity, files, **values)


def balanced(counts: Mapping[str, int], is_exact: bool) -> dict[str, int]:
    """Returns counters in which the pages read are the sum of those dropped and kept.

    Args:
        counts: the counters of all transforms.
        is_exact: whether no other transform can have dropped or added pages.

    Raises LostDataError where the counters differ and no other transform can be the reason.
    """
    dropped = sum(number for name, number in counts.items() if name.startswith("pages.dropped."))
    known = dropped + counts.get("pages.kept", 0)
    read = counts.get("pages.read", known)
    if read == known:
        return {**counts, "pages.read": read}
    if is_exact:
        raise LostDataError(
            f"the runner did not deliver all pages from one transform to the next: {read:,} were read, {known:,} were "
            "dropped or kept; no corpus was written, run the pipeline again"
        )
    if read > known:
        return {**counts, "pages.dropped.own_transforms": read - known}
    return {**counts, "pages.read": known, "pages.added": known - read}


class SendToShards(CountingFn):
    """Packed pages -> (number of the shard, its pages)."""

    def process(self, element: bytes, plan: ShardPlan) -> Iterator[Block]:
        """Divides the pages of a batch among the shards."""
        pages = page_schema.unpack(element)
        keys = pages["page_key"].to_numpy()
        self._reports.append(control_totals.sent("pages", shuffle.totals(keys)))
        numbers = plan.layout.shard_numbers(write.folders_of(pages, plan.layout), keys)
        for number, rows in write.by_shard(pages, numbers):
            yield number, write.encode(pages, rows)


class WriteShard(beam.DoFn):
    """(number of a shard, its pages) -> a report. Writes the files of the shard into the publisher's folder."""

    def __init__(self, options: CorpusOptions) -> None:
        """Takes the options."""
        super().__init__()
        self._options = options

    def process(self, element: tuple[int, Iterable[bytes]], plan: ShardPlan) -> Iterator[Report]:
        """Writes the files of one shard."""
        shard = plan.layout.shards()[element[0]]
        batches = filter(None, element[1])
        yield write_shard(batches, shard, storage_path(self._options.folder), self._options.formats)


class PublishCorpus(beam.DoFn):
    """The sum of the reports of all shards -> the path of the manifest. Publishes the corpus."""

    def __init__(self, options: CorpusOptions) -> None:
        """Takes the options."""
        super().__init__()
        self._options = options

    def process(self, element: Report, plan: ShardPlan) -> Iterator[str]:
        """Checks the shards, and makes them a corpus."""
        folder = storage_path(self._options.folder)
        publish.finish(folder, element, plan.token)
        yield str(folder / MANIFEST)
