"""`WriteCorpus`: pages to a corpus, with manifest, dataset card and report."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam

from c4pipe.beam.clean_pages import recipe_display
from c4pipe.beam.corpus_fns import BeginCorpus, CorpusOptions, PackPages, PublishCorpus, SendToShards, WriteShard
from c4pipe.beam.listed_recipe import ListedRecipe, PathArgument, RecipeArgument
from c4pipe.beam.page_schema import Page
from c4pipe.beam.stage_reports import REPORT, CheckTotals, PageTransform, check_batch, upstream
from c4pipe.beam.tagged_blocks import Block
from c4pipe.corpus import manifest
from c4pipe.corpus.manifest import MANIFEST
from c4pipe.corpus.writer import parse_formats
from c4pipe.dedup import publish
from c4pipe.errors import UsageError
from c4pipe.io.paths import storage_path
from c4pipe.jobs import dedup
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.runners.control_totals import Report, add_reports


class WriteCorpus(PageTransform):
    """Writes pages as a corpus, which `c4pipe.open_corpus` and `c4pipe.read` open: the end of a pipeline.

    Input: a PCollection of Page. Output: a PCollection of one text, the path of the corpus' manifest.

    The number of shards follows from the text. Shards are written to a folder inside the output, and appear there
    together; the manifest is the last file. Before the first shard is begun, the control totals of all transforms of
    `c4pipe.beam` that the pages came through are compared. Where a runner lost data, the pipeline fails with
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
        languages: Sequence[str] = (),
        lists: PathArgument | None = None,
        links: Sequence[PathArgument] = (),
        language_model: PathArgument | None = None,
    ) -> None:
        """Checks what is written where. Nothing is written yet.

        Args:
            path: the folder of the corpus, which the workers can write to: a path, or a URL that begins with s3://,
                gs:// or hdfs://.
            formats: `parquet`, `tfrecord` or `json`, or several, as `"parquet,json"` or a list.
            shards: train shards for each language; None for one for each 128 MiB of text.
            recipe: the recipe that the manifest names. It decides the order of the pages, their split and the folders
                of languages. None for pages that were made by no recipe: one of 1,000 is set aside for validation.
            languages: as in `CleanPages`, for the recipe.
            lists: as in `CleanPages`.
            links: as in `CleanPages`.
            language_model: as in `CleanPages`.

        Raises UsageError for an argument that can't be met.
        """
        super().__init__()
        self._folder = storage_path(os.fspath(path)).absolute()
        self._formats = parse_formats(formats if isinstance(formats, str) else ",".join(formats))
        self._shards = shards
        dedup.check_output(self._folder, self._formats, shards)
        named = recipe is not None
        self._rules = (
            ListedRecipe.choose(recipe, languages, lists, links, language_model)
            if recipe is not None
            else ListedRecipe(_own_pipeline(), Lists())
        )
        self._languages = self._rules.recipe.languages if named else ()

    def expand(self, pages: beam.PCollection) -> beam.PCollection:
        """Plans the shards, writes them and publishes the corpus.

        Raises UsageError where the folder holds a corpus, or anything else.
        """
        check_batch(pages, self)
        self._check_folder()
        before = upstream(pages)
        is_exact = bool(before.transforms) and not before.foreign
        options = CorpusOptions(str(self._folder), self._formats, self._shards, self._languages, is_exact)
        types: dict[str, Any] = {REPORT: Report}
        pack = beam.ParDo(PackPages(self._rules)).with_input_types(Page).with_output_types(bytes, **types)
        packed = pages | "Pack pages" >> pack.with_outputs(REPORT, main="batches")
        checked = (*before.reports, packed[REPORT]) | "Check shuffles" >> CheckTotals()
        begun = checked | "Begin" >> beam.ParDo(BeginCorpus(self._rules, options))
        plan = beam.pvalue.AsSingleton(begun | "Begin once" >> beam.Reshuffle())  # else a runner may begin for each use
        send = beam.ParDo(SendToShards(), plan).with_output_types(Block, **types).with_outputs(REPORT, main="blocks")
        sent = packed.batches | "To shards" >> send
        each_shard = beam.FlatMap(_each_shard, plan).with_output_types(Block)
        empty = pages.pipeline | "One" >> beam.Create([None]) | "Each shard" >> each_shard
        shards = (sent.blocks, empty) | "All shards" >> beam.Flatten() | "Group by shard" >> beam.GroupByKey()
        written = shards | "Write shard" >> beam.ParDo(WriteShard(options), plan).with_output_types(Report)
        reports = (sent[REPORT], written) | "All reports" >> beam.Flatten()
        total = reports | "Add up reports" >> beam.CombineGlobally(add_reports)
        return total | "Publish" >> beam.ParDo(PublishCorpus(options), plan).with_output_types(str)

    def _check_folder(self) -> None:
        """Raises UsageError unless a corpus can be written to the folder."""
        if manifest.read_manifest(self._folder) is not None:
            raise UsageError(f"{self._folder} already holds a corpus: give another folder, or delete its {MANIFEST}")
        publish.check_folder(self._folder, {})

    def display_data(self) -> dict[str, Any]:
        """Returns where the corpus is written to, and how."""
        shown = beam.transforms.display.DisplayDataItem
        return {
            **recipe_display(self._rules),
            "path": shown(str(self._folder), label="Folder"),
            "formats": shown(", ".join(self._formats), label="Formats"),
            "shards": shown(self._shards, label="Train shards for each language").drop_if_none(),
        }


def _each_shard(_: None, plan: Any) -> list[Block]:
    """Returns an empty block for each shard: shards without pages are written, too."""
    return [(number, b"") for number in range(len(plan.layout.shards()))]


def _own_pipeline() -> Recipe:
    """Returns the recipe of a corpus that no recipe made."""
    stages: dict[str, Any] = dict.fromkeys(("readable", "crawled", "lines", "cleaned"), ())
    base = RECIPES["unfiltered"].without("stale_capture")
    return replace(base, name="own-pipeline", description="pages of a Beam pipeline of one's own", **stages)
