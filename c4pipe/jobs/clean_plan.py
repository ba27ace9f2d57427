"""The plan of job 1, `clean`, from its options, and the state of its work folder: which files are cleaned and whole."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from c4pipe.clean import examples, work_folder
from c4pipe.clean.annotated_folder import check_annotated, check_annotated_file
from c4pipe.clean.dropped_pages import KeepDropped, prepare_dropped
from c4pipe.clean.work_file import check_pages
from c4pipe.clean.work_folder import check_done, read_named_header, set_aside, work_path
from c4pipe.errors import C4pipeError, DamagedFileError, UsageError
from c4pipe.filters.column_rules import ColumnRule
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.filters.lines import FewWords
from c4pipe.io.atomic import clear_abandoned
from c4pipe.io.paths import StoragePath, check_inner, check_is_folder, list_names, storage_path
from c4pipe.io.streams import InputOpener, digest_ends
from c4pipe.jobs.options import BuildOptions, CleanOptions, ImportOptions
from c4pipe.lists.lists import LISTS_FOLDER
from c4pipe.recipes.choose import ListedRecipe, choose_recipe, text_versions
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.events import Progress
from c4pipe.runners.machine_limits import allowed_cores
from c4pipe.runners.runner import check_runner
from c4pipe.text.scripts.words import note_on_words
from c4pipe.wet.columns import COPIES_COLUMN, CRAWL_PROVENANCE, USAGE_COLUMN, parse_columns
from c4pipe.wet.extraction import choose_extraction
from c4pipe.wet.inputs import InputFile, Missing, find_inputs


@dataclass(frozen=True)
class CleanPlan:
    """The plan of job 1.

    Attributes:
        options: the options of the user.
        listed: the recipe, with its languages and lists.
        files: the files to clean, by name.
        notes: sentences that the user should know before the job runs.
        dropped: the dropped pages to keep, and their folder; None to keep none.
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
    def file_count(self) -> int:
        """The number of input files; a file with parts counts once."""
        return len({file.name for file in self.files})

    @property
    def loads(self) -> dict[str, int]:
        """The bytes of each file, or 1 for each if they are not known, by the name of its work file."""
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

    `progress` gets a note for each wait when a server refuses the list of a crawl.

    Raises UsageError for an option that can't be met, C4pipeError if the list of a crawl's files can't be downloaded.
    """
    check_runner(options)
    dropped = options.dropped
    _check_annotate_folder(options)
    recipe = choose_recipe(options.recipe, options.language_codes, options.language_model, options.score, options.label)
    if isinstance(options, ImportOptions):
        made = options.layout.extraction
    else:
        made = choose_extraction(options.input_kind, options.extract)
    recipe = recipe.with_extraction(made)
    check_is_folder("--work", options.work_folder)
    if options.network.cache is not None:
        check_is_folder("--cache", options.network.cache)
    if options.max_missing is not None and options.max_missing < 0:
        raise UsageError(f"--max-missing {options.max_missing}: give 0 or more")
    notes: list[str] = []
    columns: tuple[str, ...] = CRAWL_PROVENANCE if options.provenance else ()
    if isinstance(options, ImportOptions):
        from c4pipe.jobs.import_text import find_text

        files, columns = find_text(options, notes.append)
    else:
        if options.usage and not made:
            raise UsageError("--usage is for WARC files, which have headers of HTTP: add --from warc, or leave it out")
        columns += (USAGE_COLUMN,) if options.usage else ()
        on_wait = progress.note_wait if progress else None
        files = find_inputs(options.input_names, options.selection, on_wait, notes.append, options.input_kind)
    recipe = recipe.with_columns(columns + ((COPIES_COLUMN,) if options.copies else ()))
    _check_columns(recipe)
    listed = ListedRecipe.gather(recipe, options.lists, options.links, options.language_model)
    if note := note_on_words(recipe.need(FewWords).scripts):
        notes.append(note)
    plan = CleanPlan(options, listed, files, tuple(notes), dropped)
    if options.annotation:
        check_annotated(options.annotation, recipe, plan.listed.fingerprint)
    return plan


def _check_columns(recipe: Recipe) -> None:
    """Raises UsageError if a rule needs a column that the pages do not carry, or a column needs a rule."""
    if COPIES_COLUMN in recipe.columns and not recipe.has(NearDuplicate.name):
        raise UsageError(
            f"--copies: recipe {recipe.name} has no rule near_duplicate: give a recipe file with "
            'on = ["near_duplicate"], or leave the option out'
        )
    columns = dict(parse_columns(recipe.input_columns))
    for _, rule in recipe.rules():
        if isinstance(rule, ColumnRule) and columns.get(rule.column) not in rule.types:
            raise UsageError(f"recipe {recipe.name}: {rule.missing('the inputs')}")
        columns |= dict(parse_columns(rule.made_columns))


def _check_annotate_folder(options: CleanOptions | BuildOptions | ImportOptions) -> None:
    """Raises UsageError if annotated files are to be written into a folder that has other files."""
    annotate = options.annotation
    if annotate is None:
        return
    folder = storage_path(annotate.folder).absolute()
    for what, other in {"--work": options.work_folder, "--output": options.folder}.items():
        if other.absolute() == folder:
            raise UsageError(f"--annotate {annotate.folder} is also {what}: give a folder of its own")
    if not isinstance(options, CleanOptions) and str(folder).startswith(f"{options.folder.absolute()}/"):
        raise UsageError(
            f"--annotate {annotate.folder} is inside the folder of the corpus: give a folder outside of it"
        )


class WorkState(NamedTuple):
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
    """Returns the state of the work folder, from one listing of each folder of a plan."""
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


_REQUESTS = 16  # to a store, at the same time


def check_state(plan: CleanPlan, progress: Progress) -> WorkState:
    """Checks the done files of a plan, and returns the state of its work folder.

    A damaged work file is set aside, with a note, and counts as not done. In an object store only the headers are read,
    because the store checks its objects itself.

    Raises UsageError if another recipe, other lists or another input were used; C4pipeError if an input can't be
    read.
    """
    state = work_state(plan)
    local = isinstance(plan.work, Path)
    inputs = InputOpener(plan.options.network)
    with ThreadPoolExecutor(allowed_cores().most if local else _REQUESTS, thread_name_prefix="done") as pool:
        versions = text_versions(plan.recipe) if state.open or state.missing else None
        damaged = list(pool.map(partial(_damage, plan, inputs, versions), state.done))
    if not any(damaged):
        return state
    for file, damage in zip(state.done, damaged, strict=True):
        if damage:
            _set_aside(plan.target(file), *damage, progress)
    return work_state(plan)


def _damage(
    plan: CleanPlan, inputs: InputOpener, versions: str | None, file: InputFile
) -> tuple[StoragePath, DamagedFileError] | None:
    """Returns the damaged file of a done input, and the error about it; None if no file is damaged."""
    target = plan.target(file)
    suspect = target
    try:
        header = read_named_header(target)
        source = None if file.size is None else (file.size, _ends(inputs, file.path, file.size))
        check_done(target, header, source, plan.recipe, plan.listed.fingerprint, versions)
        if isinstance(target, Path):
            check_pages(target)
            suspect = examples.examples_file(target)
            examples.stored_examples(target)
        if annotate := plan.options.annotation:
            suspect = annotate.path(file.work_name)
            check_annotated_file(annotate, file.work_name, plan.recipe, plan.listed.fingerprint, header.ends_sha256)
    except DamagedFileError as error:
        return suspect, error
    return None


def _ends(inputs: InputOpener, path: str, size: int) -> str:
    try:
        return digest_ends(partial(inputs.read, path), size)
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


def prepare_work(plan: CleanPlan, progress: Progress) -> WorkState:
    """Prepares the work folder and returns its state. Removes records of missing files: these are tried again."""
    check_inner(plan.work, LISTS_FOLDER)
    clear_abandoned(plan.work)
    clear_abandoned(plan.work / LISTS_FOLDER)
    if plan.options.annotation:
        clear_abandoned(storage_path(plan.options.annotation.folder))
    plan.listed.lists.save(plan.work / LISTS_FOLDER)
    state = check_state(plan, progress)
    if state.missing or state.open:
        names = [file.work_name for file in plan.files]
        work_folder.note_planned(plan.work, names, plan.options.input_names)
    for file in state.missing:
        work_folder.missing_note(plan.target(file)).unlink(missing_ok=True)
    again = [file.work_name for file in (*state.missing, *state.open)]
    prepare_dropped(plan.dropped, "clean", [file.work_name for file in state.done], again, progress)
    return state
