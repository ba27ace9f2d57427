"""The import of text as a function, for Python: `c4pipe.import_text`. Arguments are the options of the command."""

import os
from collections.abc import Mapping, Sequence

from c4pipe.clean.work_folder import WORK_FOLDER
from c4pipe.corpus.opened import Corpus, open_corpus
from c4pipe.io.paths import storage_path
from c4pipe.jobs import api_arguments
from c4pipe.jobs.api import ProgressCallback
from c4pipe.jobs.api_arguments import PathArgument
from c4pipe.jobs.build_job import build, plan_build
from c4pipe.jobs.options import TEXT_KIND, BuildOptions
from c4pipe.jobs.text_inputs import make_layout
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions


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
    options = api_arguments.clean_options(
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
        keep_dropped=api_arguments.keep_dropped(keep_dropped, folder),
        annotate=None,
        runner=RunnerOptions.of_arguments(runner, workers, spark_master, spark_conf, beam),
        text=(TEXT_KIND, None),
        layout=layout,
        needed=needed,
    )
    build(plan_build(BuildOptions(options, folder, api_arguments.formats(format), shards)), Progress(progress))
    return open_corpus(folder)
