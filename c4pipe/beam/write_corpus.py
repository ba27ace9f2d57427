"""`WriteCorpus`: pages to a corpus, with manifest, dataset card and report."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import apache_beam as beam
import numpy as np

from c4pipe.beam import page_schema
from c4pipe.beam.clean_pages import choose_rules
from c4pipe.beam.page_schema import Page
from c4pipe.beam.stage_reports import KEPT, CountingFn, PageFlow, PageTransform, check_batch, check_shuffles, upstream
from c4pipe.corpus import manifest
from c4pipe.corpus.formats.table import parse_formats
from c4pipe.corpus.layout import Layout, shard_files
from c4pipe.corpus.manifest import MANIFEST
from c4pipe.dedup import publish, publishers, write
from c4pipe.dedup.shuffle import pack_table, unpack_table
from c4pipe.dedup.step import Received, RowStep, StepItem
from c4pipe.errors import C4pipeError, LostDataError, UsageError
from c4pipe.filters.corpus_rules import StaleCapture, Validation
from c4pipe.io.options import PathArgument
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.jobs import dedup_plan
from c4pipe.lists.lists import Lists
from c4pipe.recipes.choose import ListedRecipe, RecipeArgument, RecipeKeywords, text_versions
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners import control_totals
from c4pipe.runners.control_totals import REPORT, Report, add_reports, is_count
from c4pipe.text.hashes import is_validation, normalise_url, page_key
from c4pipe.text.languages import UNKNOWN

if TYPE_CHECKING:
    from typing_extensions import Unpack


class WriteCorpus(PageTransform):
    """Writes pages as a corpus, which `c4pipe.open_corpus` and `c4pipe.read` open: the end of a pipeline.

    Input: a PCollection of Page. Output: a PCollection of one text, the path of the corpus' manifest.

    The number of shards follows from the text. Shards are written to a folder inside the output, and appear there
    together; the manifest is the last file. Before the first shard is begun, the control totals of all transforms of
    `c4pipe.beam` that the pages came through are compared. If a runner lost data, the pipeline fails with
    LostDataError, and no manifest is written. The counters of these transforms are in the manifest; pages that
    transforms of your own dropped or added are counted as `pages.dropped.own_transforms` and `pages.added`.

    >>> import apache_beam as beam, c4pipe
    >>> from c4pipe.beam import Page, WriteCorpus
    >>> with beam.Pipeline(options=IN_MEMORY) as pipeline:
    ...     page = Page("https://example.com/", "2019-04-18T10:12:43Z", "A text.", "en", 1.0)
    ...     _ = pipeline | beam.Create([page]) | WriteCorpus(FOLDER)
    >>> corpus = c4pipe.open_corpus(FOLDER)
    >>> corpus.pages, corpus.languages
    (1, ('en',))

    Metrics: `pages_kept`, `pages_kept/<language>`, `pages_validation`, `bytes_kept`.
    """

    def __init__(
        self,
        path: PathArgument,
        formats: str | Sequence[str] = "parquet",
        *,
        shards: int | None = None,
        recipe: RecipeArgument | None = None,
        **lists: "Unpack[RecipeKeywords]",
    ) -> None:
        """Checks the folder and the options of the corpus. Nothing is written yet.

        Args:
            path: the folder of the corpus, which the workers can write to: a path, or a URL that begins with s3://,
                gs:// or hdfs://.
            formats: `parquet`, `tfrecord` or `json`, or several, as `"parquet,json"` or a list.
            shards: train shards for each language; None for one for each 128 MiB of text.
            recipe: the recipe that the manifest names. It decides the order of the pages, their split and the folders
                of languages. None for pages that were made by no recipe: one of 1,000 is set aside for validation.
            lists: as in `CleanPages`, for the recipe.

        Raises UsageError for an argument that can't be met.
        """
        super().__init__()
        self._folder = storage_path(os.fspath(path)).absolute()
        self._formats = parse_formats(formats if isinstance(formats, str) else ",".join(formats))
        self._shards = shards
        dedup_plan.check_corpus_options(self._folder, shards)
        named = recipe is not None
        if lists and not named:
            raise UsageError(f"{min(lists)}= belongs to a recipe: give recipe=, too, or leave it out")
        self._rules = choose_rules(recipe, **lists) if recipe is not None else ListedRecipe(_own_pipeline(), Lists())
        self._languages = self._rules.recipe.languages if named else ()

    def expand(self, pages: beam.PCollection) -> beam.PCollection:
        """Plans the shards, writes them and publishes the corpus.

        Raises UsageError if the folder holds a corpus, or anything else.
        """
        check_batch(pages, self)
        self._check_folder()
        before = upstream(pages)
        is_exact = bool(before.transforms) and not before.foreign
        options = WriteOptions(str(self._folder), self._formats, self._shards, self._languages, is_exact)
        types: dict[str, Any] = {REPORT: Report}
        packed = PageFlow(pages.pipeline).map_pages("Pack pages", pages, PackPages(self._rules))
        checked = check_shuffles([*before.reports, packed[REPORT]])
        begun = checked | "Begin" >> beam.Map(begin_corpus, self._rules, options)
        plan = beam.pvalue.AsSingleton(begun | "Begin once" >> beam.Reshuffle())  # else a runner may begin for each use
        send = (
            beam.ParDo(SendToShards(), plan)
            .with_output_types(tuple[int, bytes], **types)
            .with_outputs(REPORT, main="blocks")
        )
        sent = packed[BATCHES] | "To shards" >> send
        each_shard = beam.FlatMap(_each_shard, plan).with_output_types(tuple[int, bytes])
        empty = pages.pipeline | "One" >> beam.Create([None]) | "Each shard" >> each_shard
        shards = (sent.blocks, empty) | "All shards" >> beam.Flatten() | "Group by shard" >> beam.GroupByKey()
        written = shards | "Write shard" >> beam.Map(write_planned_shard, plan, options).with_output_types(Report)
        reports = (sent[REPORT], written) | "All reports" >> beam.Flatten()
        total = reports | "Add up reports" >> beam.CombineGlobally(add_reports)
        return total | "Publish" >> beam.Map(publish_corpus, plan, options).with_output_types(str)

    def _check_folder(self) -> None:
        """Raises UsageError unless a corpus can be written to the folder."""
        if manifest.read_manifest(self._folder) is not None:
            raise UsageError(f"{self._folder} already holds a corpus: give another folder, or delete its {MANIFEST}")
        publish.check_folder(self._folder, {})


def _each_shard(_: None, plan: Any) -> list[tuple[int, bytes]]:
    """Returns an empty block for each shard: shards without pages are written, too."""
    return [(number, b"") for number in range(len(plan.layout.shards()))]


def _own_pipeline() -> Recipe:
    """Returns the recipe of a corpus that no recipe made."""
    stages: dict[str, Any] = dict.fromkeys(("readable", "crawled", "lines", "cleaned"), ())
    base = RECIPES["unfiltered"].without(StaleCapture.name)
    return replace(base, name="own-pipeline", description="pages of a Beam pipeline of one's own", **stages)


BATCHES = "batches"
"""The name of the output that carries packed pages."""

_TEXT_BYTES = "text_bytes/"
"""The prefix of reports that count the bytes of text of a language. They only plan the shards; they are no counters."""


_ALWAYS = ("pages.kept", "pages.validation", "bytes.kept")
"""Counters that a manifest has even if no page is kept."""


@dataclass(frozen=True)
class WriteOptions:
    """The options with which a corpus is written.

    Attributes:
        folder: the folder of the corpus, absolute.
        formats: the formats of its shards.
        shards: train shards for each language; None for one for each 128 MiB of text.
        languages: the languages that have a folder; () for the languages of the pages.
        is_exact: whether all pages came only from the transforms of this room: then their counts must add up.
    """

    folder: str
    formats: tuple[str, ...]
    shards: int | None
    languages: tuple[str, ...]
    is_exact: bool


class ShardPlan(NamedTuple):
    """The values that are known before the first shard is written.

    Attributes:
        layout: the shards of the corpus.
        token: what `publish.begin` returned.
    """

    layout: Layout
    token: str


class PackPages(RowStep):
    """Pages -> batches of pages, packed, with the page key and the split."""

    def __init__(self, rules: ListedRecipe) -> None:
        """Takes the recipe."""
        super().__init__("")
        self._rules = rules
        self.outputs = (BATCHES, REPORT)

    def setup(self) -> None:
        super().setup()
        recipe = self._rules.recipe
        self._scheme, self._by_md5 = recipe.page_keys
        validation = recipe.find(Validation)
        self._one_in = validation.one_in if validation else 0

    def run(self, received: Received) -> Iterator[StepItem]:
        """Packs a batch, and counts its pages."""
        counts, pages = Counter[str](), list[Page]()
        for page in received.given(KEPT):
            language = UNKNOWN if page.language is None else page.language
            probability = 0.0 if page.language_probability is None else page.language_probability
            pages.append(page._replace(language=language, language_probability=probability))
            counts[f"pages.kept.{language}"] += 1
            counts[_TEXT_BYTES + language] += len(page.text.encode())
        counts["pages.kept"] = len(pages)
        counts["bytes.kept"] = sum(size for name, size in counts.items() if name.startswith(_TEXT_BYTES))
        urls = [(page.url, normalise_url(page.url, self._scheme)) for page in pages]
        keys = np.array([page_key(*both, self._by_md5) for both in urls], np.uint64)
        validation = [bool(self._one_in) and is_validation(normalised, self._one_in) for _, normalised in urls]
        counts["pages.validation"] = sum(validation)
        table = page_schema.table_of(pages).append_column("page_key", [keys]).append_column("validation", [validation])
        yield BATCHES, pack_table(table)
        yield counts


def begin_corpus(report: Report, rules: ListedRecipe, options: WriteOptions) -> ShardPlan:
    """Makes the output folder ready for shards, given the sum of the reports of all transforms before."""
    recipe = rules.recipe
    counts = dict.fromkeys(_ALWAYS, 0) | {name: n for name, n in report.items() if is_count(name)}
    counts = balanced(counts, options.is_exact)
    counts.pop("pages.cleaned", None)
    prefix = len(_TEXT_BYTES)
    text_bytes = {name[prefix:]: size for name, size in report.items() if name.startswith(_TEXT_BYTES)}
    languages = options.languages or tuple(sorted(text_bytes)) or (UNKNOWN,)
    if unknown := sorted(text_bytes.keys() - languages):
        raise C4pipeError(
            f"WriteCorpus was given pages of the language {unknown[0]!r}, which recipe {recipe.name} does not "
            "keep: drop these pages before, or give languages=[...]"
        )
    layout = Layout.plan(languages, text_bytes, options.shards, len(options.formats))
    dedup_plan.check_shard_sizes(layout, text_bytes)
    inputs = sorted((file["name"], file["bytes"], file["ends_sha256"]) for file in report.get("inputs", ()))
    missing = sorted(report.get("missing", ()), key=lambda file: str(file["name"]))
    if missing and not inputs:
        raise C4pipeError(f"no page was found in the {len(missing):,} input files: {missing[0]['error']}")
    identity = dedup_plan.corpus_identity(recipe, rules.lists.digests, inputs, options.formats, layout)
    files = shard_files(layout, options.formats)
    values = {
        "clean_counts": dict(counts),
        "missing": missing,
        "text_versions": text_versions(recipe),
        "sources": {"lists": rules.lists.digests},
    }
    return ShardPlan(layout, _begin_once(storage_path(options.folder), identity, files, values))


def _begin_once(
    output: StoragePath, identity: Mapping[str, Any], files: Sequence[str], values: Mapping[str, Any]
) -> str:
    """Makes the output folder ready, and returns the publication token.

    A runner may do this again when shards are written already: they stay.
    """
    try:
        draft, token = publishers.read_draft(output)
        if {**draft, "stale": []} == {"identity": identity, "expected": list(files), **values, "stale": []}:
            return token
    except FileNotFoundError:
        pass
    return publish.begin(output, identity, files, **values)


def balanced(counts: Mapping[str, int], is_exact: bool) -> dict[str, int]:
    """Returns counters in which the pages read are the sum of the dropped and the kept pages.

    Args:
        counts: the counters of all transforms.
        is_exact: whether no other transform can have dropped or added pages.

    Raises LostDataError if the counters differ and no other transform can be the reason.
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

    def process(self, element: bytes, plan: ShardPlan) -> Iterator[tuple[int, bytes]]:
        """Divides the pages of a batch among the shards."""
        sent = write.send_to_shards(unpack_table(element), plan.layout)
        self._reports.append(control_totals.sent(sent.shuffle.name, sent.totals))
        yield from sent.blocks


def write_planned_shard(element: tuple[int, Iterable[bytes]], plan: ShardPlan, options: WriteOptions) -> Report:
    """Writes the files of a shard, given its number and its pages, into the publisher's folder. Returns a report."""
    number, blocks = element
    shard, folder = plan.layout.shards()[number], storage_path(options.folder)
    return write.write_shard_files(filter(None, blocks), shard, folder, options.formats)


def publish_corpus(report: Report, plan: ShardPlan, options: WriteOptions) -> str:
    """Checks the shards, given the sum of their reports, and makes them a corpus. Returns the path of the manifest."""
    folder = storage_path(options.folder)
    publish.finish_corpus(folder, report, plan.token)
    return str(folder / MANIFEST)
