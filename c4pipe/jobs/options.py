"""The options of the jobs: one plain record for each job. Making a record reads and opens no file.

Plans check what the user gave. Records are not compared, and parts never made alone: methods for that take time.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from c4pipe.corpus.formats.table import FORMAT_NAMES, parse_formats
from c4pipe.errors import UsageError
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.options import Option, PathArgument, as_strings, comma_separated, shared_fields
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import find_runner

if TYPE_CHECKING:
    from c4pipe.clean.annotated_folder import Annotate
    from c4pipe.clean.dropped_pages import KeepDropped
    from c4pipe.recipes.recipe import Recipe
    from c4pipe.wet.columns import Column
    from c4pipe.wet.extraction import TextLayout
    from c4pipe.wet.inputs import Selection

# Modules that need NumPy or Arrow are imported at their first use: `c4pipe --help` answers at once.


def recipe_names() -> Iterable[str]:
    """Returns the names of the recipes, for a shell."""
    from c4pipe.recipes.presets import RECIPES

    return RECIPES


def recipe_option(otherwise: str = "") -> Option:
    """Returns the option for a recipe, given the default in words."""
    return Option("a recipe, or the path of a TOML file", "NAME", otherwise, names=recipe_names)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class KindOptions:
    """The kind of the inputs, and how text is made of them."""

    input_kind: Annotated[
        str,
        Option(
            "what INPUT is: wet (WET files, which have text), or warc (WARC files, which have HTML)",
            "KIND",
            flag="--from",
        ),
    ] = "wet"
    extract: Annotated[
        str | None,
        Option(
            "for --from warc: the text of a page is all of it, its main content by resiliparse (main), or what "
            "trafilatura finds",
            "HOW",
            otherwise="all",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class DownloadOptions:
    """Where crawls are read from, and how files are downloaded."""

    source: Annotated[
        str | None, Option("a URL or folder to read crawls from", "URL", otherwise="Common Crawl's server")
    ] = None
    bandwidth: Annotated[float | None, Option("read at most MB megabytes a second", "MB")] = None
    cache: Annotated[PathArgument | None, Option("keep downloaded files in this folder", "DIR")] = None

    @cached_property
    def network(self) -> NetworkOptions:
        """How files are downloaded, by all processes together.

        Raises UsageError for a bandwidth that is not above 0, or a URL as the cache.
        """
        if re.match(r"\w\w+:/", str(self.cache)):
            raise UsageError(f"--cache {self.cache}: downloads are kept on this machine; give a folder")
        if self.bandwidth is not None and not self.bandwidth > 0:
            raise UsageError(f"--bandwidth {self.bandwidth}: give megabytes a second, more than 0")
        rate = None if self.bandwidth is None else self.bandwidth * 1e6
        return NetworkOptions(bytes_per_second=rate, cache=None if self.cache is None else Path(self.cache))


@dataclass(frozen=True, init=False, repr=False, eq=False)
class CrawlOptions(KindOptions, DownloadOptions):
    """The WET files to read, and how."""

    inputs: Annotated[
        PathArgument | Sequence[PathArgument],
        Option(
            "a crawl (CC-MAIN-2019-18), a pattern of crawls ('CC-MAIN-2025-*'), or WET files, gzipped or not: URLs, "
            "paths, globs, folders, or @FILE with one of these on each line",
            "INPUT",
            positional=True,
            nargs="+",
        ),
    ]
    _: KW_ONLY
    files: Annotated[str | None, Option("only a slice of the crawl's files, such as 0:100", "A:B")] = None
    sample: Annotated[int | None, Option("only N of the crawl's files, evenly spread", "N")] = None

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs as strings."""
        return as_strings(self.inputs)

    @cached_property
    def selection(self) -> "Selection":
        """Which files of a crawl are read, and from where. Raises UsageError for values that can't be used."""
        from c4pipe.wet.inputs import COMMON_CRAWL, Selection, parse_slice

        files = None if self.files is None else parse_slice(self.files)
        return Selection(self.source or COMMON_CRAWL, files, self.sample, self.network)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class UsageOptions:
    """The column `usage`."""

    usage: Annotated[
        bool,
        Option("for --from warc: keep in a column what servers and pages say about the use of a page, as train-ai=n"),
    ] = False


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ListOptions:
    """The lists and the model that a recipe needs."""

    lists: Annotated[
        PathArgument | None,
        Option("folder of the lists of bad words, domains and blocked URLs", "DIR", otherwise="the user's cache"),
    ] = None
    links: Annotated[
        Sequence[PathArgument],
        Option("file with one URL on each line, for recipes that keep only listed URLs", "FILE", repeated=True),
    ] = ()
    language_model: Annotated[
        PathArgument | None,
        Option(
            "fastText model that detects the language, such as lid.176.bin", "FILE", otherwise="the recipe's detector"
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class RecipeOptions(ListOptions):
    """The recipe and its lists."""

    recipe: Annotated["PathArgument | Recipe", recipe_option()] = "c4"
    languages: Annotated[
        str | Sequence[str], Option("languages to keep", "CODE,...", otherwise="those of the recipe")
    ] = ()
    score: Annotated[
        Sequence[str],
        Option(
            "also keep in the column NAME the probability that the fastText classifier MODEL gives to LABEL (without "
            "one: hq), and drop no page by it",
            "NAME=MODEL[:LABEL]",
            repeated=True,
        ),
    ] = ()
    label: Annotated[
        Sequence[str], Option("also keep in the column NAME the best label of MODEL", "NAME=MODEL", repeated=True)
    ] = ()

    @property
    def language_codes(self) -> tuple[str, ...]:
        """The languages to keep; () for the recipe's."""
        return comma_separated(self.languages)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class FormatOptions:
    """The formats of the shards."""

    format: Annotated[
        str | Sequence[str],
        Option(f"{', '.join(FORMAT_NAMES)}, or several of these", "F,...", names=lambda: FORMAT_NAMES),
    ] = "parquet"

    @property
    def formats(self) -> tuple[str, ...]:
        """The names of the formats. Raises UsageError for a name that is none."""
        return parse_formats(self.format if isinstance(self.format, str) else ",".join(self.format))


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class KnownOptions:
    """The finished corpora whose pages and spans are left out."""

    known: Annotated[
        Sequence[PathArgument],
        Option(
            "leave out pages and repeated spans that this finished corpus has, by its index (c4pipe index)",
            "CORPUS",
            repeated=True,
        ),
    ] = ()

    @property
    def known_corpora(self) -> tuple[StoragePath, ...]:
        """The folders of the known corpora."""
        return _storage_paths(self.known)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ShardOptions(KnownOptions):
    """The number of the shards, and the finished corpora whose pages and spans they leave out."""

    shards: Annotated[
        int | None, Option("train shards for each language", "N", otherwise="one for each 128 MiB of text")
    ] = None


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class DroppedOptions:
    """Which dropped pages are kept."""

    keep_dropped: Annotated[
        float | str | None,
        Option("keep the dropped pages of a share of all URLs, such as 0.01, or all", "SHARE", parse=str),
    ] = None

    @property
    def folder(self) -> StoragePath:
        """The folder that the job writes."""
        raise NotImplementedError

    @property
    def dropped(self) -> "KeepDropped | None":
        """The dropped pages to keep, in a folder inside the folder of the job. Raises UsageError for a wrong share."""
        from c4pipe.clean.dropped_pages import DROPPED_FOLDER, KeepDropped, parse_dropped_share

        if self.keep_dropped is None:
            return None
        share = parse_dropped_share(str(self.keep_dropped))
        return KeepDropped(share, str(self.folder.absolute() / DROPPED_FOLDER))


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class OutputOptions(DroppedOptions, ShardOptions, FormatOptions):
    """A new corpus."""

    output: Annotated[
        PathArgument, Option("folder for the corpus: a path, or a URL with s3://, gs:// or hdfs://", "DIR")
    ]
    index: Annotated[
        bool, Option("also write the index of the corpus, by which later corpora leave out what it has")
    ] = False

    @property
    def folder(self) -> StoragePath:
        """The folder of the corpus."""
        return _storage_path(self.output)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class AnnotateOptions:
    """The folder for all pages, with the decision of each rule about each page."""

    annotate: Annotated[
        PathArgument | None, Option("also write every page to this folder, with what each rule decides about it", "DIR")
    ] = None
    language_labels: Annotated[
        int | None, Option("with --annotate: write the N most probable languages of each page, too", "N")
    ] = None

    @property
    def annotation(self) -> "Annotate | None":
        """The folder of annotated files; None to write none.

        Raises UsageError for a number of languages without a folder, and for one out of range.
        """
        from c4pipe.clean.annotated_folder import MOST_LABELS, Annotate

        labels = self.language_labels
        if self.annotate is None:
            if labels is not None:
                raise UsageError(f"--language-labels {labels} is for annotated files: give --annotate, too")
            return None
        if labels is not None and not 1 <= labels <= MOST_LABELS:
            raise UsageError(f"--language-labels {labels}: give 1 to {MOST_LABELS}")
        return Annotate(str(_storage_path(self.annotate).absolute()), labels or 0)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CleaningOptions(RunnerOptions, DroppedOptions, RecipeOptions):
    """Job 1, for WET files and for other text."""

    max_missing: Annotated[
        int | None,
        Option(
            "accept up to N files that can't be downloaded or have no record; stop with an error if there are more",
            "N",
            otherwise="accept any number, with exit status 3",
        ),
    ] = None
    provenance: Annotated[
        bool, Option("keep the origin of each page in further columns: its file, and its record or row in the file")
    ] = False
    copies: Annotated[
        bool,
        Option("keep in a column how many pages of the inputs were nearly the same; the recipe has near_duplicate"),
    ] = False
    wait: Annotated[bool, Option("for --runner slurm: show progress until the jobs have ended")] = False
    is_submitted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.wait and not find_runner(self.runner).submits:
            raise UsageError("--wait is only for --runner slurm: leave it out")


@dataclass(frozen=True, kw_only=True, eq=False)
class CleanOptions(CleaningOptions, UsageOptions, AnnotateOptions, CrawlOptions):
    """Job 1: WET files to work files."""

    work: Annotated[PathArgument, Option("folder for the work files", "DIR")]

    @property
    def folder(self) -> StoragePath:
        """The work folder."""
        return _storage_path(self.work)

    work_folder = folder


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CorpusOptions(CleaningOptions, OutputOptions):
    """Both jobs, for WET files and for other text."""

    work: Annotated[PathArgument | None, Option("folder for the work files", "DIR", otherwise="OUTPUT/_work")] = None

    @property
    def work_folder(self) -> StoragePath:
        """The work folder."""
        from c4pipe.clean.work_folder import WORK_FOLDER

        return self.folder / WORK_FOLDER if self.work is None else _storage_path(self.work)

    @property
    def work_folders(self) -> tuple[StoragePath, ...]:
        """The work folder, for job 2."""
        return (self.work_folder,)


@dataclass(frozen=True, kw_only=True, eq=False)
class BuildOptions(CorpusOptions, UsageOptions, AnnotateOptions, CrawlOptions):
    """Both jobs: WET files to a corpus."""


@dataclass(frozen=True, eq=False)
class ImportOptions(CorpusOptions):
    """Both jobs: other text to a corpus."""

    input_kind: ClassVar[str] = "text"
    annotation: ClassVar[None] = None
    network: ClassVar[NetworkOptions] = NetworkOptions()
    inputs: Annotated[
        PathArgument | Sequence[PathArgument],
        Option(
            "files that end in .parquet, .jsonl, .ndjson, .json or .txt, all but the first also with .gz, .zst, .bz2 "
            "or .xz after it: paths, globs, folders, URLs, or @FILE with one of these on each line",
            "TEXT",
            positional=True,
            nargs="+",
        ),
    ]
    _: KW_ONLY
    text_column: Annotated[
        str | None, Option("the column of Parquet, or the key of JSON, with the text", "NAME", otherwise="text")
    ] = None
    url_column: Annotated[
        str | None,
        Option(
            "the one with a URL or another identifier that no other document has; none to make one from the file's "
            "name and the row",
            "NAME",
            otherwise="url, if a file has it",
        ),
    ] = None
    timestamp_column: Annotated[
        str | None,
        Option("the one with the date of the text, or none", "NAME", otherwise="timestamp, if a file has it"),
    ] = None
    columns: Annotated[
        str | Sequence[str],
        Option(
            "further columns to keep, with a type if it differs from that of the files: id,score:float; all for all",
            "NAME,...",
        ),
    ] = ()
    split: Annotated[
        str | None,
        Option(
            "what a document of a .txt file is: all of the file (files), the lines between blank lines (blank-lines), "
            "or each line (lines)",
            "WHERE",
            otherwise="files",
        ),
    ] = None
    recipe: Annotated["PathArgument | Recipe", recipe_option()] = "as-is"

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs as strings."""
        return as_strings(self.inputs)

    @cached_property
    def layout(self) -> "TextLayout":
        """How documents lie in files of text. Raises UsageError for values that can't be used."""
        from c4pipe.wet.extraction import TextLayout

        given = {each: getattr(self, f"{each}_column") for each in ("text", "url", "timestamp")} | {"split": self.split}
        return TextLayout(**{name: value for name, value in given.items() if value is not None})

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """The columns that each file must have besides the column of the text: the columns that are named."""
        from c4pipe.wet.extraction import NO_COLUMN

        named = (self.url_column, self.timestamp_column)
        return tuple(each for each in named if each is not None and each != NO_COLUMN)

    @cached_property
    def further_columns(self) -> "tuple[Column, ...] | None":
        """The further columns to keep, with an empty type for the type of the files; None for all columns.

        Raises UsageError for a name that no column can have, and for one that occurs twice.
        """
        from c4pipe.wet.columns import ALL_COLUMNS, split_columns

        names = comma_separated(self.columns)
        return None if names == (ALL_COLUMNS,) else split_columns(names)


_WorkFolders = Annotated[
    PathArgument | Sequence[PathArgument],
    Option("work folders that clean has written", "WORK", positional=True, nargs="+"),
]


@dataclass(frozen=True, eq=False)
class DedupOptions(RunnerOptions, OutputOptions):
    """Job 2: work folders to a corpus."""

    work: _WorkFolders

    @property
    def work_folders(self) -> tuple[StoragePath, ...]:
        """The work folders."""
        return _storage_paths(self.work)


@dataclass(frozen=True, eq=False)
class AddOptions(RunnerOptions, ShardOptions):
    """Job 2: work folders to a new part of a finished corpus."""

    corpus: Annotated[PathArgument, Option("folder of a finished corpus", "CORPUS", positional=True)]
    work: _WorkFolders

    @property
    def folder(self) -> StoragePath:
        """The folder of the corpus."""
        return _storage_path(self.corpus)

    work_folders = DedupOptions.work_folders


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanOptions(RecipeOptions, FormatOptions, CrawlOptions):
    """An estimate of a build."""

    cores: Annotated[int | None, Option("number of cores to plan for", "N", otherwise="those of this machine")] = None
    price: Annotated[
        float | None, Option("price of that machine for an hour: what the build will cost", "AMOUNT", parse=float)
    ] = None
    measure: Annotated[int, Option("number of files to measure a slice of", "N")] = 8

    @property
    def clean(self) -> CleanOptions:
        """The options of job 1 in one process, without a work folder."""
        return CleanOptions(**shared_fields(self, CleanOptions), work="", workers=1)


def _storage_path(path: PathArgument) -> StoragePath:
    return storage_path(os.fspath(path))


def _storage_paths(paths: PathArgument | Sequence[PathArgument]) -> tuple[StoragePath, ...]:
    return tuple(map(_storage_path, as_strings(paths)))
