"""The step of job 1: WET files to work files. It is a map: each file is cleaned by itself."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from c4pipe.clean import work_folder
from c4pipe.clean.annotated_folder import Annotate
from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.progress import NoteWriter
from c4pipe.clean.sources import changed
from c4pipe.errors import C4pipeError
from c4pipe.io.atomic import FileBatch
from c4pipe.io.downloads import DownloadError, NetworkOptions
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.io.streams import InputOpener, digest_ends
from c4pipe.io.words import error_reason, explain_errors
from c4pipe.lists.lists import load_lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.flow import Step
from c4pipe.wet.damage import NoRecordError
from c4pipe.wet.extraction import is_parquet
from c4pipe.wet.inputs import FileSlice, part_of


@dataclass
class CleanWetFile(Step):
    """(path or URL of a WET file, path of its work file), or several of these -> nothing; the results are in the files.

    For a part of a file of text, the values of its `FileSlice` follow. Work files appear when all of an element are
    complete. Instead of a work file, a file that can't be downloaded or has no record gets a note.

    Attributes:
        recipe: the recipe, as `Recipe.to_json`.
        lists: the folder of the lists.
        digests: the SHA-256 of each list by name.
        network: how inputs are downloaded.
        keep_dropped, annotate, all_columns, shown_to: as those of `WetFileCleaner`.
        input_kind: `wet` (also for WARC files) or `text`.
    """

    recipe: Mapping[str, Any]
    lists: str
    digests: Mapping[str, str]
    network: NetworkOptions
    keep_dropped: KeepDropped | None = None
    annotate: Annotate | None = None
    input_kind: str = "wet"
    all_columns: bool = False
    shown_to: str = "g"

    def setup(self) -> None:
        lists = load_lists(storage_path(self.lists), self.digests)
        recipe = Recipe.from_json(self.recipe)
        self._cleaner = WetFileCleaner(recipe, lists, self.keep_dropped, self.annotate, self.all_columns, self.shown_to)
        self._sources = InputOpener(self.network, lambda wait: self._notes.wait(wait))

    def process(self, element: tuple[tuple[Any, ...], ...]) -> Iterable[tuple[str, Any]]:
        """Cleans files, unless their work file exists.

        Raises C4pipeError if a file can't be read or its work file can't be written.
        """
        with (
            explain_errors("work files can't be written", kind=C4pipeError, with_path=True),
            FileBatch() if len(element) > 1 else contextlib.nullcontext() as batch,
        ):
            for file in element:
                self._clean(batch, *file)
        return ()

    def _clean(self, batch: FileBatch | None, source: str, path: str, *values: Any) -> None:
        target, part = storage_path(path), FileSlice(*values) if values else None
        work_name = target.name.removesuffix(".parquet")
        name = part_of(work_name)[0]
        self._notes = NoteWriter(target, name)
        if target.exists() and (self.annotate is None or self.annotate.path(work_name).exists()):
            return
        try:
            if part or (self.input_kind == "text" and is_parquet(name)):
                self._clean_text(source, name, target, part, batch)
            else:
                with self._sources.open(source) as stream:
                    self._cleaner.clean(stream, name, target, batch)
        except DownloadError as error:
            work_folder.note_missing(target, source, str(error))
        except NoRecordError as error:
            work_folder.note_missing(target, source, f"{source} {error}")
        except OSError as error:
            raise C4pipeError(
                f"{source} can't be cleaned into {target}: {error_reason(error, with_path=True)}"
            ) from error

    def _clean_text(
        self, source: str, name: str, target: StoragePath, part: FileSlice | None, batch: FileBatch | None
    ) -> None:
        size = self._sources.size(source)
        if size is None:
            raise DownloadError(f"{source}: the server does not say its size")
        read_ends = partial(digest_ends, partial(self._sources.read, source), size)
        if part and (size, read_ends()) != (part.size, part.ends):
            raise changed(source)
        lines = part if part and not is_parquet(name) else None
        with self._sources.open_at(source, max(0, lines.first - 1)) if lines else contextlib.nullcontext() as stream:
            self._cleaner.clean_text(source, stream, size, read_ends, target, part, batch)
