"""Job 1, `clean`: WET files to work files. It plans, runs and verifies."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from c4pipe.clean import dropped_pages, examples, work_folder
from c4pipe.clean.annotated_folder import check_annotated, check_annotated_file, list_annotated
from c4pipe.clean.dropped_pages import KeepDropped, sources_without_dropped
from c4pipe.clean.progress import watch_clean
from c4pipe.clean.steps import CleanWetFile
from c4pipe.clean.work_file import WorkHeader, check_pages
from c4pipe.clean.work_folder import check_done, check_ends, read_headers_of, read_named_header, set_aside, work_path
from c4pipe.errors import C4pipeError, DamagedFileError, LostDataError, UsageError
from c4pipe.filters.column_rules import ColumnBelow, missing
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.filters.lines import FewWords
from c4pipe.io.atomic import clear_abandoned, sync
from c4pipe.io.downloads import NetworkOptions, OnWait
from c4pipe.io.json_files import write_checked_json
from c4pipe.io.lock import has_locks, only_run
from c4pipe.io.paths import StoragePath, check_inner, list_names, storage_path
from c4pipe.io.streams import InputOpener, digest_ends
from c4pipe.jobs.import_text import find_text
from c4pipe.jobs.logs import LOG, count_values, key_values, log_cost
from c4pipe.jobs.options import BuildOptions, CleanOptions, ImportOptions
from c4pipe.jobs.parts import count_lines, divide
from c4pipe.lists.lists import LISTS_FOLDER, Lists
from c4pipe.native import kernels
from c4pipe.recipes.choose import ListedRecipe, choose_recipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners import control_totals
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.local_flow import Workers
from c4pipe.runners.local_runner import local_workers
from c4pipe.runners.machine_limits import allowed_cores
from c4pipe.runners.runner import check_runner, run_job
from c4pipe.runners.runner_options import is_slurm
from c4pipe.runners.worker import cpu_seconds
from c4pipe.text.scripts.words import note_on_words
from c4pipe.wet.columns import COPIES_COLUMN, CRAWL_PROVENANCE, parse_columns
from c4pipe.wet.damage import HAS_NO
from c4pipe.wet.extraction import choose_extraction
from c4pipe.wet.inputs import InputFile, Missing, find_inputs

NOT_COMPILED = "the C extensions are not compiled, so clean takes 2.5 times as long: see docs/install.md"


@dataclass(frozen=True)
class CleanPlan:
    """The plan of job 1.

    Attributes:
        options: what the user asked for.
        listed: the recipe, with the languages asked for and the lists that it needs.
        files: the files to clean, by name.
        notes: sentences that the user should know before the job runs.
        dropped: which dropped pages are kept, and where; None to keep none.
    """

    options: CleanOptions | BuildOptions | ImportOptions
    listed: ListedRecipe
    files: tuple[InputFile, ...]
    notes: tuple[str, ...] = ()
    dropped: KeepDropped | None = None

    @cached_property
    def work(self) -> StoragePath:
        """The absolute path of the work folder: a worker may run in any folder."""
        return self.options.work_folder.absolute()

    @property
    def recipe(self) -> Recipe:
        """The recipe, with the languages asked for."""
        return self.listed.recipe

    @property
    def lists(self) -> Lists:
        """The lists that the recipe needs."""
        return self.listed.lists

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the recipe with its lists."""
        return self.listed.fingerprint

    @property
    def file_count(self) -> int:
        """The number of input files; a file with parts counts once."""
        return len({file.name for file in self.files})

    @property
    def loads(self) -> dict[str, int]:
        """The bytes of each file, or 1 for each where they are not known, by the name of its work file."""
        known = all(file.size is not None for file in self.files)
        return {self.target(file).name: file.load if known and file.load else 1 for file in self.files}

    def target(self, file: InputFile) -> StoragePath:
        """Returns the path of a file's work file."""
        return work_path(self.work, file)

    def missing(self) -> list[Missing]:
        """Returns the notes of the files that are missing, in the order of their names. Raises DamagedFileError."""
        names = {file.name for file in self.files}  # another run may have cleaned other files into the folder
        return [note for note in work_folder.missing_files([self.work]) if note["name"] in names]


def plan_clean(options: CleanOptions | BuildOptions | ImportOptions, progress: Progress | None = None) -> CleanPlan:
    """Checks the options of job 1, and looks up their recipe, lists and files. Changes nothing.

    Args:
        options: what the user asked for.
        progress: gets a note for each wait when a server refuses the list of a crawl.

    Raises UsageError for an option that can't be met, C4pipeError if the list of a crawl's files can't be downloaded.
    """
    check_runner(options)
    dropped = options.dropped
    check_annotate_folder(options)
    recipe = choose_recipe(options.recipe, options.language_codes, options.language_model, options.score)
    if isinstance(options, ImportOptions):
        made = options.layout.extraction
    else:
        made = choose_extraction(options.input_kind, options.extract)
    recipe = recipe.with_extraction(made)
    check_inner(options.work_folder, LISTS_FOLDER, dropped_pages.DROPPED_FOLDER)
    cache = options.network.cache
    if options.work_folder.exists() and not options.work_folder.is_dir():
        raise UsageError(f"--work {options.work_folder} is a file: give a folder")
    if cache is not None and cache.exists() and not cache.is_dir():
        raise UsageError(f"--cache {cache} is a file: give a folder")
    if options.max_missing is not None and options.max_missing < 0:
        raise UsageError(f"--max-missing {options.max_missing}: give 0 or more")
    notes: list[str] = []
    columns: tuple[str, ...] = CRAWL_PROVENANCE if options.provenance else ()
    if isinstance(options, ImportOptions):
        files, columns = find_text(options, notes.append)
        files = divide(files, options.layout, options.work_folder, notes.append)
    else:
        files = find_inputs(
            options.input_names, options.selection, note_wait(progress), notes.append, options.input_kind
        )
    recipe = recipe.with_columns(columns + ((COPIES_COLUMN,) if options.copies else ()))
    _check_columns(recipe)
    listed = ListedRecipe.gather(recipe, options.lists, options.links, options.language_model)
    if note := note_on_words(recipe.need(FewWords).scripts):
        notes.append(note)
    plan = CleanPlan(options, listed, files, tuple(notes), dropped)
    if options.annotation:
        check_annotated(options.annotation, recipe, plan.fingerprint)
    return plan


def _check_columns(recipe: Recipe) -> None:
    """Raises UsageError where a rule needs a column that the pages do not carry, or a column needs a rule."""
    columns = dict(parse_columns(recipe.columns))
    if COPIES_COLUMN in recipe.columns and not recipe.has(NearDuplicate.name):
        raise UsageError(
            f"--copies: recipe {recipe.name} has no rule near_duplicate: give a recipe file with "
            'on = ["near_duplicate"], or leave the option out'
        )
    for _, rule in recipe.rules():
        if isinstance(rule, ColumnBelow) and columns.get(rule.column) not in ("int", "float"):
            raise UsageError(f"recipe {recipe.name}: {missing(rule, 'the inputs')}")


def check_annotate_folder(
    options: CleanOptions | BuildOptions | ImportOptions, output: StoragePath | None = None
) -> None:
    """Raises UsageError where annotated files are to be written into a folder that has other files.

    Args:
        options: the options of job 1.
        output: the folder of the corpus, which takes no other folders; None without one.
    """
    annotate = options.annotation
    if annotate is None:
        return
    folder = storage_path(annotate.folder).absolute()
    for what, other in {"--work": options.work_folder, "--output": output}.items():
        if other is not None and other.absolute() == folder:
            raise UsageError(f"--annotate {annotate.folder} is also {what}: give a folder of its own")
    if output is not None and str(folder).startswith(f"{output.absolute()}/"):
        raise UsageError(
            f"--annotate {annotate.folder} is inside the folder of the corpus: give a folder outside of it"
        )


def note_wait(progress: Progress | None) -> OnWait | None:
    """Returns a function that tells the user of each wait for a server; None without progress."""
    return (lambda wait: progress.note(f"waits: {wait}")) if progress else None


@dataclass(frozen=True)
class WorkState:
    """The state of a work folder: each file of a plan is in one of these three groups.

    Attributes:
        done: files that have a work file, and an annotated file if the options ask for it.
        missing: files that are recorded as missing: they could not be downloaded, or have no record.
        open: all other files.
    """

    done: tuple[InputFile, ...]
    missing: tuple[InputFile, ...]
    open: tuple[InputFile, ...]


def work_state(plan: CleanPlan) -> WorkState:
    """Returns the state of the folders of a plan, from one listing of the names in them."""
    present = list_names(plan.work)
    annotate = plan.options.annotation
    annotated = list_names(storage_path(annotate.folder)) if annotate else set()
    done, absent, open_files = [], [], []
    for file in plan.files:
        target = plan.target(file)
        if target.name in present and (annotate is None or annotate.path(file.work_name).name in annotated):
            done.append(file)
        elif work_folder.missing_note(target).name in present:
            absent.append(file)
        else:
            open_files.append(file)
    return WorkState(tuple(done), tuple(absent), tuple(open_files))


def clean(plan: CleanPlan, progress: Progress, workers: Workers | None = None) -> dict[str, int]:
    """Writes a work file for each open file of a plan, and returns the counts over all files.

    A file that can't be downloaded, or has no record, is recorded as missing in the work folder; the next run tries it
    again. Files with records but without a page are named in a note.
    `workers` are processes that work for other jobs, too (see `runners.run_job`).

    Raises UsageError if an existing work file is of another recipe or input, or if another run works in the folder;
    C4pipeError if a file can't be read or written, if too many are missing, or if the inputs hold no page;
    LostDataError if the runner ended before all files were cleaned; JobSubmitted as `clean_on_slurm`.
    """
    for text in plan.notes:
        progress.note(text)
    if (cache := plan.options.network.cache) and not has_locks(cache):
        progress.note(f"--cache {cache}: its file system has no locks (flock), so downloaded files are not kept")
    if is_slurm(plan.options):
        from c4pipe.jobs.slurm import clean_on_slurm

        return clean_on_slurm(plan, progress)
    with only_run(plan.options.work_folder), _only_annotation(plan):
        state = prepare(plan, progress)
        tasks = largest_first((*state.missing, *state.open))
        before = cpu_seconds()
        if tasks:
            if plan.options.is_local and "python" in kernels().values():
                progress.note(NOT_COMPILED)
            clean_files(plan, tasks, progress, workers)
        elif isinstance(plan.options, CleanOptions):  # else job 2 follows
            progress.note_complete(plan.work, "give another --work, or delete it")
        spent = cpu_seconds() - before
        counts = finish(plan, progress)
        if tasks and not state.done and plan.options.is_local:  # the whole job ran in this call
            log_cost("clean", spent, counts.get("bytes.read", 0))
        return counts


def prepare(plan: CleanPlan, progress: Progress) -> WorkState:
    """Prepares the work folder and returns its state. Records of missing files are removed: these files are tried
    again.
    """
    clear_abandoned(plan.work)
    clear_abandoned(plan.work / LISTS_FOLDER)
    if plan.options.annotation:
        clear_abandoned(storage_path(plan.options.annotation.folder))
    plan.lists.save(plan.work / LISTS_FOLDER)
    state = check_state(plan, progress)
    if state.missing or state.open:
        write_checked_json(plan.work / work_folder.PLANNED, {"files": [file.work_name for file in plan.files]})
    for file in state.missing:
        work_folder.missing_note(plan.target(file)).unlink(missing_ok=True)
    _note_dropped(plan, state, progress)
    return state


def finish(plan: CleanPlan, progress: Progress) -> dict[str, int]:
    """Checks that all files are cleaned, finishes the annotated folder, and returns the counts over all files."""
    counts = _verify(plan, progress)
    if annotate := plan.options.annotation:
        list_annotated(annotate, (file.work_name for file in work_state(plan).done))
    LOG.info("clean: %s", count_values(counts))
    return counts


def _note_dropped(plan: CleanPlan, state: WorkState, progress: Progress) -> None:
    """Deletes dropped-page files of inputs that are cleaned again. Warns about finished inputs that have none."""
    keep = plan.dropped
    if keep:
        dropped_pages.clear(keep, (file.work_name for file in (*state.missing, *state.open)), "clean")
        note_unaudited(keep, [file.work_name for file in state.done], "clean", progress)


def _only_annotation(plan: CleanPlan) -> contextlib.AbstractContextManager[None]:
    """Locks the annotated folder of a plan, if it has one."""
    annotate = plan.options.annotation
    return only_run(storage_path(annotate.folder)) if annotate else contextlib.nullcontext()


def largest_first(files: Iterable[InputFile]) -> list[InputFile]:
    """Returns the files in the order of their tasks: workers that take the largest first end at the same time."""
    return sorted(files, key=lambda file: (-file.load, file.work_name))


def clean_files(plan: CleanPlan, files: list[InputFile], progress: Progress, workers: Workers | None = None) -> None:
    """Cleans files on the runner. The work folder is prepared."""
    options = plan.options
    files = count_lines(plan.work, files, options.network, progress.note)
    tasks = [
        tuple((file.absolute_path, str(plan.target(file)), *(file.part or ())) for file in some)
        for some in _tasks(files)
    ]

    def graph(flow: Flow) -> None:
        step = CleanWetFile(
            plan.recipe,
            plan.work / LISTS_FOLDER,
            plan.lists.digests,
            network_of_worker(options, len(tasks)),
            plan.dropped,
            options.annotation,
            options.input_kind,
        )
        flow.map("Clean file", flow.create("Files", tasks), step)

    with watch_clean(progress, plan.work, plan.loads):
        run_job(graph, options, len(tasks), progress, workers)
    if isinstance(plan.work, Path):
        sync(plan.work)


_SMALL_BYTES = 64 * 1024  # of an input that shares its task
_SMALL_TASKS = 256  # at least: enough for many workers
_MOST_FILES = 64  # of a task: a killed run loses them


def _tasks(files: Sequence[InputFile]) -> list[Sequence[InputFile]]:
    """Returns the files of each task: one, or several small ones where there are many of them."""
    small = [file for file in files if file.size is not None and file.load <= _SMALL_BYTES]
    number = min(_MOST_FILES, max(1, len(small) // _SMALL_TASKS))
    ones = [[file] for file in files if file.size is None or file.load > _SMALL_BYTES]
    return [*ones, *(small[start : start + number] for start in range(0, len(small), number))]


def network_of_worker(options: CleanOptions | BuildOptions | ImportOptions, tasks: int) -> NetworkOptions:
    """Returns how one of the processes downloads its files: it has its share of `--bandwidth`.

    Args:
        options: the options of job 1.
        tasks: how many files are open: no more processes than files download.
    """
    network = options.network
    if not network.bytes_per_second:
        return network
    processes = local_workers(options, tasks) if options.is_local else allowed_cores()
    return replace(network, bytes_per_second=network.bytes_per_second / processes.most)


_MOST_NAMED = 5  # files that a message names


def _verify(plan: CleanPlan, progress: Progress) -> dict[str, int]:
    """Checks the work files that the runner wrote, and returns the counts over all work files.

    If no file has a page, everything about the files is deleted.
    """
    state = work_state(plan)
    count = len(plan.files)  # with the parts of large files
    if state.open:
        raise LostDataError(
            f"the runner ended without cleaning {len(state.open)} of {count} files: {state.open[0].work_name}, ..."
        )
    errors = [note["error"] for note in plan.missing()]
    without_page: dict[str, str] = {}
    counts = control_totals.add_reports(
        map(partial(_logged_counts, without_page), read_headers_of(map(plan.target, state.done)))
    )
    problems = list(filter(None, without_page.values()))
    if not counts.get("pages.read"):
        for file in plan.files:  # a run with the right inputs must find nothing of these
            work_folder.forget_input(plan.target(file))
    _check_missing_files(plan, errors)
    if not counts.get("pages.read"):
        raise _no_page(plan, problems + errors)
    for error in errors:
        LOG.warning("missing: %s", error)
    if problems:
        progress.note(f"no page is in {_named(problems)}")
    return counts


def _no_page(plan: CleanPlan, reasons: Sequence[str]) -> C4pipeError:
    files = "the input file" if plan.file_count == 1 else f"the {plan.file_count:,} input files"
    return C4pipeError(f"no page was found in {files}: {_named(reasons)}; give {plan.recipe.input_format} files")


def _named(files: Sequence[str]) -> str:
    """Joins sentences about files; the first _MOST_NAMED are enough."""
    more = len(files) - _MOST_NAMED
    return "; ".join([*files[:_MOST_NAMED], *([f"and {more:,} more"] if more > 0 else [])])


def _check_missing_files(plan: CleanPlan, errors: Sequence[str]) -> None:
    """Raises C4pipeError if more files are missing than the options allow, given the errors of all of them."""
    limit, count = plan.options.max_missing, plan.file_count
    if len(errors) <= (count - 1 if limit is None else limit):
        return
    unread = [error for error in errors if HAS_NO in error]
    if unread and len(errors) == count:
        raise _no_page(plan, unread)
    what = "have no record or could not be downloaded" if unread else "could not be downloaded"
    raise C4pipeError(f"{len(errors)} of {count} files {what}: {_named(unread or errors)}")


def _logged_counts(without_page: dict[str, str], header: WorkHeader) -> Mapping[str, int]:
    """Returns the counts of a work file, and logs the damage among them.

    Adds to `without_page`, by name, why a file has no page; "" for a file of which a part has pages.
    """
    if damage := {name: number for name, number in header.counts.items() if name.startswith("damage.")}:
        LOG.warning("%s is damaged: %s", header.source, key_values(damage))
    if header.counts.get("pages.read"):
        without_page[header.source] = ""
    else:
        without_page.setdefault(header.source, f"{header.source}: {_why_no_page(header)}")
    return header.counts


def _why_no_page(header: WorkHeader) -> str:
    """Returns why a file has records, but no page."""
    kind = header.recipe.input_format
    damage = {name: number for name, number in header.counts.items() if name.startswith("damage.")}
    if kind == "WET" and damage:
        kinds = ", ".join(f"{name.removeprefix('damage.')} {number:,}" for name, number in damage.items())
        return f"its data are damaged ({kinds}): copy it again"
    if kind == "WET":
        return "none of its records has text (conversion): give --from warc if it is a WARC file"
    counts = {name.rpartition(".")[2]: number for name, number in header.counts.items()}
    found = ", ".join(f"{name} {number:,}" for name, number in counts.items())
    if kind == "text":
        return f"it has no text that can be read ({found})" if found else "it has no rows"
    advice = "; leave out --from warc if it is a WET file" if "other_type" in counts else ""
    return f"none of its records is an HTML response ({found}){advice}"


_REQUESTS = 16  # to a store, at the same time


def check_state(plan: CleanPlan, progress: Progress) -> WorkState:
    """Checks the done files of a plan, and returns the state of its work folder.

    A damaged work file is set aside, with a note, and counts as not done. In an object store only the headers are read,
    because the store checks its objects itself.

    Raises UsageError where another recipe, other lists or another input were used; C4pipeError where an input can't be
    read.
    """
    state = work_state(plan)
    local = isinstance(plan.work, Path)
    inputs = InputOpener(plan.options.network)
    with ThreadPoolExecutor(allowed_cores().most if local else _REQUESTS, thread_name_prefix="done") as pool:
        damaged = list(pool.map(partial(_damage, plan, inputs), state.done))
    if not any(damaged):
        return state
    for file, damage in zip(state.done, damaged, strict=True):
        if damage:
            _set_aside(plan.target(file), *damage, progress)
    return work_state(plan)


def _damage(plan: CleanPlan, inputs: InputOpener, file: InputFile) -> tuple[StoragePath, DamagedFileError] | None:
    """Returns the damaged file of a done input, and the error about it; None if no file is damaged."""
    target = plan.target(file)
    suspect = target
    try:
        header = read_named_header(target)
        check_done(target, header, file.size, plan.recipe, plan.fingerprint)
        if file.size is not None:
            ends = _ends(inputs, file.path, file.size)
            check_ends(target, header, ends)
        if isinstance(target, Path):
            check_pages(target)
            suspect = examples.examples_file(target)
            examples.read_examples(target)
        if annotate := plan.options.annotation:
            suspect = annotate.path(file.work_name)
            check_annotated_file(annotate, file.work_name, plan.recipe, plan.fingerprint, header.ends_sha256)
    except DamagedFileError as error:
        return suspect, error
    return None


def _ends(inputs: InputOpener, path: str, size: int) -> str:
    try:
        return digest_ends(partial(inputs.read_range, path), size)
    except OSError as error:
        raise C4pipeError(f"{path} can't be compared with its work file: {error}") from error


def _set_aside(target: StoragePath, path: StoragePath, error: DamagedFileError, progress: Progress) -> None:
    try:
        aside = set_aside(path)
        target.unlink(missing_ok=True)
    except OSError as refused:
        raise C4pipeError(f"{path} is damaged and can't be renamed: {refused}") from error
    reason = str(error).partition("; ")[0]
    progress.note(f"{reason}; it is now {aside.name}, and its input file is cleaned again")


def note_unaudited(keep: KeepDropped, sources: Sequence[str], job: str, progress: Progress) -> None:
    """Notes the number of finished files whose dropped pages were not kept."""
    if lacking := sources_without_dropped(keep, sources, job):
        progress.note(
            f"{job} was done before for {len(lacking)} of {len(sources)} files, without --keep-dropped, and is not "
            f"done again: the pages that it dropped from these are not in {keep.folder}"
        )
