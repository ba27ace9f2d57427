"""The Beam step of job 1: WET files to work files. Map only: no two files depend on each other."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import apache_beam as beam

from c4pipe import recipe_lists
from c4pipe.errors import C4pipeError
from c4pipe.filters.wet_file import WetFileCleaner
from c4pipe.recipes import Recipe


class CleanWetFiles(beam.PTransform):
    """Cleans each WET file of (path, work file) pairs; the work file appears when it is complete."""

    def __init__(self, recipe: Recipe, lists: Path, digests: Mapping[str, str]) -> None:
        """Takes the recipe, and the folder where the lists of these digests were saved."""
        super().__init__()
        self._clean = _CleanWetFile(recipe.to_json(), str(lists), dict(digests))

    def expand(self, files: beam.PCollection) -> beam.PCollection:
        """Takes (path, work file) as strings; gives nothing: what counts is in the work files."""
        return (
            files
            | "Spread files" >> beam.Reshuffle()
            | "Clean WET file" >> beam.ParDo(self._clean)
        )  # fmt: skip


class _CleanWetFile(beam.DoFn):
    def __init__(self, recipe: Mapping[str, Any], lists: str, digests: dict[str, str]) -> None:
        super().__init__()
        self._recipe = recipe
        self._lists = lists
        self._digests = digests

    def setup(self) -> None:
        lists = recipe_lists.load(Path(self._lists), self._digests)
        self._cleaner = WetFileCleaner(Recipe.from_json(self._recipe), lists)

    def process(self, element: tuple[str, str]) -> Iterable[None]:
        source, target = map(Path, element)
        if not target.exists():
            try:
                with source.open("rb") as stream:
                    self._cleaner.clean(stream, source.name, target)
            except OSError as error:
                raise C4pipeError(f"{source} can't be cleaned into {target}: {error}") from error
        return ()
