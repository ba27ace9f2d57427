"""The jobs as functions, for Python: `c4pipe.build_corpus` and others. Arguments are the options of the commands."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from c4pipe.clean import missing
from c4pipe.clean.annotated_folder import Annotate
from c4pipe.clean.dropped_pages import DROPPED_FOLDER, KeepDropped, parse_dropped_share
from c4pipe.clean.text_cleaner import Cleaner
from c4pipe.clean.verdicts import PageVerdict
from c4pipe.clean.work_folder import WORK_FOLDER
from c4pipe.corpus.opened import Corpus, open_corpus
from c4pipe.corpus.writer import parse_formats
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.jobs.build import build, plan_build
from c4pipe.jobs.clean import clean, plan_clean
from c4pipe.jobs.dedup import dedup, plan_dedup
from c4pipe.jobs.import_text import make_layout
from c4pipe.jobs.options import TEXT_KIND, BuildOptions, CleanOptions, DedupOptions, bytes_per_worker, make_annotate
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.events import Progress, ProgressEvent
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.wet.extraction import TextLayout
from c4pipe.wet.inputs import COMMON_CRAWL, Selection, parse_slice

PathArgument = str | os.PathLike[str]
"""A path of this machine; as a string also a URL of an object store."""


def clean_options(
    *,
    inputs: PathArgument | Sequence[PathArgument],
    work: StoragePath,
    recipe: PathArgument | Recipe,
    languages: str | Sequence[str],
    lists: PathArgument | None,
    links: Sequence[PathArgument],
    language_model: PathArgument | None,
    selection: tuple[str | None, str | None, int | None],
    bandwidth: float | None,
    cache: PathArgument | None,
    max_missing: int | None,
    keep_dropped: KeepDropped | None,
    annotate: Annotate | None,
    runner: RunnerOptions,
    text: tuple[str, str | None],
    layout: TextLayout | None = None,
    needed: tuple[str, ...] = (),
) -> CleanOptions:
    """Returns the options of job 1, given the arguments of `build_corpus`.

    `selection` is source, files and sample; `text` is input_kind and extract. `layout` and `needed` are those of
    `CleanOptions`.
    """
    source, files, sample = selection
    network = NetworkOptions(
        bytes_per_second=bytes_per_worker(bandwidth, runner.workers), cache=None if cache is None else Path(cache)
    )
    return CleanOptions(
        inputs=tuple(strings(inputs)),
        work=work,
        recipe=recipe,
        languages=codes(languages),
        lists=None if lists is None else Path(lists),
        links=tuple(map(Path, links)),
        language_model=language_model,
        selection=Selection(
            COMMON_CRAWL if source is None else source, None if files is None else parse_slice(files), sample, network
        ),
        network=network,
        max_missing=max_missing,
        keep_dropped=keep_dropped,
        runner=runner,
        input_kind=text[0],
        annotate=annotate,
        extract=text[1],
        layout=layout,
        needed=needed,
    )


def _keep_dropped(share: float | None, folder: StoragePath) -> KeepDropped | None:
    """Returns which dropped pages are kept, in a folder inside that of the corpus or of the work files."""
    return (
        None if share is None else KeepDropped(parse_dropped_share(str(share)), str(folder.absolute() / DROPPED_FOLDER))
    )


def formats(given: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the names of formats, given as a list or as `"parquet,json"`."""
    return parse_formats(given if isinstance(given, str) else ",".join(given))


def codes(languages: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the codes of languages, given as a list or as `"en,de"`."""
    given = languages.split(",") if isinstance(languages, str) else languages
    return tuple(code.strip() for code in given)


def strings(paths: PathArgument | Sequence[PathArgument]) -> list[str]:
    """Returns one or several paths as strings."""
    return [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]


ProgressCallback = Callable[[ProgressEvent], None]
"""Is called about once a second with how far a job is, in a thread of its own."""


@dataclass(frozen=True)
class CleanResult:
    """What `clean_files` did.

    Attributes:
        path: the work folder.
        counts: the counters over all files, such as `pages.read` and `pages.dropped.<rule>`.
        missing: `name`, `path` and `error` of each file that could not be downloaded.
    """

    path: StoragePath
    counts: Mapping[str, int]
    missing: tuple["missing.Missing", ...]


def build_corpus(
    inputs: PathArgument | Sequence[PathArgument],
    *,
    output: PathArgument,
    work: PathArgument | None = None,
    recipe: PathArgument | Recipe = "c4",
    languages: str | Sequence[str] = (),
    lists: PathArgument | None = None,
    links: Sequence[PathArgument] = (),
    language_model: PathArgument | None = None,
    format: str | Sequence[str] = "parquet",
    shards: int | None = None,
    files: str | None = None,
    sample: int | None = None,
    source: str | None = None,
    bandwidth: float | None = None,
    cache: PathArgument | None = None,
    max_missing: int | None = None,
    keep_dropped: float | None = None,
    input_kind: str = "wet",
    extract: str | None = None,
    annotate: PathArgument | None = None,
    language_labels: int | None = None,
    runner: str | None = None,
    workers: int | None = None,
    spark_master: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    beam: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> Corpus:
    """Builds a corpus from WET files: cleans each file, then removes duplicates. The command `c4pipe build`.

    The same call after an interruption goes on from there; after its end, it returns the finished corpus at once.

    Args:
        inputs: crawls (`CC-MAIN-2019-18`) or WET or WARC files, gzipped or not: URLs, paths, globs, folders,
            `@list` of these.
        output: the folder for the corpus: a path, or a URL that begins with s3://, gs:// or hdfs://.
        work: the folder for work files; None for `_work` in the output folder.
        recipe: a recipe's name, the path of a TOML file, or a recipe.
        languages: the languages to keep, as `"en,de"` or a list; () for the recipe's own.
        lists: a folder with the word, domain and URL lists; None for the cache that `c4pipe lists fetch` fills.
        links: files of URLs, one a line, for a recipe that keeps the pages of a list of links.
        language_model: a fastText model that detects the language; None for the recipe's own detector.
        format: `parquet`, `tfrecord` or `json`, or several, as `"parquet,json"` or a list.
        shards: train shards for each language; None for one for each 128 MiB of text.
        files: a slice of a crawl's files, such as `"0:100"`.
        sample: how many of a crawl's files to take, evenly spread.
        source: where crawls are: a URL or a folder; None for Common Crawl's own server.
        bandwidth: the most megabytes a second to read from the network; None for no limit.
        cache: a folder that keeps downloaded files; None to keep none.
        max_missing: how many files may be missing because they can't be downloaded; None for any number but all.
        keep_dropped: keep the dropped pages of this share of the URLs, from 0 to 1, for audits; None to keep none.
        input_kind: `wet` for WET files, `warc` for WARC files.
        extract: with `input_kind="warc"`: what the text of a page is: `all` (also None), `main` or `trafilatura`.
        annotate: a folder for all pages, with what each rule decides about each; None to write none.
        language_labels: with `annotate`, how many of the most probable languages are written; None for none.
        runner: None for this machine, `spark`, or a runner of Apache Beam, such as `FlinkRunner`.
        workers: processes on this machine; None for one a core.
        spark_master: with `runner="spark"`: the master, such as `local[2]`; None for Spark's own setting.
        spark_conf: with `runner="spark"`: settings of Spark, such as `{"spark.executor.memory": "2g"}`.
        beam: with a runner of Beam: its options, such as `["--parallelism=8"]`.
        progress: is called about once a second with a `ProgressEvent`, in a thread of its own.

    Returns the finished corpus; its `manifest["missing"]` lists the files that could not be downloaded.

    Raises UsageError for an argument that can't be met, before any work is done; C4pipeError if the job can't go on,
    and its subclass LostDataError if the runner lost data.
    """
    folder = storage_path(os.fspath(output))
    options = clean_options(
        inputs=inputs,
        work=folder / WORK_FOLDER if work is None else storage_path(os.fspath(work)),
        recipe=recipe,
        languages=languages,
        lists=lists,
        links=links,
        language_model=language_model,
        selection=(source, files, sample),
        bandwidth=bandwidth,
        cache=cache,
        max_missing=max_missing,
        keep_dropped=_keep_dropped(keep_dropped, folder),
        annotate=make_annotate(annotate, language_labels),
        runner=RunnerOptions.of_arguments(runner, workers, spark_master, spark_conf, beam),
        text=(input_kind, extract),
    )
    build(plan_build(BuildOptions(options, folder, formats(format), shards)), Progress(progress))
    return open_corpus(folder)


def clean_files(
    inputs: PathArgument | Sequence[PathArgument],
    *,
    work: PathArgument,
    recipe: PathArgument | Recipe = "c4",
    languages: str | Sequence[str] = (),
    lists: PathArgument | None = None,
    links: Sequence[PathArgument] = (),
    language_model: PathArgument | None = None,
    files: str | None = None,
    sample: int | None = None,
    source: str | None = None,
    bandwidth: float | None = None,
    cache: PathArgument | None = None,
    max_missing: int | None = None,
    keep_dropped: float | None = None,
    input_kind: str = "wet",
    extract: str | None = None,
    annotate: PathArgument | None = None,
    language_labels: int | None = None,
    runner: str | None = None,
    workers: int | None = None,
    spark_master: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    beam: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> CleanResult:
    """Cleans WET files, each to a work file of the pages that passed. Job 1 alone, the command `c4pipe clean`.

    Files that have a work file already are not cleaned again.

    Args:
        work: the folder for work files.

    The other arguments and the errors are those of `build_corpus`.
    """
    folder = storage_path(os.fspath(work))
    options = clean_options(
        inputs=inputs,
        work=folder,
        recipe=recipe,
        languages=languages,
        lists=lists,
        links=links,
        language_model=language_model,
        selection=(source, files, sample),
        bandwidth=bandwidth,
        cache=cache,
        max_missing=max_missing,
        keep_dropped=_keep_dropped(keep_dropped, folder),
        annotate=make_annotate(annotate, language_labels),
        runner=RunnerOptions.of_arguments(runner, workers, spark_master, spark_conf, beam),
        text=(input_kind, extract),
    )
    counts = clean(plan_clean(options), Progress(progress))
    return CleanResult(folder, counts, tuple(missing.missing_files([folder])))


def dedup_files(
    work: PathArgument | Sequence[PathArgument],
    *,
    output: PathArgument,
    format: str | Sequence[str] = "parquet",
    shards: int | None = None,
    keep_dropped: float | None = None,
    runner: str | None = None,
    workers: int | None = None,
    spark_master: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    beam: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> Corpus:
    """Makes a corpus without duplicates of one or more work folders. Job 2 alone, the command `c4pipe dedup`.

    Args:
        work: the work folders, as `clean_files` writes them, all of one recipe.

    The other arguments, the returned corpus and the errors are those of `build_corpus`.
    """
    folder = storage_path(os.fspath(output))
    options = DedupOptions(
        work=tuple(map(storage_path, strings(work))),
        output=folder,
        formats=formats(format),
        shards=shards,
        runner=RunnerOptions.of_arguments(runner, workers, spark_master, spark_conf, beam),
        keep_dropped=_keep_dropped(keep_dropped, folder),
    )
    dedup(plan_dedup(options), Progress(progress))
    return open_corpus(folder)


def import_text(
    inputs: PathArgument | Sequence[PathArgument],
    *,
    output: PathArgument,
    text_column: str | None = None,
    url_column: str | None = None,
    timestamp_column: str | None = None,
    split: str | None = None,
    work: PathArgument | None = None,
    recipe: PathArgument | Recipe = "as-is",
    languages: str | Sequence[str] = (),
    lists: PathArgument | None = None,
    links: Sequence[PathArgument] = (),
    language_model: PathArgument | None = None,
    format: str | Sequence[str] = "parquet",
    shards: int | None = None,
    max_missing: int | None = None,
    keep_dropped: float | None = None,
    runner: str | None = None,
    workers: int | None = None,
    spark_master: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    beam: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> Corpus:
    """Makes a corpus of text: Parquet, JSON Lines and plain text. The command `c4pipe import`.

    The same call after an interruption goes on from there; after its end, it returns the finished corpus at once.

    Args:
        inputs: files of text whose names end in one of `wet.TEXT_ENDINGS`: URLs, paths, globs, folders, `@list`.
        output: the folder for the corpus: a path, or a URL that begins with s3://, gs:// or hdfs://.
        text_column: the column or key that has the text; None for `text`.
        url_column: the one that has the address of a document, which no other has; None for `url` where there is one,
            `none` for addresses that are made of the file's name and the row.
        timestamp_column: the one that has the timestamp; None for `timestamp` where there is one, `none` for none.
        split: what a document of plain text is: `files` (also None), `blank-lines` or `lines`.
        recipe: the rules: `as-is` keeps every document, and one for each address.

    The other arguments, the returned corpus and the errors are those of `build_corpus`.
    """
    folder = storage_path(os.fspath(output))
    layout, needed = make_layout(text_column, url_column, timestamp_column, split)
    options = clean_options(
        inputs=inputs,
        work=folder / WORK_FOLDER if work is None else storage_path(os.fspath(work)),
        recipe=recipe,
        languages=languages,
        lists=lists,
        links=links,
        language_model=language_model,
        selection=(None, None, None),
        bandwidth=None,
        cache=None,
        max_missing=max_missing,
        keep_dropped=_keep_dropped(keep_dropped, folder),
        annotate=None,
        runner=RunnerOptions.of_arguments(runner, workers, spark_master, spark_conf, beam),
        text=(TEXT_KIND, None),
        layout=layout,
        needed=needed,
    )
    build(plan_build(BuildOptions(options, folder, formats(format), shards)), Progress(progress))
    return open_corpus(folder)


def explain_text(
    text: str,
    *,
    url: str | None = None,
    recipe: PathArgument | Recipe = "c4",
    languages: str | Sequence[str] = (),
    lists: PathArgument | None = None,
    links: Sequence[PathArgument] = (),
    language_model: PathArgument | None = None,
) -> PageVerdict:
    """Returns what each rule of a recipe decides about a text. The command `c4pipe explain`.

    Args:
        text: the text of a page.
        url: where it is from; recipes that look at URLs need it.

    The other arguments are those of `build_corpus`. To explain many texts, use the method `explain` of one `Cleaner`.

    Returns a verdict with `reason` (the rule that drops the text, or None), `rules` (the decision of each page rule),
    `lines` (what the line rules do to each line) and `text` (what they leave).

    Raises UsageError as `Cleaner` does.
    """
    cleaner = Cleaner(recipe, languages=codes(languages), lists=lists, links=links, language_model=language_model)
    return cleaner.explain(text, url=url)
