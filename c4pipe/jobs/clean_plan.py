"""The plan of job 1, `clean`: its options are checked, its recipe, lists and files looked up."""

from dataclasses import dataclass
from functools import cached_property

from c4pipe.clean import dropped_pages, work_folder
from c4pipe.clean.annotated_folder import check_annotated
from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.clean.work_folder import work_path
from c4pipe.errors import UsageError
from c4pipe.filters.column_rules import ColumnBelow, missing
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.filters.lines import FewWords
from c4pipe.io.paths import StoragePath, check_inner, storage_path
from c4pipe.jobs.import_text import find_text
from c4pipe.jobs.options import BuildOptions, CleanOptions, ImportOptions
from c4pipe.lists.lists import LISTS_FOLDER
from c4pipe.recipes.choose import ListedRecipe, choose_recipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.events import Progress
from c4pipe.runners.runner import check_runner
from c4pipe.text.scripts.words import note_on_words
from c4pipe.wet.columns import COPIES_COLUMN, CRAWL_PROVENANCE, parse_columns
from c4pipe.wet.extraction import choose_extraction
from c4pipe.wet.inputs import InputFile, Missing, find_inputs


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

    Args:
        options: what the user asked for.
        progress: gets a note for each wait when a server refuses the list of a crawl.

    Raises UsageError for an option that can't be met, C4pipeError if the list of a crawl's files can't be downloaded.
    """
    check_runner(options)
    dropped = options.dropped
    _check_annotate_folder(options)
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
    else:
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
    columns = dict(parse_columns(recipe.columns))
    if COPIES_COLUMN in recipe.columns and not recipe.has(NearDuplicate.name):
        raise UsageError(
            f"--copies: recipe {recipe.name} has no rule near_duplicate: give a recipe file with "
            'on = ["near_duplicate"], or leave the option out'
        )
    for _, rule in recipe.rules():
        if isinstance(rule, ColumnBelow) and columns.get(rule.column) not in ("int", "float"):
            raise UsageError(f"recipe {recipe.name}: {missing(rule, 'the inputs')}")


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
