"""Job 1, `clean`: WET files to work files. It plans, runs and verifies."""

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from c4pipe.clean import annotated_folder, dropped_pages, missing
from c4pipe.clean.progress import watch_clean
from c4pipe.clean.steps import CleanWetFile
from c4pipe.clean.work_file import WorkHeader
from c4pipe.clean.work_folder import clear_abandoned, read_headers_of
from c4pipe.errors import C4pipeError, LostDataError
from c4pipe.io.lock import only_run
from c4pipe.io.paths import storage_path
from c4pipe.io.streams import is_url
from c4pipe.jobs.clean_plan import CleanPlan, WorkState, work_state
from c4pipe.jobs.done_files import check_state
from c4pipe.jobs.dropped_notes import note_unaudited
from c4pipe.jobs.logs import LOG, key_values, log_cost
from c4pipe.recipes.recipe_lists import LISTS_FOLDER
from c4pipe.runners import control_totals
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.local_flow import Workers
from c4pipe.runners.runner import run_job
from c4pipe.runners.worker import cpu_seconds
from c4pipe.wet.inputs import WARC_ENDINGS, WET_ENDINGS, InputFile


def clean(plan: CleanPlan, progress: Progress, workers: Workers | None = None) -> dict[str, int]:
    """Writes a work file for each file of a plan that has none yet, and returns the counts over all files.

    A file that can't be downloaded is recorded as missing in the work folder (`clean.missing`); the next run tries it
    again. `workers` are processes that work for other jobs, too (see `runners.run_job`).

    Raises UsageError if an existing work file is of another recipe or input, or if another run works in the folder;
    C4pipeError if a file can't be read or written, if too many are missing, or if the inputs hold no page;
    LostDataError if the runner ended before all files were cleaned.
    """
    for text in plan.notes:
        progress.note(text)
    with only_run(plan.options.work), _only_annotation(plan):
        state = _prepare(plan, progress)
        _note_dropped(plan, state, progress)
        tasks = _largest_first((*state.missing, *state.open))
        before = cpu_seconds()
        if tasks:
            _run(plan, tasks, progress, workers)
        spent = cpu_seconds() - before
        for note in plan.absent:
            target = plan.target(InputFile(note["path"], note["name"], None))
            missing.note_missing(target, note["path"], note["error"])
        counts = _verify(plan)
        _finish_annotation(plan)
        LOG.info("clean: %s", key_values(counts))
        if tasks and not state.done and plan.options.runner.runner is None:  # all of it was done here, and now
            log_cost("clean", spent, counts.get("bytes.read", 0))
        return counts


def _prepare(plan: CleanPlan, progress: Progress) -> WorkState:
    """Makes the work folder ready, and returns how far it is: records of missing files are removed for a new try."""
    clear_abandoned(plan.work)
    clear_abandoned(plan.work / LISTS_FOLDER)
    if plan.options.annotate:
        clear_abandoned(storage_path(plan.options.annotate.folder))
    plan.lists.save(plan.work / LISTS_FOLDER)
    state = check_state(plan, progress)
    for file in state.missing:
        missing.missing_note(plan.target(file)).unlink(missing_ok=True)
    return state


def _note_dropped(plan: CleanPlan, state: WorkState, progress: Progress) -> None:
    """Removes dropped pages that an earlier run kept of open files, and notes of which done files there are none."""
    keep = plan.options.keep_dropped
    if keep:
        dropped_pages.clear(keep, (file.name for file in (*state.missing, *state.open)), "clean")
        note_unaudited(keep, [file.name for file in state.done], "clean", progress)


def _only_annotation(plan: CleanPlan) -> contextlib.AbstractContextManager[None]:
    """Locks the annotated folder of a plan, if it has one."""
    annotate = plan.options.annotate
    return only_run(storage_path(annotate.folder)) if annotate else contextlib.nullcontext()


def _finish_annotation(plan: CleanPlan) -> None:
    """Writes the manifest of the annotated folder, now that all of its files are there."""
    annotate, state = plan.options.annotate, work_state(plan)
    if annotate:
        names = {file.name for file in state.missing}
        notes = [*plan.absent, *(each for each in missing.missing_files([plan.work]) if each["name"] in names)]
        sources = [file.name for file in state.done]
        annotated_folder.write_manifest(annotate, plan.recipe, plan.fingerprint, sources, notes)


def _largest_first(files: Iterable[InputFile]) -> list[InputFile]:
    """Returns the files in the order of their tasks: workers that take the largest first end at the same time."""
    return sorted(files, key=lambda file: (-(file.size or 0), file.name))


def _run(plan: CleanPlan, files: list[InputFile], progress: Progress, workers: Workers | None) -> None:
    """Cleans files on the runner."""
    options = plan.options
    paths = [file.path if is_url(file.path) else str(Path(file.path).absolute()) for file in files]
    tasks = [(path, str(plan.target(file))) for path, file in zip(paths, files, strict=True)]

    def graph(flow: Flow) -> None:
        step = CleanWetFile(
            plan.recipe,
            plan.work / LISTS_FOLDER,
            plan.lists.digests,
            options.network,
            options.keep_dropped,
            options.annotate,
            options.input_kind,
        )
        flow.map("Clean file", flow.create("Files", tasks), step)

    known = all(file.size is not None for file in plan.files)
    sizes = {plan.target(file).name: file.size if known and file.size else 1 for file in plan.files}
    with watch_clean(progress, plan.work, sizes):
        run_job(graph, options.runner, len(tasks), progress.runs_as, workers)


def _verify(plan: CleanPlan) -> dict[str, int]:
    """Checks what the runner left in the work folder, and returns the counts over all work files."""
    state = work_state(plan)
    count = len(plan.files)
    if state.open:
        raise LostDataError(
            f"the runner ended without cleaning {len(state.open)} of {count} files: {state.open[0].name}, ..."
        )
    _check_missing(plan, state)
    work_files = [plan.target(file) for file in state.done]
    counts = control_totals.add_reports(map(_logged_counts, read_headers_of(work_files)))
    if not counts.get("pages.read"):
        for path in work_files:  # otherwise they would block a run with the right inputs
            path.unlink()
        files = "the input file" if count == 1 else f"the {count:,} input files"
        question = f"are these {plan.recipe.input_format} files?"
        raise C4pipeError(
            f"no page was found in {files}: {_other_kind(plan) or _text_damage(plan, counts) or question}"
        )
    return counts


def _other_kind(plan: CleanPlan) -> str:
    """Returns what to do about WARC files that were read as WET files, or the other way round; "" for none."""
    is_warc = plan.options.input_kind == "warc"
    other = WET_ENDINGS if is_warc else WARC_ENDINGS
    if not any(file.name.endswith(other) for file in plan.files):
        return ""
    return "leave out --from warc, for these are WET files" if is_warc else "give --from warc, for these are WARC files"


def _text_damage(plan: CleanPlan, counts: Mapping[str, int]) -> str:
    """Returns why no document was found in files of text; "" for other files."""
    kinds = [f"{name.removeprefix('damage.')} {n:,}" for name, n in counts.items() if name.startswith("damage.")]
    if plan.options.layout is None or not kinds:
        return ""
    return (
        f"they have damage alone ({', '.join(kinds)}); see {plan.options.work}/*.quarantine.jsonl, and give other files"
    )


def _check_missing(plan: CleanPlan, state: WorkState) -> None:
    """Logs the missing files. Raises C4pipeError if there are more than the options allow."""
    limit = plan.options.max_missing
    names = {*(file.name for file in state.missing), *(note["name"] for note in plan.absent)}
    errors = [values["error"] for values in missing.missing_files([plan.work]) if values["name"] in names]
    count = len(plan.files) + len(plan.absent)
    if len(errors) > (count - 1 if limit is None else limit):
        raise C4pipeError(f"{len(errors)} of {count} files could not be downloaded: {errors[0]}")
    for error in errors:
        LOG.warning("missing: %s", error)


def _logged_counts(header: WorkHeader) -> Mapping[str, int]:
    """Returns the counts of a work file, and logs the damage among them."""
    if damage := {name: number for name, number in header.counts.items() if name.startswith("damage.")}:
        LOG.warning("%s is damaged: %s", header.source, key_values(damage))
    return header.counts
