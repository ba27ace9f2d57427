"""What a run is asked to do: one frozen record for each job, checked when it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.clean.work_file import WorkHeader
from c4pipe.clean.work_folder import find_work_files, read_headers
from c4pipe.corpus.shard_writer import FORMATS
from c4pipe.errors import UsageError
from c4pipe.filters.language import check_detector
from c4pipe.io.paths import StoragePath
from c4pipe.io.retry import NetworkOptions
from c4pipe.recipes import pinned_lists, recipe_lists
from c4pipe.recipes.presets import find_recipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.runners.runner import RunnerOptions
from c4pipe.wet.inputs import InputFile, Selection, find_inputs


@dataclass(frozen=True)
class CleanOptions:
    """Job 1. All that can be wrong with it is found when it is made (UsageError).

    Attributes:
        inputs: paths, globs and folders of WET files.
        work: the folder for work files.
        recipe: a recipe's name, or the path of a TOML file.
        languages: the languages to keep, or () for the recipe's.
        lists: a folder with the lists; None for the cache.
        links: files of URLs, for a recipe that keeps the pages of a list of links.
        selection: which files of a crawl, and from where.
        network: how to behave on the network.
        max_missing: how many files may be missing, for want of the network; None for any number.
        keep_dropped: which dropped pages are kept, and where; None for none.
    """

    inputs: tuple[str, ...]
    work: StoragePath
    recipe: str = "c4"
    languages: tuple[str, ...] = ()
    lists: Path | None = None
    links: tuple[Path, ...] = ()
    selection: Selection = field(default_factory=Selection)
    network: NetworkOptions = field(default_factory=NetworkOptions)
    max_missing: int | None = None
    keep_dropped: KeepDropped | None = None
    engine: RunnerOptions = field(default_factory=RunnerOptions)

    def __post_init__(self) -> None:
        _ = self.rules
        check_detector(self.rules.parameters("language").get("detector", ""))
        if self.work.exists() and not self.work.is_dir():
            raise UsageError(f"--work {self.work} is a file: give a folder")
        cache = self.network.cache
        if cache is not None and cache.exists() and not cache.is_dir():
            raise UsageError(f"--cache {cache} is a file: give a folder")
        if self.max_missing is not None and self.max_missing < 0:
            raise UsageError(f"--max-missing {self.max_missing}: give 0 or more")
        _ = self.files, self.recipe_lists

    @cached_property
    def rules(self) -> Recipe:
        """The recipe, with the languages asked for."""
        recipe = find_recipe(self.recipe)
        try:
            return recipe.with_languages(self.languages) if self.languages else recipe
        except UsageError as error:
            raise UsageError(f"--languages {','.join(self.languages)}: {error}") from None

    @cached_property
    def recipe_lists(self) -> Lists:
        """The lists that the recipe needs."""
        return recipe_lists.gather(self.rules, pinned_lists.lists_dir(self.lists), self.links)

    @cached_property
    def files(self) -> tuple[InputFile, ...]:
        """The files to clean, by name."""
        return find_inputs(self.inputs, self.selection)

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the recipe with its lists."""
        return self.rules.fingerprint(self.recipe_lists.digests)


@dataclass(frozen=True)
class DedupOptions:
    """Job 2. All that can be wrong with it is found when it is made (UsageError).

    Attributes:
        work: work folders.
        output: the folder for the corpus.
        formats: names of shard formats.
        shards: train shards for each language; None to plan them from the size of the text.
        keep_dropped: which dropped pages are kept, and where; None for none.
    """

    work: tuple[StoragePath, ...]
    output: StoragePath
    formats: tuple[str, ...] = ("parquet",)
    shards: int | None = None
    engine: RunnerOptions = field(default_factory=RunnerOptions)
    keep_dropped: KeepDropped | None = None

    def __post_init__(self) -> None:
        check_output(self.output, self.formats, self.shards)
        check_detector(self.recipe.parameters("language").get("detector", ""))
        recipe_lists.find(self.work, next(iter(self.headers.values())).lists)

    @cached_property
    def files(self) -> Mapping[str, StoragePath]:
        """The work files, by name."""
        return find_work_files(self.work)

    @cached_property
    def headers(self) -> Mapping[str, WorkHeader]:
        """Their headers, by name; all of one recipe."""
        return read_headers(self.files)

    @property
    def recipe(self) -> Recipe:
        """The recipe of the work files."""
        return next(iter(self.headers.values())).recipe


def check_output(output: StoragePath, formats: tuple[str, ...], shards: int | None) -> None:
    """Raises UsageError where an option for the corpus can't be met."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise UsageError(f"unknown shard format {','.join(unknown)!r}: c4pipe writes {', '.join(FORMATS)}")
    if shards is not None and not 1 <= shards <= 100_000:
        raise UsageError(f"--shards {shards}: there must be 1 to 100000")
    if output.exists() and not output.is_dir():
        raise UsageError(f"--output {output} is a file: give a folder")
