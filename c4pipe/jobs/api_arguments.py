"""The arguments of the Python functions as the records that jobs take."""

import os
from collections.abc import Sequence
from pathlib import Path

from c4pipe.clean.annotated_folder import Annotate
from c4pipe.clean.dropped_pages import DROPPED_FOLDER, KeepDropped, parse_dropped_share
from c4pipe.corpus.writer import parse_formats
from c4pipe.io.paths import StoragePath
from c4pipe.io.retry import NetworkOptions
from c4pipe.jobs.options import CleanOptions, bytes_per_worker
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.wet.inputs import COMMON_CRAWL, Selection, parse_slice
from c4pipe.wet.text_layout import TextLayout

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


def keep_dropped(share: float | None, folder: StoragePath) -> KeepDropped | None:
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
