"""`BuildCorpus`: WET files to a corpus."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import apache_beam as beam

from c4pipe.beam.clean_pages import CleanPages
from c4pipe.beam.keep_newest import KeepNewest
from c4pipe.beam.read_pages import ReadPages
from c4pipe.beam.remove_repeated_spans import RemoveRepeatedSpans
from c4pipe.beam.stage_reports import PageTransform
from c4pipe.beam.write_corpus import WriteCorpus
from c4pipe.filters.page_size import Incomplete
from c4pipe.io.options import PathArgument
from c4pipe.recipes.choose import RecipeArgument, RecipeKeywords, choose_recipe
from c4pipe.wet.extraction import choose_extraction

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _BuildKeywords(RecipeKeywords, total=False):
    input_kind: str
    extract: str | None


class BuildCorpus(PageTransform):
    """Builds a corpus from WET files, as `c4pipe build` does: the root and the end of a pipeline.

    It is `ReadPages`, `CleanPages`, `KeepNewest`, `RemoveRepeatedSpans.by_recipe` and `WriteCorpus`, in this order. The
    shards have the same bytes as the shards of `c4pipe build`, if both have the same number.

    Returns a PCollection of one text, the path of the corpus' manifest.

    >>> import apache_beam as beam, c4pipe
    >>> from c4pipe.beam import BuildCorpus
    >>> with beam.Pipeline(options=IN_MEMORY) as pipeline:
    ...     _ = pipeline | BuildCorpus("samples/crawl", FOLDER, recipe="c4", lists="samples/lists")
    >>> c4pipe.open_corpus(FOLDER).counts["pages.read"]
    71
    """

    def __init__(
        self,
        patterns: PathArgument | Sequence[PathArgument],
        path: PathArgument,
        *,
        recipe: RecipeArgument = "c4",
        files: str | None = None,
        formats: str | Sequence[str] = "parquet",
        shards: int | None = None,
        buckets: int = 1024,
        **given: "Unpack[_BuildKeywords]",
    ) -> None:
        """Takes the arguments of the transforms that it is made of.

        Args:
            patterns: as in `ReadPages`.
            path: the folder of the corpus, as in `WriteCorpus`.
            recipe: as in `CleanPages`.
            files: a slice of a crawl's files, as in `ReadPages`.
            formats: as in `WriteCorpus`.
            shards: as in `WriteCorpus`.
            buckets: as in `RemoveRepeatedSpans`.
            given: `input_kind` and `extract`, as in `ReadPages`; `languages`, `lists`, `links` and `language_model`, as
                in `CleanPages`.

        Raises UsageError for an argument that can't be met.
        """
        super().__init__()
        kind, extract = given.pop("input_kind", "wet"), given.pop("extract", None)
        chosen = choose_recipe(recipe, given.pop("languages", ()), given.get("language_model"))
        chosen = chosen.with_extraction(choose_extraction(kind, extract))
        scheme, _ = chosen.page_keys
        lists = cast(RecipeKeywords, given)
        self._read = ReadPages(patterns, files=files, input_kind=kind, extract=extract)
        self._clean = CleanPages(chosen, **lists)
        timestamps = chosen.need(Incomplete).timestamps
        self._newest = KeepNewest(scheme, timestamps=timestamps, buckets=buckets)
        self._spans = RemoveRepeatedSpans.by_recipe(chosen, buckets=buckets, **lists)
        self._write = WriteCorpus(os.fspath(path), formats, shards=shards, recipe=chosen, **lists)

    def expand(self, root: Any) -> beam.PCollection:
        """Puts the transforms together."""
        cleaned = root | "Read pages" >> self._read | "Clean pages" >> self._clean
        newest = cleaned | "Keep newest" >> self._newest
        return newest | "Remove repeated spans" >> self._spans | "Write corpus" >> self._write
