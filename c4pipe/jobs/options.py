"""What a user asks of a job: one plain record for each. To make one reads nothing and opens nothing.

`plan_clean`, `plan_dedup` and `plan_build` check the options and look up what they name.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from c4pipe.clean.annotated_folder import MOST_LABELS, Annotate
from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.errors import UsageError
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.io.words import suggestion
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.wet.extraction import TextLayout
from c4pipe.wet.inputs import Selection

CRAWL_KINDS = ("wet", "warc")
"""What the files of a crawl can be: WET files, which have the text of pages; WARC files, which have their HTML."""

TEXT_KIND = "text"
"""What the inputs of `import` are: files of text."""


@dataclass(frozen=True)
class CleanOptions:
    """Job 1: WET files to work files.

    Attributes:
        inputs: crawls, URLs, paths, globs, folders and lists of WET files (see `wet.inputs.find_inputs`).
        work: the folder for work files.
        recipe: a recipe's name, the path of a TOML file, or a recipe.
        languages: the languages to keep; () for the recipe's.
        lists: a folder with the lists of bad words, domains and blocked URLs; None for the user's cache.
        links: files of URLs, for a recipe that keeps the pages of a list of links.
        language_model: a fastText model that detects the language; None for the recipe's detector.
        selection: which files of a crawl, and from where.
        network: timeouts, retries, bandwidth and cache of downloads.
        max_missing: how many files may be missing because they cannot be downloaded; None for any number but all.
        keep_dropped: which dropped pages are kept, and where; None to keep none.
        runner: what runs the job.
        input_kind: what the inputs are, one of CRAWL_KINDS, or TEXT_KIND where there is a layout.
        annotate: where all pages are written with the decisions of all rules; None for nowhere.
        extract: how text is made from the HTML of WARC files (`wet.EXTRACTORS`); None for all text of a page.
        layout: how documents lie in files of text; None for other inputs.
        needed: the columns that each file of text must have, besides that of the text.
    """

    inputs: tuple[str, ...]
    work: StoragePath
    recipe: str | os.PathLike[str] | Recipe = "c4"
    languages: tuple[str, ...] = ()
    lists: Path | None = None
    links: tuple[Path, ...] = ()
    language_model: str | os.PathLike[str] | None = None
    selection: Selection = field(default_factory=Selection)
    network: NetworkOptions = field(default_factory=NetworkOptions)
    max_missing: int | None = None
    keep_dropped: KeepDropped | None = None
    runner: RunnerOptions = field(default_factory=RunnerOptions)
    input_kind: str = "wet"
    annotate: Annotate | None = None
    extract: str | None = None
    layout: TextLayout | None = None
    needed: tuple[str, ...] = ()


@dataclass(frozen=True)
class DedupOptions:
    """Job 2: work folders to a corpus.

    Attributes:
        work: work folders.
        output: the folder for the corpus.
        formats: names of shard formats (`corpus.writer.FORMATS`).
        shards: train shards for each language; None to derive them from the size of the text.
        runner: what runs the job.
        keep_dropped: which dropped pages are kept, and where; None to keep none.
    """

    work: tuple[StoragePath, ...]
    output: StoragePath
    formats: tuple[str, ...] = ("parquet",)
    shards: int | None = None
    runner: RunnerOptions = field(default_factory=RunnerOptions)
    keep_dropped: KeepDropped | None = None


@dataclass(frozen=True)
class BuildOptions:
    """Both jobs: WET files to a corpus.

    Attributes:
        clean: the options of job 1, whose runner and dropped pages are those of job 2, too.
        output: the folder for the corpus.
        formats: names of shard formats.
        shards: train shards for each language; None to derive them from the size of the text.
    """

    clean: CleanOptions
    output: StoragePath
    formats: tuple[str, ...] = ("parquet",)
    shards: int | None = None

    @property
    def dedup(self) -> DedupOptions:
        """The options of job 2."""
        clean = self.clean
        return DedupOptions((clean.work,), self.output, self.formats, self.shards, clean.runner, clean.keep_dropped)


def check_input_kind(kind: str, kinds: Sequence[str] = CRAWL_KINDS) -> None:
    """Raises UsageError for a kind of input that is none of `kinds`."""
    if kind not in kinds:
        hint = "c4pipe import reads text; " if kind == TEXT_KIND else ""
        raise UsageError(f"--from {kind}: {hint}give {', '.join(kinds[:-1])} or {kinds[-1]}" + suggestion(kind, kinds))


def bytes_per_worker(megabytes: float | None, workers: int | None) -> float | None:
    """Returns the bytes a second that each worker of this machine may read; None for no limit.

    Args:
        megabytes: the megabytes a second that all workers may read together, or None.
        workers: the number of workers; None for one a core.

    Raises UsageError for a bandwidth that is not above 0.
    """
    if megabytes is None:
        return None
    if not megabytes > 0:
        raise UsageError(f"--bandwidth {megabytes}: give megabytes a second, more than 0")
    return megabytes * 1e6 / (workers or os.cpu_count() or 1)


def make_annotate(folder: str | os.PathLike[str] | None, labels: int | None) -> Annotate | None:
    """Returns where annotated files are written; None for nowhere.

    Args:
        folder: the folder for them, or None.
        labels: the number of languages in the column `language_labels`; None for no such column.

    Raises UsageError for a number without a folder, and for one out of range.
    """
    if folder is None:
        if labels is not None:
            raise UsageError(f"--language-labels {labels} is for annotated files: give --annotate, too")
        return None
    if labels is not None and not 1 <= labels <= MOST_LABELS:
        raise UsageError(f"--language-labels {labels}: give 1 to {MOST_LABELS}")
    return Annotate(str(storage_path(os.fspath(folder)).absolute()), labels or 0)
