"""The Beam step of job 1: WET files to work files. Map only: no two files depend on each other."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import apache_beam as beam

from c4pipe.errors import C4pipeError
from c4pipe.filters.clean import Cleaner, Tools
from c4pipe.filters.wet_file import WetFileCleaner
from c4pipe.recipes import Recipe


class CleanWetFiles(beam.PTransform):
    """Cleans each WET file of (path, work file) pairs; the work file appears when it is complete."""

    def __init__(self, recipe: Recipe, fingerprint: str, bad_words: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._clean = _CleanWetFile(recipe.to_json(), fingerprint, dict(bad_words))

    def expand(self, files: beam.PCollection) -> beam.PCollection:
        """Takes (path, work file) as strings; gives nothing: what counts is in the work files."""
        return (
            files
            | "Spread files" >> beam.Reshuffle()
            | "Clean WET file" >> beam.ParDo(self._clean)
        )  # fmt: skip


class _CleanWetFile(beam.DoFn):
    def __init__(self, recipe: Mapping[str, Any], fingerprint: str, bad_words: dict[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._recipe = recipe
        self._fingerprint = fingerprint
        self._bad_words = bad_words

    def setup(self) -> None:
        recipe = Recipe.from_json(self._recipe)
        cleaner = Cleaner(recipe, Tools(self._bad_words))
        self._cleaner = WetFileCleaner(recipe, self._fingerprint, cleaner)

    def process(self, element: tuple[str, str]) -> Iterable[None]:
        source, target = map(Path, element)
        if not target.exists():
            try:
                self._cleaner.clean(source, target)
            except OSError as error:
                raise C4pipeError(f"{source} can't be cleaned into {target}: {error}") from error
        return ()
