"""A Beam pipeline from the files of a crawl to a corpus."""

import os
from collections.abc import Sequence
from typing import Any

import apache_beam as beam

from c4pipe.beam.clean_pages import CleanPages
from c4pipe.beam.keep_newest import KeepNewest
from c4pipe.beam.read_pages import ReadPages
from c4pipe.beam.remove_repeated_spans import RemoveRepeatedSpans
from c4pipe.beam.stage_reports import PageTransform
from c4pipe.beam.write_corpus import WriteCorpus
from c4pipe.filters.page_size import Incomplete
from c4pipe.io.options import PathArgument
from c4pipe.recipes.choose import RecipeArgument, choose_recipe
from c4pipe.wet.extraction import choose_extraction


class BuildCorpus(PageTransform):
    """Builds a corpus as `c4pipe build` does, by all transforms of c4pipe in their order."""

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
        input_kind: str = "wet",
        extract: str | None = None,
        languages: Sequence[str] = (),
        **lists: Any,
    ) -> None:
        super().__init__()
        chosen = choose_recipe(recipe, languages, lists.get("language_model"))
        chosen = chosen.with_extraction(choose_extraction(input_kind, extract))
        scheme, _ = chosen.page_keys
        self._read = ReadPages(patterns, files=files, input_kind=input_kind, extract=extract)
        self._clean = CleanPages(chosen, **lists)
        timestamps = chosen.need(Incomplete).timestamps
        self._newest = KeepNewest(scheme, timestamps=timestamps, buckets=buckets)
        self._spans = RemoveRepeatedSpans.by_recipe(chosen, buckets=buckets, **lists)
        self._write = WriteCorpus(os.fspath(path), formats, shards=shards, recipe=chosen, **lists)

    def expand(self, root: Any) -> beam.PCollection:
        cleaned = root | "Read pages" >> self._read | "Clean pages" >> self._clean
        newest = cleaned | "Keep newest" >> self._newest
        return newest | "Remove repeated spans" >> self._spans | "Write corpus" >> self._write
