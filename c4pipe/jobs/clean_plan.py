"""The plan of job 1: the recipe, its lists and the WET files that the options name, checked and looked up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from c4pipe.clean import missing
from c4pipe.clean.annotated_folder import check_annotated
from c4pipe.clean.work_folder import work_path
from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath, list_names, storage_path
from c4pipe.io.retry import OnWait
from c4pipe.jobs.annotated_inputs import AnnotatedInputs, check_annotate_folder, check_annotated_options, find_annotated
from c4pipe.jobs.options import CleanOptions, check_input_kind
from c4pipe.jobs.text_inputs import find_text
from c4pipe.recipes import pinned_lists, recipe_lists
from c4pipe.recipes.choose import choose_recipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.runners.events import Progress
from c4pipe.runners.runner import check_runner
from c4pipe.wet.html_text import choose_extraction
from c4pipe.wet.inputs import InputFile, find_inputs


@dataclass(frozen=True)
class CleanPlan:
    """What job 1 has to do.

    Attributes:
        options: what the user asked for.
        recipe: the recipe, with the languages asked for.
        lists: the lists that the recipe needs.
        files: the files to clean, by name.
        notes: sentences that the user should know before the job runs.
        ends: the digests of the ends of WET files, by name, where their annotated files are the inputs.
        absent: notes of the WET files that could not be downloaded when they were to be annotated.
    """

    options: CleanOptions
    recipe: Recipe
    lists: Lists
    files: tuple[InputFile, ...]
    notes: tuple[str, ...] = ()
    ends: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[Mapping[str, str], ...] = ()

    @cached_property
    def work(self) -> StoragePath:
        """The absolute path of the work folder: a worker may run in any folder."""
        return self.options.work.absolute()

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the recipe with its lists."""
        return self.recipe.fingerprint(self.lists.digests)

    def target(self, file: InputFile) -> StoragePath:
        """Returns the path of a file's work file."""
        return work_path(self.work, file)


def plan_clean(options: CleanOptions, progress: Progress | None = None) -> CleanPlan:
    """Checks the options of job 1, and looks up what they name. Changes nothing.

    Args:
        options: what the user asked for.
        progress: gets a note for each wait, where a server refuses the list of a crawl.

    Raises UsageError for an option that can't be met, C4pipeError if the list of a crawl's files can't be downloaded.
    """
    check_runner(options.runner)
    if options.layout is None:
        check_input_kind(options.input_kind)
    check_annotated_options(options)
    check_annotate_folder(options)
    recipe = choose_recipe(options.recipe, options.languages, options.language_model)
    made = options.layout.extraction if options.layout else choose_extraction(options.input_kind, options.extract)
    recipe = recipe.with_extraction(made)
    cache = options.network.cache
    if options.work.exists() and not options.work.is_dir():
        raise UsageError(f"--work {options.work} is a file: give a folder")
    if cache is not None and cache.exists() and not cache.is_dir():
        raise UsageError(f"--cache {cache} is a file: give a folder")
    if options.max_missing is not None and options.max_missing < 0:
        raise UsageError(f"--max-missing {options.max_missing}: give 0 or more")
    notes: list[str] = []
    if options.input_kind == "annotated":
        found = find_annotated(options.inputs)
        recipe = recipe.with_extraction(found.extraction)
    elif options.layout:
        files = find_text(options.inputs, options.layout, options.needed, options.selection)
        found = AnnotatedInputs(files, {}, (), recipe.extraction)
    else:
        files = find_inputs(options.inputs, options.selection, note_wait(progress), notes.append, options.input_kind)
        found = AnnotatedInputs(files, {}, (), recipe.extraction)
    folder = pinned_lists.lists_dir(options.lists)
    lists = recipe_lists.gather_lists(recipe, folder, options.links, options.language_model)
    plan = CleanPlan(options, recipe, lists, found.files, tuple(notes), found.ends, found.missing)
    if options.annotate:
        check_annotated(options.annotate, recipe, plan.fingerprint)
    return plan


def note_wait(progress: Progress | None) -> OnWait | None:
    """Returns what tells the user of each wait for a server; None without progress."""
    return (lambda wait: progress.note(f"waits: {wait}")) if progress else None


@dataclass(frozen=True)
class WorkState:
    """How far a work folder is: each file of a plan is in one of these.

    Attributes:
        done: files that have a work file, and an annotated file where that is asked for.
        missing: files without one that are recorded as missing: they could not be downloaded.
        open: files that have neither.
    """

    done: tuple[InputFile, ...]
    missing: tuple[InputFile, ...]
    open: tuple[InputFile, ...]


def work_state(plan: CleanPlan) -> WorkState:
    """Returns how far the folders of a plan are, by one look at the names in them."""
    present = list_names(plan.work)
    annotate = plan.options.annotate
    annotated = list_names(storage_path(annotate.folder)) if annotate else set()
    done, absent, open_files = [], [], []
    for file in plan.files:
        target = plan.target(file)
        if target.name in present and (annotate is None or annotate.path(file.name).name in annotated):
            done.append(file)
        elif missing.missing_note(target).name in present:
            absent.append(file)
        else:
            open_files.append(file)
    return WorkState(tuple(done), tuple(absent), tuple(open_files))
