"""The two jobs, composed: `clean` (WET files to work files) and `dedup` (work files to a corpus)."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from c4pipe.clean import dropped_pages, missing
from c4pipe.clean.clean_progress import watch_clean
from c4pipe.clean.steps import CleanWetFile
from c4pipe.clean.work_file import WorkHeader
from c4pipe.clean.work_folder import check_done, clear_abandoned, headers, is_work_file, work_path
from c4pipe.corpus import manifest
from c4pipe.corpus.layout import SHARD_BYTES, Layout
from c4pipe.corpus.shard_writer import FORMATS, shard_name
from c4pipe.dedup import publish
from c4pipe.dedup.dedup_plan import DedupPlan
from c4pipe.dedup.shuffle import bucket_bits, group_size
from c4pipe.dedup.steps import dedup_work_files
from c4pipe.errors import C4pipeError, LostDataError, UsageError
from c4pipe.filters.duplicates import SPAN_ROW, URL_ROW
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath, names
from c4pipe.io.streams import is_url
from c4pipe.jobs.logs import LOG, said
from c4pipe.jobs.options import CleanOptions, DedupOptions
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import FOLDER
from c4pipe.runners import control_totals
from c4pipe.runners.flow import Flow
from c4pipe.runners.progress import Progress
from c4pipe.runners.runner import run, spill_folder

MAX_SHARD_BYTES = 8 * SHARD_BYTES
"""Text a shard may have at most, on average: a worker holds a shard in memory."""


def clean(options: CleanOptions, progress: Progress) -> dict[str, int]:
    """Job 1: writes a work file for every input that has none yet, and returns the counts over all inputs.

    A file that can't be had from the network is noted in the work folder (`missing`), and tried again by the next run.

    Raises UsageError where a work file that is there is of another recipe or input, or another run is at work there,
    C4pipeError where a file can't be read or written, too many are missing, or the inputs hold no page.
    """
    with only_run(options.work):
        counts = _clean(options, progress)
        LOG.info("clean: %s", said(counts))
        return counts


def _clean(options: CleanOptions, progress: Progress) -> dict[str, int]:
    work = options.work.absolute()  # a worker may run in any folder
    clear_abandoned(work)
    clear_abandoned(work / FOLDER)
    options.recipe_lists.save(work / FOLDER)
    targets = {file: work_path(work, file) for file in options.files}
    there = names(work)
    done = [file for file, target in targets.items() if target.name in there]
    for file, header in zip(done, headers(targets[file] for file in done), strict=True):
        check_done(targets[file], header, file.size, options.rules, options.fingerprint)
    open_files = [file for file, target in targets.items() if target.name not in there]
    for file in open_files:
        if (note := missing.note_path(targets[file])).name in there:
            note.unlink(missing_ok=True)
    keep = options.keep_dropped
    if keep:
        dropped_pages.clear(keep, (file.name for file in open_files), "clean")
        _note_unaudited(keep, [file.name for file in done], "clean", progress)
    # The largest first: the workers take turns, and end together.
    open_files.sort(key=lambda file: (-(file.size or 0), file.name))
    paths = [file.path if is_url(file.path) else str(Path(file.path).absolute()) for file in open_files]
    tasks = [(path, str(targets[file])) for path, file in zip(paths, open_files, strict=True)]

    def graph(flow: Flow) -> None:
        step = CleanWetFile(options.rules, work / FOLDER, options.recipe_lists.digests, options.network, keep)
        flow.do("Clean WET file", flow.create("WET files", tasks), step)

    if tasks:
        known = all(file.size is not None for file in options.files)
        sizes = {targets[file].name: file.size if known and file.size else 1 for file in options.files}
        with watch_clean(progress, work, sizes):
            run(graph, options.engine, len(tasks), progress.runs_as)
    there = names(work)
    made = [target for target in targets.values() if target.name in there]
    notes = {values["name"]: values for values in missing.noted([options.work])}
    absent = [file.name for file, target in targets.items() if target.name not in there]
    gone = [notes[name] for name in absent if name in notes]
    lost = [name for name in absent if name not in notes]
    if lost:
        raise LostDataError(f"the engine ended without cleaning {len(lost)} of {len(targets)} files: {lost[0]}, ...")
    if len(gone) > (len(targets) - 1 if options.max_missing is None else options.max_missing):
        raise C4pipeError(f"{len(gone)} of {len(targets)} files could not be had: {gone[0]['error']}")
    for values in gone:
        LOG.warning("missing: %s", values["error"])
    counts = control_totals.add(map(_counts, headers(made)))
    if not counts.get("pages.read"):
        for target in made:  # or they would be in the way of the right inputs
            target.unlink()
        raise C4pipeError(f"no page was found in {_files(len(targets))}: are these WET files?")
    return counts


def _counts(header: WorkHeader) -> Mapping[str, int]:
    """Returns the counts of a work file, and logs the damage among them."""
    if damage := {name: number for name, number in header.counts.items() if name.startswith("damage.")}:
        LOG.warning("%s is damaged: %s", header.source, said(damage))
    return header.counts


def dedup(options: DedupOptions, progress: Progress) -> dict[str, Any]:
    """Job 2: writes the corpus of some work folders, and returns its manifest.

    A corpus of the same inputs and options that is already complete is left as it is; one that lacked files which
    are there now is made anew.

    Raises UsageError where the output holds something else or another run is at work there, LostDataError where
    control totals differ.
    """
    with only_run(options.output):
        made = _dedup(options, progress)
        LOG.info("dedup: %s", said(made["counts"]))
        return made


def _dedup(options: DedupOptions, progress: Progress) -> dict[str, Any]:
    recipe, cleaned = options.recipe, options.headers.values()
    text_bytes = control_totals.add(header.text_bytes for header in cleaned)
    layout = Layout.plan(recipe.languages, text_bytes, options.shards)
    _check_shards(layout, text_bytes)
    inputs = [(header.source, header.source_bytes) for header in cleaned]
    identity = {
        **_identity(recipe, next(iter(cleaned)).fingerprint, inputs, options.formats),
        "train_shards": dict(zip(layout.languages, layout.train_shards, strict=True)),
    }
    done = publish.prepare(options.output, identity)
    keep, sources = options.keep_dropped, [header.source for header in cleaned]
    if done:
        if keep:
            _note_unaudited(keep, sources, "dedup", progress)
        return done
    if keep:
        dropped_pages.clear(keep, sources, "dedup")
    rows, spans = sum(header.rows for header in cleaned), sum(header.spans for header in cleaned)
    clean_counts = control_totals.add(header.counts for header in cleaned)
    clean_counts.pop("pages.cleaned", None)
    begun = publish.begin(
        options.output,
        identity,
        _shard_paths(layout, options.formats),
        clean_counts=clean_counts,
        missing=missing.noted(options.work),
    )
    plan = DedupPlan(
        recipe=recipe.to_json(),
        lists=next(iter(cleaned)).lists,
        work=tuple(str(folder.absolute()) for folder in options.work),
        layout=layout,
        url_bits=bucket_bits(rows, URL_ROW.itemsize),
        span_bits=bucket_bits(spans, SPAN_ROW.itemsize),
        group=group_size(len(cleaned), rows + spans),
        output=str(options.output.absolute()),
        formats=options.formats,
        begun=begun,
        keep_dropped=keep,
    )
    with spill_folder(options.engine, options.output.absolute() / publish.STAGING) as spill:
        run_dedup(options, replace(plan, spill=spill), progress)
    made = manifest.read(options.output)
    if made is None or not publish.is_of(made, identity):
        raise LostDataError("the engine ended without the last of its steps; no corpus was written")
    return made


def _note_unaudited(keep: dropped_pages.KeepDropped, sources: Sequence[str], job: str, progress: Progress) -> None:
    """Says of how many WET files, whose work is done already, the dropped pages are not kept."""
    if gone := dropped_pages.without(keep, sources, job):
        progress.note(
            f"{job} was done before for {len(gone)} of {len(sources)} WET files, without --keep-dropped, and is not "
            f"done again: the pages that it dropped from these are not in {keep.folder}"
        )


def check_build(options: CleanOptions, output: StoragePath, formats: Sequence[str]) -> None:
    """Raises UsageError, before any work is done, where `build` could not end in that output folder."""
    ours = {work_path(options.work, file).name for file in options.files}
    others = sorted(name for name in names(options.work) - ours if is_work_file(name))
    inputs = [(file.name, file.size) for file in options.files]  # a size is not known yet for a URL
    publish.check_folder(output, _identity(options.rules, options.fingerprint, inputs, formats))
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

    def graph(flow: Flow) -> None:
        dedup_work_files(flow, groups, plan)

    shards = _shard_paths(plan.layout, plan.formats)
    with progress.wait("dedup", options.output, len(shards), _shards_written(options.output, shards)):
        run(graph, options.engine, len(groups), progress.runs_as)


def _shard_paths(layout: Layout, formats: Sequence[str]) -> list[str]:
    extensions = [FORMATS[name].extension for name in formats]
    return [shard_name(*shard, extension) for shard in layout.shards() for extension in extensions]


def _shards_written(output: StoragePath, shards: Sequence[str]) -> Callable[[], int]:
    """Returns what counts the shards that are written; once the corpus is published, that is all of them."""
    folder = publish.shards_folder(output)
    languages = {path.partition("/")[0] for path in shards}

    def count() -> int:
        if isinstance(folder, Path) and not folder.exists():
            return len(shards)
        written = (f"{language}/{name}" for language in languages for name in names(folder / language))
        return len(set(shards).intersection(written))

    return count


def _check_shards(layout: Layout, text_bytes: control_totals.Report) -> None:
    for language, count in zip(layout.languages, layout.train_shards, strict=True):
        size = text_bytes.get(language, 0)
        if size > count * MAX_SHARD_BYTES:
            raise UsageError(
                f"--shards {count} would make {language} shards of {size // count / 1e9:.1f} GB, and a worker "
                f"holds a shard in memory: give at least {-(-size // MAX_SHARD_BYTES)}, or leave it to c4pipe"
            )


def _files(count: int) -> str:
    return "the input file" if count == 1 else f"the {count:,} input files"
