"""The options of the command line as the records that jobs take."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from c4pipe.errors import UsageError

if TYPE_CHECKING:
    from c4pipe.clean.annotated_folder import Annotate
    from c4pipe.clean.dropped_pages import KeepDropped
    from c4pipe.io.paths import StoragePath
    from c4pipe.jobs.options import CleanOptions, DedupOptions
    from c4pipe.runners.runner_options import RunnerOptions

# What needs Beam, NumPy or Arrow is imported by the command that uses it: `c4pipe --help` answers at once.


def runner_options(options: argparse.Namespace) -> "RunnerOptions":
    """Returns what runs a job. Raises UsageError for an option that this runner has not."""
    from c4pipe.runners.runner_options import RunnerOptions

    return RunnerOptions(
        runner=options.runner,
        workers=options.workers,
        beam=options.beam,
        spark_master=options.spark_master,
        spark_conf=options.spark_conf,
        quiet=options.quiet or options.json_progress,
    )


def start_workers(options: argparse.Namespace, inputs: Sequence[str] = ()) -> None:
    """Starts the server of a command's worker processes: it imports what they need while this process makes the plan.

    Does nothing where the command starts no worker: with another runner, for one worker, or for one file.
    """
    is_one_file = len(inputs) == 1 and Path(inputs[0]).is_file()
    workers: int = options.workers or os.cpu_count() or 1
    if options.runner is None and workers > 1 and not is_one_file:
        from c4pipe.runners.worker_pool import start_server

        start_server("c4pipe.jobs.worker_imports")


def languages(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns the languages of `--languages`; none where the recipe's are meant."""
    return tuple(each.strip() for each in options.languages.split(",")) if options.languages is not None else ()


def keep_dropped(options: argparse.Namespace, folder: "StoragePath") -> "KeepDropped | None":
    """Returns which dropped pages are kept, in a folder inside that of the corpus or of the work files."""
    from c4pipe.clean.dropped_pages import DROPPED_FOLDER, KeepDropped, parse_dropped_share

    if options.keep_dropped is None:
        return None
    return KeepDropped(parse_dropped_share(options.keep_dropped), str(folder.absolute() / DROPPED_FOLDER))


def annotate(options: argparse.Namespace) -> "Annotate | None":
    """Returns where annotated pages are written; None for nowhere. Raises UsageError for values that can't be used."""
    from c4pipe.jobs.options import make_annotate

    return make_annotate(options.annotate, options.language_labels)


def clean_options(
    options: argparse.Namespace,
    work: "StoragePath",
    keep_dropped: "KeepDropped | None" = None,
    annotate: "Annotate | None" = None,
) -> "CleanOptions":
    """Returns the options of job 1. Raises UsageError for values that can't be used."""
    from c4pipe.io.downloads import NetworkOptions
    from c4pipe.jobs.options import CleanOptions, bytes_per_worker
    from c4pipe.wet.inputs import COMMON_CRAWL, Selection, parse_slice

    rate = bytes_per_worker(options.bandwidth, options.workers)
    network = NetworkOptions(bytes_per_second=rate, cache=options.cache)
    return CleanOptions(
        inputs=tuple(options.inputs),
        work=work,
        recipe=options.recipe,
        languages=languages(options),
        lists=options.lists,
        links=tuple(options.links or ()),
        language_model=options.language_model,
        selection=Selection(
            source=options.source or COMMON_CRAWL,
            files=parse_slice(options.files) if options.files is not None else None,
            sample=options.sample,
            network=network,
        ),
        network=network,
        max_missing=options.max_missing,
        keep_dropped=keep_dropped,
        runner=runner_options(options),
        input_kind=options.input_kind,
        annotate=annotate,
        extract=options.extract,
    )


def text_options(
    options: argparse.Namespace, work: "StoragePath", keep_dropped: "KeepDropped | None" = None
) -> "CleanOptions":
    """Returns the options of job 1 for files of text. Raises UsageError for values that can't be used."""
    from c4pipe.jobs.import_text import make_layout
    from c4pipe.jobs.options import TEXT_KIND, CleanOptions

    layout, needed = make_layout(options.text_column, options.url_column, options.timestamp_column, options.split)
    return CleanOptions(
        inputs=tuple(options.inputs),
        work=work,
        recipe=options.recipe,
        languages=languages(options),
        lists=options.lists,
        links=tuple(options.links or ()),
        language_model=options.language_model,
        max_missing=options.max_missing,
        keep_dropped=keep_dropped,
        runner=runner_options(options),
        input_kind=TEXT_KIND,
        layout=layout,
        needed=needed,
    )


def dedup_options(options: argparse.Namespace, work: Sequence["StoragePath"]) -> "DedupOptions":
    """Returns the options of job 2. Raises UsageError for values that can't be used."""
    from c4pipe.corpus.writer import parse_formats
    from c4pipe.jobs.options import DedupOptions

    formats, keep = parse_formats(options.format), keep_dropped(options, options.output)
    return DedupOptions(tuple(work), options.output, formats, options.shards, runner_options(options), keep)


def refuse_job_file(options: argparse.Namespace, why: str) -> None:
    """Raises UsageError where a command of several jobs is to be written to one file."""
    if any(option.startswith("--output_executable_path") for option in options.beam):
        raise UsageError(f"--output_executable_path writes one job to a file, and {why}")
