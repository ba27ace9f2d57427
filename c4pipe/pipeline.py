"""The two jobs, composed: `clean` (WET files to work files) and `dedup` (work files to a corpus)."""

import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam

from c4pipe import manifest, missing, totals
from c4pipe.dedup.exchange import SPAN_ROW, URL_ROW, bucket_bits, group_size
from c4pipe.dedup.layout import SHARD_BYTES, Layout
from c4pipe.dedup.transforms import DedupPlan, DedupWorkFiles
from c4pipe.errors import C4pipeError, LostDataError, UsageError
from c4pipe.filters.transforms import CleanWetFiles
from c4pipe.inputs import InputFile
from c4pipe.lock import only_run
from c4pipe.options import CleanOptions, DedupOptions
from c4pipe.progress import Progress
from c4pipe.recipe_lists import FOLDER
from c4pipe.recipes import Recipe
from c4pipe.runners import is_local, run
from c4pipe.shards import FORMATS, shard_name
from c4pipe.sources import is_url
from c4pipe.work import check_done, clear_abandoned, read_header

MAX_SHARD_BYTES = 8 * SHARD_BYTES
"""Text a shard may have at most, on average: a worker holds a shard in memory."""


def clean(options: CleanOptions, progress: Progress) -> dict[str, int]:
    """Job 1: writes a work file for every input that has none yet, and returns the counts over all inputs.

    A file that can't be had from the network is noted in the work folder (`missing`), and tried again by the next run.

    Raises UsageError where a work file that is there is of another recipe or input, or another run is at work there,
    C4pipeError where a file can't be read or written, too many are missing, or the inputs hold no page.
    """
    with only_run(options.work):
        return _clean(options, progress)


def _clean(options: CleanOptions, progress: Progress) -> dict[str, int]:
    work = options.work.absolute()  # a worker may run in any folder
    clear_abandoned(work)
    options.recipe_lists.save(work / FOLDER)
    targets = {file: work_path(work, file) for file in options.files}
    for file, target in targets.items():
        if target.exists():
            check_done(target, file.size, options.rules, options.fingerprint)
    open_files = [file for file in targets if not targets[file].exists()]
    for file in open_files:
        missing.note_path(targets[file]).unlink(missing_ok=True)
    # The largest first: the workers take turns, and end together.
    open_files.sort(key=lambda file: (-(file.size or 0), file.name))
    paths = [file.path if is_url(file.path) else str(Path(file.path).absolute()) for file in open_files]
    tasks = [(path, str(targets[file])) for path, file in zip(paths, open_files, strict=True)]

    def construct(pipeline: beam.Pipeline) -> None:
        step = CleanWetFiles(options.rules, work / FOLDER, options.recipe_lists.digests, options.network)
        _ = pipeline | "WET files" >> beam.Create(tasks) | "Clean" >> step

    if tasks:
        known = all(file.size is not None for file in options.files)
        sizes = {targets[file]: file.size if known and file.size else 1 for file in options.files}
        with progress.watch("clean", sizes):
            run(construct, options.engine, len(tasks))
    notes = {values["name"]: values for values in missing.noted([options.work])}
    gone = [notes[file.name] for file, target in targets.items() if not target.exists() and file.name in notes]
    lost = [file.name for file, target in targets.items() if not target.exists() and file.name not in notes]
    if lost:
        raise LostDataError(f"the engine ended without cleaning {len(lost)} of {len(targets)} files: {lost[0]}, ...")
    if len(gone) > (len(targets) - 1 if options.max_missing is None else options.max_missing):
        raise C4pipeError(f"{len(gone)} of {len(targets)} files could not be had: {gone[0]['error']}")
    made = [target for target in targets.values() if target.exists()]
    counts = totals.add(read_header(target).counts for target in made)
    if not counts.get("pages.read"):
        for target in made:  # or they would be in the way of the right inputs
            target.unlink()
        raise C4pipeError(f"no page was found in {_files(len(targets))}: are these WET files?")
    return counts


def work_path(folder: Path, file: InputFile) -> Path:
    """Returns the path of an input's work file."""
    return folder / f"{file.name}.parquet"


def dedup(options: DedupOptions, progress: Progress) -> dict[str, Any]:
    """Job 2: writes the corpus of some work folders, and returns its manifest.

    A corpus of the same inputs and options that is already complete is left as it is; one that lacked files which
    are there now is made anew.

    Raises UsageError where the output holds something else or another run is at work there, LostDataError where
    control totals differ.
    """
    with only_run(options.output):
        return _dedup(options, progress)


def _dedup(options: DedupOptions, progress: Progress) -> dict[str, Any]:
    recipe, headers = options.recipe, options.headers.values()
    text_bytes = totals.add(header.text_bytes for header in headers)
    layout = Layout.plan(recipe.languages, text_bytes, options.shards)
    _check_shards(layout, text_bytes)
    inputs = [(header.source, header.source_bytes) for header in headers]
    identity = {
        **_identity(recipe, next(iter(headers)).fingerprint, inputs, options.formats),
        "train_shards": dict(zip(layout.languages, layout.train_shards, strict=True)),
    }
    done = manifest.prepare(options.output, identity)
    if done:
        return done
    rows, spans = sum(header.rows for header in headers), sum(header.spans for header in headers)
    staging = options.output.absolute() / manifest.STAGING
    plan = DedupPlan(
        recipe=recipe.to_json(),
        lists=next(iter(headers)).lists,
        work=tuple(str(folder.absolute()) for folder in options.work),
        layout=layout,
        url_bits=bucket_bits(rows, URL_ROW.itemsize),
        span_bits=bucket_bits(spans, SPAN_ROW.itemsize),
        group=group_size(len(headers), rows + spans),
        staging=str(staging),
        formats=options.formats,
        spill=str(staging / "_spill") if is_local(options.engine) else "",
    )
    clean_counts = totals.add(header.counts for header in headers)
    clean_counts.pop("pages.cleaned", None)
    manifest.draft(
        options.output,
        identity,
        clean_counts=clean_counts,
        expected=_shard_paths(plan),
        missing=missing.noted(options.work),
    )
    run_dedup(options, plan, progress)
    made = manifest.read(options.output)
    if made is None or not manifest.is_of(made, identity):
        raise LostDataError("the engine ended without the last of its steps; no corpus was written")
    return made


def check_build(options: CleanOptions, output: Path, formats: Sequence[str]) -> None:
    """Raises UsageError, before any work is done, where `build` could not end in that output folder."""
    names = {work_path(options.work, file).name for file in options.files}
    others = sorted(path.name for path in options.work.glob("*.parquet") if path.name not in names)
    inputs = [(file.name, file.size) for file in options.files]  # a size is not known yet for a URL
    manifest.check_folder(output, _identity(options.rules, options.fingerprint, inputs, formats))
    if others:
        raise UsageError(
            f"{options.work} also holds work files of other inputs ({others[0]}, ...): "
            "use them all with c4pipe dedup, or give build another --work folder"
        )


def _identity(
    recipe: Recipe, fingerprint: str, inputs: Sequence[tuple[str, int | None]], formats: Sequence[str]
) -> dict[str, Any]:
    """Returns what makes a corpus this one, as JSON values."""
    identity: dict[str, Any] = json.loads(json.dumps({"recipe": recipe.to_json(), "formats": list(formats)}))
    files = [{"name": name, "bytes": size} for name, size in inputs]
    return {"recipe": identity["recipe"], "fingerprint": fingerprint, "inputs": files, "formats": identity["formats"]}


def run_dedup(options: DedupOptions, plan: DedupPlan, progress: Progress) -> None:
    """Runs job 2's pipeline, whose last step publishes the corpus."""
    files = list(enumerate(str(path.absolute()) for path in options.files.values()))
    groups = [(first // plan.group, files[first : first + plan.group]) for first in range(0, len(files), plan.group)]

    def construct(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "Work files" >> beam.Create(groups) | "Dedup" >> DedupWorkFiles(plan)

    with progress.wait("dedup", len(plan.layout.shards()) * len(plan.formats), _shards_written(plan)):
        run(construct, options.engine, len(groups))


def _shard_paths(plan: DedupPlan) -> list[str]:
    extensions = [FORMATS[name].extension for name in plan.formats]
    return [shard_name(*shard, extension) for shard in plan.layout.shards() for extension in extensions]


def _shards_written(plan: DedupPlan) -> Callable[[], int]:
    """Returns what counts the shards that are written; once the corpus is published, that is all of them."""
    staging, every = Path(plan.staging), len(_shard_paths(plan))

    def count() -> int:
        with contextlib.suppress(FileNotFoundError):  # it goes away while we look
            if staging.exists():
                return sum(1 for _ in staging.glob("*/c4-*"))
        return every

    return count


def _check_shards(layout: Layout, text_bytes: totals.Report) -> None:
    for language, count in zip(layout.languages, layout.train_shards, strict=True):
        size = text_bytes.get(language, 0)
        if size > count * MAX_SHARD_BYTES:
            raise UsageError(
                f"--shards {count} would make {language} shards of {size // count / 1e9:.1f} GB, and a worker "
                f"holds a shard in memory: give at least {-(-size // MAX_SHARD_BYTES)}, or leave it to c4pipe"
            )


def _files(count: int) -> str:
    return "the input file" if count == 1 else f"the {count:,} input files"
