"""The one way to open a finished corpus: its manifest and the sizes of its shards are checked first."""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from c4pipe.corpus import manifest as manifest_file
from c4pipe.corpus.formats.table import FORMAT_NAMES, format_of
from c4pipe.corpus.layout import SPLITS, Layout, ShardId
from c4pipe.corpus.manifest import Manifest
from c4pipe.corpus.reader import Shard, check_rows, check_size
from c4pipe.errors import UsageError
from c4pipe.io.arguments import checks_arguments
from c4pipe.io.paths import StoragePath, file_sizes, read_file
from c4pipe.io.streams import InputPath, WebPath, input_path
from c4pipe.io.words import error_reason, format_count, format_languages, short_repr
from c4pipe.recipes.recipe import Recipe

if TYPE_CHECKING:
    from c4pipe.corpus.funnel import FunnelRow

_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]+)*")
_SHARD = re.compile(r"([^/]+)/c4-(train|validation)-(?:part(\d+)-)?(\d+)-of-(\d+)\..+")


@dataclass(frozen=True)
class Corpus:
    """A finished corpus, as `open_corpus` returns it.

    Attributes:
        path: its folder: a `pathlib.Path`, or the path of a folder in a store or of a web server.
        manifest: what its manifest.json holds, as JSON values.
        digest: the SHA-256 of manifest.json in hex, which identifies the corpus wherever its folder is.
        languages: the codes of the languages that were opened, in alphabetical order; all of them by default.
        part: the number of the part of a larger corpus that this is, from 1; 0 for a whole corpus.
    """

    path: InputPath
    manifest: Manifest
    digest: str
    languages: tuple[str, ...]
    part: int = 0

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe of the corpus."""
        return Recipe.from_json(self.manifest["recipe"])

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of its shards, of FORMAT_NAMES; each holds the same documents."""
        return tuple(name for name in FORMAT_NAMES if name in self.manifest["formats"])

    @property
    def counts(self) -> Mapping[str, int]:
        """The counters of all languages by name, such as `pages.kept`."""
        return self.manifest["counts"]

    @property
    def pages(self) -> int:
        """The number of pages of all languages."""
        return self.counts.get("pages.kept", 0)

    @property
    def funnel(self) -> "list[FunnelRow]":
        """The numbers of pages, lines and bytes read, dropped by each rule, and kept. `pandas.DataFrame` takes them."""
        from c4pipe.corpus.funnel import funnel_rows

        return funnel_rows(self.recipe, self.counts)

    def __repr__(self) -> str:
        languages = format_languages(self.languages)
        recipe = f"recipe {self.manifest['recipe']['name']}"
        files = (format_count(len(self.shards()), "shard"), *self.formats)
        lost = len(self.manifest["missing"])
        missing = [f"{format_count(lost, 'input file')} missing"] if lost else []
        return short_repr(self, self.path, recipe, languages, format_count(self.pages, "page"), *files, *missing)

    def shards(self, split: str | None = None, file_format: str | None = None) -> tuple[Shard, ...]:
        """Returns the shards of the opened languages, by language, split, part and index.

        Args:
            split: `train` or `validation`; None for both.
            file_format: one of `formats`; None for the first of them, which is read fastest.

        Raises UsageError for another split or format.
        """
        if split not in (None, *SPLITS):
            raise UsageError(f"split={split!r}: a corpus has {' and '.join(SPLITS)}")
        if file_format not in (None, *self.formats):
            raise UsageError(f"file_format={file_format!r}: the corpus {self.path} has {', '.join(self.formats)}")
        wanted = file_format or self.formats[0]
        chosen = [
            shard
            for shard in self._files
            if shard.format == wanted and shard.language in self.languages and split in (None, shard.id.split)
        ]
        return tuple(sorted(chosen, key=lambda shard: (*shard.id[:2], shard.id.part, shard.id.shard_index)))

    @cached_property
    def parts(self) -> "tuple[Corpus, ...]":
        """The parts of a corpus to which pages were added, each as a corpus; a corpus without parts is its own part.

        Raises UsageError if the manifest of a part can't be read or was changed.
        """
        if "parts" not in self.manifest:
            return (self,)
        return tuple(self._part(number) for number in range(1, len(self.manifest["parts"]) + 1))

    def _part(self, number: int) -> "Corpus":
        folder = manifest_file.part_folder(self.path, number)
        data = _read_manifest(folder)
        digest = hashlib.sha256(data).hexdigest()
        if digest != self.manifest["parts"][number - 1]["manifest"]:
            raise UsageError(f"{folder / manifest_file.MANIFEST} is not what c4pipe wrote: copy the corpus again")
        manifest = manifest_file.parse(data, folder)
        shards = [each for each in self.manifest["shards"] if manifest_file.part_number(each["path"]) == number]
        return Corpus(self.path, {**manifest, "shards": shards}, digest, self.languages, number)

    @property
    def moved_spans_folder(self) -> InputPath:
        """The folder of the file of moved spans, if the corpus has one."""
        return manifest_file.part_folder(self.path, self.part) if self.part else self.path

    def shards_of_page(self, language: str, validation: bool, page_key: int) -> tuple[Shard, ...]:
        """Returns the shard that a page belongs to, in each of `formats`, in a corpus without parts or in a part.

        Args:
            language: the page's language.
            validation: whether the page is in the validation split.
            page_key: the page's key, by the recipe of the corpus.
        """
        train_shards = self.manifest["train_shards"]
        layout = Layout(tuple(train_shards), tuple(train_shards.values()))
        folders, keys = np.array([layout.folder(language, validation)]), np.array([page_key], np.uint64)
        wanted = layout.shards(self.part or 1)[int(layout.shard_numbers(folders, keys)[0])]
        by_format = {shard.format: shard for shard in self._files if shard.id == wanted}
        return tuple(by_format[name] for name in self.formats)

    @cached_property
    def _files(self) -> list[Shard]:
        """The files of all languages and formats, as the manifest lists them."""
        return list(_list_shards(self.path, self.manifest))


@checks_arguments
def open_corpus(path: str | Path | InputPath, languages: Sequence[str] | None = None) -> Corpus:
    """Opens a finished corpus.

    Args:
        path: its folder, on this machine or behind `s3://`, `gs://`, `hdfs://` or `https://`.
        languages: the languages to open; None opens all of them.

    The sizes of the shards that will be read are compared with the manifest, by one listing of each language's folder.
    Behind `https://` each shard is compared when it is read.

    Raises UsageError if the folder is no finished corpus, or one of another version, or lacks a language;
    C4pipeError if a shard is missing or has another size.
    """
    folder = input_path(path)
    return _make_corpus(folder, _read_manifest(folder), languages)


def open_language(path: str | Path | InputPath, languages: Sequence[str] | None = None) -> Corpus:
    """Works as `open_corpus`, and also opens one language by its folder, or by a link to that folder."""
    folder = input_path(path)
    try:
        data = _read_manifest(folder)
    except UsageError:
        inside, manifest_above = _language_in(folder)
        if manifest_above is None or languages is not None:
            raise
        return _make_corpus(inside.parent, manifest_above, [inside.name])
    return _make_corpus(folder, data, languages)


def find_manifest(folder: InputPath) -> Manifest:
    """Returns the manifest of a corpus. Raises UsageError if the folder is no corpus, as `open_corpus`."""
    return manifest_file.parse(_read_manifest(folder), folder)


def _read_manifest(folder: InputPath) -> bytes:
    """Returns the bytes of a manifest. Raises UsageError if it can't be read."""
    try:
        return read_file(folder / manifest_file.MANIFEST)
    except OSError as error:
        raise no_manifest(folder, error) from error


def _language_in(folder: InputPath) -> tuple[InputPath, bytes | None]:
    """Returns the folder of a language without links, and the manifest of its corpus; None for another folder."""
    real = [Path(os.path.realpath(folder))] if isinstance(folder, Path) else []  # of ".", or of a link
    for inside in (folder, *real):
        if _LANGUAGE.fullmatch(inside.name):
            with contextlib.suppress(OSError):
                return inside, read_file(inside.parent / manifest_file.MANIFEST)
    return folder, None


def no_manifest(folder: InputPath, error: OSError) -> UsageError:
    """Returns the error for a folder that is no corpus, given the error that its manifest raised."""
    file = manifest_file.MANIFEST
    inside, manifest_above = _language_in(folder)
    if manifest_above is not None:
        return UsageError(f"{folder} is only one language of the corpus {inside.parent}: give {inside.parent}")
    if isinstance(folder, Path) and folder.is_file():
        return UsageError(f"{folder} is a file: give the folder of a finished corpus")
    if isinstance(folder, Path) and (folder / manifest_file.REPLACEMENTS / file).is_file():
        return UsageError(
            f"a takedown in {folder} was stopped at its end: run the same command again, which completes it"
        )
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return UsageError(f"{folder} has no {file}, which build writes last: give the folder of a finished corpus")
    return UsageError(
        f"{folder} can't be opened as a corpus: its {file} can't be read: {error_reason(error, of=folder / file)}"
    )


def _make_corpus(folder: InputPath, data: bytes, languages: Sequence[str] | None) -> Corpus:
    """Works as `open_corpus`, given the bytes of the manifest."""
    manifest = manifest_file.parse(data, folder)
    known = sorted(manifest["train_shards"])
    if languages is not None and not languages:
        raise UsageError(f"languages={languages!r}: name one of {', '.join(known)}, or give None for all of them")
    if unknown := [name for name in languages or () if name not in known]:
        raise UsageError(f"{folder} has no language {unknown[0]!r}, but {', '.join(known)}")
    chosen = tuple(name for name in known if languages is None or name in languages)
    corpus = Corpus(folder, manifest, hashlib.sha256(data).hexdigest(), chosen)
    if not isinstance(folder, WebPath):  # a web server has no listings: each file would be a request
        _check_sizes(folder, corpus.shards())
    return corpus


_FOOTERS_AT_ONCE = 16  # a store answers slowly


def check_all_shards(folder: StoragePath, manifest: Manifest) -> None:
    """Checks that a corpus has all its shards: their sizes, and the rows of their footers. No text is read.

    Raises C4pipeError if a shard is missing, or differs from the manifest.
    """
    shards = list(_list_shards(folder, manifest))
    _check_sizes(folder, shards)
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE, thread_name_prefix="footers") as pool:
        for _ in pool.map(check_rows, shards):
            pass


def _check_sizes(folder: StoragePath, shards: Sequence[Shard]) -> None:
    for language, files in groupby(shards, key=lambda shard: shard.language):
        sizes = file_sizes(folder / language, "c4-*")
        for shard in files:
            check_size(shard, sizes.get(shard.file.name))


def _list_shards(folder: InputPath, manifest: Manifest) -> Iterator[Shard]:
    """Yields the files of a corpus that its manifest lists."""
    columns = tuple(manifest["recipe"].get("columns", ()))
    for entry in manifest["shards"]:
        match = _SHARD.fullmatch(entry["path"])
        assert match  # the manifest was checked
        shard_id = ShardId(match[1], match[2], int(match[4]), int(match[5]), int(match[3] or 1))
        file = folder / entry["path"]
        size = entry["rows"], entry["bytes"], entry["sha256"]
        yield Shard(file, format_of(file.name), shard_id, *size, columns)
