"""The jobs as functions, for Python: `c4pipe.build_corpus` and others. Arguments are the options of the commands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from c4pipe.clean.text_cleaner import Cleaner
from c4pipe.clean.trace import PageVerdict
from c4pipe.corpus.opened import Corpus, open_corpus
from c4pipe.io.arguments import checks_arguments
from c4pipe.io.options import PathArgument, comma_separated, takes_options
from c4pipe.io.paths import StoragePath
from c4pipe.io.words import format_count, short_repr
from c4pipe.jobs.add import add
from c4pipe.jobs.build import build
from c4pipe.jobs.clean import clean
from c4pipe.jobs.clean_plan import plan_clean
from c4pipe.jobs.dedup import dedup
from c4pipe.jobs.dedup_plan import plan_dedup
from c4pipe.jobs.options import AddOptions, BuildOptions, CleanOptions, DedupOptions, ImportOptions
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.events import Progress
from c4pipe.wet.inputs import Missing


@dataclass(frozen=True)
class CleanResult:
    """The result of `clean_files`.

    Attributes:
        path: the work folder.
        counts: the counters over all files, such as `pages.read` and `pages.dropped.<rule>`.
        missing: `name`, `path` and `error` of each file that could not be downloaded or has no record.
    """

    path: StoragePath
    counts: Mapping[str, int]
    missing: tuple[Missing, ...]

    def __repr__(self) -> str:
        pages, files = self.counts.get("pages.cleaned", 0), format_count(len(self.missing), "file")
        return short_repr(self, self.path, f"{format_count(pages, 'page')} left for dedup", f"{files} missing")


@takes_options(BuildOptions)
def build_corpus(options: BuildOptions) -> Corpus:
    """Builds a corpus from WET files: cleans each file, then removes duplicates. The command `c4pipe build`.

    The same call after an interruption goes on from there; after its end, it returns the finished corpus at once.

    {options}

    Returns the finished corpus; its `manifest["missing"]` lists the files that could not be downloaded or
    have no record.

    Raises UsageError for an argument that can't be met, before any work is done; C4pipeError if the job can't go on,
    and its subclass LostDataError if the runner lost data.
    """
    build(options, Progress(options.progress))
    return open_corpus(options.folder)


@takes_options(CleanOptions)
def clean_files(options: CleanOptions) -> CleanResult:
    """Cleans WET files, each to a work file of the pages that passed. Job 1 alone, the command `c4pipe clean`.

    A file that already has a work file is not cleaned again.

    {options}

    Raises the errors of `build_corpus`.
    """
    plan = plan_clean(options)
    counts = clean(plan, Progress(options.progress))
    return CleanResult(options.folder, counts, tuple(plan.missing()))


@takes_options(DedupOptions)
def dedup_files(options: DedupOptions) -> Corpus:
    """Makes a corpus without duplicates of one or more work folders, all of one recipe. The command `c4pipe dedup`.

    {options}

    Returns the corpus and raises the errors as `build_corpus` does.
    """
    dedup(plan_dedup(options), Progress(options.progress))
    return open_corpus(options.folder)


@takes_options(AddOptions)
def add_files(options: AddOptions) -> Corpus:
    """Adds the pages of work folders to a finished corpus, without what the corpus has. The command `c4pipe add`.

    Of work files that are a part of the corpus already, nothing is added.

    {options}

    Returns the whole corpus. Raises the errors of `build_corpus`.
    """
    add(options, Progress(options.progress))
    return open_corpus(options.folder)


@takes_options(ImportOptions)
def import_text(options: ImportOptions) -> Corpus:
    """Makes a corpus of text: Parquet, JSON Lines and plain text. The command `c4pipe import`.

    The same call after an interruption goes on from there; after its end, it returns the finished corpus at once.

    {options}

    Returns the corpus and raises the errors as `build_corpus` does.
    """
    build(options, Progress(options.progress))
    return open_corpus(options.folder)


@checks_arguments
def explain_text(
    text: str,
    *,
    url: str | None = None,
    recipe: PathArgument | Recipe = "c4",
    languages: str | Sequence[str] = (),
    lists: PathArgument | None = None,
    links: Sequence[PathArgument] = (),
    language_model: PathArgument | None = None,
) -> PageVerdict:
    """Returns what each rule of a recipe decides about a text. The command `c4pipe explain`.

    Args:
        text: the text of a page.
        url: the URL of the text; recipes that look at URLs need it.

    The other arguments are as in `build_corpus`. To explain many texts, use the method `explain` of one `Cleaner`.

    Returns a verdict with `reason` (the rule that drops the text, or None), `rules` (the decision of each page rule),
    `lines` (the decision of the line rules about each line) and `text` (the lines that stay).

    Raises UsageError as `Cleaner` does.
    """
    codes = comma_separated(languages)
    return Cleaner(recipe, languages=codes, lists=lists, links=links, language_model=language_model).explain(
        text, url=url
    )
