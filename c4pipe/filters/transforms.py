"""The Beam step of job 1: WET files to work files. Map only: no two files depend on each other."""

from collections.abc import Iterable, Mapping
from typing import Any

import apache_beam as beam

from c4pipe import missing, recipe_lists
from c4pipe.errors import C4pipeError
from c4pipe.filters.wet_file import WetFileCleaner
from c4pipe.recipes import Recipe
from c4pipe.remote import DownloadError, Network
from c4pipe.sources import Sources
from c4pipe.storage import Place, place


class CleanWetFiles(beam.PTransform):
    """Cleans each WET file of (path or URL, work file) pairs; the work file appears when it is complete.

    Of a file that can't be had from the network there is a note instead (`missing`).
    """

    def __init__(self, recipe: Recipe, lists: Place, digests: Mapping[str, str], network: Network) -> None:
        """Takes the recipe, the folder where the lists of these digests were saved, and manners for the network."""
        super().__init__()
        self._clean = _CleanWetFile(recipe.to_json(), str(lists), dict(digests), network)

    def expand(self, files: beam.PCollection) -> beam.PCollection:
        """Takes (path, work file) as strings; gives nothing: what counts is in the work files."""
        return (
            files
            | "Spread files" >> beam.Reshuffle()
            | "Clean WET file" >> beam.ParDo(self._clean)
        )  # fmt: skip


class _CleanWetFile(beam.DoFn):
    def __init__(self, recipe: Mapping[str, Any], lists: str, digests: dict[str, str], network: Network) -> None:
        super().__init__()
        self._network = network
        self._recipe = recipe
        self._lists = lists
        self._digests = digests

    def setup(self) -> None:
        lists = recipe_lists.load(place(self._lists), self._digests)
        self._cleaner = WetFileCleaner(Recipe.from_json(self._recipe), lists)
        self._sources = Sources(self._network)

    def process(self, element: tuple[str, str]) -> Iterable[None]:
        source, target = element[0], place(element[1])
        if not target.exists():
            try:
                with self._sources.open(source) as stream:
                    self._cleaner.clean(stream, source.rpartition("/")[2], target)
            except DownloadError as error:
                missing.note(target, source, str(error))
            except OSError as error:
                raise C4pipeError(f"{source} can't be cleaned into {target}: {error}") from error
        return ()
